"""A world read in a child process equals the world read in this process."""

from __future__ import annotations

import io
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from botyard.codec.messages import VERSION, Channel, DamagedMessage, write_message
from botyard.controllers.registry import controller_names
from botyard.errors import BotyardError
from botyard.formats import reading
from botyard.formats.base import Options
from botyard.formats.budget import Budget
from botyard.formats.mapsearch import builtin_maps
from botyard.formats.models import find_robot, model_names
from botyard.formats.reading import Limits, Reading, ReadingFailed, Request
from botyard.formats.registry import load_world
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Scene, SpecialWalls
from botyard.model.world import PlacedRobot, Program, Settings, World, thing

PROGRAMS = tuple(controller_names())


def asked(name: str, **more: Any) -> Request:
    limits = Limits.of(more.pop("options", Options()), PROGRAMS)
    return Request(name=name, limits=limits, **more)


def messages(request: Request) -> tuple[bytes, Any]:
    """Return the bytes that are sent to the child process, and the bytes of its answer."""
    way, back = io.BytesIO(), io.BytesIO()
    write_message(way, "read", request, Request)
    way.seek(0)
    there = Channel(way, {"read": Request}).read()
    assert there is not None
    assert there[1] == request
    reading.answer(
        there[1],
        lambda kind, body: write_message(back, kind, body, reading.TYPES[kind]),
    )
    back.seek(0)
    channel = Channel(back, reading.TYPES)
    return back.getvalue(), iter(channel.read, None)


def over_there(request: Request) -> tuple[Reading, list[str]]:
    warnings: list[str] = []
    _, answers = messages(request)
    return reading.receive_reading(
        answers, Budget(), warnings.append, lambda trace: pytest.fail(trace)
    ), warnings


def same(a: World, b: World) -> None:
    for field in fields(Scene):
        x, y = getattr(a.scene, field.name), getattr(b.scene, field.name)
        if isinstance(x, np.ndarray):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
        else:
            assert x == y, field.name
            assert repr(x) == repr(y), "of the same types"

    assert a.robots == b.robots
    assert repr(a.robots) == repr(b.robots)
    assert (a.settings, dict(a.options)) == (b.settings, dict(b.options))


@pytest.mark.parametrize("name", sorted(builtin_maps()))
def test_shipped_maps(name: str) -> None:
    found, warnings = over_there(asked(name, folders=()))
    assert found.path == builtin_maps()[name].resolve()
    assert found.modified == reading.modified(builtin_maps()[name])
    assert found.world is not None
    same(found.world, load_world(name))
    assert warnings == []


def test_every_model_and_everything_of_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [find_robot(name) for name in model_names()]
    robots = [
        PlacedRobot(
            spec=s,
            name=f"r{i}",
            pose=Pose(float(i), 0.0, 1.0),
            program=Program(name="walk", options={"area": [0, 1.5]}),
        )
        for i, s in enumerate(specs * 3)
    ]
    robots += [
        PlacedRobot(spec=thing()),
        replace(robots[0], name="", pose=None, program=None, served=False),
    ]
    box = load_world("office").scene.boxes
    boxes = (
        tuple(
            BoxObject(name=f"b{i}", pose=Pose(float(i)), length=1.0, width=2.0)
            for i in range(450)
        )
        + box
    )
    scene = replace(load_world("office").scene, boxes=boxes, segments=np.zeros((0, 4)))
    world = World(
        scene=scene,
        robots=tuple(robots),
        settings=Settings(seed=5, speed=0.0),
        options={"noise": None, "a": [1, "b"]},
    )
    monkeypatch.setattr(reading, "read_world", lambda source, options: world)
    found, _ = over_there(asked("x", data=b""))
    assert found.path is None
    assert found.world is not None
    same(found.world, world)
    assert len({id(r.spec) for r in found.world.robots}) == len(
        {id(r.spec) for r in world.robots}
    ), "a model that many share is one: that makes adding them fast"


def test_errors_are_those_of_a_reader_here(tmp_path: Path) -> None:
    bad = tmp_path / "bad.map"
    bad.write_text("2D-Map\nResolution: fine\nDATA\n0 0\n")
    cases = {
        "bad.map": asked("bad.map", folders=(str(tmp_path),)),
        str(tmp_path / "gone.map"): asked(str(tmp_path / "gone.map")),
        "x.map": asked("x.map", folders=(str(tmp_path),)),
        "sent.yaml": asked(
            "sent.yaml", data=b"map: office\nrobots: [{model: nonsense}]\n"
        ),
        "sent.xyz": asked("sent.xyz", data=b""),
    }
    for request in cases.values():
        with pytest.raises(BotyardError) as here:
            reading.read(request, lambda text: None)
        with pytest.raises(ReadingFailed) as there:
            over_there(request)
        assert str(there.value) == str(here.value)

    with pytest.raises(ReadingFailed, match=r"bad\.map:2: "):
        over_there(cases["bad.map"])


def test_the_budget_and_all_other_options_go_along(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_text(
        "2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 0\nNumLines: 1\nLINES\n0 0 9000 0\n"
    )
    options = Options(
        budget=Budget(bytes=20),
        resolution=0.5,
        invert=True,
        threshold=0.25,
        planar=False,
        topic="/map",
    )
    limits = Limits.of(options, PROGRAMS)
    assert {f.name for f in fields(Options)} - {f.name for f in fields(Limits)} == {
        "warn",
        "is_program",
    }
    again = limits.options(print)
    assert (
        again.budget,
        again.resolution,
        again.invert,
        again.threshold,
        again.planar,
        again.topic,
    ) == (
        options.budget,
        0.5,
        True,
        0.25,
        False,
        "/map",
    )
    assert again.is_program("walk")
    assert not again.is_program("dance")
    with pytest.raises(ReadingFailed, match="--max-read bytes"):
        over_there(asked(str(path), options=options))


def test_a_map_that_is_in_place_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_text(
        "2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 0\nNumLines: 1\nLINES\n0 0 9000 0\n"
    )
    when = reading.modified(path)
    request = asked("A.map", folders=(str(tmp_path),), present=(str(path), when))
    assert over_there(request)[0].world is None
    assert (
        over_there(replace(request, present=(str(path), when - 1)))[0].world is not None
    )
    assert (
        over_there(replace(request, present=(str(tmp_path / "b.map"), when)))[0].world
        is not None
    )


def test_remarks_come_along_but_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chatty(source: Any, options: Options) -> World:
        for k in range(300):
            options.warn(f"remark {k}\n" + "x" * 1000)
        return World(scene=Scene())

    monkeypatch.setattr(reading, "read_world", chatty)
    _, warnings = over_there(asked("x", data=b""))
    assert len(warnings) == 201
    assert warnings[-1] == "100 more remarks about this file are not shown"
    assert warnings[0].startswith("remark 0\\n")
    assert len(warnings[0]) <= 500


def test_a_reader_with_a_fault_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: Any, options: Options) -> World:
        raise ZeroDivisionError("raised by the reader")

    monkeypatch.setattr(reading, "read_world", broken)
    traces: list[str] = []
    _, answers = messages(asked("x", data=b""))
    with pytest.raises(
        ReadingFailed, match=r"ZeroDivisionError\('raised by the reader'\)"
    ):
        reading.receive_reading(answers, Budget(), print, traces.append)
    assert "in broken" in traces[0]


def forged(kind: str, body: object) -> bytes:
    """Return a message whose body may have a wrong type, as a child process can send
    it.
    """
    arrays: list[Any] = []

    def index(array: Any) -> int:
        arrays.append(array)
        return len(arrays) - 1

    inside = msgspec.Raw(msgspec.msgpack.encode(body, enc_hook=index))
    shapes = [(a.dtype.str, a.shape) for a in arrays]
    head = msgspec.msgpack.encode((VERSION, kind, shapes, inside))
    return b"".join((len(head).to_bytes(4, "little"), head, *arrays))


def test_what_a_process_sends_that_was_taken_over_is_no_world() -> None:
    def told(change: Any, budget: Budget = Budget(), last: int = 99) -> Reading:
        """Return the result of reading the messages of a small world with one message
        changed.
        """
        world = World(
            scene=Scene(segments=np.ones((2, 4))), robots=(PlacedRobot(spec=thing()),)
        )
        sent: list[tuple[str, Any]] = []
        reading.send_reading(
            Reading(None, 0, world), lambda kind, body: sent.append((kind, body))
        )
        file = io.BytesIO()
        for kind, body in sent[:last]:
            file.write(forged(kind, change(kind, body)))
        file.seek(0)
        return reading.receive_reading(
            iter(Channel(file, reading.TYPES).read, None), budget, print, print
        )

    def scene(name: str, value: object) -> Any:
        def change(kind: str, body: Any) -> Any:
            if kind == "head":
                # Set a value that no constructor would allow.
                object.__setattr__(
                    body.scene,
                    name,
                    value,
                )

            return body

        return change

    def robot(spec: int) -> Any:
        return lambda kind, body: (
            [replace(body[0], spec=spec)] if kind == "robots" else body
        )

    assert told(lambda kind, body: body).world is not None
    for name, value in (
        ("segments", np.ones((2, 3))),
        ("segments", np.ones(8)),
        ("segments", np.full((2, 4), np.nan)),
        ("points", np.full((1, 2), np.inf)),
        ("resolution", 0.0),
        ("resolution", float("nan")),
        ("name", 5),
        ("start", "here"),
        ("special_walls", (SpecialWalls(first=0, last=3, returns=Returns()),)),
        ("traced", "cells"),
        ("boxes", ("a",)),
    ):
        with pytest.raises((DamagedMessage, BotyardError)):
            told(scene(name, value))

    for number in (1, -1):
        with pytest.raises(ReadingFailed, match="expected a model for each"):
            told(robot(number))

    with pytest.raises(BotyardError, match="--max-read vertices"):
        told(scene("segments", np.ones((20, 4))), Budget(vertices=20))
    with pytest.raises(ReadingFailed, match="ended early"):
        told(lambda kind, body: body, last=2)
    with pytest.raises(ReadingFailed, match="sent no map or world"):
        reading.receive_reading([("end", None)], Budget(), print, print)


def test_a_map_of_a_stranger_cannot_be_named() -> None:
    with pytest.raises(ReadingFailed) as here:
        over_there(asked("../../etc/passwd", folders=("/tmp",)))
    assert "no such map" in str(here.value)
