"""Show ``push``: three robots push a crate that is too heavy for two."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from botyard.controllers.steering import steer
from botyard.demos.floors import rectangle
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.floor import Floor
from botyard.model.mapbuilder import MapBuilder
from botyard.model.obstacles import BoxObject
from botyard.numerics.elementary import atan2, cosine_sine, hypot
from botyard.sim.simulation import Robot, Simulation

HALL: Final = (14.0, 11.0)
"""Length and width of the hall, m."""
GOALS: Final = ((10.0, 7.5), (4.0, 7.5), (4.0, 3.5), (10.0, 3.5))
"""Places to which the crate is pushed, one after the other, m."""
REACHED_M: Final = 0.25
"""Distance of the crate from a goal at which it counts as delivered, m."""
SIDE_M: Final = 2.0
"""Edge of the crate, m."""
SLOTS: Final = (0.75, 0.0, -0.75)
"""Places of the robots along the pushed side, m to the left of its middle."""
STANDOFF_M: Final = 0.9
"""Distance from the crate's side at which robots gather, m."""
GATHER_SPEED: Final = 0.8
"""Speed on the way to the crate, m/s."""
PUSH_SPEED: Final = 0.4
"""Speed while robots push the crate or drive back from it, m/s."""
BACK_OFF_S: Final = 2.0
"""Time for which robots drive back after a push, s."""
CIRCLE_M: Final = 2.3
"""Radius of the circle on which robots drive around the crate, m."""
ARC: Final = 0.25
"""Angle between two points of the circle, rad."""
PASSED_M: Final = 0.35
"""Distance at which a robot leaves out a point of the circle and goes to the next, m."""
ARRIVED_M: Final = 0.08
"""Distance at which a robot has arrived at its place at the crate, m."""
ALIGNED: Final = 0.03
"""Heading error below which a robot is ready to push, rad."""
GAIN: Final = 1.5
"""Turn rate per radian of heading error, 1/s."""
MODELS: Final = ("red_p3dx", "blue_p3dx", "green_p3dx")
ROBOT: Final = DynamicsSpec(mass=9.0, traction=0.8)
"""Mass of a Pioneer 3-DX; its wheels push with at most 0.8 · 9 kg · 9.81 m/s² = 71 N."""
CRATE: Final = DynamicsSpec(mass=40.0, floor_friction=0.4)
"""Crate whose friction on the floor is 0.4 · 40 kg · 9.81 m/s² = 157 N.

Two robots cannot move it; three can.
"""


class Crew:
    """Controller of all robots: gather at a side of the crate, push, back off, repeat.

    It uses the true poses. On the way to the other side, robots drive on a circle around the
    crate.

    Parameters
    ----------
    sim : Simulation
        World with the crate.
    robots : list of Robot
        As many robots as `SLOTS`.
    crate : str
        Name of the crate.
    """

    def __init__(self, sim: Simulation, robots: list[Robot], crate: str) -> None:
        self._sim, self._robots, self._crate = sim, robots, crate
        self._start()

    def _start(self) -> None:
        self.delivered = 0
        self._tick = 0
        self._phase = self._choose
        self._heading = 0.0
        self._until = 0.0
        self._paths: list[list[tuple[float, float]]] = [[] for _ in self._robots]

    def act(self) -> None:
        """Command the robots before a step."""
        # The time goes back when a user resets the world.
        if self._sim.tick < self._tick:
            self._start()
        self._tick = self._sim.tick
        snapshot = self._sim.snapshot
        crate = Pose(*snapshot.state.pose[snapshot.rows[self._crate]].tolist())
        self._phase(crate, GOALS[self.delivered % len(GOALS)])

    def _choose(self, crate: Pose, goal: tuple[float, float]) -> None:
        """Choose the side to push, and plan the paths to it; count a crate at its goal."""
        if hypot(goal[0] - crate.x, goal[1] - crate.y) < REACHED_M:
            self.delivered += 1
            return
        bearing = atan2(goal[1] - crate.y, goal[0] - crate.x)
        turns = round(math.remainder(bearing - crate.th, math.tau) / (math.pi / 2))
        self._heading = crate.th + turns * math.pi / 2
        # Give the farthest place to the robot that is first on the circle. In another order,
        # robots that have arrived would block the others.
        behind = [self._behind(robot, crate) for robot in self._robots]
        sign = 1.0 if sum(behind) < 0.0 else -1.0
        order = sorted(range(len(behind)), key=lambda k: -sign * behind[k])
        for k, slot in zip(order, SLOTS, strict=True):
            self._paths[k] = self._path(crate, behind[k], -sign * slot)
        self._phase = self._gather

    def _behind(self, robot: Robot, crate: Pose) -> float:
        """Return a robot's bearing from the crate, rad; 0 is opposite to the pushing direction."""
        x, y, _ = robot.truth
        bearing = atan2(y - crate.y, x - crate.x)
        return math.remainder(bearing - self._heading - math.pi, math.tau)

    def _path(
        self, crate: Pose, behind: float, slot: float
    ) -> list[tuple[float, float]]:
        """Return the path of a robot, m: points on the circle, then its place at the crate.

        Parameters
        ----------
        crate : Pose
            Pose of the crate.
        behind : float
            Bearing of the robot, see `_behind`.
        slot : float
            Place along the pushed side, see `SLOTS`.
        """
        c, s = cosine_sine(self._heading)
        back = SIDE_M / 2 + STANDOFF_M
        place = (crate.x - back * c - slot * s, crate.y - back * s + slot * c)
        end = atan2(place[1] - crate.y, place[0] - crate.x)
        end = math.remainder(end - self._heading - math.pi, math.tau)
        count = max(1, round(abs(end - behind) / ARC))
        path = []
        for k in range(1, count):
            angle = behind + (end - behind) * k / count + self._heading + math.pi
            c, s = cosine_sine(angle)
            path.append((crate.x + CIRCLE_M * c, crate.y + CIRCLE_M * s))
        return [*path, place]

    def _gather(self, crate: Pose, goal: tuple[float, float]) -> None:
        """Drive all robots to their places, and turn them to the crate."""
        are_ready = True
        for robot, path in zip(self._robots, self._paths, strict=True):
            x, y, th = robot.truth
            if len(path) > 1 and hypot(path[0][0] - x, path[0][1] - y) < PASSED_M:
                path.pop(0)
            if path and hypot(path[0][0] - x, path[0][1] - y) < ARRIVED_M:
                path.pop(0)
            if path:
                are_ready = False
                far = hypot(path[-1][0] - x, path[-1][1] - y)
                steer(robot, *path[0], min(GATHER_SPEED, 0.1 + 0.5 * far))
                continue
            error = math.remainder(self._heading - th, math.tau)
            robot.command(v=0.0, w=GAIN * error)
            are_ready &= abs(error) < ALIGNED
        if are_ready:
            self._phase = self._push

    def _push(self, crate: Pose, goal: tuple[float, float]) -> None:
        """Push straight on, until the crate is level with the goal."""
        c, s = cosine_sine(self._heading)
        if (goal[0] - crate.x) * c + (goal[1] - crate.y) * s <= 0.0:
            self._until = self._sim.time + BACK_OFF_S
            self._phase = self._back_off
            return
        for robot, slot in zip(self._robots, SLOTS, strict=True):
            x, y, th = robot.truth
            # Steer the robot so that it stays at its slot along the side of the crate.
            aside = slot - ((y - crate.y) * c - (x - crate.x) * s)
            error = math.remainder(self._heading + GAIN * aside - th, math.tau)
            robot.command(v=PUSH_SPEED, w=GAIN * error)

    def _back_off(self, crate: Pose, goal: tuple[float, float]) -> None:
        """Drive back from the crate for `BACK_OFF_S`, so that the robots have space to turn."""
        is_over = self._sim.time >= self._until
        for robot in self._robots:
            robot.command(v=0.0 if is_over else -PUSH_SPEED, w=0.0)
        if is_over:
            self._phase = self._choose


def make(seed: int) -> Simulation:
    """Return the world of the show.

    Parameters
    ----------
    seed : int
        Seed of the world.
    """
    zones = tuple(
        rectangle(
            f"goal {k + 1}", x - 1.0, y - 1.0, x + 1.0, y + 1.0, "light steel blue"
        )
        for k, (x, y) in enumerate(GOALS)
    )
    scene = MapBuilder("Three robots and a crate").rectangle(0, 0, *HALL).scene()
    sim = Simulation(replace(scene, floor=Floor(zones=zones)), seed=seed)
    crate = sim.add_box(
        BoxObject(
            name="crate",
            pose=Pose(*GOALS[-1]),
            length=SIDE_M,
            width=SIDE_M,
            color="burlywood",
            dynamics=CRATE,
        )
    )
    robots = []
    for k, model in enumerate(MODELS):
        spec = find_robot(model)
        # `ROBOT` limits the force of the wheels by their traction, see `DynamicsSpec`.
        heavy = replace(spec, dynamics=ROBOT)
        robots.append(sim.add_robot(heavy, pose=(9.0 + k, 1.2, math.pi / 2)))
    sim.before_step(Crew(sim, robots, crate).act)
    return sim
