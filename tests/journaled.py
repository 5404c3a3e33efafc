"""Repeat every run of a simulation from the bytes of its scene and its journal: the
result must be the same at every tick (TODO-031).

With ``BOTYARD_JOURNAL=1`` (`make test-long`) each simulation that a test creates in its
own process is watched. Some tests always watch theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botyard.engine.simulation import Engine
from botyard.model import devices
from botyard.recording.codec import (
    decode_entry,
    decode_scene,
    encode_entry,
    encode_scene,
)
from botyard.sim.journal import Entry
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation

PARAMETERS = inspect.signature(Simulation.__init__)


class Watched:
    """A simulation with its initial scene, its journal, and its digest after each step."""

    def __init__(self, sim: Simulation, arguments: dict[str, Any]) -> None:
        self.sim, self.arguments = sim, arguments
        if arguments.get("scene") is not None:
            arguments["scene"] = decode_scene(encode_scene(arguments["scene"]))
        self.entries: list[Entry] = []
        self.digests: list[int] = []
        self.failures: list[Exception] = []
        self.kinds: dict[
            str, Any
            # Devices that the test has registered may be missing when the run is repeated.
        ] = {}
        self.unregister = sim.core.journal.listen(self._keep)

    def _keep(self, entry: Entry) -> None:
        self.kinds.update(devices._KNOWN)
        try:
            self.entries.append(decode_entry(encode_entry(entry)))
        except Exception as error:
            self.failures.append(error)

    def again(self) -> Simulation:
        """Return the initial world again."""
        with _off():
            sim = Simulation(**self.arguments)
        return sim

    def check(self) -> None:
        """Repeat the run and compare."""
        self.unregister()
        assert not self.failures, f"entries that have no bytes: {self.failures}"
        sim = self.again()
        first = sim.tick
        for k, digest in enumerate(resimulate(sim, self.entries, self.sim.tick)):
            assert digest == self.digests[k], (
                f"tick {first + k + 1}: another digest than in the first run; "
                f"{len(self.entries)} changes, the last before it: "
                f"{[e for e in self.entries if e.tick <= first + k][-3:]}"
            )

        assert sim.digest() == self.sim.digest(), (
            "after the last step, something was changed behind the journal's back"
        )


class _State:
    on = True


@contextmanager
def _off() -> Iterator[None]:
    before, _State.on = _State.on, False
    try:
        yield
    finally:
        _State.on = before


@contextmanager
def watching() -> Iterator[list[Watched]]:
    """Watch all simulations created in the block, and repeat each run at its end."""
    watched: list[Watched] = []
    of: dict[int, Watched] = {}
    # These may already be wrapped by an enclosing `watching()`, so wrap what is there now.
    begin, step = Simulation.__init__, Engine.step

    def init(sim: Simulation, *args: Any, **kwargs: Any) -> None:
        begin(sim, *args, **kwargs)
        if _State.on:
            given = dict(PARAMETERS.bind(sim, *args, **kwargs).arguments)
            given.pop("self")
            given["warn"] = lambda text: None
            watched.append(Watched(sim, given))
            of[id(sim.core.engine)] = watched[-1]

    def one(engine: Engine, n: int = 1) -> Any:
        watch = of.get(id(engine))
        if watch is None:
            return step(engine, n)
        for _ in range(n):
            step(engine, 1)
            watch.digests.append(watch.sim.digest())

        return engine.snapshot

    with (
        mock.patch.object(Simulation, "__init__", init),
        mock.patch.object(Engine, "step", one),
    ):
        yield watched
        with _off():
            for watch in watched:
                with mock.patch.dict(devices._KNOWN, watch.kinds):
                    watch.check()
