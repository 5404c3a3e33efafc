"""Traffic run in a simulated world: its waiting robots, and decisions of users.

`LiveTraffic` drives robots of a running simulator on sector paths. A user can hold the
supervisor's decisions, let them take effect one by one, and grant or take back sectors.
No decision of a user leads to a collision: a sector that conflicts with a held one is
refused, and a supervisor's grant that conflicts with a user's grant waits.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from botyard.control.trafficpart import Permit
from botyard.errors import NotNowError, WorldError
from botyard.model.world import MAX_PATHS, SectorPaths
from botyard.names import shown
from botyard.processes.codeload import said_of
from botyard.sim.simulation import Robot, Simulation
from botyard.traffic.kernels import runarrays
from botyard.traffic.outcome import Ending, find_cycle, waiting_robots
from botyard.traffic.supervisors.base import SupervisorError

if TYPE_CHECKING:
    pass
from botyard.traffic.drawnpaths import MIN_STEP_M, Points, task_of
from botyard.traffic.liverun import Decision, LiveRun, Wait

SPEED: Final = 0.65
"""Highest speed of robots on drawn paths, m/s; of the robots of a task by default."""
MAX_DECISIONS: Final = 200
"""Largest number of decisions that are kept."""
DECISIONS_S: Final = 60.0
"""Age up to which decisions are reported, simulated s."""
MAX_EXPLAINED: Final = 10
"""Largest number of waiting robots for which the supervisor is asked for a reason."""
MAX_ENDANGERED: Final = 200
"""Largest number of robots with which the supervisor is asked for a reason.

The answer takes a time that grows with the square of the number.
"""
MAX_CIRCLES: Final = 20
"""Largest number of circles of waiting robots that are searched for."""
BY_HAND: Final = "by hand"
"""Author of a user's decisions."""

log = logging.getLogger("botyard.traffic")


class LiveTraffic:
    """Host of a run of traffic (`botyard.control.trafficpart.TrafficPart`).

    Parameters
    ----------
    sim : Simulation
        World of the robots, which other code steps.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.version = 0
        """Number of the run; 0 before the first."""
        self.present: LiveRun | None = None
        """The run; None if there is none."""
        self.supervisor = ""
        """Name of the supervisor."""
        self._speed: float | None = None
        """Highest speed on drawn paths, m/s; None: the run has other paths."""
        self.paths: Mapping[str, tuple[tuple[float, float], ...]] = {}
        """Points of the paths by the names of robots, m."""
        self.is_held = False
        """Whether decisions of the supervisor wait for the user."""
        self.ending = ""
        """How the run has ended, or that it is in a deadlock; empty while it goes on."""
        self.reason = Ending.TIMEOUT
        """Ending of the run; TIMEOUT while it goes on, or if no other value describes the end."""
        self._stop: tuple[Callable[[], None], ...] = ()
        self._tick = 0
        self._decided: dict[int, int] = {}
        self._pending: dict[int, int] = {}
        self._stopped: set[int] = set()
        self._by_hand: set[tuple[int, int]] = set()
        self._since: dict[int, float] = {}
        self._decisions: deque[Decision] = deque(maxlen=MAX_DECISIONS)

    # -- start and end

    def run(
        self,
        paths: Mapping[str, Points],
        supervisor: str = "bankers",
        speed: float = SPEED,
    ) -> None:
        """Let robots of the world drive along paths, in place of the present run.

        Each path starts where its robot stands. Programs that drive the robots end.

        Parameters
        ----------
        paths : mapping of str to (k, 2) arrays
            Points of each path, m, by the name of the robot.
        supervisor : str
            Name of a built-in or installed supervisor.
        speed : float
            Highest speed of the robots, m/s.

        Raises
        ------
        WorldError
            A robot cannot drive a path; the supervisor rejects the paths.
        """
        # Every simulator has this object, and most never run traffic.
        from botyard.traffic.on_robots import RobotTraffic
        from botyard.traffic.supervisors.registry import (
            find_supervisor,
            supervisor_names,
        )

        names = supervisor_names()
        # A name from a client must not load code.
        if supervisor not in names:
            raise WorldError(
                f"supervisor: expected one of {', '.join(names)}, "
                f'found "{shown(supervisor)}"'
            )
        robots = [self._robot(name) for name in paths]
        task = task_of(robots, list(paths.values()), speed)
        try:
            made = RobotTraffic(
                task, find_supervisor(supervisor), self._sim, robots=robots
            )
        except SupervisorError as error:
            if not error.robots:
                raise
            who = _listed([robots[i].name for i in error.robots])
            raise WorldError(
                f"{supervisor}: {who} cannot all finish, in any order: a path starts "
                "or ends where another robot has to pass"
            ) from None
        for robot in robots:
            robot.set_controller(None)
        self.attach(made, supervisor)
        self._speed = speed

    def left(self) -> SectorPaths | None:
        """Return what is left of the paths, to run it again later; None if nothing is.

        Only drawn paths are kept: sectors of a task cannot be made again from its paths,
        and only its supervisor can continue the run of another program.
        """
        run = self.present
        if run is None or not self._stop or self._speed is None:
            return None
        paths = []
        for d, place in zip(run.drivers, run.places, strict=True):
            along, corners = d.path.along, d.path.corners
            ahead = corners[along > place + MIN_STEP_M].tolist()
            if ahead and not d.done:
                points = tuple((round(x, 3), round(y, 3)) for x, y in ahead)
                paths.append((d.robot.name, points))
        return (
            SectorPaths(
                paths=tuple(paths), supervisor=self.supervisor, speed=self._speed
            )
            if 0 < len(paths) <= MAX_PATHS
            else None
        )

    def _robot(self, name: str) -> Robot:
        robot = self._sim.robots.get(name)
        if robot is None:
            raise WorldError(f"there is no robot {shown(name)}")
        kinematics = robot.spec.kinematics
        if not kinematics.drives or kinematics.steers:
            raise WorldError(
                f"{shown(name)} cannot drive a sector path, because it cannot turn in place"
            )
        return robot

    def attach(self, run: LiveRun, supervisor: str) -> None:
        """Show and drive a run that has been made.

        Parameters
        ----------
        run : LiveRun
            Run in this world; this object steps it.
        supervisor : str
            Name of its supervisor.
        """
        self.end()
        self.present, self.supervisor, self._speed = run, supervisor, None
        self.renew()
        run.pass_on, run.on_event = self._pass_on, self._on_event
        self._tick = self._sim.tick
        self._stop = (
            self._sim.before_step(self._act),
            self._sim.after_step(self._observe),
        )

    def renew(self) -> None:
        """Show the paths of the run that are new; the call does nothing without a run."""
        if self.present is not None:
            self.version += 1
            self.paths = {
                d.robot.name: tuple((x, y) for x, y in d.path.corners.tolist())
                for d in self.present.drivers
            }

    def end(self) -> None:
        """End the run; its robots stop. The call does nothing without a run."""
        self._release()
        if self.present is not None:
            self.version += 1
        self.present, self.ending, self.is_held = None, "", False
        self.paths = {}
        self._decided, self._pending, self._since = {}, {}, {}
        self._stopped, self._by_hand = set(), set()
        self._decisions.clear()

    def _release(self) -> None:
        """Stop the robots, and leave the run as it is."""
        for stop in self._stop:
            stop()
        self._stop = ()
        if self.present is not None:
            for d in self.present.drivers:
                if self._sim.robots.get(d.robot.name) is d.robot:
                    d.robot.command(v=0.0, w=0.0)

    # -- steps

    def _act(self) -> None:
        run = self.present
        if run is None:
            return
        gone = [
            d.robot.name
            for d in run.drivers
            if self._sim.robots.get(d.robot.name) is not d.robot
        ]
        if gone:
            self._finish(f"ended: {_listed(gone)} is gone from the world")
        elif self._sim.tick < self._tick:
            self._finish("ended: the world was set back to an earlier moment")
        else:
            self._tick = self._sim.tick
            self._guarded(run.act)

    def _observe(self, _snapshot: object) -> None:
        run = self.present
        if run is None or not self._stop:
            return
        ending = self._guarded(run.observe)
        self.reason = ending or Ending.TIMEOUT
        # The user may still solve a deadlock.
        if ending is Ending.DEADLOCK and not (self.is_held or self._stopped):
            self.ending = "deadlock"
        elif ending is Ending.COMPLETED:
            self._finish("completed")
        elif ending is Ending.COLLISION:
            self._finish("ended by a collision")
        elif ending is None:
            self.ending = self.ending if not self._stop else ""

    def _guarded(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        # Supervisors are code of users, which may raise any exception.
        except Exception as error:
            log.exception("the supervisor of the traffic run failed")
            self._finish(f"ended: the supervisor failed: {said_of(error)}")
            return None

    def _finish(self, how: str) -> None:
        self._release()
        self.ending = how
        log.info("traffic: %s", how)

    def _on_event(self, t: float, robot: int, kind: int, sector: int) -> None:
        if kind == runarrays.STOP:
            self._since.setdefault(robot, t)
        elif kind in (runarrays.START, runarrays.FINISH):
            self._since.pop(robot, None)
        elif kind == runarrays.RELEASE:
            self._by_hand.discard((robot, sector))

    # -- decisions of the supervisor

    def _pass_on(self, grants: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the grants of the supervisor that take effect now."""
        for robot, sector in grants:
            self._decided[robot] = max(self._decided.get(robot, -1), sector)
            self._pending[robot] = self._decided[robot]
        return [] if self.is_held else list(self._effective())

    def _effective(self) -> Iterable[tuple[int, int]]:
        """Remove the pending grants that conflict with no decision of the user, and yield them."""
        run = self.present
        assert run is not None
        for robot, sector in list(self._pending.items()):
            allowed = run.drivers[robot].allowed
            if sector <= allowed:
                del self._pending[robot]
            # Most runs have no grants by hand, and sectors can have many conflicts.
            elif robot not in self._stopped and not (
                self._by_hand
                and any(
                    held in self._by_hand
                    for s in range(allowed + 1, sector + 1)
                    for held in self._conflicts(robot, s)
                )
            ):
                del self._pending[robot]
                self._note(robot, sector, "grants", self.supervisor)
                yield robot, sector

    def _note(self, robot: int, sector: int, what: str, by: str) -> None:
        self._decisions.append(Decision(self._sim.time, robot, sector, what, by))

    def _conflicts(self, robot: int, sector: int) -> list[tuple[int, int]]:
        assert self.present is not None
        task = self.present.task
        starts, others = task.conflicts
        g = int(task.first[robot]) + sector
        return [task.robot_of(c) for c in others[starts[g] : starts[g + 1]].tolist()]

    # -- decisions of the user

    def _running(self) -> LiveRun:
        if self.present is None or not self._stop:
            raise NotNowError("no traffic run is going on")
        if self.present.refusal:
            raise WorldError(self.present.refusal)
        return self.present

    def _index(self, robot: str) -> int:
        names = [d.robot.name for d in self._running().drivers]
        if robot not in names:
            raise WorldError(f"{shown(robot)} drives no path of the traffic run")
        return names.index(robot)

    def hold(self, on: bool) -> None:
        """Hold the decisions of the supervisor, or let them take effect again.

        Robots still drive through the sectors that are granted.

        Parameters
        ----------
        on : bool
            Whether decisions wait.

        Raises
        ------
        NotNowError
            There is no run.
        """
        self._running()
        self.is_held = on

    def step(self) -> Permit:
        """Let the next decision of the supervisor take effect, and hold the others.

        Raises
        ------
        NotNowError
            There is no run, or no decision waits.
        """
        run = self._running()
        self.is_held = True
        for robot, sector in self._effective():
            return self._allow(run, robot, sector)
        raise NotNowError("no decision of the supervisor waits")

    def _allow(self, run: LiveRun, robot: int, sector: int) -> Permit:
        d = run.drivers[robot]
        before = d.allowed
        run.allow(robot, sector)
        return Permit(d.robot.name, before, d.allowed)

    def grant(self, robot: str, sector: int | None) -> Permit:
        """Grant a sector to a robot, and all sectors before it.

        Parameters
        ----------
        robot : str
            Name of the robot.
        sector : int, optional
            Number of the sector on its path; by default the next one.

        Raises
        ------
        NotNowError
            There is no run.
        WorldError
            The robot has no path, or the sector already; another robot holds a sector
            in conflict with it.
        """
        i, run = self._index(robot), self._running()
        d = run.drivers[i]
        last = len(d.vehicle.ends) - 1
        if sector is None:
            sector = d.allowed + 1
        if d.allowed >= last:
            raise WorldError(
                f"{shown(robot)} may already enter all sectors of its path"
            )
        if not d.allowed < sector <= last:
            raise WorldError(
                f"sector: expected a sector of {shown(robot)} from {d.allowed + 1} "
                f"to {last}, found {sector}"
            )
        state = run.state
        for s in range(d.allowed + 1, sector + 1):
            for j, other in self._conflicts(i, s):
                if state[j, 2] <= other <= max(state[j, 0], state[j, 3]):
                    raise WorldError(
                        f"{shown(robot)} cannot get sector {s}: "
                        f"{shown(run.drivers[j].robot.name)} holds its sector {other}, "
                        "which conflicts with it"
                    )
        self._by_hand.update((i, s) for s in range(d.allowed + 1, sector + 1))
        self._stopped.discard(i)
        permit = self._allow(run, i, sector)
        self._note(i, sector, "grants", BY_HAND)
        self._guarded(lambda: run.supervisor.on_hand_grant(i, sector))
        return permit

    def revoke(self, robot: str, sector: int | None) -> Permit:
        """Take back the permission of a robot for a sector, and all sectors after it.

        The supervisor's further grants to this robot wait until the user grants it a
        sector.

        Parameters
        ----------
        robot : str
            Name of the robot.
        sector : int, optional
            Number of the sector on its path; by default the first one before which the
            robot can still stop.

        Raises
        ------
        NotNowError
            There is no run.
        WorldError
            The robot has no path, or no such permission; it can no longer stop before
            the sector.
        """
        i, run = self._index(robot), self._running()
        d = run.drivers[i]
        least, before = run.least_allowed(i), d.allowed
        to = least if sector is None else sector - 1
        if (
            d.done
            or before <= d.head
            or (sector is not None and not d.head <= to < before)
        ):
            raise WorldError(
                f"{shown(robot)} has no permission for "
                f"{'a sector' if sector is None else f'sector {sector}'} that it has not "
                "entered yet"
            )
        if to < least or to >= before:
            raise WorldError(
                f"{shown(robot)} can no longer stop before its sector {min(to, before - 1) + 1}"
            )
        run.withdraw(i, to)
        self._stopped.add(i)
        self._by_hand = {(j, s) for j, s in self._by_hand if j != i or s <= to}
        # The supervisor's grant becomes pending again, until the user lets it take effect.
        if self._decided.get(i, -1) > to:
            self._pending[i] = self._decided[i]
        self._note(i, to + 1, "takes back", BY_HAND)
        return Permit(d.robot.name, before, to)

    # -- what is shown

    @property
    def has_ended(self) -> bool:
        """Whether there is no run, or it has ended."""
        return not self._stop

    @property
    def waiting_decisions(self) -> int:
        """Number of decisions of the supervisor that wait."""
        return len(self._pending)

    def decisions(self) -> list[Decision]:
        """Return the decisions of the last minute, the newest first."""
        least = self._sim.time - DECISIONS_S
        return [one for one in reversed(self._decisions) if one.time >= least]

    def waits(self) -> tuple[list[Wait], list[tuple[int, ...]]]:
        """Return the waiting robots, and the circles of robots that wait for each other.

        Returns
        -------
        waits : list of Wait
            The longest wait first.
        circles : list of tuples of int
            Circles without a common robot. In each, a robot waits for the next one, and
            the last for the first.
        """
        run = self.present
        if run is None:
            return [], []
        waiting = waiting_robots(run.task, run.state, run.done)
        found = [
            Wait(i, sector, by, self._since.get(i, self._sim.time), "")
            for i, (sector, by) in waiting.items()
        ]
        found.sort(key=lambda one: (one.since, one.robot))
        asked = 0
        for k, one in enumerate(found):
            if one.by and one.robot not in self._stopped:
                continue
            asked += 1
            found[k] = Wait(
                one.robot,
                one.sector,
                one.by,
                one.since,
                self._reason(run, one, asked <= MAX_EXPLAINED),
            )
        return found, _circles(waiting) if run.supervisor.decides else []

    def _reason(self, run: LiveRun, wait: Wait, thorough: bool) -> str:
        """Return the reason why a robot waits for a sector that no robot holds."""
        i = wait.robot
        if i in self._stopped:
            return "taken back by hand"
        if self._pending.get(i, -1) >= wait.sector:
            return "decided, but decisions are held" if self.is_held else "decided"
        if thorough and len(run.drivers) <= MAX_ENDANGERED:
            stuck = self._guarded(lambda: run.supervisor.endangered(i, wait.sector))
            if stuck:
                who = _listed([run.drivers[j].robot.name for j in stuck])
                return f"kept free: with it {who} could not all finish"
        return run.why(i, wait.sector) or f"{self.supervisor} has not granted it"


def _circles(
    waiting: dict[int, tuple[int, tuple[int, ...]]],
) -> list[tuple[int, ...]]:
    """Return circles of the wait-for graph that have no common robot."""
    left, found = dict(waiting), list[tuple[int, ...]]()
    while len(found) < MAX_CIRCLES and (circle := find_cycle(left)):
        found.append(circle)
        for robot in circle:
            del left[robot]
    return found


def _listed(names: Sequence[str]) -> str:
    """Return names as a list for people."""
    some = [shown(name) for name in names[:5]]
    if len(names) > 5:
        some.append(f"{len(names) - 5} more")
    return " and ".join(filter(None, [", ".join(some[:-1]), some[-1]]))


__all__ = ["BY_HAND", "LiveTraffic"]
