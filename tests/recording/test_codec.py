"""Values of a recording as bytes and back, equal to the last bit; foreign bytes give
one kind of error.
"""

from __future__ import annotations

import contextlib
import re
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.codec.messages import VERSION
from botyard.engine import commands, demand
from botyard.engine.layout import Control, OdometryErrorMode
from botyard.engine.objectdigest import object_digest
from botyard.engine.steering import SetSteering
from botyard.engine.velocities import SetVelocities
from botyard.errors import RecordingError
from botyard.formats.budget import Budget
from botyard.formats.registry import load_world
from botyard.geometry import Pose, Twist
from botyard.model import devices as kinds
from botyard.model.devices import Device, DeviceSpec, Field
from botyard.model.floor import Floor, FloorZone
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot, robot_names
from botyard.model.objects import (
    ActuatorSpec,
    Described,
    JointSpec,
    RaySensorSpec,
    VehicleSpec,
    ViewSpec,
    WheelSpec,
)
from botyard.model.obstacles import BoxObject, Returns, Visible
from botyard.model.scene import Area, GeoReference, Place, Scene, SpecialWalls
from botyard.model.tracing import TracedCells
from botyard.recording.codec import (
    Setup,
    changes,
    decode_entry,
    decode_model,
    decode_scene,
    decode_setup,
    encode_driven,
    encode_drives,
    encode_entry,
    encode_model,
    encode_scene,
    encode_setup,
)
from botyard.sim import journal, resimulation
from botyard.sim.journal import Change, Entry
from botyard.sim.statehead import COMMANDS
from botyard.sim.twist import SetTwist
from tests.model.test_robotfile import gains, masses, outlines, poses, returns, robots

ROOT = Path(__file__).parents[2]

# -- random changes

floats = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
names = st.text(max_size=8)
arrays = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4).map(
    np.array
)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
sides = st.floats(0.0, 1e9) | st.integers(0, 10**9)
boxes = st.builds(
    BoxObject,
    name=names,
    pose=poses,
    length=sides,
    width=sides,
    returns=returns,
    color=names,
    parts=st.lists(outlines, max_size=2).map(tuple),
    dynamics=st.none() | masses,
)
tables = st.integers(0, 4).flatmap(
    lambda n: st.lists(
        st.tuples(*[st.floats(-1e9, 1e9)] * 4), min_size=n, max_size=n
    ).map(lambda rows: np.array(rows, np.float64).reshape(-1, 4))
)
scenes = st.builds(
    lambda walls, **others: Scene(
        segments=walls,
        special_walls=(
            SpecialWalls(first=0, last=len(walls), returns=Returns(laser=2)),
        ),
        points=walls[:, :2],
        traced=(
            TracedCells(
                first=0,
                last=len(walls),
                rows=3,
                columns=len(walls),
                width=0.1,
                height=0.2,
                origin=Pose(1.0, 2.0, 0.5),
            ),
        ),
        **others,
    ),
    tables,
    name=names,
    source=names,
    map_file=names,
    resolution=st.floats(1e-3, 10.0) | st.integers(1, 9),
    boxes=st.lists(boxes, max_size=2).map(tuple),
    places=st.lists(
        st.builds(Place, kind=names, name=names, pose=poses, has_heading=st.booleans()),
        max_size=2,
    ).map(tuple),
    areas=st.lists(
        st.builds(Area, kind=names, name=names, corners=outlines), max_size=2
    ).map(tuple),
    view=st.none() | st.tuples(*[floats] * 4),
    start=st.none() | poses,
    georeference=st.none() | st.builds(GeoReference, *[floats] * 3),
)
described = st.builds(
    Described,
    bodies=st.lists(boxes, max_size=1).map(tuple),
    carried=st.lists(names, max_size=2).map(tuple),
    joints=st.lists(
        st.builds(
            JointSpec,
            name=names,
            parent=names,
            child=names,
            at=poses,
            low=floats,
            gains=st.none() | gains,
        )
    ).map(tuple),
    sensors=st.lists(
        st.builds(
            RaySensorSpec,
            name=names,
            rays=st.lists(poses, max_size=2).map(tuple),
            range=floats,
        )
    ).map(tuple),
    views=st.lists(
        st.builds(
            ViewSpec, name=names, parameters=st.dictionaries(names, plain, max_size=2)
        ),
        max_size=2,
    ).map(tuple),
    vehicles=st.lists(
        st.builds(
            VehicleSpec,
            name=names,
            chassis=names,
            wheels=st.lists(st.builds(WheelSpec, x=floats, y=floats), max_size=2).map(
                tuple
            ),
        ),
        max_size=1,
    ).map(tuple),
    actuators=st.lists(
        st.builds(ActuatorSpec, name=names, parent=names, at=poses), max_size=1
    ).map(tuple),
)
models = robots | boxes | described
orders: dict[type[Any], st.SearchStrategy[Any]] = {
    **{
        kind: st.builds(kind, *[st.none() | floats] * 3)
        for kind in (commands.SetVelocity, commands.SetLimits)
    },
    **{
        kind: st.builds(kind, floats)
        for kind in (commands.MoveBy, commands.TurnTo, commands.TurnBy)
    },
    **{
        kind: st.builds(kind)
        for kind in (commands.Stop, commands.EmergencyStop, commands.Halt)
    },
    **{
        kind: st.builds(kind, st.booleans())
        for kind in (commands.EnableMotors, commands.Hold)
    },
    **{
        kind: st.builds(kind, poses)
        for kind in (commands.SetPose, commands.SetOdometry)
    },
    commands.SetRamp: st.builds(
        commands.SetRamp, st.integers(0, 2), st.none() | floats, st.none() | floats
    ),
    SetSteering: st.builds(SetSteering, floats, st.none() | floats, st.none() | floats),
    commands.SetPoseAxis: st.builds(
        commands.SetPoseAxis, st.integers(0, 2), st.floats(-1e7, 1e7)
    ),
    commands.SetVisible: st.builds(
        commands.SetVisible, st.integers(0, 15).map(Visible)
    ),
    commands.RestoreLimits: st.builds(
        commands.RestoreLimits, st.builds(Axes, floats, floats), st.builds(Axes), floats
    ),
    commands.SetOdometryErrors: st.builds(
        commands.SetOdometryErrors,
        st.sampled_from(OdometryErrorMode),
        st.integers(0, 2**64 - 1),
    ),
    demand.Demand: st.builds(
        demand.Demand,
        st.sampled_from([Control.FORCE, Control.POSE, Control.TWIST]),
        st.tuples(*[st.floats(-1e5, 1e5)] * 3),
    ),
    SetTwist: st.builds(SetTwist, st.builds(Twist, *[st.floats(-1e5, 1e5)] * 3)),
}
some_names = st.lists(names, max_size=3).map(tuple)
zones = st.builds(
    FloorZone,
    name=st.just("a"),
    corners=st.just(((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))),
    slip=st.floats(0.0, 0.9),
)
done: dict[type[Change], st.SearchStrategy[Any]] = {
    journal.Submit: st.builds(journal.Submit, names, st.one_of(*orders.values())),
    journal.SubmitEach: st.lists(
        st.tuples(names, *[st.none() | floats] * 3), max_size=4
    ).map(
        lambda rows: (
            journal.SubmitEach(*map(tuple, zip(*rows, strict=True)))
            if rows
            else journal.SubmitEach((), (), (), ())
        )
    ),
    journal.SubmitVelocities: st.builds(
        journal.SubmitVelocities,
        st.builds(
            SetVelocities,
            st.lists(st.integers(0, 99)).map(lambda v: np.array(v, np.int64)),
            *[st.none() | arrays] * 3,
        ),
    ),
    journal.AddRobots: st.builds(
        journal.AddRobots, robots, some_names, st.lists(poses, max_size=2).map(tuple)
    ),
    journal.Unserve: st.builds(journal.Unserve, some_names),
    journal.RemoveRobots: st.builds(journal.RemoveRobots, some_names),
    journal.RenameRobots: st.builds(journal.RenameRobots, some_names, some_names),
    journal.AddBox: st.builds(journal.AddBox, names, boxes),
    journal.RemoveBox: st.builds(journal.RemoveBox, names),
    journal.ReplaceScene: st.builds(journal.ReplaceScene, scenes),
    journal.ReplaceFloor: st.builds(
        journal.ReplaceFloor, st.none() | st.builds(Floor, color=st.just("red"))
    ),
    journal.SetZone: st.builds(journal.SetZone, zones),
    journal.RemoveZone: st.builds(journal.RemoveZone, names),
    journal.MarkFloor: st.builds(
        journal.MarkFloor,
        names,
        st.just(((1.0, 2.0), (0.5, -0.0))),
        st.tuples(floats, floats),
    ),
    journal.ClearField: st.builds(journal.ClearField, names),
    journal.SetDynamics: st.builds(journal.SetDynamics, names, st.none() | masses),
    journal.Attach: st.builds(journal.Attach, names, names),
    journal.Detach: st.builds(journal.Detach, names),
    journal.Describe: st.builds(journal.Describe, described),
    journal.WriteDevice: st.builds(
        journal.WriteDevice,
        names,
        st.integers(0, 99),
        st.dictionaries(names, plain, max_size=3),
    ),
    journal.SetRays: st.builds(
        journal.SetRays,
        names,
        st.integers(0, 9),
        st.none() | st.tuples(floats, floats, st.integers(1, 9)),
    ),
    journal.SetParameters: st.builds(
        journal.SetParameters,
        names,
        st.dictionaries(names, st.lists(floats, max_size=3), max_size=3),
    ),
    journal.Claim: st.builds(journal.Claim, names, st.booleans()),
    journal.Settle: st.builds(journal.Settle),
    journal.Reset: st.builds(
        journal.Reset,
        st.integers(0, 2**62),
        st.integers(0, 99),
        st.none() | st.lists(poses, max_size=2).map(tuple),
    ),
    journal.Restore: st.builds(
        journal.Restore, st.binary(max_size=99), st.lists(models, max_size=2).map(tuple)
    ),
}
entries = st.builds(
    Entry,
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    names,
    st.one_of(*done.values()),
)


def exact(value: object) -> bytes:
    """Return all bits of a value:

    1 and 1.0, 0.0 and −0.0, and NaNs differ, lists and tuples do not.
    """

    def hook(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            return [one.dtype.str, one.shape, one.tobytes()]
        return int(one) if isinstance(one, Enum) else one.item()

    return msgspec.msgpack.encode([type(value).__name__, value], enc_hook=hook)


@given(entries)
@settings(max_examples=150)
def test_an_entry_has_the_same_bits_again(entry: Entry) -> None:
    again = decode_entry(encode_entry(entry))
    assert exact(again) == exact(entry)
    assert type(again.change) is type(entry.change)
    command = getattr(entry.change, "command", None)
    assert type(getattr(again.change, "command", None)) is type(command)
    if not isinstance(
        entry.change,
        (
            journal.SubmitVelocities,
            journal.ReplaceScene,
            journal.WriteDevice,
            journal.Describe,
            journal.Restore,
        ),
    ):
        # Changes with arrays or NaN cannot be compared by ==, so leave them out.
        assert again == entry


@given(
    tick=st.integers(0, 2**62),
    source=st.text(max_size=20),
    name=st.text(max_size=20),
    axes=st.tuples(
        *[
            st.none()
            | st.floats(-1e6, 1e6)
            | st.integers(-5, 5)
            | st.builds(np.float64, st.floats(-9, 9))
        ]
        * 3
    ),
)
def test_a_velocity_is_written_by_the_short_way_as_by_the_long_one(
    tick: int, source: str, name: str, axes: tuple[Any, Any, Any]
) -> None:
    """The recorder keeps commands as plain tuples until they are written; different
    bytes could not be read.
    """
    entry = Entry(
        tick, tick + 1, source, journal.Submit(name, commands.SetVelocity(*axes))
    )
    v, w, vy = axes
    driven = (tick, tick + 1, source, name, v, w, vy)
    assert encode_driven(driven) == encode_entry(entry)
    each = journal.SubmitEach((name, "b"), (v, 1.0), (w, None), (vy, None))
    several = [driven, (tick, tick + 2, source, "b", 1.0, None, None)]
    assert encode_drives(several) == encode_entry(Entry(tick, tick + 1, source, each))


def test_a_velocity_that_is_no_number_is_refused() -> None:
    with pytest.raises(RecordingError, match="entry: it cannot be recorded"):
        encode_driven((0, 1, "api", "ann", object(), None, None))  # type: ignore[arg-type]


@given(scenes)
def test_a_scene_has_the_same_bits_again(scene: Scene) -> None:
    assert exact(decode_scene(encode_scene(scene))) == exact(scene)
    assert object_digest(decode_scene(encode_scene(scene))) == object_digest(scene)


@given(models)
def test_a_model_has_the_same_digest_again(model: Any) -> None:
    again = decode_model(encode_model(model))
    assert type(again) is type(model)
    assert object_digest(again) == object_digest(model)
    assert exact(again) == exact(model)


@given(
    st.builds(
        Setup,
        seed=st.integers(0, 2**64 - 1),
        step=floats,
        odometry_error=names,
        sensor_noise=st.booleans(),
        threads=st.integers(1, 9),
        range_step=floats,
    )
)
def test_a_setup_is_the_same_again(setup: Setup) -> None:
    assert exact(decode_setup(encode_setup(setup))) == exact(setup)


def test_every_kind_of_change_can_be_written_and_done_again() -> None:
    assert set(changes().values()) == set(done), "a new change needs a strategy here"
    missing = {kind.__name__ for kind in changes().values()} - {
        kind.__name__ for kind in resimulation.REPLAYS
    }
    assert not missing, f"nobody does them again: {missing}"


def test_every_command_can_be_written() -> None:
    """Commands are classes that write a row of the state, wherever they are defined."""
    found = {
        name
        for path in (ROOT / "src/botyard").rglob("*.py")
        for name in re.findall(
            r"^class (\w+)\b(?:(?!^class ).)*?^    def apply\(self, state: State, \w+: ",
            path.read_text("utf-8"),
            re.MULTILINE | re.DOTALL,
        )
    } - {"Command"}
    assert len(found) > 10
    assert found == set(COMMANDS), "who saves and records knows each"
    assert set(orders) == {*COMMANDS.values()} - {SetVelocities}, (
        "a new command needs a strategy here"
    )


@pytest.mark.parametrize("name", robot_names())
def test_every_model_of_the_library(name: str) -> None:
    model = load_robot(name)
    assert decode_model(encode_model(model)) == model
    assert object_digest(decode_model(encode_model(model))) == object_digest(model)


def is_world(path: Path) -> bool:
    """Return whether it is a map or a scenario; examples also have YAML for other
    programs.
    """
    if path.suffix == ".yaml" and "examples" in path.parts:
        return any(
            line.startswith("botyard:") for line in path.read_text("utf-8").splitlines()
        )

    return path.suffix in (".map", ".world", ".yaml", ".png")


WORLDS = sorted(
    str(p.relative_to(ROOT))
    for folder in ("src/botyard/maps", "examples")
    for p in (ROOT / folder).rglob("*")
    if is_world(p)
)


@pytest.mark.parametrize("path", WORLDS)
def test_every_map_and_scenario_of_the_repository(path: str) -> None:
    found = load_world(ROOT / path)
    assert object_digest(decode_scene(encode_scene(found.scene))) == object_digest(
        found.scene
    )
    for placed in found.robots:
        assert object_digest(decode_model(encode_model(placed.spec))) == object_digest(
            placed.spec
        )


def test_whole_numbers_stay_whole_and_a_digest_with_them() -> None:
    box = BoxObject(name="b", pose=Pose(1, 2, 0), length=1, width=2)
    again = decode_model(encode_model(box))
    assert isinstance(again, BoxObject) and isinstance(again.length, int)
    assert (
        object_digest(again)
        == object_digest(box)
        != object_digest(replace(box, length=1.0))
    )


# -- devices of plug-ins


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermometerSpec(DeviceSpec):
    type: str = field(default="thermometer", init=False)
    pose: Pose = Pose()
    points: tuple[tuple[float, float], ...] = ()
    least: float = kinds.parameter(0.0, low=-10.0, high=10.0)


def test_a_device_of_a_plug_in_is_found_by_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kinds, "_KNOWN", dict(kinds._KNOWN))
    kinds.register(
        Device(
            name="thermometer",
            about="-",
            spec=ThermometerSpec,
            read=lambda spec, view: 0.0,
            fields=(Field("t"),),
            rows=lambda t: [(t,)],
        )
    )
    spec = replace(
        load_robot("p3dx"),
        devices=(
            ThermometerSpec(pose=Pose(0.1, 0.0, 1.0), points=((1, 2.5),), least=-3.0),
        ),
    )
    data = encode_model(spec)
    assert decode_model(data) == spec
    assert object_digest(decode_model(data)) == object_digest(spec)
    del kinds._KNOWN["thermometer"]
    with pytest.raises(RecordingError, match='no device "thermometer"'):
        decode_model(data)


# -- values that cannot be written


@dataclass(frozen=True, slots=True)
class _Homemade:
    v: float = 0.0

    def apply(self, state: Any, row: int) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("value", [object(), 2**70, lambda: None, "\ud800"])
def test_what_is_not_data_is_refused(value: object) -> None:
    with pytest.raises(RecordingError, match="cannot be recorded"):
        encode_entry(Entry(0, 1, "api", journal.WriteDevice("t", 0, {"a": value})))


def test_a_command_of_a_program_s_own_class_is_refused() -> None:
    with pytest.raises(RecordingError, match="_Homemade"):
        encode_entry(Entry(0, 1, "api", journal.Submit("r", _Homemade())))


# -- foreign bytes

SAMPLES: list[tuple[bytes, Callable[[bytes], object]]] = [
    (
        encode_scene(
            Scene(
                segments=np.array([[0.0, 0.0, 1.0, 1.0]]),
                places=(Place(kind="Dock", name="d", pose=Pose()),),
            )
        ),
        decode_scene,
    ),
    (encode_model(load_robot("p3dx-equipped")), decode_model),
    (
        encode_entry(
            Entry(
                3,
                1,
                "api",
                journal.WriteDevice("t", 0, {"a": [1.0, [2]], "b": {"c": True}}),
            )
        ),
        decode_entry,
    ),
    (
        encode_entry(
            Entry(
                3,
                1,
                "x",
                journal.SubmitVelocities(SetVelocities(np.arange(3), v=np.ones(3))),
            )
        ),
        decode_entry,
    ),
    (
        encode_entry(
            Entry(
                0,
                1,
                "x",
                journal.Submit("r", demand.Demand(Control.POSE, (1.0, 2.0, 3.0))),
            )
        ),
        decode_entry,
    ),
]


@given(st.sampled_from(SAMPLES), st.data())
@settings(max_examples=500)
def test_damaged_bytes_end_in_one_kind_of_error(
    sample: tuple[bytes, Callable[[bytes], object]], data: st.DataObject
) -> None:
    whole, decode = sample
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=6)
        )
        damaged = damaged or bytearray(1)

    with contextlib.suppress(RecordingError):
        decode(bytes(damaged))


@given(st.sampled_from(SAMPLES), st.data())
def test_what_is_cut_short_is_refused(
    sample: tuple[bytes, Callable[[bytes], object]], data: st.DataObject
) -> None:
    whole, decode = sample
    with pytest.raises(RecordingError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    for _, decode in SAMPLES:
        with pytest.raises(RecordingError):
            decode(data)


def _message(
    kind: str, body: bytes, arrays: object = (), version: int = VERSION
) -> bytes:
    head = msgspec.msgpack.encode([version, kind, arrays, msgspec.Raw(body)])
    return struct.pack("<I", len(head)) + head


def _free(value: bytes) -> bytes:
    return _message(
        "entry",
        msgspec.msgpack.encode(
            {
                "tick": 0,
                "order": 0,
                "source": "",
                "change": [
                    "WriteDevice",
                    {"table": "", "row": 0, "values": {"a": msgspec.Raw(value)}},
                ],
            }
        ),
    )


BOMBS = {
    "list of four thousand million": _free(b"\xdd\xff\xff\xff\xff"),
    "map of four thousand million": _free(b"\xdf\xff\xff\xff\xff"),
    "deep": _free(b"\x91" * 1_000_000 + b"\xc0"),
    "rather deep": _free(b"\x91" * 300 + b"\xc0"),
    "a million empty lists": _free(b"\xdd\x00\x50\x00\x00" + b"\x90" * 0x500000),
    "a million places": _message(
        "scene", b"\x81\xa6places\xdd\x00\x10\x00\x00" + b"\x80" * 0x100000
    ),
    "a million arrays": _message("scene", b"\x80", [["<f8", [0]]] * 100_000),
    "array without end": _message(
        "scene", b"\x80", [["<f8", [2**47, 2**47, 0]], ["<f8", [2**47]]]
    ),
    "array of objects": _message("scene", b"\x80", [["|O", [0]]]),
    "array of records": _message("scene", b"\x80", [["<f8,<f8", [0]]]),
    "array of less than nothing": _message("scene", b"\x80", [["<f8", [-1, -8]]]),
    "head beyond the end": struct.pack("<I", 2**32 - 1) + b"\x80",
    "another version": _message("scene", b"\x80", version=VERSION + 1),
    "another kind": _message("model", b"\x80"),
    "a field of another version": _message("scene", b"\x81\xa5doors\x00"),
    "a field that is missing": _message("entry", b"\x81\xa4tick\x00"),
    "a change that nobody knows": _message(
        "entry",
        msgspec.msgpack.encode(
            {"tick": 0, "order": 0, "source": "", "change": ["Explode", {}]}
        ),
    ),
    "a time": _free(msgspec.msgpack.encode(msgspec.msgpack.Ext(-1, b"\0\0\0\0"))),
    "an extension": _free(msgspec.msgpack.encode(msgspec.msgpack.Ext(5, b"x"))),
}


@pytest.mark.parametrize("what", BOMBS)
def test_bombs_end_early(what: str) -> None:
    data = BOMBS[what]
    decode = decode_entry if b"entry" in data[:20] else decode_scene
    tracemalloc.start()
    try:
        with pytest.raises(RecordingError) as caught:
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(data) + 2**20
    finally:
        tracemalloc.stop()

    assert len(str(caught.value)) < 500


def test_the_budget_is_said_and_can_be_raised() -> None:
    data = encode_scene(Scene(segments=np.zeros((1000, 4))))
    with pytest.raises(
        RecordingError,
        match=r"at most 1000 bytes, found \d+ \(budget.bytes raises this limit\)",
    ):
        decode_scene(data, Budget(bytes=1000))

    assert len(decode_scene(data, Budget(bytes=len(data))).segments) == 1000


def test_another_version_says_so() -> None:
    with pytest.raises(
        RecordingError,
        match=f"expected version {VERSION}, found {VERSION + 1}: "
        "another version of botyard wrote it",
    ):
        decode_scene(BOMBS["another version"])
