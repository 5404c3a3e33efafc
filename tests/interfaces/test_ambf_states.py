"""States of AMBF's objects that are encoded directly equal the states of message objects."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.app.compose import compose
from botyard.geometry import Pose, inverse, transform_point
from botyard.interfaces.ambf.ambf import Ambf
from botyard.interfaces.ambf.objectcontext import stamp_now
from botyard.interfaces.ambf.rangesensors import HIT_TOLERANCE
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.ros_messages.types import Types


def distance_to_edges(part: Any, x: float, y: float) -> float:
    best = math.inf
    for (ax, ay), (bx, by) in zip(part, (*part[1:], part[0]), strict=True):
        ex, ey = bx - ax, by - ay
        u = min(max(((x - ax) * ex + (y - ay) * ey) / (ex * ex + ey * ey), 0.0), 1.0)
        best = min(best, math.hypot(x - ax - u * ex, y - ay - u * ey))

    return best


@pytest.mark.parametrize("generation", ["1.0", "2.0"])
def test_sensors_and_vehicles(generation: str) -> None:
    types = Types(more=definitions(generation))

    async def run() -> None:
        sim = botyard.Simulation.load("office", step=0.005)
        for model, name in (
            ("p3dx", "ann"),
            ("p3dx-sh-lms500", "bob"),
            ("p3dx-sh-lms1xx", "eve"),
        ):
            sim.add_robot(model, name)

        parts = compose(sim)
        ambf = Ambf(parts.hub, parts.control, parts.lockstep, types, generation)
        ambf._sync()
        sim.step(3)
        seen: set[str] = set()
        for (kind, *_), thing in [
            (k, o) for k, o in ambf._objects.items() if isinstance(k, tuple)
        ]:
            if kind in ("laser", "sonar"):
                stamp = stamp_now()
                one = types.decode_ros1(
                    thing.quick("ros1", stamp), "ambf_msgs/SensorState"
                )
                two = types.decode_cdr(
                    thing.quick("cdr", stamp), "ambf_msgs/SensorState"
                )
                assert (one.header.stamp.sec, one.header.stamp.nanosec) == (
                    stamp.sec,
                    stamp.nanosec,
                )
                assert (
                    one.sim_step,
                    one.count,
                    one.name.data,
                    one.parent_name.data,
                    one.type.data,
                ) == (
                    two.sim_step,
                    two.count,
                    two.name.data,
                    two.parent_name.data,
                    two.type.data,
                )
                assert one.sim_time == pytest.approx(sim.time)
                assert repr(one.pose) == repr(two.pose)
                for field in (
                    "triggered",
                    "range",
                    "measurement",
                    "sensed_objects_map",
                ):
                    assert np.array_equal(getattr(one, field), getattr(two, field)), (
                        field
                    )

                names = [text.data for text in one.sensed_objects]
                assert names == [text.data for text in two.sensed_objects]
                assert len(names) == one.count == len(one.triggered)
                seen |= set(names)
                check_hits(sim, thing, names)
            elif kind == "vehicle":
                for data, decode in (
                    (thing.quick("ros1", stamp_now()), types.decode_ros1),
                    (thing.quick("cdr", stamp_now()), types.decode_cdr),
                ):
                    state = decode(data, "ambf_msgs/VehicleState")
                    pose = sim.robots[thing.name].truth
                    assert (
                        state.wheel_count,
                        len(state.wheel_offsets),
                        state.sim_step,
                    ) == (2, 2, sim.tick)
                    assert (state.pose.position.x, state.pose.position.y) == (
                        pose.x,
                        pose.y,
                    )
                    assert (
                        state.wheel_offsets[0].position.y
                        == -state.wheel_offsets[1].position.y
                        > 0.0
                    )

        assert {"", "office", "ann", "bob", "eve"} <= seen
        ambf.close()

    asyncio.run(run())


def check_hits(sim: botyard.Simulation, sensor: Any, names: list[str]) -> None:
    """Compare ray by ray with the outline of each body."""
    mine, ranges = sim.robots[sensor._parent].truth, np.asarray(sensor._read())
    for name, (x, y, th), length in zip(
        names, sensor._rays().tolist(), ranges.tolist(), strict=True
    ):
        end = transform_point(
            mine, x + length * math.cos(th), y + length * math.sin(th)
        )
        near = {""} if length >= sensor._reach else {"office"}
        for other, row in sim.core.engine.rows.items():
            if other != sensor._parent and length < sensor._reach:
                local = transform_point(
                    inverse(Pose(*sim.core.engine.state.pose[row].tolist())), *end
                )
                if (
                    min(
                        distance_to_edges(part, *local)
                        for part in sim.core.engine.outline(row)
                    )
                    < HIT_TOLERANCE
                ):
                    near.add(other)

        assert name in near and (len(near) == 1 or name != "office"), (
            sensor.name,
            name,
            near,
        )
