"""``python -m tools.corpus``: make the files of the present format of saved states,
which tests read from now on, also in later versions.

Each kind of saved state and of recording, of three worlds, goes to
``tests/data/formats/VERSION``, compressed, with ``said.json``: what the program that
wrote them says of them. Run it once for each version of the format, with the commit
that introduces it.
"""

from __future__ import annotations

import json
import lzma
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.controllers.assignment import employ
from botyard.engine.state import VERSION
from botyard.formats.crashstate import SavedRobot, SavedState, encode_state
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.readings import Action
from botyard.model.scene import Scene
from botyard.model.world import Program
from botyard.recording import load
from botyard.sim.simulation import Simulation
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import generate
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.recorded import write_recording
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor

FOLDER: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "formats"
STEPS: Final = 25
"""Steps before a state is saved, and of a recording."""
WALLS: Final = [
    [-2.0, -1.0, 4.0, -1.0],
    [4.0, -1.0, 4.5, 4.0],
    [4.5, 4.0, -2.0, 4.0],
    [-2.0, 4.0, -2.0, -1.0],
]
Run = tuple[Simulation, Callable[[], object]]
"""A world, and what does its next step."""


def office() -> Run:
    """Return the shipped office with two robots that have lasers, sonar and controllers."""
    sim = Simulation.load("office", seed=3)
    for name, model in (("a", "p3dx-equipped"), ("b", "amigo")):
        employ(sim.add_robot(model, name), Program(name="wander", options={}))
    return sim, sim.step


def boxes() -> Run:
    """Return boxes with mass that fly and are pushed, and a gripper that carries a box without
    mass.
    """
    spec = DynamicsSpec(
        mass=2.0,
        floor_friction=0.3,
        restitution=0.2,
        linear_damping=0.1,
        angular_damping=0.2,
    )
    things = [
        BoxObject(
            name=f"m{k}", pose=Pose(k - 1.0, 2.0), length=0.4, width=0.3, dynamics=spec
        )
        for k in range(3)
    ]
    things.append(BoxObject(name="light", pose=Pose(0.48, 0.0), length=0.1, width=0.1))
    sim = Simulation(
        Scene(name="room", segments=np.array(WALLS), boxes=tuple(things)),
        step=0.05,
        seed=4,
    )
    robot = sim.add_robot("p3dx-equipped", "r", pose=(0.0, 0.0, 0.0))
    pusher = sim.add_robot("amigo", "p", pose=(-1.7, 2.0, 0.0))
    robot.gripper.act(Action.CLOSE)
    pusher.command(v=0.5)
    sim.masses.throw("m2", 0.5, 0.3, 1.0)
    return sim, sim.step


def traffic() -> Run:
    """Return robots that a supervisor of sectors lets drive."""
    sim = Simulation(seed=5)
    return sim, RobotTraffic(
        generate("crossings", 3, 2), find_supervisor("fcfs"), sim
    ).step


WORLDS: Final[dict[str, Callable[[], Run]]] = {
    "office": office,
    "boxes": boxes,
    "traffic": traffic,
}
TOPICS: Final[dict[str, list[str] | None]] = {
    "usual": None,
    "all": ["*"],
    "none": [],
    "scans": ["*/scan", "*/sonar"],
}
"""Topics of the recordings of each world."""


def poses(sim: Simulation) -> dict[str, list[float]]:
    """Return the true poses of all bodies."""
    return {
        name: [float(x) for x in sim.snapshot.state.pose[row]]
        for name, row in sim.core.engine.rows.items()
    }


def _states(sim: Simulation) -> dict[str, bytes]:
    """Return each kind of saved state."""
    state = sim.save_state()
    robots = [
        SavedRobot(
            name=name,
            model=robot.spec.name,
            pose=Pose(*poses(sim)[name]),
            program=sim.core.programs.by_robot.get(name),
        )
        for name, robot in sim.robots.items()
    ]
    boxes = {name: Pose(*poses(sim)[name]) for name in sim.core.box_names}
    crash = SavedState(
        tick=sim.tick,
        map=sim.scene.source,
        speed=1.0,
        paused=False,
        robots=robots,
        boxes=boxes,
        world=state,
    )
    return {
        "state": state,
        "pickle": pickle.dumps(sim, 5),
        "crash.json": encode_state(crash),
    }


def _said(path: Path) -> dict[str, Any]:
    """Return the contents of a recording."""
    run = load(path)
    return {
        "robots": list(run.robots),
        "rows": len(run.time),
        "events": len(run.events),
        "last": [
            [None if np.isnan(x) else float(x) for x in row] for row in run.poses[-1]
        ],
    }


def made(folder: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return all files of the present format, and the answers of botyard about them; `folder`
    is for temporary files.
    """
    files, said = dict[str, bytes](), dict[str, Any]()
    for name, make in WORLDS.items():
        sim, step = make()
        for _ in range(STEPS):
            step()
        for kind, data in _states(sim).items():
            files[f"{name}.{kind}"] = data
        said[name] = {"tick": sim.tick, "time": sim.time, "poses": poses(sim)}
        for what, topics in TOPICS.items():
            sim, step = make()
            path = folder / f"{name}-{what}.mcap"
            with sim.record(path, topics=topics, overwrite=True):
                for _ in range(STEPS):
                    step()

            files[path.name], said[path.name] = path.read_bytes(), _said(path)

    path = folder / "sectors.mcap"
    write_recording(
        Traffic(
            generate("ring", 3, 1), find_supervisor("fcfs"), Rules(time_limit=60.0)
        ).run(),
        path,
    )
    files[path.name], said[path.name] = path.read_bytes(), _said(path)
    return files, said


def main() -> int:
    """Run the command."""
    target = FOLDER / str(VERSION)
    if target.exists():
        sys.exit(
            f"{target} exists already: the files of a version of the format come "
            "from the commit that introduces it"
        )

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files, said = made(Path(folder))

    target.mkdir(parents=True)
    for name, data in files.items():
        packed = lzma.compress(data, preset=9)
        (target / f"{name}.xz").write_bytes(packed)
        print(f"{name}: {len(data)} bytes, {len(packed)} packed")

    (target / "said.json").write_text(json.dumps(said, indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
