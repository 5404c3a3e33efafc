"""Every benchmark runs, small: the figures are not looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from bench import (
    __main__,
    calibration,
    changes,
    clients,
    common,
    goal_task,
    history,
    light,
    masses,
    neighbours,
    page,
    peers,
    rays,
    record,
    reference,
    render,
    replay,
    scaling,
    scenes,
    spans,
    traffic,
    worlds,
    worlds_batch,
)

from tests.ports import free_port

Patch = Callable[..., None]
Small = Callable[[Patch, Path], object]


def small_rays(patch: Patch, _: Path) -> None:
    patch(rays, SCANS=5, RAYS=9)
    rays.main()


def small_spans(patch: Patch, _: Path) -> None:
    patch(goal_task, CPU_SECONDS=0.01)
    patch(spans, ENVIRONMENT_STEPS={7: 1.0})
    sizes = "--poses 4 --rounds 1 --rays 7 --segments 10 --robots 2"
    spans.main(sizes.split())


def small_scenes(*_: object) -> None:
    for sensor in ("none", "sonar", "laser"):
        assert scenes.measure("arena", sensor, 4, 0.2) is not None


def small_changes(patch: Patch, _: Path) -> None:
    patch(changes, ROUNDS=8)
    changes.main()


def small_clients(patch: Patch, _: Path) -> None:
    loads = [
        clients.Load(3, 9.0, original=1.0, gap=9.0),
        clients.Load(2, 9.0, laser=False),
    ]
    patch(clients, SECONDS=0.5, WARM_UP=0.1, PORT=free_port(3), LOADS=loads)
    clients.main()


def small_peers(patch: Patch, _: Path) -> None:
    patch(peers, CPU_SECONDS=0.01)
    assert peers.measure("botyard", 3)["off"] < 0.02


def small_page(patch: Patch, _: Path) -> None:
    patch(page, ROBOTS=3)
    sim = page.world()
    page.frames(sim)
    found = asyncio.run(page._steps(sim, 1, seconds=0.5))
    assert found["frames"] > 0


def small_light(patch: Patch, _: Path) -> None:
    patch(light, SECONDS=0.5, WARM_UP_S=0.2, ROUNDS=1, STEPS=3)
    few = {name: light.SERVED[name] for name in ("idle", "driven, with laser")}
    patch(light, SERVED=few)
    light.main()


def small_masses(patch: Patch, _: Path) -> None:
    pytest.importorskip("pymunk")
    patch(masses, SECONDS=0.02, ROUNDS=1)
    patch(
        masses,
        WORLDS={
            "two": lambda step: masses.robot_servers(2, 1, step),
            "thrown": lambda step: masses.thrown(2, step),
        },
    )
    masses.main()


def small_neighbours(patch: Patch, _: Path) -> None:
    patch(neighbours, ROBOTS=(60,), COUNTS=(1, 3), ROUNDS=1, BLOCK=25)
    neighbours.main()
    sim = neighbours.world(60)
    near, far = neighbours.all_pairs(sim.fleet.poses[:, :2], 4)
    ours = sim.fleet.nearest(4)
    assert (ours[0] == near).all()
    assert (ours[1] == far).all()


def small_history(patch: Patch, _: Path) -> None:
    patch(history, ROUNDS=1, STEPS=2, MINUTES=1)
    history.cost(True)
    history.size(2, False)


def small_record(patch: Patch, folder: Path) -> None:
    patch(record, ROBOTS=2, PAIRS=1, SIZE_S=0.5, KILLS=1)
    assert record.measure(True, record.drive_each, folder).size > 0.0


def small_render(patch: Patch, _: Path) -> None:
    patch(render, ROBOTS=2)
    assert render.drawing({"size": (96, 60)}) > 0.0


def small_replay(patch: Patch, folder: Path) -> None:
    patch(replay, ROBOTS=2)
    replay.measure(folder, 5.0, True)


def small_calibration(patch: Patch, _: Path) -> None:
    patch(calibration, SEEDS=(4,), ROBOTS=1, SECONDS=20.0)
    calibration.main()


def small_traffic(patch: Patch, _: Path) -> None:
    patch(traffic, ROBOTS=(3,), EVENTS=100)
    traffic.main()


def small_worlds(patch: Patch, folder: Path) -> None:
    patch(worlds, SIDE=100)
    for kind in ("rooms", "dots"):
        path = folder / f"{kind}.png"
        worlds.Image.fromarray(worlds.picture(kind)).save(path)
        assert worlds.read(str(path))["walls"] >= 0


def small_batch(patch: Patch, _: Path) -> None:
    patch(goal_task, CPU_SECONDS=0.01)
    worlds_batch.ours(4, 7, 2, bearing_noise=True)
    worlds_batch.ours(4, 0, walls=False)
    worlds_batch.by_hand(2, 7, own_maps=True)
    worlds_batch.by_hand(2, 7, own_maps=False)
    worlds_batch.gymnasium_env()
    worlds_batch.resets(10)


def small_scaling(*_: object) -> None:
    assert scaling.by_points(1000)["build"] > 0.0
    assert scaling.scans(scaling.wall_points(300), 5, 8.0, n=3) > 0.0


SMALL: dict[str, Small] = {
    "rays": small_rays,
    "spans": small_spans,
    "scenes": small_scenes,
    "changes": small_changes,
    "clients": small_clients,
    "peers": small_peers,
    "light": small_light,
    "page": small_page,
    "masses": small_masses,
    "neighbours": small_neighbours,
    "history": small_history,
    "record": small_record,
    "render": small_render,
    "replay": small_replay,
    "calibration": small_calibration,
    "traffic": small_traffic,
    "worlds": small_worlds,
    "worlds_batch": small_batch,
    "scaling": small_scaling,
}
OF_SERVERS = {
    "ambf",
    "reliability",
    "ros",
    "ros2",
    "rosbridge",
    "rtps",
    "startup",
    "study",
}
"""Benchmarks that start simulators and peers on fixed ports; they are only imported."""


def test_no_benchmark_is_forgotten() -> None:
    assert set(SMALL) | OF_SERVERS == set(__main__.ALL)
    assert not set(SMALL) & OF_SERVERS


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def patch(module: object, **values: object) -> None:
        for key, value in values.items():
            monkeypatch.setattr(module, key, value)

    # A shipped map, and no measurement of the machine: neither takes long.
    patch(common, SHARED=tmp_path)
    patch(reference.Yardstick, measure=lambda _: None)
    SMALL[name](patch, tmp_path)
