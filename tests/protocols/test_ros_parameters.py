"""ROS 2's parameter services, without a network."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.control.time import SetSpeed
from botyard.errors import PeerError, WorldError
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.parameters import (
    BOOL,
    DOUBLE,
    NOT_SET,
    Parameters,
    Value,
)
from botyard.protocols.ros_messages.types import types

TYPES = types()
held = {"ann.trans_accel": 0.3, "bob.trans_accel": 0.4}


def refuse(_value: float) -> None:
    raise WorldError("not today")


def values() -> dict[str, Value]:
    found = {
        n: Value(
            lambda n=n: held[n], "m/s²", lambda v, n=n: held.__setitem__(n, v), 100.0
        )
        for n in held
    }
    return found | {
        "use_sim_time": Value(lambda: True, "about time"),
        "stuck": Value(lambda: 1.0, "", refuse, 5.0),
        "speed_factor": Value(lambda: 1.0, "", lambda v: SetSpeed(speed=v) and None),
    }


def call(name: str, **fields: Any) -> Any:
    """Return the answer to a request, both encoded."""
    service = next(
        s
        for s in Parameters("/n", TYPES, values).services()
        if s.type_name == f"rcl_interfaces/{name}"
    )
    kind = f"rcl_interfaces/srv/{name}"
    request = TYPES.encode_cdr(
        TYPES.two(f"{kind}_Request")(**fields), f"{kind}_Request"
    )
    answer = service.serve(TYPES.decode_cdr(request, f"{kind}_Request"))
    return TYPES.decode_cdr(
        TYPES.encode_cdr(answer, f"{kind}_Response"), f"{kind}_Response"
    )


def wanted(name: str, value: float, sort: int = DOUBLE) -> Any:
    """Return an rcl_interfaces/msg/Parameter."""
    packed = Parameters("/n", TYPES, values)._packed(value)
    packed.type = sort
    return TYPES.two("rcl_interfaces/Parameter")(name, packed)


def test_names_of_services() -> None:
    """The names that ros2 param looks up."""
    names = {s.name for s in Parameters("/n", TYPES, values).services()}
    assert names == {
        f"/n/{x}"
        for x in (
            "describe_parameters",
            "get_parameters",
            "get_parameter_types",
            "list_parameters",
            "set_parameters",
            "set_parameters_atomically",
        )
    }
    assert all(s.only == "cdr" for s in Parameters("/n", TYPES, values).services())


def test_values_are_listed_got_and_described() -> None:
    """Unknown parameters are left out of the answers."""
    assert call("ListParameters", prefixes=[], depth=0).result.names == list(values())
    assert call("ListParameters", prefixes=["ann"], depth=0).result.names == [
        "ann.trans_accel"
    ]
    assert call("ListParameters", prefixes=[], depth=1).result.names == [
        "use_sim_time",
        "stuck",
        "speed_factor",
    ]
    names = ["ann.trans_accel", "use_sim_time", "nothing"]
    got = call("GetParameters", names=names).values
    assert [v.type for v in got] == [DOUBLE, BOOL, NOT_SET]
    assert got[0].double_value == held["ann.trans_accel"]
    assert got[1].bool_value
    assert list(call("GetParameterTypes", names=names).types) == [DOUBLE, BOOL, NOT_SET]
    ann, time, nothing = call("DescribeParameters", names=names).descriptors
    assert (ann.read_only, ann.floating_point_range[0].to_value) == (False, 100.0)
    assert (time.read_only, len(time.floating_point_range)) == (True, 0)
    assert nothing.type == NOT_SET


NAMES = ["a", "a.b", "a.b.c", "a.b.c.d", "ab.c", "x.y"]


@given(
    st.lists(st.sampled_from(["a", "a.b", "a.b.c", "ab", "x", "", "a."]), max_size=3),
    st.integers(0, 4),
)
def test_names_are_listed_as_rclcpp_lists_them(prefixes: list[str], depth: int) -> None:
    """A naive twin by its documentation: below one of the prefixes, down to a depth."""

    def is_there(name: str) -> bool:
        if not prefixes:
            return depth == 0 or name.count(".") < depth
        return any(
            name == p
            or (
                name.startswith(f"{p}.")
                and (depth == 0 or name[len(p) + 1 :].count(".") < depth)
            )
            for p in prefixes
        )

    def some() -> dict[str, Value]:
        return {name: Value(lambda: 1.0, "") for name in NAMES}

    service = next(
        s
        for s in Parameters("/n", TYPES, some).services()
        if s.type_name.endswith("/ListParameters")
    )
    request = TYPES.two("rcl_interfaces/srv/ListParameters_Request")(
        prefixes=prefixes, depth=depth
    )
    assert service.serve(request).result.names == [
        name for name in NAMES if is_there(name)
    ]


def test_events_tell_what_came_went_and_changed() -> None:
    now = {"a.x": 1.0, "a.y": 2.0}

    def some() -> dict[str, Value]:
        return {
            n: Value(lambda n=n: now[n], "", lambda v, n=n: now.__setitem__(n, v), 9.0)
            for n in now
        }

    node = Parameters("/n", TYPES, some)
    heard: list[Any] = []

    def hear() -> None:
        event = node.events.make(Stamp(7, 8))
        if event is not None:
            kind = "rcl_interfaces/msg/ParameterEvent"
            heard.append(TYPES.decode_cdr(TYPES.encode_cdr(event, kind), kind))

    node.events.publish = hear
    node.events.wanted(True)
    hear()
    assert not heard, "what is there when somebody begins to listen is no news"
    put = next(s for s in node.services() if s.type_name.endswith("/SetParameters"))
    put.serve(
        TYPES.two("rcl_interfaces/srv/SetParameters_Request")(
            parameters=[wanted("a.x", 5.0), wanted("a.q", 1.0)]
        )
    )
    (event,) = heard
    assert (event.node, event.stamp.sec, event.stamp.nanosec) == ("/n", 7, 8)
    assert [
        (p.name, p.value.type, p.value.double_value) for p in event.changed_parameters
    ] == [("a.x", DOUBLE, 5.0)]
    assert not event.new_parameters and not event.deleted_parameters
    del now["a.y"]
    now["b.x"] = 3.0
    hear()
    assert [p.name for p in heard[1].new_parameters] == ["b.x"]
    assert [(p.name, p.value.double_value) for p in heard[1].deleted_parameters] == [
        ("a.y", 2.0)
    ]
    now.update({f"c{k}": 0.0 for k in range(2500)})
    for _ in range(4):
        hear()
    assert [len(e.new_parameters) for e in heard[2:]] == [1000, 1000, 500], (
        "no message grows without bounds"
    )


@pytest.mark.parametrize(
    ("name", "value", "sort", "reason"),
    [
        ("nothing", 1.0, DOUBLE, "no parameter"),
        ("use_sim_time", 1.0, DOUBLE, "read-only"),
        ("ann.trans_accel", 1.0, BOOL, "expected a double"),
        ("ann.trans_accel", -1.0, DOUBLE, "expected 0 … 100, found -1"),
        ("ann.trans_accel", float("nan"), DOUBLE, "found nan"),
        ("stuck", 2.0, DOUBLE, "not today"),
        *(
            ("speed_factor", bad, DOUBLE, f"0.01 … 1000, found {bad:g}")
            for bad in (-1.0, 0.001, 1001.0, math.inf, math.nan)
        ),
    ],
)
def test_what_is_refused_says_why(
    name: str, value: float, sort: int, reason: str
) -> None:
    """Each parameter is checked alone: the others change."""
    results = call(
        "SetParameters",
        parameters=[wanted(name, value, sort), wanted("bob.trans_accel", 0.7)],
    ).results
    assert [r.successful for r in results] == [False, True]
    assert reason in results[0].reason
    assert held["bob.trans_accel"] == 0.7


def test_all_or_nothing() -> None:
    """One refused parameter keeps all others from being changed."""
    before = dict(held)
    result = call(
        "SetParametersAtomically",
        parameters=[wanted("bob.trans_accel", 0.9), wanted("nothing", 1.0)],
    ).result
    assert not result.successful
    assert held == before
    late = [
        wanted("bob.trans_accel", 0.9),
        wanted("bob.trans_accel", 1.1),
        wanted("stuck", 2.0),
    ]
    result = call("SetParametersAtomically", parameters=late).result
    assert not result.successful and "not today" in result.reason
    assert held == before, "what was changed before one failed is put back"
    assert call(
        "SetParametersAtomically", parameters=[wanted("bob.trans_accel", 0.9)]
    ).result.successful
    assert held["bob.trans_accel"] == 0.9


def test_long_lists_are_refused_and_short_ones_look_once() -> None:
    """The parameters of thousands of robots are collected once for a request, not for
    each name.
    """
    for name, field in (
        ("GetParameters", "names"),
        ("DescribeParameters", "names"),
        ("GetParameterTypes", "names"),
    ):
        with pytest.raises(PeerError, match="at most 1000"):
            call(name, **{field: ["x"] * 1001})

    with pytest.raises(PeerError, match="at most 1000"):
        call("ListParameters", prefixes=["x"] * 1001, depth=0)
    many = [wanted("ann.trans_accel", 0.5)] * 900
    with pytest.raises(PeerError, match="at most 1000"):
        call("SetParameters", parameters=many * 2)
    looked = 0

    def counted() -> dict[str, Value]:
        nonlocal looked
        looked += 1
        return values()

    service = next(
        s
        for s in Parameters("/n", TYPES, counted).services()
        if s.type_name.endswith("/SetParameters")
    )
    answer = service.serve(
        TYPES.two("rcl_interfaces/srv/SetParameters_Request")(parameters=many)
    )
    assert all(r.successful for r in answer.results) and looked == 1


def test_what_is_refused_is_shown_on_one_line() -> None:
    (result,) = call(
        "SetParameters", parameters=[wanted("x\n\x1b[2J" * 100, 1.0)]
    ).results
    assert (
        not result.successful
        and result.reason.isprintable()
        and len(result.reason) < 200
    )
