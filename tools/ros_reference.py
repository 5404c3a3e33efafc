"""Writes docs/reference/ros.md from the topics, services and types that the simulator offers. Run
by ``make compatibility``; a test compares the two.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from botyard.app.compose import compose
from botyard.devices.blobs import BlobFinderSpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.formats.models import find_robot
from botyard.interfaces.ros.graph import RosGraph
from botyard.protocols.ros_messages.naming import PROFILES
from botyard.protocols.ros_messages.typedefinitions import EXTRA, SERVICES
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Simulation

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/ros.md"
HEADINGS = {"topic": "Published", "input": "Subscribed", "service": "Services"}
INTRODUCTION = """\
<!-- made by tools/ros_reference.py: change that, then run "make compatibility" -->
# ROS topics and services

Which topics and services does a ROS program find, and under which names? Select the names with
`--ros-names PROFILE`; [ROS](../howto/ros.md) explains how to connect.

- Each table shows a world with one robot, `ann`, that has every sensor. With several robots, each
  profile uses names of the form `/<robot>/…`.
- "Published" topics come from the simulator, "subscribed" topics go to it. A topic without a
  subscriber costs no time.
- A type that exists only in ROS 1 or only in ROS 2 is offered only there.
- Units follow REP-103: metres, radians, seconds.
"""


async def offered(profile: str) -> list[tuple[str, str, str, str]]:
    """Return kind, name, type and description of all topics and services of a profile of names."""
    sim = Simulation.load("office", seed=1)
    spec = (
        find_robot("p3dx-equipped")
        .fitted(FiducialFinderSpec())
        .fitted(BlobFinderSpec())
    )
    sim.add_robot(spec, "ann", pose=(10.0, 14.0, 0.0))
    parts = compose(sim)
    graph = RosGraph(
        parts.hub,
        parts.control,
        parts.maps.cells,
        types(),
        profile=PROFILES[profile],
        is_localized="initialpose" in PROFILES[profile].robot,
    )
    return list(graph.describe())


def own_types() -> str:
    """Return the definitions of types that not every ROS has."""
    out = ["\n## Types defined by botyard\n\n"]
    for name, text in EXTRA.items():
        if name.startswith(("botyard_msgs/", "rosaria/")):
            out.append(f"`{name}.msg`\n\n```\n{text}\n```\n\n")

    for name, (request, response) in SERVICES.items():
        if name.startswith("botyard_msgs/"):
            out.append(f"`{name}.srv`\n\n```\n{request}\n---\n{response}\n```\n\n")

    return "".join(out).rstrip() + "\n"


def page() -> str:
    """Return the whole page as Markdown."""
    out = [INTRODUCTION]
    for profile in PROFILES:
        out.append(f"\n## `--ros-names {profile}`\n")
        rows = asyncio.run(offered(profile))
        for kind, heading in HEADINGS.items():
            of_kind = [r for r in rows if r[0] == kind]
            if of_kind:
                out.append(
                    f"\n{heading}:\n\n| name | type | description |\n|---|---|---|\n"
                )
                out += [
                    f"| `{name}` | {type_name} | {about} |\n"
                    for _, name, type_name, about in of_kind
                ]

    return "".join(out) + own_types()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"written: {PAGE}")
