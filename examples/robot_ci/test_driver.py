"""Tests of a robot's program (driver.py) as a CI runs them: `python -m pytest
examples/robot_ci`.

The plug-in comes with botyard (`pip install botyard[test]`): each test has a world of
its own, on free ports.
"""

import sys
from pathlib import Path

import pytest

from botyard.testing import RobotWorld, near, stands

DRIVER = str(Path(__file__).with_name("driver.py"))


@pytest.mark.botyard("lab.yaml", seeds=range(3), record="on-failure", speed=5)
def test_reaches_the_dock(world: RobotWorld) -> None:
    """It gets near the dock, stops there, and touches nothing on its way."""
    world.start([sys.executable, DRIVER, "--port", str(world.ports["bob"])])
    world.run_until(near("bob", "Dock", 0.4), no_contact=True, deadline=60)
    world.run_until(stands("bob", 1.0), no_contact=True, deadline=20)
    truth = world.truth["bob"]
    assert truth.stall_time == 0.0
    assert truth.distance < 1.1 * world.shortest("bob", "Dock")
