"""A peer on roslibpy: ``python roslibpy_peer.py URL``.

It drives /ann, reads topics, calls services, offers one, and prints its observations as
JSON. With ``ROSLIBPY_TRANSPORT=asyncio`` it runs without Twisted.
"""

from __future__ import annotations

import json
import sys
import threading

import roslibpy

PATIENCE = 60.0
ros = roslibpy.Ros(sys.argv[1])
ros.run(PATIENCE)
seen: dict[str, object] = {}


def wait(event: threading.Event, what: str) -> None:
    if not event.wait(PATIENCE):
        sys.exit(f"{what} did not come")


def first(name: str, kind: str, good=lambda _message: True, **options: object) -> dict:
    """Return the first message of a topic that passes a check."""
    found: list[dict] = []
    event = threading.Event()

    def take(message: dict) -> None:
        if not found and good(message):
            found.append(message)
            event.set()

    topic = roslibpy.Topic(ros, name, kind, **options)
    topic.subscribe(take)
    wait(event, name)
    topic.unsubscribe()
    return found[0]


def call(name: str, kind: str, /, **args: object) -> dict:
    return dict(
        roslibpy.Service(ros, name, kind).call(
            roslibpy.ServiceRequest(args), timeout=PATIENCE
        )
    )


seen["topics"] = ros.get_topics()
seen["type"] = ros.get_topic_type("/ann/odom")
seen["nodes"] = ros.get_nodes()
seen["services"] = ros.get_services()
seen["map"] = first("/map", "nav_msgs/OccupancyGrid")["info"]
seen["scan"] = len(
    first("/ann/base_scan", "sensor_msgs/LaserScan", throttle_rate=200)["ranges"]
)

driving = roslibpy.Topic(ros, "/ann/cmd_vel", "geometry_msgs/Twist")
driving.advertise()


def moved(message: dict) -> bool:
    driving.publish(
        roslibpy.Message(
            {
                "linear": {"x": 0.3, "y": 0.0, "z": 0.0},
                "angular": {"x": 0.0, "y": 0.0, "z": 0.2},
            }
        )
    )
    return message["twist"]["twist"]["angular"]["z"] > 0.15


seen["odom"] = first("/ann/odom", "nav_msgs/Odometry", moved)["twist"]["twist"]
driving.unadvertise()

seen["added"] = call(
    "/botyard/add_robot",
    "botyard_msgs/AddRobot",
    model="p3dx",
    name="bob",
    anywhere=True,
)
seen["bob"] = first("/bob/odom", "nav_msgs/Odometry")["child_frame_id"]
seen["entities"] = call("/botyard/get_entities", "simulation_interfaces/GetEntities")[
    "entities"
]
try:
    call("/botyard/add_robot", "botyard_msgs/AddRobot", modle="p3dx")
except roslibpy.core.ServiceException as error:
    seen["error"] = str(error)

call("/botyard/pause", "std_srvs/Trigger")
action = roslibpy.ActionClient(
    ros, "/botyard/simulate_steps", "simulation_interfaces/SimulateSteps"
)


def goal(steps: int, *, cancel: bool = False) -> tuple[object, object, list[int]]:
    """Return status and values of the result, and the steps of the feedback."""
    ended, told, ends = threading.Event(), [], []

    def end(result: dict) -> None:
        ends.append((result["status"].value, result["values"]))
        ended.set()

    def feedback(values: dict) -> None:
        told.append(values["completed_steps"])
        if cancel and len(told) == 1:
            action.cancel_goal(ident)

    ident = action.send_goal(roslibpy.Goal({"steps": steps}), end, feedback, end)
    wait(ended, "the end of a goal")
    return (*ends[0], told)


seen["done"], seen["wrong"] = goal(3), goal("x")  # type: ignore[arg-type]
seen["cancelled"] = goal(100_000, cancel=True)
offered = roslibpy.Service(ros, "/twice", "example_interfaces/AddTwoInts")
offered.advertise(
    lambda request, response: response.update(sum=2 * request["a"]) or True
)
seen["twice"] = call("/twice", "example_interfaces/AddTwoInts", a=21)
offered.unadvertise()
print(json.dumps(seen), flush=True)
ros.terminate()
