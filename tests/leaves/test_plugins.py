"""One lookup for all groups of entry points:

packages add objects, and a broken package stops no other.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import botyard
from botyard import testing
from botyard.api.plugins import Group
from botyard.controllers import registry as controllers
from botyard.errors import (
    ArgumentError,
    BotyardError,
    CommandLineError,
    FormatError,
    ModelError,
    WorldError,
)
from botyard.formats import models
from botyard.formats import registry as formats
from botyard.interfaces import registry as interfaces
from botyard.learning import catalog
from botyard.model import devices, library
from botyard.testing import check_map_format, check_robot_model
from botyard.traffic.supervisors import registry as supervisors
from botyard.traffic.supervisors.base import SupervisorError
from tests.cli.test_cli import call
from tests.packages import install

ROOT = Path(__file__).resolve().parents[2]

Find = Callable[[str], object]
GROUPS: dict[str, tuple[Group[object], Find, type[BotyardError]]] = {
    "botyard.controllers": (
        controllers.PACKAGED,
        controllers.find_controller,
        CommandLineError,
    ),
    "botyard.devices": (devices.PACKAGED, devices.find_device, ModelError),
    "botyard.interfaces": (interfaces.PACKAGED, interfaces.find_interface, WorldError),
    "botyard.learning_tasks": (catalog.PACKAGED, catalog.find_task, ArgumentError),
    "botyard.map_formats": (formats.PACKAGED, formats.PACKAGED.find, FormatError),
    "botyard.robot_models": (library.PACKAGED, library.load_robot, ModelError),
    "botyard.supervisors": (
        supervisors.PACKAGED,
        supervisors.find_supervisor,
        SupervisorError,
    ),
}
"""Every group, how one thing of it is found by name, and the error when that fails."""

WALLS = '''
"""Maps of walls as lines of four numbers, m."""
import numpy as np

from botyard.errors import MapError
from botyard.formats.base import Format, Options, Source
from botyard.model.scene import Scene
from botyard.model.world import World


def read(source: Source, options: Options) -> World:
    rows = []
    for number, line in enumerate(source.data.decode("latin-1").splitlines(), 1):
        try:
            row = [float(word) for word in line.split(",")]
        except ValueError:
            raise MapError("expected four numbers", source.name, number) from None
        if len(row) != 4 or not np.isfinite(row).all():
            raise MapError("expected four finite numbers", source.name, number)
        rows.append(row)
    return World(scene=Scene(segments=np.array(rows).reshape(-1, 4), name=source.name))


FORMAT = Format(name="wallscsv", about="walls as lines of four numbers", suffixes=(".walls",), read=read)
'''


def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """Install a package without its module, and one with the wrong object."""
    install(
        tmp_path,
        monkeypatch,
        name="broken-package",
        entries={group: {"broken": "no_such_module:IT"}},
    )
    install(
        tmp_path,
        monkeypatch,
        name="wrong-package",
        entries={group: {"wrong": "math:pi"}},
    )


@pytest.mark.parametrize("group", GROUPS)
def test_a_broken_package_is_left_out_with_a_warning_that_names_it(
    group: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken(tmp_path, monkeypatch, group)
    one, find, error = GROUPS[group]
    with caplog.at_level(logging.WARNING):
        assert one.load_all() == {}
        assert one.load_all() == {}, "and is warned of once"

    first, second = (record.getMessage() for record in caplog.records)
    noun = one.noun
    assert first.startswith(
        f'{noun} "broken" of the package broken-package: no_such_module:IT cannot be loaded: Module'
    )
    assert first.endswith("; it is left out")
    assert second.startswith(
        f'{noun} "wrong" of the package wrong-package: expected {one.expected} in math:pi, found 3.14'
    )
    for name in ("broken", "wrong"):
        with pytest.raises(
            error, match=f'{noun} "{name}" of the package {name}-package'
        ):
            find(name)

    assert {"broken", "wrong"} <= set(one.names()), "names are listed without an import"


@pytest.mark.parametrize("group", sorted(GROUPS.keys() - {"botyard.map_formats"}))
def test_packages_take_no_name_of_botyard_and_none_of_each_other(
    group: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, find, error = GROUPS[group]
    own = sorted(one.own())[0]
    install(
        tmp_path,
        monkeypatch,
        name="thief",
        entries={group: {own: "math:pi", "both": "math:e"}},
    )
    install(tmp_path, monkeypatch, name="other", entries={group: {"both": "math:pi"}})
    with caplog.at_level(logging.WARNING):
        assert one.load_all() == {}
    texts = sorted(record.getMessage() for record in caplog.records)
    pair = "math:e of the package thief, math:pi of the package other"
    assert texts == sorted(
        [
            f'{one.noun} "both": expected one package that provides it, found {pair}; it is left out',
            f'{one.noun} "{own}": expected a name that botyard itself does not use, '
            "found it in math:pi of the package thief; it is left out",
        ]
    )
    assert own not in one and one.find(own) is None
    with pytest.raises(error, match="expected one package that provides it"):
        find("both")


@pytest.mark.parametrize(
    "arguments",
    [
        ("maps", "office"),
        ("models",),
        ("models", "p3dx"),
        ("traffic", "supervisors"),
        ("interfaces",),
    ],
    ids=" ".join,
)
def test_commands_that_list_things_go_on_without_a_broken_package(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for group in GROUPS:
        install(
            tmp_path,
            monkeypatch,
            name=group.replace(".", "-"),
            entries={group: {"broken": "no_such_module:IT"}},
        )

    code, out, _ = call(*arguments, capsys=capsys)
    assert code == 0
    assert len(out.splitlines()) > 1


def test_a_package_adds_a_map_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {"botyard.map_formats": {"walls": "walls_format:FORMAT"}}
    install(
        tmp_path / "site",
        monkeypatch,
        name="walls",
        entries=entries,
        files={"walls_format.py": WALLS},
    )
    (tmp_path / "lab.walls").write_text("0,0,4,0\n4,0,4,3\n")
    sim = botyard.Simulation.load(tmp_path / "lab.walls")
    assert np.array_equal(sim.scene.segments, [[0, 0, 4, 0], [4, 0, 4, 3]])
    (one,) = formats.PACKAGED.load_all().values()
    assert check_map_format(one, [b"0,0,4,0\n4,0,4,3\n"]) == []


ROVER = 'extends = "p3dx"\ndescription = "a rover"\noutline = [[-0.3, -0.25], [0.3, -0.25], [0.3, 0.25], [-0.3, 0.25]]\n'


def install_rover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str = ROVER
) -> None:
    install(
        tmp_path,
        monkeypatch,
        name="rover-robot",
        entries={
            "botyard.robot_models": {"rover": "rover_robot", "rover2": "rover_robot"}
        },
        files={
            "rover_robot/__init__.py": "",
            "rover_robot/rover.toml": text,
            "rover_robot/rover2.toml": 'extends = "rover"\ndescription = "a faster rover"\n',
        },
    )


def test_a_package_adds_robot_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = botyard.robot_names()
    install_rover(tmp_path, monkeypatch)
    assert botyard.robot_names() == tuple(sorted((*before, "rover", "rover2")))
    sim = botyard.Simulation()
    spec = sim.add_robot("Rover2", "ann").spec
    assert (spec.name, spec.description) == ("rover2", "a faster rover")
    low, high = np.min(spec.outline, axis=0), np.max(spec.outline, axis=0)
    assert np.allclose(high - low, (0.6, 0.5))
    assert check_robot_model(spec) == []
    assert library.load_robot("rover") is library.load_robot("ROVER")
    assert library.parse_robot('extends = "rover"', "mine").outline == spec.outline
    code, out, _ = call("models", "rover", capsys=capsys)
    assert code == 0 and "a rover" in out


def test_a_wrong_robot_file_of_a_package_is_an_error_that_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_rover(tmp_path, monkeypatch, 'extends = "p3dx"\nwings = 3\n')
    with pytest.raises(ModelError, match='model rover: there is no key "wings" here'):
        models.load_robot("rover")
    code, out, err = call("models", capsys=capsys)
    assert code == 0 and "p3dx" in out and 'no key "wings"' in err


def test_models_of_packages_that_extend_each_other_in_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_rover(tmp_path, monkeypatch, 'extends = "rover2"\n')
    with pytest.raises(
        ModelError, match="extends: expected a chain of at most 20 models"
    ):
        models.load_robot("rover")


def test_a_package_adds_a_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "def make(robot, seed, **options):\n    return Spin(robot)\n\n\nclass "
        "Spin:\n    def __init__(self, robot):\n"
    )
    code += "        self.robot = robot\n\n    def act(self):\n        self.robot.command(w=0.5)\n"
    entries = {"botyard.controllers": {"spin": "spin_controller:make"}}
    install(
        tmp_path,
        monkeypatch,
        name="spin",
        entries=entries,
        files={"spin_controller.py": code},
    )
    assert "spin" in controllers.controller_names()
    sim = botyard.Simulation()
    robot = sim.add_robot("p3dx", "ann")
    robot.set_controller("spin")
    sim.step(20)
    assert robot.truth.th > 0.1


def test_a_package_adds_a_learning_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from botyard.learning.tasks.navigate import Navigate\n\n\nclass "
        "Visit(Navigate):\n    pass\n"
    )
    entries = {"botyard.learning_tasks": {"Visit": "visit_task:Visit"}}
    install(
        tmp_path,
        monkeypatch,
        name="visit",
        entries=entries,
        files={"visit_task.py": code},
    )
    assert type(catalog.find_task("Visit")).__name__ == "Visit"
    assert catalog.task_names()[-1] == "Visit"
    with pytest.raises(
        ArgumentError, match=r"expected one of Coverage, .*, Visit, a Task"
    ):
        catalog.find_task("Nothing")


def test_every_group_of_the_program_is_in_the_list_of_these_tests() -> None:
    text = "".join(p.read_text("utf-8") for p in (ROOT / "src/botyard").rglob("*.py"))
    used = set(re.findall(r'(?:name=|GROUP: Final = )"(botyard\.\w+)"', text))
    assert used == GROUPS.keys(), (
        "add the new group to GROUPS in tests/leaves/test_plugins.py"
    )


def test_the_page_on_adding_things_names_all_groups_checks_and_files_that_there_are() -> (
    None
):
    page = ROOT / "docs/howto/adding.md"
    text = page.read_text("utf-8")
    unnamed = [
        name for name in GROUPS if f'[project.entry-points."{name}"]' not in text
    ]
    assert not unnamed, f"add a section with an example to {page}"
    checks = [
        name
        for name in testing.__all__
        if name.startswith("check_") and name != "check_session"
    ]
    assert not [name for name in checks if name not in text], (
        f"name the check in {page}"
    )
    named = re.findall(r"`((?:src|tests|docs|examples)/[\w./-]+)`", text)
    there = [name for name in named if "NAME" not in name]
    assert len(there) > 30
    assert not [name for name in there if not (ROOT / name).exists()], (
        f"{page} names files that are not there"
    )
    table = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    missing = [name for name in GROUPS if f"entry points `{name}`" not in table]
    assert not missing, (
        'add a row to the table "Where a new thing goes" of docs/explanation/architecture.md'
    )
