"""``--joystick``: use the terminal's keys as the joystick of one robot.

The robot's client reads the joystick, or lets the robot drive by it.
"""

from __future__ import annotations

from collections.abc import Callable

from botyard.sim.simulation import Robot

STEP = 0.1
"""Change of the joystick's deflection per press of an arrow key; full deflection is 1."""
HELP = "joystick: arrows move the stick and hold button 1, space releases it, j toggles button 2"


class KeyJoystick:
    """Translator of pressed keys into positions of a joystick.

    Parameters
    ----------
    robot : Robot
        Robot that the joystick is plugged into.
    read : callable
        Function that returns the keys pressed since the last call, such as
        `botyard.cli.keyboard.Keyboard.read`.
    """

    def __init__(self, robot: Robot, read: Callable[[], list[str]]) -> None:
        self._stick = robot.electrics.joystick
        self._read = read

    def act(self) -> None:
        """Move the joystick according to the pressed keys; call this before each step."""
        stick = self._stick
        for key in self._read():
            dx = {"left": -STEP, "right": STEP}.get(key, 0.0)
            dy = {"up": STEP, "down": -STEP}.get(key, 0.0)
            if dx or dy:
                stick.set(
                    # Rounding keeps repeated steps of 0.1 from drifting off zero.
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
