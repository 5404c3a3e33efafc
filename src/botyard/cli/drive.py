"""``botyard drive HOST:PORT``: drive any Pioneer-protocol robot from the keyboard."""

from __future__ import annotations

import contextlib
import sys

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from botyard.cli.keyboard import Keyboard
from botyard.cli.options import parse_address
from botyard.clients.pioneer import PioneerClient
from botyard.errors import CommandLineError
from botyard.names import shown
from botyard.processes.slow_notice import telling

SPEED_STEP = 50
"""Change of speed per press of an arrow key, mm/s."""
TURN_STEP = 10
"""Change of turn rate per press of an arrow key, deg/s."""
HELP = "arrows drive and turn   space stops   e motors on   x motors off   q quit"


class Pilot:
    """Translator of pressed keys into commands for a robot.

    Parameters
    ----------
    robot : PioneerClient
        Connected client, which sends the commands to the robot.
    max_speed, max_turn : int
        Maximum commands, mm/s and deg/s.
    """

    def __init__(self, robot: PioneerClient, max_speed: int, max_turn: int) -> None:
        self.robot = robot
        self.max_speed, self.max_turn = max_speed, max_turn
        # A stop also clears the targets; otherwise the next key would continue at the
        # old speed.
        self.speed = self.turn = 0

    def press(self, key: str) -> bool:
        """Send the command that belongs to a key.

        Parameters
        ----------
        key : str
            Character, or name of an arrow key, as `botyard.cli.keyboard.split_keys`
            returns it. Other keys are ignored.

        Returns
        -------
        bool
            False if the key ends the program.
        """
        # In raw mode the terminal sends Ctrl-C and Ctrl-D as characters, 3 and 4.
        if key in ("q", "b", "\x1b", "\x03", "\x04"):
            return False
        if key in ("up", "down", "w", "s"):
            self.speed = _limited(
                self.speed + (SPEED_STEP if key in ("up", "w") else -SPEED_STEP),
                self.max_speed,
            )
            self.robot.vel(self.speed)
        elif key in ("left", "right", "a", "d"):
            self.turn = _limited(
                self.turn + (TURN_STEP if key in ("left", "a") else -TURN_STEP),
                self.max_turn,
            )
            self.robot.rvel(self.turn)
        elif key == " ":
            # A robot whose motors change state starts from rest, so the targets must be
            # 0.
            self.speed = self.turn = 0
            self.robot.stop()
        elif key in ("e", "x"):
            self.speed = self.turn = 0
            self.robot.enable(key == "e")

        return True


def _limited(value: int, limit: int) -> int:
    """Return a value limited to the range from -limit to limit."""
    return max(-limit, min(limit, value))


def panel(robot: PioneerClient, pilot: Pilot) -> RenderableType:
    """Return the lines that show the robot's state and the commanded speeds.

    Parameters
    ----------
    robot : PioneerClient
        The robot, with the values of its last reports.
    pilot : Pilot
        Commanded speeds, mm/s and deg/s.
    """
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "pose",
        f"x {robot.x_mm / 1000:z8.3f} m   y {robot.y_mm / 1000:z8.3f} m   th {robot.th_deg:z7.1f}°",
    )
    table.add_row(
        "speed",
        f"{robot.vel_mm_s:z5.0f} mm/s   {robot.rot_vel_deg_s:z6.1f} °/s   "
        f"command {pilot.speed} mm/s, {pilot.turn} °/s",
    )
    state = Text(
        "motors on" if robot.motors_on else "motors OFF (press e)",
        style="" if robot.motors_on else "bold yellow",
    )
    if robot.stalled:
        state.append("   STALLED", style="bold red")
    state.append(f"   battery {robot.volts:.1f} V")
    table.add_row("state", state)
    ranges = "  ".join(f"{i}:{r / 1000:.2f}" for i, r in sorted(robot.sonar_mm.items()))
    table.add_row("sonar m", Text(ranges or "none"))
    if robot.scan_mm:
        n, scan = len(robot.scan_mm), robot.scan_mm
        table.add_row(
            "laser m",
            f"right {scan[0] / 1000:.2f}   ahead {scan[n // 2] / 1000:.2f}   "
            f"left {scan[-1] / 1000:.2f}   ({n} readings)",
        )

    return Group(
        Text(
            shown(f"{robot.name}: {robot.class_name} {robot.subclass}", 200),
            style="bold",
        ),
        table,
        Text(HELP, style="dim"),
    )


@click.command("drive")
@click.argument("address", default="127.0.0.1:8101", metavar="[HOST:PORT]")
@click.option("--laser/--no-laser", default=True, help="Request laser scans.")
def command(address: str, laser: bool) -> None:
    """Drive a robot with the arrow keys; show pose, sonar and stall live.

    Works with any Pioneer-protocol robot.
    """
    if not sys.stdin.isatty():
        raise CommandLineError(
            "drive: expected a terminal on standard input, found a file or a pipe"
        )
    host, port = parse_address(address, port=8101)
    console = Console()
    with contextlib.ExitStack() as stack:
        with telling(f"waiting for the robot at {shown(address, 200)}"):
            robot = stack.enter_context(PioneerClient(host, port))
            config = robot.request_config()

        robot.enable()
        if laser:
            robot.start_laser()

        # CONFIG may report 0 for a limit that the robot does not have, and 0 would
        # forbid all motion.
        pilot = Pilot(robot, config.trans_vel_max or 500, config.rot_vel_max or 100)
        with (
            # The keyboard is restored last, so that a failing display does not leave a
            # terminal without echo.
            Keyboard() as keys,
            Live(panel(robot, pilot), console=console, auto_refresh=False) as live,
        ):
            while all(pilot.press(key) for key in keys.read()):
                robot.update()
                live.update(panel(robot, pilot), refresh=True)

        robot.stop()
        # Give the stop command time to reach the robot before the connection closes.
        robot.update(0.5)
