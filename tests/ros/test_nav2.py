"""Three robots as Nav2's bring-up drives them, by a program with the inputs and outputs
of Nav2's programs (nav2_peer.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.ros.ros1 import output
from tests.ros.ros2 import Ros2World

pytestmark = pytest.mark.xdist_group("ros2")
PEER = Path(__file__).parent / "nav2_peer.py"
LINKS = {
    "base_footprint",
    "base_link",
    "base_scan",
    "left_wheel",
    "odom",
    "right_wheel",
}


def test_three_robots_are_located_and_driven_to_goals(world2: Ros2World) -> None:
    """Scans fit the map by the frames of tf at their stamps, stamped commands act, and
    all robots arrive.
    """
    names = ["ann", "bob", "cid"]
    chosen = [part for name in names for part in ("-r", f"p3dx:{name}")]
    sim = world2.botyard(
        "-m",
        "office",
        *chosen,
        "--ros2",
        "--ros-names",
        "nav2",
        "--ros-map",
        "on",
        "--no-error",
    )
    assert "steps of 20 ms" in output(sim)
    text = world2.run(sys.executable, str(PEER), json.dumps(names), seconds=200.0)
    lines = [x for x in text.splitlines() if x.startswith("RESULT ")]
    assert lines, text
    results = json.loads(lines[-1].removeprefix("RESULT "))
    assert set(results) == set(names)
    for name, result in results.items():
        assert result["reached"], (name, result, output(sim))
        assert result["fit"] > 0.85, (name, result)
        assert result["apart"] < 0.15, (name, result)
        assert result["scans"] >= 20
        assert set(result["links"]) >= LINKS
        assert result["odometry"] == ["odom", "base_footprint"]
        assert 0.0 < result["covariance"] < 1.0
        assert result["map"] == ["map", "base_scan"]
        assert (
            result["fastest"][0] == pytest.approx(0.3, abs=0.05)
            and 0.0 < result["fastest"][1] < 0.7
        )
        assert result["mismatch"] < 1e-6

    assert "refused" not in output(sim) and "internal error" not in output(sim)
