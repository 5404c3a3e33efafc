"""AprilTags: which are detected, and the errors of their poses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.apriltags import APRIL_TAGS, AprilTagSpec, deviations_of
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Scene

BACK = math.pi


def tag(x: float, y: float = 0.0, th: float = BACK, mark: int = 7) -> BoxObject:
    return BoxObject(
        name=f"tag {mark}",
        pose=Pose(x, y, th),
        length=0.02,
        width=0.2,
        returns=Returns(fiducial=mark),
    )


def seen(spec: AprilTagSpec, *tags: BoxObject, steps: int = 1, **options: Any) -> list:
    walls = options.pop("walls", np.zeros((0, 4)))
    sim = botyard.Simulation(Scene(boxes=tags, segments=walls), seed=4, **options)
    robot = sim.add_robot(find_robot("p3dx").fitted(spec), "a", pose=(0, 0, 0))
    found = []
    for _ in range(steps):
        sim.step()
        found.append(robot.devices["april_tags"].read())
    return found


def test_exact_poses_are_those_of_the_bodies_in_the_camera_frame() -> None:
    spec = AprilTagSpec(pose=Pose(0.2, 0.1, 0.3))
    ((found,),) = seen(spec, tag(2.0, 0.8, BACK + 0.2))
    c, s = math.cos(0.3), math.sin(0.3)
    assert (found.pose.x, found.pose.y) == pytest.approx(
        (c * 1.8 + s * 0.7, c * 0.7 - s * 1.8)
    )
    assert math.remainder(found.pose.th - (BACK + 0.2 - 0.3), 2 * math.pi) == (
        pytest.approx(0.0, abs=1e-12)
    )
    assert found.id == 7


def test_the_range_follows_from_the_pixels_of_a_tag() -> None:
    spec = AprilTagSpec(fov=math.radians(90), width=640, tag_size=0.2, min_pixels=16)
    # f = 320 pixels, so that 0.2 m are 16 pixels at 4 m.
    assert spec.focal == pytest.approx(320.0) and spec.range_max == pytest.approx(4.0)
    assert len(seen(spec, tag(3.99))[0]) == 1 and not seen(spec, tag(4.01))[0]
    # Turned by 60°, the tag is half as wide.
    assert len(seen(spec, tag(1.99, th=BACK + math.pi / 3))[0]) == 1
    assert not seen(spec, tag(2.01, th=BACK + math.pi / 3))[0]


def test_tags_must_face_the_camera_within_its_view_and_not_be_hidden() -> None:
    spec = AprilTagSpec(max_angle=math.radians(50))
    assert len(seen(spec, tag(1.0, th=BACK - math.radians(49)))[0]) == 1
    assert not seen(spec, tag(1.0, th=BACK - math.radians(51)))[0]
    assert not seen(spec, tag(1.0, th=0.0))[0]
    two = AprilTagSpec(max_angle=math.radians(50), faces=2)
    assert len(seen(two, tag(1.0, th=0.0))[0]) == 1
    assert not seen(spec, tag(1.0, 0.7))[0]
    wall = np.array([[0.5, -1.0, 0.5, 1.0]])
    assert not seen(spec, tag(1.0), walls=wall)[0]


def test_tags_around_a_body_show_the_face_turned_to_the_camera() -> None:
    four = AprilTagSpec(faces=4)
    for th in (0.2, 0.2 + math.pi / 2, 0.2 - math.pi):
        ((found,),) = seen(four, tag(1.0, th=th))
        assert math.remainder(found.pose.th - (BACK + 0.2), 2 * math.pi) == (
            pytest.approx(0.0, abs=1e-9)
        )


def test_errors_have_the_deviations_of_the_pinhole_camera() -> None:
    spec = AprilTagSpec(pixel_deviation=0.3, min_pixels=5.0)
    angle = 0.6
    found = [one for (one,) in seen(spec, tag(2.0, th=BACK + angle), steps=500)]
    focal = 320.0 / math.tan(math.radians(30))
    share = 0.3 / (focal * 0.16 / 2.0)
    expected = 2.0 * share, 2.0 * 0.3 / focal, share / math.sin(angle)
    assert deviations_of(spec, 2.0, angle) == pytest.approx(expected)
    poses = np.array([tuple(one.pose) for one in found])
    poses[:, 2] = np.remainder(poses[:, 2], 2 * math.pi)
    assert poses.std(axis=0) == pytest.approx(expected, rel=0.12)
    assert poses.mean(axis=0) == pytest.approx(
        (2.0, 0.0, BACK + angle), abs=4 * max(expected) / math.sqrt(500)
    )
    assert found[0].deviations == pytest.approx(expected)
    # Head-on, the heading is poorly known.
    assert deviations_of(spec, 2.0, 0.0)[2] == pytest.approx(math.sqrt(share))


def test_messages_have_the_covariance_in_the_camera_frame() -> None:
    spec = AprilTagSpec(pixel_deviation=0.3)
    ((found,),) = seen(spec, tag(1.5, 0.5), sensor_noise=False)
    (ros,) = APRIL_TAGS.ros_messages
    ((message,),) = (ros.fields(spec, [found])["tags"],)
    got = np.array(message["pose"]["covariance"]).reshape(6, 6)[:2, :2]
    along, across, _ = found.deviations
    line = np.array([1.5, 0.5]) / math.hypot(1.5, 0.5)
    turn = np.array([[line[0], -line[1]], [line[1], line[0]]])
    np.testing.assert_allclose(
        got, turn @ np.diag([along**2, across**2]) @ turn.T, atol=1e-15
    )


def test_detections_fail_at_random() -> None:
    found = seen(AprilTagSpec(missing=0.3), tag(1.0), steps=300)
    assert sum(map(len, found)) / 300 == pytest.approx(0.7, abs=0.08)
