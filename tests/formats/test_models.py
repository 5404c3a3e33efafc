"""Robot models of the user:

files by name, folders, environment (CFG-002, CFG-003, MOD-018, PAR-009).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import botyard
from botyard.control.adding import library_model
from botyard.errors import BotyardError, ModelError, ModelFileError
from botyard.formats.base import Source
from botyard.formats.mapsearch import find_map
from botyard.formats.models import (
    default_map,
    find_robot,
    folders_without_models,
    model_names,
    user_models,
)
from botyard.formats.registry import read_world
from botyard.model.library import load_robot
from botyard.sim.simulation import Simulation


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("AMRISIM", "MOBILESIM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def include(home: Path, folder: str, name: str, text: str) -> Path:
    path = home / folder / "include" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("folder", [".botyard", ".AMRISim", ".MobileSim"])
def test_definitions_in_the_users_folders(home: Path, folder: str) -> None:
    include(
        home,
        folder,
        "robots.inc",
        'define Mine p3dx ( color "blue" )\ndefine sensor laser ( samples 5 )\n',
    )
    include(home, folder, "robots.inc~", "define leftover p3dx ( )\n")
    include(home, folder, ".hidden", "define hidden p3dx ( )\n")
    assert "Mine" in model_names()
    assert not {"sensor", "leftover", "hidden"} & set(model_names())
    mine, stock = find_robot("mine"), find_robot("p3dx")
    assert mine.color == "blue"
    assert np.allclose(mine.outline, stock.outline), "of the model that it extends"
    assert Simulation().add_robot("MINE").spec.name == "Mine"


def test_every_way_finds_the_users_models(home: Path) -> None:
    include(home, ".botyard", "mine.toml", 'extends = "p3dx"\ncolor = "blue"\n')
    spec = find_robot("mine")
    assert (spec.name, spec.color) == ("mine", "blue")
    assert botyard.load_robot("Mine") == spec
    assert Simulation().add_robot("mine").spec == spec
    # Pages, ROS and Pioneer clients look models up by this function.
    assert library_model("mine") == spec
    world = read_world(Source("s.yaml", b"botyard: 1\nrobots: [{model: mine}]\n"))
    assert [r.spec for r in world.robots] == [spec]


def test_toml_and_parameter_files_too(home: Path) -> None:
    include(
        home,
        ".botyard",
        "fast.toml",
        'extends = "p3dx"\n[limits]\nmax_speed = [2, 0, 100]\n',
    )
    include(home, ".botyard", "slow.p", "Subclass slow\nMaxVelocity 100\n")
    assert find_robot("fast").limits.max_speed.x == 2.0
    assert find_robot("slow").limits.max_speed.x == 0.1


def test_definitions_may_build_on_those_of_other_files(home: Path) -> None:
    include(home, ".botyard", "a.inc", "define base p3at ( size [1 1] )\n")
    include(home, ".botyard", "b.inc", 'define derived base ( color "green" )\n')
    assert find_robot("derived").outline != find_robot("p3at").outline


def test_the_users_definition_wins_everywhere(home: Path) -> None:
    # This user model extends the library model of the same name.
    include(
        home,
        ".botyard",
        "a.inc",
        'define p3dx p3dx ( color "black" )\ndefine mine p3dx ( )\n',
    )
    include(home, ".botyard", "ours.toml", 'extends = "p3dx"\n')
    include(home, ".botyard", "p3at.toml", 'extends = "p3at"\ncolor = "black"\n')
    include(home, ".botyard", "b.inc", "define ours2 p3at ( )\n")
    for name in ("p3dx", "P3DX", "mine", "ours", "p3at", "ours2"):
        assert find_robot(name).color == "black", name
    assert find_robot("p3dx").sonar == load_robot("p3dx").sonar
    assert model_names().count("p3dx") == 1
    assert (
        library_model("p3dx").color
        == Simulation().add_robot("p3dx").spec.color
        == "black"
    )
    for world in (
        (
            "s.yaml",
            b"botyard: 1\nmodels: {x: {extends: p3dx}}\nrobots: [{model: x}, {model: p3dx}]\n",
        ),
        (
            "s.world",
            b"define x p3dx ( )\nx ( )\np3dx ( )\n",
        ),
    ):
        assert [r.spec.color for r in read_world(Source(*world)).robots] == [
            "black",
            "black",
        ]

    assert find_robot("p3dx-sh").color == "red", (
        "models of the library keep their bases"
    )


def test_a_changed_original_wins_and_the_include_folder_before_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "PioneerRobotModels.world.inc").write_text(
        'define pioneer position ( color "green" )\ndefine p3dx pioneer ( size [2 1] )\ndefine p3at pioneer ( size [2 1] )\n'
    )
    monkeypatch.setenv("AMRISIM", str(home))
    include(
        home,
        ".AMRISim",
        "a.inc",
        'define p3at position ( color "blue" )\ndefine child p3dx ( )\n',
    )
    assert [
        find_robot(name).color for name in ("p3dx", "child", "pioneer", "p3at")
    ] == [
        "green",
        "green",
        "green",
        "blue",
    ]
    assert (
        find_robot("p3dx").outline
        == find_robot("child").outline
        == ((-1, -0.5), (1, -0.5), (1, 0.5), (-1, 0.5))
    )


def test_models_based_on_each_other_are_refused(home: Path) -> None:
    include(home, ".botyard", "one.toml", 'extends = "two"\n')
    include(home, ".botyard", "two.toml", 'extends = "one"\n')
    with pytest.raises(ModelFileError, match="in a circle: one → two → one"):
        find_robot("one")
    assert find_robot("p3dx").name == "p3dx"


def test_a_changed_file_is_read_again(home: Path) -> None:
    path = include(home, ".botyard", "a.inc", 'define mine p3dx ( color "blue" )\n')
    assert find_robot("mine").color == "blue"
    path.write_text('define mine p3dx ( color "green" )\n# longer\n')
    import os

    os.utime(path, ns=(path.stat().st_mtime_ns + 10**9,) * 2)
    assert find_robot("mine").color == "green"


def test_a_broken_file_is_named_only_when_it_may_matter(home: Path) -> None:
    path = include(home, ".botyard", "bad.inc", "define mine p3dx (\n")
    assert find_robot("p3dx").name == "p3dx"
    assert str(user_models().problems[0]).startswith(f"{path}:1: ")
    with pytest.raises(ModelFileError, match=r"bad\.inc:1"):
        find_robot("mine")


def test_definitions_in_a_circle_harm_no_other(home: Path) -> None:
    include(
        home,
        ".botyard",
        "a.inc",
        "define one two ( )\ndefine two one ( )\ndefine fine p3dx ( )\n",
    )
    assert find_robot("fine").name == "fine"
    assert find_robot("p3dx").name == "p3dx"
    with pytest.raises(ModelFileError, match="based on itself"):
        find_robot("one")


def test_unknown_models_get_a_hint_from_all_sources(home: Path) -> None:
    include(home, ".botyard", "a.inc", "define zebra p3dx ( )\n")
    with pytest.raises(ModelError, match='did you mean "zebra"'):
        find_robot("zebro")


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "x.toml",
            'extends = "p3dx"\ncolour = "red"\n',
            'there is no key "colour" here; did you mean "color"?',
        ),
        ("x.toml", "a = \n", "line 1"),
        ("x.p", "nothing here\n", "expected a robot's parameter file"),
        ("gone.toml", None, "cannot be read"),
        ("gone.p", None, "cannot be read"),
    ],
)
def test_bad_files_end_with_250(
    home: Path, name: str, text: str | None, complaint: str
) -> None:
    path = home / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(BotyardError) as error:
        find_robot(path)
    assert error.value.exit_code == 250
    assert str(path) in str(error.value)
    assert complaint in str(error.value)


@pytest.mark.parametrize("variable", ["AMRISIM", "MOBILESIM"])
def test_an_installed_original(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    resources = home / "opt"
    resources.mkdir()
    (resources / "PioneerRobotModels.world.inc").write_text(
        "define special position ( size [2 2] )\n"
    )
    (resources / "lab.map").write_text("2D-Map\nLINES\n0 0 1 1\nDATA\n")
    monkeypatch.setenv(variable, str(resources))
    assert find_robot("special").outline[2] == (1.0, 1.0)
    assert find_map("LAB.map") == resources / "lab.map"


def test_an_installed_original_without_its_models(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folders_without_models() == []
    monkeypatch.setenv("AMRISIM", str(home / "gone"))
    assert folders_without_models() == [], (
        "a folder that is not there is complained about elsewhere"
    )
    (home / "bare").mkdir()
    monkeypatch.setenv("MOBILESIM", str(home / "bare"))
    (remark,) = folders_without_models()
    assert remark.startswith("MOBILESIM names a folder without AMRISim's models")
    assert f"there is no file PioneerRobotModels.world.inc in {home / 'bare'}" in remark
    (home / "bare/PioneerRobotModels.world.inc").write_text("")
    assert folders_without_models() == []


def test_init_map(home: Path) -> None:
    assert default_map() is None
    (home / ".MobileSim").mkdir()
    (home / ".MobileSim/init.map").write_text("2D-Map\nLINES\n0 0 1 1\nDATA\n")
    assert default_map() == home / ".MobileSim/init.map"
    (home / ".botyard").mkdir()
    (home / ".botyard/init.map").write_text("2D-Map\nLINES\n0 0 1 1\nDATA\n")
    assert default_map() == home / ".botyard/init.map", "our own folder comes first"


def test_maps_of_the_user(home: Path) -> None:
    (home / ".botyard/maps").mkdir(parents=True)
    (home / ".botyard/maps/Mine.map").write_text("2D-Map\nLINES\n0 0 1 1\nDATA\n")
    assert find_map("mine.map").name == "Mine.map"
