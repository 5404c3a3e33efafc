"""Every benchmark runs with small sizes; the figures are not checked."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which
from types import SimpleNamespace

import pytest
from bench import (
    __main__,
    ambf,
    calibration,
    changes,
    clients,
    common,
    floods,
    goal_task,
    history,
    light,
    longpage,
    masses,
    neighbours,
    page,
    peers,
    rays,
    record,
    reference,
    reliability,
    render,
    replay,
    ros,
    ros2,
    rosbridge,
    rtps,
    scaling,
    scenes,
    schedule,
    simulator_process,
    spans,
    startup,
    study,
    threads,
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
    cpu = scenes.compare_drives(4, 0.2, 1)
    assert set(cpu) == set(scenes.DRIVES) and min(cpu.values()) > 0.0
    scenes.print_drives(4, 0.2)


def small_threads(patch: Patch, _: Path) -> None:
    patch(threads, ROBOTS={"none": (4,), "sonar": (4,)}, TURNS=2)
    patch(threads, IN_WORLDS={"laser": (4,), "none": (4,)})
    threads.main()


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


def small_longpage(patch: Patch, _: Path) -> None:
    if which("chromium") is None or not (longpage.STATIC / "index.html").is_file():
        pytest.skip("needs Chromium and the built page")
    patch(longpage, ROBOTS=2)
    patch(simulator_process, PORT=free_port(3) + 2)
    patch(longpage, PORT=simulator_process.PORT)
    longpage.rows(20, seconds=0.5)
    longpage.memory(0.05)


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


def small_startup(patch: Patch, _: Path) -> None:
    # Byte code that is there already, or each process would make it anew.
    there = SimpleNamespace(name=sys.pycache_prefix or "")
    patch(startup, ROUNDS=1, BYTE_CODE=there)
    startup.evict([Path(common.__file__).parent])
    startup.warm("auto", startup.WANTED)
    patch(startup, MANY={}, ADDED={3: 1.0})
    startup.many()


def small_reliability(patch: Patch, _: Path) -> None:
    port = free_port(5)
    for module in (simulator_process, floods):
        patch(module, PORT=port + 1)
    reliability.day(0.002)

    def attack(seconds: float) -> str:
        return floods._beside(f"send_for({port + 3}, 2, {seconds}, 'poses')", seconds)

    floods._flooded("poses", 0.3, ["-r", "p3dx"] * 4, 2, attack)


def small_ros(patch: Patch, _: Path) -> None:
    patch(ros, ROBOTS=2, SECONDS=0.5, SETTLE_S=0.5, READY_S=0.5)
    patch(ros, PORT=free_port(6), MASTER_PORT=free_port(6), CASES=ros.CASES[:1])
    ros.main()


def small_rosbridge(patch: Patch, _: Path) -> None:
    patch(rosbridge, ROBOTS=2, SECONDS=0.5, SETTLE_S=0.5, PORT=free_port(6))
    patch(rosbridge, CASES=(("cbor", 1),))
    rosbridge.main()


def small_ros2(patch: Patch, folder: Path) -> None:
    lacking = [name for name in ("g++", "chrt", "unshare") if which(name) is None]
    if lacking or os.geteuid() or not Path("/usr/include/fastrtps").exists():
        pytest.skip("needs root, g++ and Debian's libfastrtps-dev")
    patch(ros2, SETTLE_S=0.5, PORT=free_port(6))
    bench = ros2.Bench(folder)
    try:
        with bench.program(
            *ros2.simulator("-m", "office", "-r", "p3dx", "--ros2")
        ) as pid:
            share, got = bench.read(pid, [("/p3dx/odom", ros2.ODOMETRY)], "rv", 1.0)
    finally:
        bench.close()
    assert share > 0.0 and "of 1 topics of 1, 0 lost" in got, got


def small_rtps(patch: Patch, _: Path) -> None:
    patch(rtps, ROBOTS=1, ROUNDS=1)
    rtps.streams(True, ("10.0.0.1", "10.0.0.2"))
    rtps.discovery(5)


def small_ambf(patch: Patch, folder: Path) -> None:
    patch(ambf, PORT=free_port(10), SECONDS=0.3)
    assert ambf.echo(0.1) > 0.0
    with ambf.Simulator(folder, 2, "--update-interval", "1"):
        assert ambf.toggles_by_link(ambf.PORT, 1, 0.2)[1] > 0
        master = f"http://127.0.0.1:{ambf.PORT + 5}/"
        assert ambf.toggles_by_tcpros(master, 1, 0.2, read_too=1)[1] > 0


def small_study(patch: Patch, folder: Path) -> None:
    patch(study, SHORT=4, ROWS=4)
    shutil.copy(study.studyruns.__file__, folder)
    study.overhead(folder, (1,))
    patch(schedule, WORKERS=(10,), MAX_RUNS=100)
    schedule.table([0.1, 0.2], schedule.Costs(0.0, 0.0, 0.0, 0.0))


SMALL: dict[str, Small] = {
    "rays": small_rays,
    "spans": small_spans,
    "scenes": small_scenes,
    "changes": small_changes,
    "clients": small_clients,
    "peers": small_peers,
    "light": small_light,
    "page": small_page,
    "longpage": small_longpage,
    "masses": small_masses,
    "neighbours": small_neighbours,
    "history": small_history,
    "record": small_record,
    "render": small_render,
    "replay": small_replay,
    "calibration": small_calibration,
    "threads": small_threads,
    "traffic": small_traffic,
    "worlds": small_worlds,
    "worlds_batch": small_batch,
    "scaling": small_scaling,
    "startup": small_startup,
    "reliability": small_reliability,
    "ros": small_ros,
    "ros2": small_ros2,
    "rosbridge": small_rosbridge,
    "rtps": small_rtps,
    "ambf": small_ambf,
    "study": small_study,
}


def test_no_benchmark_is_forgotten() -> None:
    assert set(SMALL) == set(__main__.ALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def patch(module: object, **values: object) -> None:
        for key, value in values.items():
            monkeypatch.setattr(module, key, value)

    # A shipped map and no measurement of the machine keep this short.
    patch(common, SHARED=tmp_path)
    patch(reference.Yardstick, measure=lambda _: None)
    SMALL[name](patch, tmp_path)
