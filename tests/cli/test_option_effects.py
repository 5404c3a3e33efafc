"""Each option of the command line reaches its part: the simulator before its ports are
opened.

The behaviour of the parts is tested with them. Here only the options that reach them
are tested.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from botyard.app.assembly import add_robots, assemble
from botyard.app.options import RunOptions
from botyard.cli import run
from botyard.geometry import Pose
from botyard.model.world import World
from botyard.servers.jobs.maploading import MapLoader
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import call

MAP = """2D-Map
LineMinPos: 0 0
LineMaxPos: 8000 6000
NumLines: 4
LINES
0 0 8000 0
8000 0 8000 6000
8000 6000 0 6000
0 6000 0 0
DATA
"""


@dataclass
class Assembled:
    """The simulator that a command line creates."""

    robot_servers: RobotServers
    options: RunOptions
    world: World
    maps: MapLoader

    @property
    def sim(self) -> Simulation:
        return self.robot_servers.hub.sim

    @property
    def poses(self) -> list[Pose]:
        return [r.truth for r in self.sim.robots.values()]


@pytest.fixture
def assembled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Assembled]:
    """Return the simulator that a command line creates, without ports, page and steps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.map").write_text(MAP)
    made: list[Assembled] = []

    async def keep(
        sim: Simulation, place: World, o: RunOptions, rotate_logs: Any, saved: Any
    ) -> int:
        parts = assemble(sim, place, o, rotate_logs)
        add_robots(parts.robot_servers, place, o, o.chosen_robots(bool(place.robots)))
        sim.settle()
        made.append(Assembled(parts.robot_servers, o, place, parts.maps))
        await asyncio.sleep(0)
        return 0

    monkeypatch.setattr(run, "_serve", keep)

    def make(*words: str) -> Assembled:
        line = words[0].split() if len(words) == 1 else words
        code, _, err = call(*line, "--no-gui", "--no-crash-restart", capsys=capsys)
        assert code == 0, err
        return made.pop()

    return make


CASES: dict[str, tuple[str, Callable[[Assembled], object], object, object]] = {
    # row: options, subject, value without them (after --nomap, or -m a.map),
    # value with them
    "CLI-012": ("-p 9009", lambda a: a.robot_servers.port, 8101, 9009),
    "CLI-027": (
        "--update-interval 40",
        lambda a: (a.robot_servers.hub.interval, a.sim.dt),
        (0.1, 0.1),
        (0.04, 0.04),
    ),
    "CLI-028": (
        "--update-sim-time 30",
        lambda a: (a.robot_servers.hub.interval, a.sim.dt),
        (0.1, 0.1),
        (0.1, 0.03),
    ),
    "CLI-033": (
        "--ignore-command 11 --ignore-command 8",
        lambda a: a.robot_servers.settings.ignore_commands,
        set(),
        {8, 11},
    ),
    "CLI-037": (
        "--bind-to-address 127.0.0.9",
        lambda a: a.robot_servers.host,
        "127.0.0.1",
        "127.0.0.9",
    ),
    "CLI-041": (
        "--srisim-compat",
        lambda a: a.robot_servers.settings.srisim_compat,
        False,
        True,
    ),
    "CLI-042": (
        "--no-srisim-laser-compat",
        lambda a: a.robot_servers.settings.laser_compat,
        True,
        False,
    ),
    "CLI-043": (
        "--warn-unsupported-commands",
        lambda a: a.robot_servers.settings.warn_unsupported,
        False,
        True,
    ),
    "CLI-047": (
        "--odom-error-mode random_init",
        lambda a: a.sim.core.engine.odometry_error_mode.name,
        "RANDOM_EACH_UPDATE",
        "RANDOM_INIT",
    ),
    "CLI-048": (
        "--no-error",
        lambda a: a.sim.core.engine.odometry_error_mode.name,
        "RANDOM_EACH_UPDATE",
        "NONE",
    ),
    "CLI-049": (
        "--log-packets-received",
        lambda a: a.robot_servers.settings.log_packets,
        False,
        True,
    ),
    "CLI-050": (
        "--log-movement-sent",
        lambda a: a.robot_servers.settings.log_movement,
        False,
        True,
    ),
    "CLI-054": (
        "--restarting-after-crash",
        lambda a: a.robot_servers.settings.siminfo_flags,
        0,
        2,
    ),
    "FRM-024": (
        "--robot-name MobileSim",
        lambda a: a.robot_servers.settings.robot_name,
        "AMRISim",
        "MobileSim",
    ),
    "GEN-021": ("--fast", lambda a: a.robot_servers.hub.interval, 0.1, None),
    "ENG-008": ("--seed 77", lambda a: a.sim.seed, 1, 77),
    "SIM-021": (
        "--restarting-after-crash",
        lambda a: a.robot_servers.settings.siminfo_flags & 2,
        0,
        2,
    ),
    "PIO-109": (
        "--allow-client-exit",
        lambda a: a.robot_servers.control.allow_exit,
        False,
        True,
    ),
    "UNS-014": (
        "--simulate-batteries",
        lambda a: a.robot_servers.find_model("p3dx").battery.capacity_wh > 0,
        False,
        True,
    ),
}


@pytest.mark.parametrize("row", CASES)
def test_an_option_reaches_what_it_is_about(
    row: str, assembled: Callable[..., Assembled]
) -> None:
    line, look, without, with_it = CASES[row]
    assert look(assembled("--nomap")) == without
    assert look(assembled(f"--nomap {line}")) == with_it


def test_starts_are_where_the_command_line_says(
    assembled: Callable[..., Assembled],
) -> None:
    """CLI-029 … CLI-031:

    a place in mm and degrees, outside the map, or anywhere within it.
    """
    two = "-m a.map -r p3dx -r amigo --start"
    first, second = assembled(f"{two} 2000,3000,90").poses
    assert first == pytest.approx((2.0, 3.0, math.pi / 2))
    assert 0.4 < math.dist(first[:2], second[:2]) < 3.0, "the next one stands beside it"
    outside = assembled(f"{two} outside").poses
    assert outside[0] == pytest.approx((-2.0, -2.0, 0.0))
    assert outside[1][1] < -2.0
    inside = assembled(f"{two} random").poses
    assert all(0 < p.x < 8 and 0 < p.y < 6 for p in inside) and inside[0] != inside[1]
    assert inside[0].th != inside[1].th and all(p.th for p in inside), "headings too"
    assert assembled(f"{two} random --seed 5").poses != inside


def test_each_robot_may_have_a_start_of_its_own(
    assembled: Callable[..., Assembled],
) -> None:
    """The nth start belongs to the nth robot or box; the last one also to all later
    ones.
    """
    three = "-m a.map -r p3dx -r box -r amigo"
    first, box, last = assembled(
        f"{three} --start 2000,3000,90 --start 4000,3000,0"
    ).poses
    assert first == pytest.approx((2.0, 3.0, math.pi / 2))
    assert box == pytest.approx((4.0, 3.0, 0.0))
    assert 0.4 < math.dist(last[:2], box[:2]) < 2.0, "beside the last one"
    first, box, last = assembled(f"{three} --start 2000,3000,90 --start random").poses
    assert first == pytest.approx((2.0, 3.0, math.pi / 2))
    assert len({tuple(p) for p in (first, box, last)}) == 3 and all(
        0 < p.x < 8 and 0 < p.y < 6 for p in (box, last)
    )
    starts = "--start 1000,1000,0 --start 1000,3000,0 --start 1000,5000,0 --start 7000,1000,0"
    assert [p.y for p in assembled(f"{three} {starts}").poses] == [1.0, 3.0, 5.0], (
        "more starts than robots"
    )


def test_without_a_map_or_with_one(assembled: Callable[..., Assembled]) -> None:
    """CLI-004, CLI-005, CLI-006, MOD-011:

    each spelling of the map; a P3-DX if no robot is named.
    """
    for line in ("-m a.map", "--map a.map", "a.map"):
        one = assembled(line)
        assert Path(one.sim.scene.source).name == "a.map"
        assert [r.spec.name for r in one.sim.robots.values()] == ["p3dx"]

    for words in (["--nomap"], ["-nomap"], ["-m", ""]):
        assert assembled(*words).sim.scene.is_empty, words


def test_robots_boxes_and_factories(assembled: Callable[..., Assembled]) -> None:
    """CLI-007 … CLI-011: in the order of the command line, with models and names."""
    one = assembled("--nomap -r amigo:bob -r p3at -r box -r p3at -R p3dx")
    assert [(r.name, r.spec.name) for r in one.sim.robots.values()] == [
        ("bob", "amigo"),
        ("p3at", "p3at"),
        ("box", "box"),
        ("p3at_002", "p3at"),
    ]
    assert list(one.robot_servers.servers) == ["bob", "p3at", "p3at_002"]
    assert [f.model.name for f in one.robot_servers.factories] == ["p3dx"]


def test_how_maps_are_read(
    assembled: Callable[..., Assembled], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLI-032, CLI-044, CLI-045, GEN-025:

    the size of a point, and the portion read at once, also for maps that clients
    request.
    """
    (tmp_path / "p.map").write_text("2D-Map\nNumPoints: 1\nDATA\n1000 1000\n")
    plain, fine = (
        assembled("-m p.map"),
        assembled("-m p.map --resolution 50 --lines-chunksize 7 --points-chunksize 9"),
    )
    assert [one.sim.scene.resolution for one in (plain, fine)] == [0.02, 0.05]
    assert fine.sim.scene.bounds == pytest.approx((1.0, 1.0, 1.05, 1.05)), (
        "and a wall is as large"
    )
    later = fine.maps._options
    assert (later.resolution, later.lines_chunk, later.points_chunk) == (0.05, 7, 9)


def test_ranges_on_a_raster_with_the_originals_habits(
    assembled: Callable[..., Assembled],
) -> None:
    """CLI-032: with --compat amrisim, ranges are multiples of the resolution."""
    assert assembled("--nomap").sim.core.range_step == 0.0
    assert assembled("--nomap --compat amrisim").sim.core.range_step == 0.02
    assert (
        assembled("--nomap --compat amrisim --resolution 50").sim.core.range_step
        == 0.05
    )
