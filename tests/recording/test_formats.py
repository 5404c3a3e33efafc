"""States and recordings of every version of the format are read, or refused with the
version as the reason.

``tests/data/formats`` has a folder for each version, made by ``python -m tools.corpus``
with the program of that time. If a test fails after columns or fields have changed,
increment `botyard.engine.state.VERSION` and make the files of the new version.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np
import pytest
from tools.corpus import FOLDER, WORLDS, poses

from botyard.engine import state as layout
from botyard.engine.objectdigest import object_digest
from botyard.engine.state import READS, VERSION
from botyard.errors import StateError
from botyard.formats.crashstate import decode_state
from botyard.geometry import Pose
from botyard.model import shapes
from botyard.model.devices import loaded_devices
from botyard.model.library import load_robot
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.recording import built, load, resimulate
from botyard.recording.fallback import open_player
from botyard.recording.reader import Reader
from botyard.recording.verify import first_state, recorded_start
from botyard.sim import state as sim_state
from botyard.sim import statehead
from botyard.sim.simulation import Simulation

VERSIONS = sorted(int(folder.name) for folder in FOLDER.iterdir() if folder.is_dir())


def files(*kinds: str) -> list[Path]:
    """Return the files of these kinds, of all versions."""
    return sorted(
        file
        for file in FOLDER.glob("*/*.xz")
        if file.name.removesuffix(".xz").endswith(kinds)
    )


def unpacked(file: Path) -> bytes:
    return lzma.decompress(file.read_bytes())


def said(file: Path) -> dict[str, Any]:
    """Return the values that the writing program stored about its world or the
    recording.
    """
    found = json.loads((file.parent / "said.json").read_text("utf-8"))
    name = file.name.removesuffix(".xz")
    about: dict[str, Any] = found.get(name) or found[name.partition(".")[0]]
    return about


def is_read(file: Path) -> bool:
    return int(file.parent.name) in READS


def recording(file: Path, folder: Path) -> Path:
    """Return an unpacked recording."""
    path = folder / file.name.removesuffix(".xz")
    path.write_bytes(unpacked(file))
    return path


def name_of(file: Path) -> str:
    return f"{file.parent.name}-{file.name.removesuffix('.xz')}"


STATES, RECORDINGS = files(".state"), files(".mcap")


@pytest.fixture
def world_of(tmp_path: Path) -> Any:
    """Return a simulation with the map and the models of a state, from the recording of
    the same world.
    """

    def make(file: Path) -> Simulation:
        path = recording(
            file.with_name(file.name.partition(".")[0] + "-none.mcap.xz"), tmp_path
        )
        with Reader(path) as reader:
            start = recorded_start(reader, first_state(reader, reader.messages()))
        sim = Simulation(start.scene, step=start.setup.step)
        sim.core.states.know(start.models)
        return sim

    return make


def same_place(sim: Simulation, file: Path) -> None:
    about = said(file)
    assert (sim.tick, sim.time, poses(sim)) == (
        about["tick"],
        about["time"],
        about["poses"],
    )


def test_there_is_a_folder_for_each_version() -> None:
    assert list(range(1, VERSION + 1)) == VERSIONS, (
        "python -m tools.corpus makes the files of a new version"
    )
    for version in VERSIONS:
        for world in WORLDS:
            for kind in ("state", "pickle", "crash.json"):
                assert (FOLDER / str(version) / f"{world}.{kind}.xz").exists()


@pytest.mark.parametrize("file", STATES, ids=name_of)
def test_states(file: Path, world_of: Any) -> None:
    """The world continues from the state; states that cannot be read are refused with
    the version.
    """
    sim = world_of(file) if is_read(file) else Simulation()
    if not is_read(file):
        with pytest.raises(
            StateError,
            match=f"expected version .* of the format, found {file.parent.name} ",
        ):
            sim.restore(unpacked(file))

        return

    sim.restore(unpacked(file))
    same_place(sim, file)
    sim.step(3)


def test_a_state_of_the_shipped_map_and_models() -> None:
    """As users have it: map and models come from the program.

    If they have changed since, or are read differently, the state is refused.
    """
    for file in files("office.state"):
        sim = Simulation.load("office")
        why = ""
        try:
            sim.restore(unpacked(file))
        except StateError as error:
            why = str(error)

        if why:
            reasons = (
                f"version {file.parent.name}",
                "robot model",
                'another one of the same name, "office"',
            )
            assert any(reason in why for reason in reasons), why
        else:
            same_place(sim, file)


@pytest.mark.parametrize("file", files(".pickle"), ids=name_of)
def test_pickles(file: Path) -> None:
    if not is_read(file):
        with pytest.raises(StateError, match="version"):
            pickle.loads(unpacked(file))
        return

    sim = pickle.loads(unpacked(file))
    same_place(sim, file)
    sim.step(3)


@pytest.mark.parametrize("file", files(".crash.json"), ids=name_of)
def test_state_files_of_restarts(file: Path, world_of: Any) -> None:
    state, about = decode_state(unpacked(file)), said(file)
    assert state.tick == about["tick"]
    assert {robot.name: list(robot.pose) for robot in state.robots} | {
        name: list(pose) for name, pose in state.boxes.items()
    } == about["poses"]
    if is_read(file):
        sim = world_of(file.with_name(file.name.replace("crash.json", "state")))
        sim.restore(state.world)
        same_place(sim, file)


def test_a_state_file_of_a_later_version_is_refused_for_that() -> None:
    with pytest.raises(ValueError, match="expected version 1 of the format, found 2"):
        decode_state(b'{"version": 2, "ticks": 3}')


@pytest.mark.parametrize("file", RECORDINGS, ids=name_of)
def test_recordings_are_read(file: Path, tmp_path: Path) -> None:
    """Robots have their recorded poses, in arrays and in the replay."""
    path, about = recording(file, tmp_path), said(file)
    run = load(path)
    assert (list(run.robots), len(run.time), len(run.events)) == (
        about["robots"],
        about["rows"],
        about["events"],
    )
    last = np.array(
        [[np.nan if x is None else x for x in row] for row in about["last"]]
    )
    assert np.array_equal(run.poses[-1], last, equal_nan=True)
    player = open_player(path)
    player.seek(float(run.time[-1]))
    if is_read(file):
        assert not [
            problem
            for problem in player.track.problems
            if "shown from its ROS messages" in problem
        ]

    for robot, (x, y, _) in zip(about["robots"], about["last"], strict=True):
        if is_read(file) and x is not None:
            truth = player.sim.robots[robot].truth
            assert (truth.x, truth.y) == pytest.approx((x, y), abs=0.2)


@pytest.mark.parametrize("file", RECORDINGS, ids=name_of)
def test_recordings_are_done_again(file: Path, tmp_path: Path) -> None:
    """The re-simulation is equal, or the report names the program that computed it, as
    results may change between versions.
    """
    path = recording(file, tmp_path)
    if not is_read(file):
        with pytest.raises(Exception, match="version"):
            resimulate(path)
        return

    found = resimulate(path)
    assert found.states >= 2
    assert (
        any("computed this run" in note for note in found.notes)
        or int(file.parent.name) == VERSION
    )


def test_who_computed_a_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim, path = Simulation(), tmp_path / "run.mcap"
    sim.add_robot("amigo", "a")
    with sim.record(path):
        sim.step(3)
    assert not resimulate(path).notes
    monkeypatch.setattr(built, "build", lambda: "0123456789abcdef")
    (note,) = resimulate(path).notes
    assert "computed this run" in note and "0123456789abcdef" in note
    with Reader(path) as reader:
        assert reader.metadata["botyard"]["build"] in note


# -- digests


def test_a_field_with_its_default_changes_no_digest() -> None:
    scene = Simulation.load("office").scene
    model = load_robot("p3dx-equipped")
    for value in (
        scene,
        model,
        Described(),
        BoxObject(name="b", pose=Pose(1.0, 2.0), length=0.3, width=0.2),
    ):
        kind = type(value)
        for default, other in ((0.0, 0.5), ((), (1,)), (None, "x")):
            more = dataclasses.make_dataclass(
                kind.__name__,
                [("new", object, default)],
                bases=(kind,),
                frozen=True,
                kw_only=True,
                slots=True,
            )
            given = {
                f.name: getattr(value, f.name)
                for f in dataclasses.fields(kind)
                if f.init
            }
            assert object_digest(more(**given)) == object_digest(value)
            assert object_digest(more(**given, new=other)) != object_digest(value)


def test_the_order_of_fields_changes_no_digest() -> None:
    box = BoxObject(name="b", pose=Pose(1.0, 2.0), length=0.3, width=0.2)
    given = {f.name: getattr(box, f.name) for f in dataclasses.fields(box)}
    turned = dataclasses.make_dataclass(
        "BoxObject", [(name, Any) for name in reversed(given)], frozen=True
    )
    assert object_digest(turned(**given)) == object_digest(box)


def test_another_value_is_another_digest() -> None:
    """Also where it is the default of its class, as defaults may change."""
    assert object_digest(Scene(name="hall")) != object_digest(Scene())
    assert len(msgspec.msgpack.encode(shapes.digested(Scene()), enc_hook=str)) > 100


def _below(hint: Any, found: set[type[Any]]) -> None:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and hint not in found:
        found.add(hint)
        _each(get_type_hints(hint).values(), found)

    _each(get_args(hint), found)


def _each(hints: Iterable[Any], found: set[type[Any]]) -> None:
    for hint in hints:
        _below(hint, found)


def test_each_class_of_descriptions_has_its_first_fields() -> None:
    """A new class of descriptions needs a line in `botyard.model.shapes`.

    Otherwise a field added later would change digests.
    """
    found = set[type[Any]]()
    _each((Scene, RobotSpec, BoxObject, Described), found)
    _each(
        (
            device.spec
            for device in loaded_devices()
            if device.spec.__module__.startswith("botyard.")
        ),
        found,
    )
    assert len(found) > 30
    for kind in found:
        assert kind.__name__ in shapes.FIRST, (
            f"{kind.__name__}: {' '.join(f.name for f in dataclasses.fields(kind))}"
        )
        assert set(shapes.FIRST[kind.__name__]) <= {
            f.name for f in dataclasses.fields(kind)
        }


def test_pickles_keep_descriptions_by_the_names_of_their_fields() -> None:
    """A class with a new field in the middle reads them correctly; a class that lacks a
    field refuses them.
    """
    sim = Simulation()
    sim.add_robot("amigo", "a")
    _, given = sim.__reduce_ex__(5)
    assert given[0] == VERSION
    box = BoxObject(name="b", pose=Pose(1.0, 2.0), length=0.3, width=0.2)
    assert pickle.loads(pickle.dumps(shapes.packed((box, box), {}))) == (box, box)
    again, (kind, values) = shapes.packed(box.returns, {}).__reduce__()
    assert again(kind, dict(reversed(values.items()))) == box.returns
    assert again(kind, {}) == kind()
    with pytest.raises(
        StateError, match=f"{kind.__name__} has no field doors: another version"
    ):
        again(kind, {**values, "doors": 2})


# -- versions


def test_the_version_comes_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head, columns and map of a later version cannot be judged."""
    sim = Simulation()
    monkeypatch.setattr(statehead, "VERSION", VERSION + 1)
    state = sim.save_state()
    monkeypatch.undo()
    other = Simulation.load("office")
    for use in (other.restore, other.core.states.branch):
        with pytest.raises(
            StateError,
            match=f"expected version {' or '.join(map(str, READS))} .*found {VERSION + 1} ",
        ):
            use(state)

    monkeypatch.setattr(sim_state, "VERSION", VERSION + 1)
    pickled = pickle.dumps(sim)
    monkeypatch.undo()
    with pytest.raises(
        StateError, match=f"expected version .* of the format, found {VERSION + 1}"
    ):
        pickle.loads(pickled)


def test_a_state_of_another_build_is_not_called_one_of_another_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In version 1, digests covered the program's classes:

    a different digest proves nothing.
    """
    sim = Simulation.load("office")
    for version, reason in (
        (1, "may have read the same file differently.*wrote it, in version 1"),
        (2, 'another one of the same name, "office"'),
    ):
        monkeypatch.setattr(statehead, "VERSION", version)
        monkeypatch.setattr(
            statehead, "object_digest", lambda value: b"of other classes"
        )
        state = sim.save_state()
        monkeypatch.undo()
        with pytest.raises(StateError, match=reason):
            Simulation.load("office").restore(state)


def test_digests_of_worlds_are_the_same_in_each_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sim = Simulation.load("office")
    digest = sim.digest()
    monkeypatch.setattr(statehead, "VERSION", 99)
    monkeypatch.setattr(statehead, "__version__", "9.9")
    assert sim.digest() == digest


def test_columns_that_change_are_noticed() -> None:
    """Otherwise new files would have the version of files with other columns."""
    with lzma.open(FOLDER / str(VERSION) / "office.state.xz") as file:
        head, _ = layout.split(file.read(), statehead.Head, 2**30)
    roster = msgspec.msgpack.decode(head.roster, type=statehead.Roster)
    assert roster.schema == layout.schema(
        Simulation.load("office").core.engine, steers=False
    ), (
        "columns have changed: count VERSION up, say in READS what is read, and "
        "run python -m tools.corpus"
    )
