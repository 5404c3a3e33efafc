"""``--joystick``: the keys of the simulator's terminal are the joystick of one robot,
for its client to read or to drive by.
"""

from __future__ import annotations

from collections.abc import Callable

from botyard.sim.simulation import Robot

STEP = 0.1
"""How far one press of an arrow key moves the stick."""
HELP = "joystick: arrows move the stick and hold button 1, space lets go, j presses button 2"


class KeyJoystick:
    """Turns keys into a joystick; to be called before every step.

    Parameters
    ----------
    robot : Robot
        The robot that the joystick is plugged into.
    read : callable
        Keys pressed since the last call, as `botyard.cli.keyboard.Keyboard.read` gives
        them.
    """

    def __init__(self, robot: Robot, read: Callable[[], list[str]]) -> None:
        self._stick = robot.electrics.joystick
        self._read = read

    def act(self) -> None:
        """Obey the keys."""
        stick = self._stick
        for key in self._read():
            dx = {"left": -STEP, "right": STEP}.get(key, 0.0)
            dy = {"up": STEP, "down": -STEP}.get(key, 0.0)
            if dx or dy:
                stick.set(
                    round(stick.x + dx, 3),
                    round(stick.y + dy, 3),
                    stick.throttle,
                    True,
                    stick.button2,
                )
            elif key == " ":
                stick.set(0.0, 0.0, stick.throttle, False, False)
            elif key == "j":
                stick.set(
                    stick.x, stick.y, stick.throttle, stick.button1, not stick.button2
                )
