"""The first body with mass of a running simulator waits for its kernels; all other work
goes on.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from botyard.app.compose import Parts, compose
from botyard.control import (
    USER,
    AddedRobots,
    AddRobot,
    AddRobots,
    CloneRobots,
    LoadMap,
    adding,
)
from botyard.errors import BotyardError, NameTakenError
from botyard.formats.models import find_robot
from botyard.model.dynamics import DynamicsSpec
from botyard.native.cache import Cache
from botyard.servers.jobs import maploading, masskernels
from botyard.sim.simulation import Simulation
from botyard.worlds import warmup
from tests.ports import free_port
from tests.waiting import PATIENCE

HEAVY = replace(find_robot("box"), dynamics=DynamicsSpec(mass=2.0))


class Compiler:
    """Reports missing kernels, and has them when the test says so."""

    def __init__(self) -> None:
        self.asked, self.done = threading.Event(), threading.Event()
        self.problem: Exception | None = None

    def has(self) -> bool:
        return self.done.is_set()

    def get(self) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.asked.set()
        self.done.wait(PATIENCE)
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    made = Compiler()
    monkeypatch.setattr(adding, "library_model", lambda name: HEAVY)
    monkeypatch.setattr(warmup, "has_mass_kernels", made.has)
    monkeypatch.setattr(masskernels, "get_mass_kernels", made.get)
    monkeypatch.setattr(maploading, "get_mass_kernels", made.get)
    yield made
    made.done.set()


def running(act: Callable[[Parts], Awaitable[None]], folder: Path = Path()) -> None:
    """Call a function with a running simulator."""

    async def run() -> None:
        parts = compose(
            Simulation(),
            interval=0.001,
            port=free_port(4),
            folders=[folder],
            limits=None,
        )
        steps = asyncio.ensure_future(parts.hub.run())
        try:
            await act(parts)
        finally:
            parts.hub.stop()
            await steps
            parts.close()

    asyncio.run(run())


async def goes_on(parts: Parts, compiler: Compiler) -> None:
    """Check that steps are made during compilation, and that waiting bodies are not yet
    present.
    """
    while not compiler.asked.is_set():
        await asyncio.sleep(0)
    tick = parts.hub.sim.tick
    while parts.hub.sim.tick < tick + 3:
        await asyncio.sleep(0.001)
    assert parts.hub.sim.core.engine.dynamics is None


@pytest.mark.parametrize(
    ("operation", "count"),
    [(AddRobot(model="crate"), 1), (AddRobots(model="crate", number=3), 3)],
)
def test_robots_wait_for_their_kernels(
    compiler: Compiler, operation: Any, count: int
) -> None:
    async def act(parts: Parts) -> None:
        added = parts.control.do(USER, operation)
        await goes_on(parts, compiler)
        assert not parts.hub.sim.robots
        compiler.done.set()
        arrived = await asyncio.wrap_future(added)
        assert len(arrived.robots) == len(parts.hub.sim.robots) == count
        more = parts.control.do(USER, AddRobot(model="crate"))
        assert more.done(), "the next one comes at once"
        cloned = await asyncio.wrap_future(
            parts.control.do(USER, CloneRobots(robots=more.result().robots))
        )
        assert cloned.robots[0] in parts.hub.sim.robots

    running(act)


def test_a_name_that_was_taken_meanwhile_is_told(compiler: Compiler) -> None:
    async def act(parts: Parts) -> None:
        both = [
            parts.control.do(USER, AddRobot(model="crate", robot="ann"))
            for _ in range(2)
        ]
        await goes_on(parts, compiler)
        compiler.done.set()
        answers = await asyncio.gather(
            *map(asyncio.wrap_future, both), return_exceptions=True
        )
        assert {type(answer) for answer in answers} == {AddedRobots, NameTakenError}

    running(act)


def test_kernels_that_cannot_be_had_cost_that_robot(compiler: Compiler) -> None:
    async def act(parts: Parts) -> None:
        compiler.problem = BotyardError("no room")
        added = parts.control.do(USER, AddRobot(model="crate"))
        await goes_on(parts, compiler)
        compiler.done.set()
        with pytest.raises(BotyardError, match="no room"):
            await asyncio.wrap_future(added)
        assert not parts.hub.sim.robots

    running(act)


def test_a_map_with_masses_waits_for_them(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "crates.yaml").write_text(
        "botyard: 1\nobstacles: [{name: crate, box: [0.6, 0.4], pose: [2, 0, 0], "
        "dynamics: {mass: 5}}]\n"
    )
    world = tmp_path / "crates.yaml"

    async def act(parts: Parts) -> None:
        loaded = parts.control.do(USER, LoadMap(map=world.name))
        await goes_on(parts, compiler)
        compiler.done.set()
        assert await asyncio.wrap_future(loaded)
        assert parts.hub.sim.core.engine.dynamics is not None

    running(act, tmp_path)


def test_another_process_compiles_where_the_cache_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[str] = []
    monkeypatch.setattr(warmup, "has_mass_kernels", lambda: False)
    monkeypatch.setattr(
        masskernels, "_compile_elsewhere", lambda: done.append("elsewhere")
    )
    monkeypatch.setattr(warmup, "warm_up_masses", lambda: done.append("here"))
    monkeypatch.setattr(masskernels, "cache_of", lambda _: Cache(tmp_path, True))
    masskernels.get_mass_kernels()
    assert done == ["elsewhere", "here"], "what the other has compiled is loaded here"
    (tmp_path / "masses.move_masses-1.py311.1.nbc").touch()
    masskernels.get_mass_kernels()
    assert done[2:] == ["here"], "it is in the cache"
    monkeypatch.setattr(masskernels, "cache_of", lambda _: Cache(tmp_path, False))
    masskernels.get_mass_kernels()
    assert done[3:] == ["here"], "what another process compiles would be lost"


def test_the_other_process_ends_with_this_one(tmp_path: Path) -> None:
    began: list[Any] = []

    class Helper(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if not began:
                began.append(self)
                assert self.stdin is not None
                # The end of this process closes the pipe in the same way.
                self.stdin.close()

            return super().wait(PATIENCE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Helper)
        # With a filled cache the compilation would soon be done.
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        masskernels._compile_elsewhere()

    assert began[0].returncode in (-9, 1), "it did not come to its end by itself"
    assert not list(tmp_path.rglob("masses.move_masses-*.nbc")), (
        "it did not go on to the end"
    )
