"""`RobotWorld`: a world on free ports for a test of a robot program.

It is the fixture ``world`` of `botyard.testing.pytestplugin`. The world is paused until
the test runs it (`RobotWorld.run_until`), and paused again afterwards. Programs
therefore start and connect before the first step, and deadlines are in simulated time.
Verdicts use true poses, checked after each step.
"""

from __future__ import annotations

import math
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from botyard.api import arguments
from botyard.app.running import Running
from botyard.app.serve import serve
from botyard.control import USER, Pause
from botyard.engine.snapshot import Snapshot
from botyard.errors import ArgumentError
from botyard.sim.contacts import Contact
from botyard.sim.recordings import Recording
from botyard.sim.simulation import Simulation
from botyard.testing.conditions import Condition, Scenery
from botyard.testing.observer import Truth, TruthLog
from botyard.testing.programs import Program
from botyard.testing.runcondition import POLL_S, Failure, RunState, _inner_radius
from botyard.testing.worldsettings import Ports, Settings

T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 60.0
"""Wall time that a program has to connect, s."""
SLACK: Final = 20.0
"""Multiple of a run's expected wall time, plus `SLACK_S`, after which it is given up."""
SLACK_S: Final = 120.0
OUTPUT_LINES: Final = 20
"""Number of last lines of a program's output in a report."""
_GUARD_PORT: Final = 248
"""Offset of a UDP port in a ROS domain that reserves the domain for one test.

No participant before the 119th uses this port.
"""


class RobotWorld:
    """A world for one test.

    Parameters
    ----------
    settings : Settings
        Description of the world.
    folder : Path
        Folder for logs and the recording.

    Attributes
    ----------
    sim : Simulation
        The world. It belongs to a thread of its own; change it only through `call`.
    running : Running
        The served simulator.
    truth : TruthLog
        True history of its robots: ``world.truth["bob"].distance``, see `Truth`.
    host : str
        Address on which it listens.
    env : dict of str
        Environment variables for programs: ROS variables, and ``BOTYARD_PORT_<NAME>``
        for each robot.
    programs : list of Program
        All started programs.
    """

    host: Final = "127.0.0.1"

    def __init__(self, settings: Settings, folder: Path) -> None:
        if settings.speed != math.inf:
            arguments.number(settings.speed, "speed", low=0.0, above=True)
        self.settings, self._folder = settings, folder
        self.sim = self._made()
        self.programs: list[Program] = []
        self.env: dict[str, str] = {}
        self._check: Callable[[], bool] | None = None
        self._stack = ExitStack()
        self._recording: Recording | None = None
        self.recording: Path | None = None
        """File of the recording, after the world is closed; None: no recording."""
        self.page = bool(settings.options.get("page"))

    def _made(self) -> Simulation:
        """Create the simulation that the settings describe."""
        s = self.settings
        # A simulation already has its seed and its robots.
        if isinstance(s.map, Simulation):
            sim = s.map
        elif s.map is None:
            sim = Simulation(seed=s.seed)
        else:
            sim = Simulation.load(s.map, seed=s.seed)

        names = (
            {}
            if isinstance(s.robots, Mapping)
            else dict.fromkeys(arguments.several(s.robots, "robots", "names"), "p3dx")
        )
        robots: Mapping[str, Any] = s.robots if isinstance(s.robots, Mapping) else names
        for name, what in robots.items():
            model, pose = (
                what if isinstance(what, tuple) and len(what) == 2 else (what, None)
            )
            sim.add_robot(model, name, pose=pose)

        return sim

    # -- life cycle

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            options = dict(self.settings.options)
            # Tests run unattended: most of them have no viewer.
            options.setdefault("page", False)
            # Free ports, so that tests can run in parallel.
            options.setdefault("port", 0)
            options |= self._ros(stack)
            if math.isinf(self.settings.speed):
                options["fast"] = True
            else:
                options.setdefault("interval", self.sim.dt / self.settings.speed)

            # Paused, so that no step runs before the programs under test are connected.
            self.running: Running = stack.enter_context(
                serve(self.sim, paused=True, **options)
            )
            # Create the log in the simulator's thread, which owns the world from now
            # on.
            self.truth: TruthLog = self.call(TruthLog, self.sim)
            self._scenery = Scenery(self.sim, self.truth)
            self.call(lambda: self.sim.after_step(self._looked))
            if self.settings.record != "never":
                path = self._folder / "run.mcap"
                self._recording = self.call(lambda: self.sim.record(path))

            # Register this after the simulator: programs must end before their server
            # does.
            stack.callback(self._end)
            self.ports = Ports(
                {name: address.port for name, address in self.running.ports.items()}
            )
            self.env |= {
                f"BOTYARD_PORT_{_variable(name)}": str(port)
                for name, port in self.ports.items()
            }
            self._stack = stack.pop_all()

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def close(self) -> None:
        """End all programs and the simulator."""
        self._stack.close()

    def _end(self) -> None:
        """End all programs and close the recording."""
        # End programs in reverse order, because later ones may depend on earlier ones.
        for program in reversed(self.programs):
            program.stop()
        recording, self._recording = self._recording, None
        if recording is not None and self.running.is_running:
            self.call(recording.close)
            self.recording = self._folder / "run.mcap"

    def _ros(self, stack: ExitStack) -> dict[str, Any]:
        """Return the options of ROS for the simulator, and set the ROS variables in `env`."""
        options: dict[str, Any] = {}
        if self.settings.ros1:
            with socket.create_server((self.host, 0)) as free:
                # Between closing this socket and the master's start, another program
                # could take the port; on a loopback address with random ports this is
                # unlikely.
                port = free.getsockname()[1]
            options["ros_master"] = f"embedded:{port}"
            self.env |= {
                "ROS_MASTER_URI": f"http://{self.host}:{port}",
                "ROS_IP": self.host,
                "ROS_HOME": str(self._folder),
            }

        if self.settings.ros2:
            domain = _free_domain(stack)
            options |= {"ros2": True, "ros_domain_id": domain}
            self.env |= {
                "ROS_DOMAIN_ID": str(domain),
                # The old variable for ROS 2 until Humble; the next one is its
                # successor.
                "ROS_LOCALHOST_ONLY": "1",
                "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            }

        return options

    # -- programs

    def start(
        self,
        command: Sequence[str | Path | int],
        *,
        ready: str | Sequence[str] | Callable[[], bool] | None = None,
        env: Mapping[str, str] = {},
        cwd: str | Path | None = None,
        timeout: float = CONNECT_TIMEOUT_S,
        started: Callable[[int], object] = lambda _pid: None,
    ) -> Program:
        """Start a program, and wait until it has connected; the world stays paused.

        Parameters
        ----------
        command : sequence of str
            Program and arguments. `RobotWorld.env` is added to its environment.
        ready : str, sequence of str, or callable
            Robots that the program controls: it is ready when it is a client of all of
            them. Or a function that returns whether it is ready. By default: the robots
            whose ports appear in the arguments; if there are none, do not wait.
        env : mapping of str
            Additional environment variables.
        cwd : path
            Working folder of the program.
        timeout : float
            Maximum wall time to wait, s.
        started : callable
            Called with the process id, before waiting.

        Returns
        -------
        Program
            The program.

        Raises
        ------
        Failure
            The program ended, or did not connect in time.
        OSError
            The program cannot be started.
        """
        words = [str(word) for word in command]
        log = self._folder / f"program-{len(self.programs) + 1}.log"
        program = Program(
            words, log, {**self.env, **env}, None if cwd is None else Path(cwd)
        )
        self.programs.append(program)
        started(program.pid)
        if ready is None:
            ready = [
                name
                for name, port in self.ports.items()
                # Compare whole numbers: port 8101 must not match an argument such as
                # 18101.
                if any(str(port) in _numbers(word) for word in words)
            ]

        if callable(ready):
            is_ready, what = ready, "is not ready"
        else:
            names = [ready] if isinstance(ready, str) else list(ready)
            robots = [self.sim.robots[name] for name in names]

            def is_ready() -> bool:
                return all(robot.clients for robot in robots)

            what = f"has not connected to {', '.join(names)}"

        end = time.monotonic() + timeout
        # Poll, because a program connects through the operating system, which sends no
        # event here.
        while not self.call(is_ready):
            # A program that has ended will never connect: report it at once, with its
            # output.
            if program.status is not None:
                raise Failure(
                    f"{program} ended with status {program.status}, and {what}{_told(program)}"
                )

            if time.monotonic() > end:
                raise Failure(f"{program} {what} within {timeout:g} s{_told(program)}")
            time.sleep(POLL_S)

        return program

    # -- time

    def call(self, f: Callable[..., T], /, *args: Any) -> T:
        """Call a function in the simulator's thread, between two steps.

        Return its result.

        Parameters
        ----------
        f : callable
            The function. It may read and change the world.
        *args : object
            Its arguments.

        Returns
        -------
        object
            Its result. Its exceptions are raised here.
        """
        return self.running.call(f, *args)

    def run_until(
        self,
        condition: Condition | None = None,
        *,
        deadline: float,
        no_contact: bool | str | Sequence[str] = False,
        clearance: float | None = None,
        always: Condition | Sequence[Condition] = (),
    ) -> float:
        """Run the world until a condition holds.

        Check all requirements after each step.

        Parameters
        ----------
        condition : callable
            Condition to wait for, such as `botyard.testing.near`; None: wait for the
            deadline.
        deadline : float
            Simulated time within which it must hold, s.
        no_contact : bool, str or sequence of str
            Robots that must neither touch anything nor be touched; True: all robots.
        clearance : float
            Minimum distance of these robots (without `no_contact`: of all robots) to
            everything else, m.
        always : condition or sequence of conditions
            Conditions that must hold after each step.

        Returns
        -------
        float
            Simulated time until the condition held, s.

        Raises
        ------
        Failure
            The condition did not hold in time, a requirement was violated, or a program
            ended with an error.
        UnknownNameError
            `no_contact` names an unknown robot.
        """
        deadline = arguments.number(deadline, "deadline", low=0.0, above=True, unit="s")
        run = RunState(
            self._scenery,
            condition,
            deadline,
            self._guarded(no_contact),
            clearance,
            always,
        )
        self.call(run.begin)
        self._check = run.look
        # Wall time is bounded generously: only a hang must fail here, never a slow
        # machine.
        limit = (
            deadline
            / (1.0 if math.isinf(self.settings.speed) else self.settings.speed)
            * SLACK
            + SLACK_S
        )
        end = time.monotonic() + limit
        try:
            # In lockstep, the client's commands advance the time.
            if not self.settings.lockstep:
                self.running.resume()
            while not run.over.wait(POLL_S):
                # Report a crashed program at once: it would only show as a missed
                # deadline.
                self._look_after_programs()
                if not self.running.is_running:
                    self.running.stop()
                    raise Failure("the simulator has ended")

                if time.monotonic() > end:
                    raise Failure(
                        f"expected {deadline:g} s of simulated time within "
                        f"{limit:.0f} s of wall time, found only "
                        f"{self.sim.time - run.since:.2f} s"
                    )
        finally:
            self._check = None
            if self.running.is_running:
                self.running.pause()

        if run.error is not None:
            raise run.error
        return run.took

    def step(self, seconds: float) -> None:
        """Advance the simulated time as fast as possible, s.

        Parameters
        ----------
        seconds : float
            Simulated time, s, rounded to whole steps; at least one step.
        """
        self.running.step(max(1, round(seconds / self.sim.dt)))

    def _looked(self, _: Snapshot) -> None:
        """Pause the simulation after the step that ends the current run."""
        # In lockstep, only the client's next command runs another step.
        if self._check is not None and self._check() and not self.settings.lockstep:
            # Pause directly, so that not a single further step runs.
            self.running.control.do(USER, Pause())

    def _guarded(self, names: bool | str | Sequence[str]) -> list[str]:
        """Return the names of the robots that must not touch anything."""
        if names is False:
            return []
        if names is True:
            return list(self.sim.robots)
        found = [names] if isinstance(names, str) else list(names)
        for name in found:
            # A misspelt robot would never touch anything.
            if name not in self.sim.robots:
                raise arguments.unknown(name, self.sim.robots, "robot")

        return found

    def _look_after_programs(self) -> None:
        """Raise Failure if a program has ended with an error."""
        for program in self.programs:
            if program.has_failed:
                raise Failure(
                    f"{program} has ended with status {program.status}{_told(program)}"
                )

    # -- results

    @property
    def contacts(self) -> list[Contact]:
        """All contacts of robots since the world was made."""
        return list(self.truth.contacts)

    def shortest(self, robot: str, to: Any, start: Any = None) -> float:
        """Return the length of a robot's shortest path to a target, m.

        The path starts at the robot's start pose by default. `botyard.testing.near`
        describes targets.

        Parameters
        ----------
        robot : str
            Name of the robot.
        to : str, Pose or sequence of float
            Target.
        start : str, Pose or sequence of float, optional
            Start of the path.

        Raises
        ------
        WorldError
            There is no path.
        """
        from botyard.testing.conditions import pose_of
        from botyard.testing.paths import path_length, shortest_path

        body = self.sim.robots[robot]
        begin = body.start if start is None else pose_of(self.sim, start)
        end = pose_of(self.sim, to)
        return path_length(
            shortest_path(
                self.sim.scene,
                (begin.x, begin.y),
                (end.x, end.y),
                _inner_radius(body.spec.outline),
            )
        )

    def report(self, repeat: str = "") -> str:
        """Return the report of a failed test.

        It lists seed, time, poses, contacts, programs, the recording, and the command
        to repeat the test.
        """
        lines = [
            f"seed {self.settings.seed}, simulated time {self.sim.time:.2f} s, "
            f"map {self.sim.scene.source or self.sim.scene.name}"
        ]
        for name, robot in self.sim.robots.items():
            truth, (x, y, th) = self.truth.robots.get(name, Truth()), robot.truth
            stalled = (
                f", stopped for {truth.stall_time:.2f} s" if truth.stall_time else ""
            )
            lines.append(
                f"{name}: ({x:z.3f}, {y:z.3f}) m, {math.degrees(th):z.1f}°; "
                f"travelled {truth.distance:.2f} m{stalled}"
            )

        lines += [str(contact) for contact in self.truth.contacts[-10:]]
        for program in self.programs:
            status = (
                "runs"
                if program.status is None
                else f"ended with status {program.status}"
            )
            lines += [
                f"{program} ({status}); its last lines:",
                *(f"  {line}" for line in program.lines(OUTPUT_LINES)),
            ]

        if self.recording is not None:
            lines.append(
                f"recording: {self.recording} (botyard replay {self.recording})"
            )

        if repeat:
            lines.append(f"repeat with the page: {repeat}")
        return "\n".join(lines)

    def keep_recording(self, path: Path) -> None:
        """Move the recording of a closed world to another file.

        Parameters
        ----------
        path : Path
            New file; folders are made as needed. Without a recording, nothing happens.
        """
        if self.recording is not None and self.recording.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self.recording, path)
            self.recording = path


def _told(program: Program) -> str:
    """Return the last lines of a program's output, as the end of an error message."""
    lines = program.lines(OUTPUT_LINES)
    return "\n  ".join(["; its last lines:", *lines]) if lines else "; no output"


def _numbers(word: str) -> set[str]:
    """Return the whole numbers in a word, such as the port in an address."""
    return set("".join(c if c.isdigit() else " " for c in word).split())


def _variable(name: str) -> str:
    """Return a robot's name as part of a variable's name."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()


def _free_domain(stack: ExitStack) -> int:
    """Reserve a ROS 2 domain that no other test on this computer uses.

    The reservation ends when the stack is closed.

    Parameters
    ----------
    stack : ExitStack
        Stack that ends with the test.

    Returns
    -------
    int
        Domain id, 1 to 100.
    """
    # Other ROS programs on this computer use domain 0. Above 101, the ports reach the
    # range of temporary ports on Linux (32768).
    for domain in range(1, 101):
        guard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            # The port of a domain, from the port mapping of DDSI-RTPS (§9.6.1.1).
            guard.bind((RobotWorld.host, 7400 + 250 * domain + _GUARD_PORT))
        except OSError:
            guard.close()
            continue

        stack.callback(guard.close)
        return domain

    raise ArgumentError(
        "expected a free ROS 2 domain from 1 to 100, found all in use on this computer"
    )


__all__ = [
    "RobotWorld",
]
