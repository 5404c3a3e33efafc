"""The packages of ros/: colcon builds them, their files load, and their names are the
simulator's and Nav2's.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.ros2_peers import built, clean
from tools.ros_packages import FOLDER, interfaces
from tools.ros_reference import offered

from botyard.cli import run
from botyard.formats.models import find_robot
from botyard.protocols.ros_messages.types import types
from tests.ros import nav2_parameters
from tests.ros.ros2 import WHEELS

PACKAGE = FOLDER / "botyard_ros"
LAUNCHES = sorted((PACKAGE / "launch").iterdir())
CONFIGS = sorted((PACKAGE / "config").iterdir())
# Elements and attributes of launch's XML (ros2/launch and ros2/launch_ros: @expose_action).
ELEMENTS = {
    "launch": set(),
    "arg": {"name", "default", "description", "value"},
    "let": {"name", "value"},
    "executable": {"name", "cmd", "output"},
    "include": {"file"},
    "node": {"pkg", "exec", "namespace", "args"},
    "param": {"name", "value"},
    "remap": {"from", "to"},
}
# nav2_bringup/launch/bringup_launch.py (02d46cb); Jazzy has use_namespace.
BRINGUP = {
    *(
        "namespace",
        "use_namespace",
        "slam",
        "map",
        "keepout_mask",
        "speed_mask",
        "graph",
    ),
    *("use_localization", "use_keepout_zones", "use_speed_zones", "use_sim_time"),
    *("params_file", "autostart", "use_composition", "use_respawn", "log_level"),
}

# Packages of rosdistro/jazzy/distribution.yaml, which are keys of rosdep. The build type
# ament_python is none.
KEYS = {
    *("ament_cmake", "geometry_msgs", "launch_xml", "nav2_bringup", "ros2launch"),
    *("rosidl_default_generators", "rosidl_default_runtime", "rviz2", "std_msgs"),
}


def test_rosdep_knows_all_dependencies() -> None:
    """Each dependency is a package of the folder or of the distribution."""
    roots = [ET.parse(path).getroot() for path in FOLDER.glob("*/package.xml")]
    own = {root.findtext("name") for root in roots}
    for root in roots:
        named = {e.text for e in root if "depend" in e.tag}
        assert named and named <= KEYS | own, root.findtext("name")


def test_the_messages_are_the_programs() -> None:
    """The files of botyard_msgs; `make compatibility` writes them."""
    package = FOLDER / "botyard_msgs"
    found = {
        path.relative_to(FOLDER).as_posix(): path.read_text("utf-8")
        for kind in ("msg", "srv")
        for path in (package / kind).iterdir()
    }
    assert found == interfaces()
    used = set(re.findall(r"\b([a-z]\w*_msgs)/", "\n".join(found.values())))
    manifest = ET.parse(package / "package.xml")
    depends = {e.text for e in manifest.iter("depends")} | {
        e.text for e in manifest.iter("depend")
    }
    assert used - {"botyard_msgs"} == depends
    text = (package / "CMakeLists.txt").read_text("utf-8")
    assert set(re.findall(r"DEPENDENCIES ([\w ]+)\)", text)[0].split()) == depends


def colcon(*args: str, **env: str) -> str:
    """Return the output of colcon."""
    program = WHEELS / "colcon/bin/colcon"
    if not program.exists():
        if os.environ.get("CI"):
            pytest.fail("needs colcon, and in CI it must be there (make peers)")

        pytest.skip("needs colcon (make peers)")
    done = subprocess.run(
        [str(program), *args],
        env={**clean(), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_colcon_finds_and_builds(tmp_path: Path) -> None:
    """colcon finds both packages in a checkout, and what it installs of botyard_ros is
    where ROS 2 looks for it.
    """
    log = ("--log-base", str(tmp_path / "log"))
    found = colcon(*log, "list", "--base-paths", str(FOLDER.parent))
    kinds = {line.split()[0]: line.split()[-1] for line in found.splitlines()}
    assert kinds == {
        "botyard_msgs": "(ros.ament_cmake)",
        "botyard_ros": "(ros.ament_python)",
    }

    out = tmp_path / "install"
    paths = ("--build-base", str(tmp_path / "build"), "--install-base", str(out))
    chosen = ("--base-paths", str(PACKAGE))
    colcon(*log, "build", *paths, *chosen)
    share = out / "botyard_ros/share/botyard_ros"
    for folder in ("config", "launch", "robots", "rviz"):
        names = {p.name for p in (PACKAGE / folder).iterdir()}
        assert names == {p.name for p in (share / folder).iterdir()}, folder
    assert (share / "package.xml").read_text() == (PACKAGE / "package.xml").read_text()
    code = (
        "from ament_index_python.packages import get_package_share_directory as share\n"
        "import botyard_ros\n"
        "print(share('botyard_ros'), botyard_ros.__file__)"
    )
    setup = f". {shlex.quote(str(out / 'local_setup.sh'))} && exec "
    python = shlex.quote(str(WHEELS / "jazzy/bin/python"))
    done = subprocess.run(
        ["sh", "-c", f"{setup}{python} -c {shlex.quote(code)}"],
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(f"{share} {out / 'botyard_ros/lib'}"), done
    assert not list(PACKAGE.rglob("build")), "colcon wrote into the sources"


def need_cmake() -> None:
    """Require CMake in the environment with colcon."""
    if not (WHEELS / "colcon/bin/cmake").exists():
        if os.environ.get("CI"):
            pytest.fail("needs CMake, and in CI it must be there (make peers)")

        pytest.skip("needs CMake (make peers)")


MESSAGES = """
import json
from ament_index_python.packages import get_package_share_directory as share
from botyard_msgs.msg import Blob, BlobArray
from botyard_msgs.srv import AddRobot
from rclpy.serialization import deserialize_message, serialize_message
import botyard_msgs

array = BlobArray(width=3, blobs=[Blob(channel=7, color="red", bearing=0.5)])
array.header.frame_id = "camera"
data = serialize_message(array)
assert deserialize_message(data, BlobArray) == array
asked = serialize_message(AddRobot.Request(model="p3dx", name="ann", anywhere=True))
print(json.dumps([botyard_msgs.__file__, share("botyard_msgs"), data.hex(), asked.hex()]))
"""


def test_colcon_builds_the_messages() -> None:
    """The messages that colcon has built with CMake: Python's classes, bytes, hashes, and
    headers that a C++ program includes.
    """
    need_cmake()
    out = built(WHEELS)
    setup = f". {shlex.quote(str(out / 'local_setup.sh'))} && exec "
    python = shlex.quote(str(WHEELS / "jazzy/bin/python"))
    done = subprocess.run(
        ["sh", "-c", f"{setup}{python} -c {shlex.quote(MESSAGES)}"],
        env={**clean(), "COLCON_CURRENT_PREFIX": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    module, share, *data = json.loads(done.stdout)
    assert Path(module).is_relative_to(out) and Path(share).is_relative_to(out)
    array = types().decode_cdr(bytes.fromhex(data[0]), "botyard_msgs/BlobArray")
    assert (array.width, array.header.frame_id) == (3, "camera")
    assert [(b.channel, b.color, b.bearing) for b in array.blobs] == [(7, "red", 0.5)]
    asked = types().decode_cdr(
        bytes.fromhex(data[1]), "botyard_msgs/srv/AddRobot_Request"
    )
    assert (asked.model, asked.name, asked.anywhere) == ("p3dx", "ann", True)

    hashes = 0
    for name in interfaces():
        package, kind, file = name.split("/")
        described = Path(share) / kind / file.replace(f".{kind}", ".json")
        for entry in json.loads(described.read_text())["type_hashes"]:
            if entry["type_name"].startswith(f"{package}/{kind}/{Path(file).stem}"):
                assert types().hash(entry["type_name"]) == entry["hash_string"], entry
                hashes += 1
    # A service has a hash of its own, and three parts.
    assert hashes >= 4 + 4 * 9
    include = out / "botyard_msgs/include/botyard_msgs/botyard_msgs"
    headers = {
        p.stem for p in include.rglob("*.hpp") if p.parent.name in ("msg", "srv")
    }
    assert {"blob_array", "add_robot", "step"} <= headers


# -- launch files


def expanded(text: str, values: dict[str, str]) -> str:
    """Replace launch's substitutions: arguments, and our own folder."""
    text = text.replace("$(find-pkg-share botyard_ros)", str(PACKAGE))
    for name, value in values.items():
        text = text.replace(f"$(var {name})", value)
    return text


@pytest.mark.parametrize("path", LAUNCHES, ids=lambda p: p.stem)
def test_launch_files(path: Path) -> None:
    """Elements, attributes, arguments and files are there."""
    root = ET.parse(path).getroot()
    assert root.tag == "launch"
    for element in root.iter():
        known = ELEMENTS[element.tag] | {"if", "unless"}
        assert set(element.keys()) <= known, (path.name, element.tag)
    declared = {e.get("name") for e in root.iter() if e.tag in ("arg", "let")}
    text = path.read_text("utf-8")
    assert set(re.findall(r"\$\(var (\w+)\)", text)) <= declared
    assert set(re.findall(r"\$\((\S+)", text)) <= {"var", "find-pkg-share"}
    depends = {e.text for e in ET.parse(PACKAGE / "package.xml").iter("exec_depend")}
    packages = {e.get("pkg") for e in root.iter("node")}
    packages |= set(re.findall(r"find-pkg-share (\w+)\)", text)) - {"botyard_ros"}
    assert packages <= depends
    for name in re.findall(r"find-pkg-share botyard_ros\)/([\w./]+)", text):
        assert (PACKAGE / name.partition(":")[0]).is_file(), name
    for element in root.iter("include"):
        given = {e.get("name") for e in element.iter("arg")}
        file = expanded(element.get("file", ""), {})
        if file.startswith(str(PACKAGE)):
            wanted = ET.parse(file).getroot().findall("arg")
            names = {e.get("name") for e in wanted}
            needed = {e.get("name") for e in wanted if e.get("default") is None}
            assert needed <= given <= names
        else:
            assert given <= BRINGUP, given - BRINGUP


@pytest.mark.parametrize("localization", ["none", "truth"])
@pytest.mark.parametrize("path", LAUNCHES, ids=lambda p: p.stem)
def test_the_simulators_command(path: Path, localization: str) -> None:
    """The program takes the command line, and its robots have the names of the
    namespaces.
    """
    root = ET.parse(path).getroot()
    commands = [e.get("cmd", "") for e in root.iter("executable")]
    assert len(commands) == (path.name != "nav2.launch.xml")
    for command in commands:
        values = {"world": "office", "localization": localization}
        program, verb, *args = expanded(command, values).split()
        assert (program, verb) == ("botyard", "run")
        with run.command.make_context("botyard", args) as context:
            names = [robot.name for robot in context.params["robots"]]
        spaces = [
            e.get("value") for e in root.iter("arg") if e.get("name") == "namespace"
        ]
        assert spaces == (names if len(names) > 1 else [])


# -- parameters and RViz


def leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:
    """Return the parameters of a file with their last names."""
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in leaves(v, str(k))]
    return [(key, value)]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_parameters(path: Path) -> None:
    """Nav2 declares them; topics and frames are the simulator's; the footprint contains
    the robot, and velocities are at most the robot's.
    """
    text = path.read_text("utf-8")
    file = yaml.safe_load(text)
    assert not nav2_parameters.unknown(file)
    offers = asyncio.run(offered("nav2"))
    names = {n.removeprefix("/") for k, n, _, _ in offers if k in ("topic", "input")}
    # These names are Nav2's own, not botyard's.
    between = {"cmd_vel_smoothed", "local_costmap/published_footprint"}
    frames = {"map", "odom", "base_footprint", "base_link", "base_scan"}
    is_ours = path.stem == "turtlebot4"
    # Files for several robots name their namespaces.
    is_alone = path.stem != "p3dx"
    robot = find_robot(
        str(PACKAGE / "robots/turtlebot4.toml") if is_ours else path.stem
    )
    space = "/" if is_alone else "/$(var namespace)/"
    seen = set()
    for key, value in leaves(file):
        if key == "topic" or key.endswith("_topic"):
            assert value.removeprefix(space) in names | between, (key, value)
        elif re.search(r"_frame(_id)?$", key):
            assert value in frames, (key, value)
        elif key in ("footprint", "robot_radius"):
            if key == "robot_radius":
                assert all(math.hypot(*corner) <= value for corner in robot.outline)
            else:
                for mine, given in zip(
                    zip(*robot.outline, strict=True),
                    zip(*yaml.safe_load(value), strict=True),
                    strict=True,
                ):
                    assert min(given) <= min(mine) and max(mine) <= max(given)
        elif key in ("min_turning_r", "minimum_turning_radius"):
            assert value >= robot.kinematics.turning_radius > 0.0
        elif key in ("max_velocity", "desired_linear_vel", "vx_max"):
            speed = value[0] if key == "max_velocity" else value
            assert 0.0 < speed <= robot.limits.max_speed.x
        elif key == "use_sim_time":
            assert value is True
        else:
            continue
        seen.add(key)
    assert {"max_velocity", "use_sim_time", "scan_topic", "base_frame_id"} <= seen
    if robot.kinematics.steers:
        assert {"min_turning_r", "minimum_turning_radius"} <= seen
        assert "use_rotate_to_heading" not in text and "spin" not in text.replace(
            "no behaviour spins", ""
        )


def test_unknown_parameters_are_found() -> None:
    """At each depth."""
    file = yaml.safe_load(CONFIGS[0].read_text("utf-8"))
    file["amcl"]["ros__parameters"]["typo"] = 1
    file["controller_server"]["ros__parameters"]["FollowPath"]["typo"] = 1
    costmap = file["local_costmap"]["local_costmap"]["ros__parameters"]
    costmap["obstacles"]["scan"]["typo"] = 1
    file["collision_monitor"]["ros__parameters"]["scan"]["min_height"] = 1
    assert sorted(nav2_parameters.unknown(file)) == [
        "amcl.typo",
        "collision_monitor.scan.min_height",
        "controller_server.FollowPath.typo",
        "local_costmap.obstacles.scan.typo",
    ]


def test_rviz() -> None:
    """Topics and durability are the simulator's, where they are not Nav2's."""
    file = yaml.safe_load((PACKAGE / "rviz/nav2.rviz").read_text("utf-8"))
    offers = asyncio.run(offered("nav2"))
    names = {n.removeprefix("/") for _, n, _, _ in offers}
    manager = file["Visualization Manager"]
    topics = {
        entry[key]["Value"]: entry[key].get("Durability Policy")
        for entry in [*manager["Displays"], *manager["Tools"]]
        for key in ("Topic", "Description Topic")
        if key in entry
    }
    # Of Nav2: planner_server, costmap_2d_ros.cpp and navigate_to_pose.cpp.
    own = {"plan", "global_costmap/costmap", "goal_pose"}
    assert set(topics) - own <= names
    latched = {name for name, kind in topics.items() if kind == "Transient Local"}
    assert latched == {"map", "robot_description", "global_costmap/costmap"}
