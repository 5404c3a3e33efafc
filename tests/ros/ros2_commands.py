"""Do by a peer what command lines of ``ros2`` say; see ros2_scenes.py.

The wheels of ROS 2 lack its command line. Its options are as its sources declare them
(github.com/ros2/ros2cli: ros2topic, ros2service, ros2param and ros2action, verb/*.py).
"""

from __future__ import annotations

import argparse
import math
import shlex
from typing import Any

import yaml
from action_msgs.msg import GoalStatus
from nav_msgs.msg import Odometry
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from ros2_scenes import OK, type_of

QOS = ("durability", "reliability")


def parser() -> argparse.ArgumentParser:
    """Return a parser of the verbs that the docs use."""
    ros2 = argparse.ArgumentParser("ros2", exit_on_error=False)
    verbs = ros2.add_subparsers(dest="verb", required=True)

    def verb(name: str, *arguments: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(name)
        for argument in arguments:
            one.add_argument(argument)
        return one

    verb("topic list")
    echo = verb("topic echo", "name")
    for policy in QOS:
        echo.add_argument(f"--qos-{policy}", dest=policy)
    verb("topic pub", "name", "type", "values").add_argument("-r", type=float)
    verb("service call", "name", "type", "values")
    verb("param set", "name", "parameter", "value")
    goal = verb("action send_goal", "name", "type", "values")
    goal.add_argument("-f", action="store_true")
    return ros2


def filled(message: Any, values: dict[str, Any]) -> Any:
    """Return a message whose fields have values of YAML."""
    for name, value in values.items():
        field = getattr(message, name)
        is_message = hasattr(field, "get_fields_and_field_types")
        setattr(message, name, filled(field, value) if is_message else value)
    return message


def commands(make: Any, lines: list[str]) -> list[str]:
    """Type commands one after the other; return what each has shown."""
    shown = []
    with make("shell") as peer:
        for line in lines:
            ros2, noun, name, *rest = shlex.split(line)
            assert ros2 == "ros2"
            given = parser().parse_args([f"{noun} {name}", *rest])
            shown.append(DO[given.verb](peer, given))
    return shown


def _list(peer: Any, _given: Any) -> str:
    peer.wait(lambda: "/clock" in peer.graph()[0], "no topics")
    return " ".join(sorted(peer.graph()[0]))


def _echo(peer: Any, given: Any) -> str:
    # Without options, echo asks for what the publishers offer.
    peer.wait(lambda: peer.ends(given.name), given.name)
    (end,) = peer.ends(given.name)
    qos = QoSProfile(depth=10)
    for policy in QOS:
        if (value := getattr(given, policy)) is not None:
            # rclpy converts the names of policies, as the command line does.
            kind = type(getattr(qos, policy))
            setattr(qos, policy, kind.get_from_short_key(value))
    heard = peer.listen(given.name, type_of(end.kind), qos)
    peer.wait(lambda: heard, f"nothing on {given.name}")
    heard.stop()
    return str(heard[0][1])[:200]


def _pub(peer: Any, given: Any) -> str:
    kind = type_of(given.type)
    message = filled(kind(), yaml.safe_load(given.values))
    writer = peer.writer(given.name, kind)
    peer.wait(lambda: writer.readers() == 1, "no reader")
    # The robot of a cmd_vel takes the velocity.
    odom = peer.listen(given.name.replace("cmd_vel", "odom"), Odometry)
    stop = peer.every(1.0 / given.r, lambda: writer.publish(message))

    def speed() -> float:
        return odom[-1][1].twist.twist.linear.x if odom else 0.0

    peer.wait(lambda: math.isclose(speed(), message.linear.x, rel_tol=0.1), speed)
    stop()
    odom.stop()
    return f"{speed():.2f} m/s"


def _call(peer: Any, given: Any) -> str:
    kind = type_of(given.type)
    values = yaml.safe_load(given.values)
    request = filled(kind.Request(), values)
    answer = peer.call(given.name, kind, **{n: getattr(request, n) for n in values})
    assert answer.result.result == OK, answer
    return str(answer)[:200]


def _set(peer: Any, given: Any) -> str:
    client = peer.parameters(given.name)
    value = Parameter(given.parameter, value=yaml.safe_load(given.value))
    (result,) = peer.done(client.set_parameters([value])).results
    assert result.successful, result
    (now,) = peer.done(client.get_parameters([given.parameter])).values
    return str(now.double_value)


def _send_goal(peer: Any, given: Any) -> str:
    kind, heard = type_of(given.type), []
    values = yaml.safe_load(given.values)
    goal = filled(kind.Goal(), values)
    fields = {n: getattr(goal, n) for n in values}
    status, result = peer.act(given.name, kind, heard.append, **fields).end()
    assert status == GoalStatus.STATUS_SUCCEEDED, result
    assert not given.f or heard
    return str(result)


DO = {
    "topic list": _list,
    "topic echo": _echo,
    "topic pub": _pub,
    "service call": _call,
    "param set": _set,
    "action send_goal": _send_goal,
}
