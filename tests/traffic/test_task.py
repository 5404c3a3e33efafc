"""Task files: reading, refusals with messages, and a round trip by writing."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.traffic.check import check, remarks
from botyard.traffic.generate import generate, task_of_routes
from botyard.traffic.task import Task, TaskError, Vehicle, load_task, parse_task
from tests.traffic.tasks import random_task

GOOD: dict[str, Any] = {
    "NumberOfVehicles": 2,
    "Comment": "unknown keys are ignored",
    "Vehicles": {
        "Vehicle0": [
            {"Endpoint": 4, "Colliding": []},
            {"Endpoint": 6.5, "Colliding": [[1, 0]]},
        ],
        "Vehicle1": [{"Endpoint": 3.5, "Colliding": [[0, 1]], "More": 1}],
        "Vehicle7": "not read",
    },
    "Parameters": {
        "Default": {"Velocity": 1.0},
        "Vehicle1": {"Radius": 0.25, "Start": 0.5},
    },
    "Geometry": {"Vehicle0": [[0, 0], [6.5, 0]]},
    "Order": [[1, 0], [0, 1]],
}


def test_a_file_of_the_original_with_our_keys_beside() -> None:
    warnings: list[str] = []
    task = parse_task(GOOD, warn=warnings.append)
    assert warnings == []
    assert [v.ends.tolist() for v in task.vehicles] == [[4.0, 6.5], [3.5]]
    assert [(v.radius, v.velocity, v.start) for v in task.vehicles] == [
        (0.5, 1.0, 0.0),
        (0.25, 1.0, 0.5),
    ]
    assert task.listed.tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert task.order == ((1, 0), (0, 1))
    assert task.vehicles[0].path is not None
    assert task.vehicles[0].path.tolist() == [[0.0, 0.0], [6.5, 0.0]]
    starts, others = task.conflicts
    assert starts.tolist() == [0, 0, 1, 2]
    assert others.tolist() == [2, 1]
    assert task.robot_of(2) == (1, 0)


def changed(path: str, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(GOOD)
    keys = path.split("/")
    at: Any = data
    for key in keys[:-1]:
        at = at[int(key)] if isinstance(at, list) else at[key]
    last: Any = int(keys[-1]) if isinstance(at, list) else keys[-1]
    if value is KeyError:
        del at[last]
    else:
        at[last] = value

    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "NumberOfVehicles",
            "2",
            'NumberOfVehicles: expected a number of vehicles from 0 to 1000000, found "2"',
        ),
        (
            "NumberOfVehicles",
            3,
            "Vehicles: expected Vehicle2 (NumberOfVehicles is 3), found none",
        ),
        ("Vehicles", [], "Vehicles: expected an object {…}, found []"),
        ("Vehicles/Vehicle0", {}, "Vehicles.Vehicle0: expected an array […], found {}"),
        (
            "Vehicles/Vehicle1",
            [],
            "Vehicles.Vehicle1: expected at least one sector, found []",
        ),
        (
            "Vehicles/Vehicle0/1",
            5,
            "Vehicles.Vehicle0[1]: expected an object {…}, found 5",
        ),
        (
            "Vehicles/Vehicle0/1/Endpoint",
            KeyError,
            "Vehicles.Vehicle0[1]: expected the keys Endpoint and Colliding, found",
        ),
        (
            "Vehicles/Vehicle0/1/Colliding",
            KeyError,
            "Vehicles.Vehicle0[1]: expected the key Colliding (an array, possibly empty), found",
        ),
        (
            "Vehicles/Vehicle0/1/Endpoint",
            True,
            "Vehicles.Vehicle0[1].Endpoint: expected a number greater than 0, at most 1e9, found true",
        ),
        (
            "Vehicles/Vehicle0/0/Endpoint",
            0,
            "Vehicles.Vehicle0[0].Endpoint: expected a number greater than 0, at most 1e9, found 0",
        ),
        (
            "Vehicles/Vehicle0/1/Endpoint",
            4,
            "Vehicles.Vehicle0[1].Endpoint: expected more than the end of the "
            "previous sector (4 m)",
        ),
        (
            "Vehicles/Vehicle0/1/Colliding",
            5,
            "Vehicles.Vehicle0[1].Colliding: expected an array […], found 5",
        ),
        (
            "Vehicles/Vehicle0/1/Colliding/0",
            [1],
            "Vehicles.Vehicle0[1].Colliding[0]: expected [robot, sector], found [1]",
        ),
        (
            "Vehicles/Vehicle0/1/Colliding/0",
            [2, 0],
            "Vehicles.Vehicle0[1].Colliding[0]: expected a robot from 0 to 1, found [2, 0]",
        ),
        (
            "Vehicles/Vehicle0/1/Colliding/0",
            [1, 9],
            "Colliding[0]: expected a sector of robot 1, from 0 to 0, found [1, 9]",
        ),
        (
            "Vehicles/Vehicle0/1/Colliding/0",
            [0, 0],
            "Colliding[0]: expected a sector of another robot, found [0, 0]",
        ),
        (
            "Parameters/Vehicle1/Radius",
            -1,
            "Parameters.Vehicle1.Radius: expected a number greater than 0, at most 1e9, found -1",
        ),
        (
            "Parameters/Vehicle1/Speed",
            1,
            "Parameters.Vehicle1.Speed: expected one of Radius, Velocity",
        ),
        (
            "Parameters/Vehicle9",
            {},
            "Parameters.Vehicle9: expected the name of a vehicle",
        ),
        (
            "Parameters/Vehicle1/Start",
            3.5,
            "Parameters.Vehicle1.Start: expected less than the end of the path, 3.5 m, found 3.5",
        ),
        (
            "Geometry/Vehicle0/1",
            [1, "x"],
            'Geometry.Vehicle0[1]: expected [x, y], found [1, "x"]',
        ),
        (
            "Geometry/Vehicle0",
            [[1, 2]],
            "Geometry.Vehicle0: expected at least two corners",
        ),
        (
            "Order/1",
            [0, 2],
            "Order[1]: expected [robot, sector] of this task, found [0, 2]",
        ),
        ("Order/1", [1, 0], "Order: expected each sector at most once"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(
    path: str, value: Any, message: str
) -> None:
    with pytest.raises(TaskError) as caught:
        parse_task(changed(path, value), "lab.json")
    assert str(caught.value).startswith("lab.json: ")
    assert message in str(caught.value)


def test_conflicts_count_for_both_sides() -> None:
    warnings: list[str] = []
    task = parse_task(
        changed("Vehicles/Vehicle1/0/Colliding", []), "lab.json", warnings.append
    )
    assert warnings == [
        "lab.json: 1 conflicts are listed by one side only and count for both: "
        "the first is sector 1 of robot 0 with sector 0 of robot 1"
    ]
    assert task.conflicts[1].tolist() == [2, 1]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    with pytest.raises(TaskError, match="cannot be read"):
        load_task(path)
    path.write_text('{"NumberOfVehicles": 1,\n "Vehicles": }')
    with pytest.raises(TaskError, match=r"task\.json:2: not JSON"):
        load_task(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match="UTF-8"):
        load_task(path)
    path.write_text("[" * 100_000)
    with pytest.raises(TaskError, match=r"too large: found \d+ nested levels|not JSON"):
        load_task(path)

    with pytest.raises(TaskError, match="cannot be written"):
        random_task(1).save(tmp_path / "no" / "task.json")
    path.write_text(json.dumps(GOOD))
    assert load_task(path).name == str(path)


@given(st.integers(0, 10_000))
def test_what_is_written_is_read_back(seed: int) -> None:
    task = random_task(seed)
    again = parse_task(json.loads(json.dumps(task.to_json())))
    assert again.to_json() == task.to_json()
    assert [v.ends.tolist() for v in again.vehicles] == [
        v.ends.tolist() for v in task.vehicles
    ]
    assert np.array_equal(again.listed, task.listed)


KEYS = st.sampled_from(["Endpoint", "Colliding", "Vehicle0", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=10,
)


@given(
    JSON,
    st.sampled_from(
        [
            "NumberOfVehicles",
            "Vehicles/Vehicle0",
            "Vehicles/Vehicle0/1",
            "Vehicles/Vehicle0/0/Colliding",
            "Parameters",
            "Parameters/Vehicle1",
            "Geometry/Vehicle0",
            "Order",
            "Order/0",
        ]
    ),
)
def test_nothing_else_is_raised(value: Any, path: str) -> None:
    try:
        parse_task(changed(path, value))
    except TaskError:
        return


def test_doubts() -> None:
    ends = np.array([0.4, 0.6, 5.0, 9.0])
    task = Task((Vehicle(ends=ends), Vehicle(ends=ends)), np.array([[0, 0, 1, 0]]))
    text = "\n".join(remarks(task))
    assert "robot 0: its disk reaches into sector 1 at the start" in text
    assert (
        "robot 1: 1 sectors are shorter than its braking distance of 0.352 m (the first is sector 1)"
        in text
    )
    assert "robots 0 and 1 start in conflicting sectors 0 and 0" in text
    assert remarks(generate("ring", 4)) == ()


def test_what_cannot_be_solved_is_found() -> None:
    """Two robots head on in one lane, and the same with an evasion place that the
    Banker does not use.
    """
    lane = task_of_routes(
        [[(x, 0) for x in range(4)], [(x, 0) for x in range(3, -1, -1)]], "lane"
    )
    report = check(lane)
    assert report.stuck == (0, 1)
    assert report.solvable is False
    swap = Task(
        (
            Vehicle(ends=np.array([3.0, 6.0, 9.0])),
            Vehicle(ends=np.array([3.0, 6.0, 9.0])),
        ),
        np.array([[0, 2, 1, 0], [0, 0, 1, 2]]),
    )
    report = check(swap)
    assert report.stuck == (0, 1), "neither can end while the other stands at its start"
    assert report.solvable is True, "but both can move one sector on first"
    assert check(generate("warehouse", 30)).solvable is True


def test_cells_must_be_large_enough() -> None:
    with pytest.raises(
        TaskError, match=r"cells of 0\.8 m are too small for robots of 1 m"
    ):
        generate("star", 3, cell=0.8)

    with pytest.raises(TaskError, match="at least two cells"):
        task_of_routes([[(0, 0)]], "x")
    with pytest.raises(TaskError, match="expected one of crossings"):
        generate("jam", 3)
    with pytest.raises(TaskError, match="from 2 to 100000"):
        generate("star", 1)
