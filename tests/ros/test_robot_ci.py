"""The example tests of ROS programs:

a rospy node and a ROS 2 peer drive a robot each, and the runs re-simulate.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.networks import ALONE, LOOPBACK
from tests.recording.proving import prove
from tests.waiting import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "robot_ci"


@pytest.mark.peer
@pytest.mark.xdist_group("ros1")
def test_nodes_of_ros_are_tested_as_the_example_shows(
    debian_ros: None, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "robot_ci")
    test = tmp_path / "robot_ci/test_ros.py"
    test.write_text(
        test.read_text("utf-8").replace("speed=4)", 'speed=4, record="always")'),
        "utf-8",
    )
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("ROS", "CYCLONE", "BOTYARD", "PYTEST"))
    }
    pytest_ = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "robot_ci/test_ros.py",
    ]
    done = subprocess.run(
        [*ALONE, "bash", "-c", LOOPBACK + 'exec "$@"', "-", *pytest_],
        env=kept,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    runs = list(tmp_path.rglob("*.mcap"))
    assert len(runs) == 2
    for path in runs:
        prove(path, 20)
