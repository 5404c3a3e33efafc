"""AMBF's messages: MD5 sums and bytes agree with ROS Noetic's generator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from botyard.errors import WorldError
from botyard.protocols.ambf.messages import GENERATIONS, definitions
from botyard.protocols.ros_messages.types import Types


@pytest.fixture(scope="module")
def types_of() -> dict[str, Types]:
    return {g: Types(more=definitions(g)) for g in GENERATIONS}


def golden(shared: Path, generation: str) -> dict[str, Any]:
    return json.loads(
        (shared / "golden" / "ambf" / f"messages_{generation}.json").read_text()
    )["messages"]


def filled(types: Types, kind: str, value: Any) -> Any:
    """Return an example as a message."""
    scalar = kind.removesuffix("[]")
    if kind.endswith("[]"):
        if "/" in scalar:
            return [filled(types, scalar, v) for v in value]
        return (
            list(value)
            if scalar == "string"
            else np.array(value, "bool" if scalar == "bool" else scalar)
        )

    if kind == "time":
        return types["builtin_interfaces/Time"](value["secs"], value["nsecs"])
    if "/" not in kind:
        return value
    known = types._one.fielddefs[kind.replace("/", "/msg/")][1]
    return types[kind](
        **{name: filled(types, text_of(k), value[name]) for name, k in known}
    )


def text_of(kind: Any) -> str:
    """Return a rosbags field kind in the syntax of message definitions."""
    sort, what = int(kind[0]), kind[1]
    if sort == 1:
        return what[0]
    if sort == 2:
        return (
            "time"
            if what == "builtin_interfaces/msg/Time"
            else what.replace("/msg/", "/")
        )

    return f"{text_of(what[0])}[]"


@pytest.mark.shared
@pytest.mark.parametrize("generation", GENERATIONS)
def test_sums_and_bytes_are_those_of_ros(
    shared: Path, types_of: dict[str, Types], generation: str
) -> None:
    types = types_of[generation]
    examples = golden(shared, generation)
    own = {name.split("/")[1] for name in definitions(generation)}
    assert {
        e["type"].split("/")[1]
        for e in examples.values()
        if e["type"].startswith("ambf_msgs/")
    } <= own
    for example in examples.values():
        name = example["type"]
        assert types.definition(name)[1] == example["md5sum"], name
        message = filled(types, name, example["example"])
        data = bytes.fromhex(example["serialized_hex"])
        assert types.encode_ros1(message, name) == data, name
        assert types.encode_ros1(types.decode_ros1(data, name), name) == data
        assert types.decode_cdr(types.encode_cdr(message, name), name) is not None


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        (
            "ObjectState",
            ("5c41957ade5befe08be9e8f0ca23c5c4",) * 2
            + ("3dc87d37c7ec8f949bfbd135c2cfe5a8",),
        ),
        ("ObjectCmd", ("091c255bd5039de21056e952538cf83c",) * 3),
        (
            "WorldState",
            ("19e71cae5899074bfba211b483c66a1f",) * 2
            + ("6e545bb4d1457db0c1ee58df8e46d570",),
        ),
        ("WorldCmd", ("6941ddbc8f8196cff4beb0278a6ad79d",) * 3),
        (
            "RigidBodyCmd",
            (
                "",
                "c54fc48da5e84240a367eff7725e74b4",
                "c54fc48da5e84240a367eff7725e74b4",
            ),
        ),
    ],
)
def test_sums_without_the_recordings(
    types_of: dict[str, Types], name: str, sums: tuple[str, ...]
) -> None:
    """The examples are a part of the table of ambf-messages.md §1."""
    for generation, md5 in zip(GENERATIONS, sums, strict=True):
        if md5:
            assert types_of[generation].definition(f"ambf_msgs/{name}")[1] == md5


def test_there_are_three_generations() -> None:
    assert len(definitions("master")) == 4
    assert len(definitions("1.0")) == len(definitions("2.0")) == 18
    with pytest.raises(
        WorldError, match=r"expected a generation of master, 1\.0, 2\.0"
    ):
        definitions("3.0")
