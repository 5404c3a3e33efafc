"""Reader of AMBF description files (ADF, YAML).

The files contain bodies, joints, sensors, vehicles, actuators, cameras and lights.
Properties that a plane cannot represent (heights, axes that are not vertical, meshes)
are reported and ignored (ambf-messages.md §9).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from botyard.formats.adfbodies import read_body, read_joint
from botyard.formats.adfequipment import (
    read_actuator,
    read_camera,
    read_light,
    read_sensor,
    read_vehicle,
)
from botyard.formats.adfscope import Scope
from botyard.formats.adftable import LeftOut, Table
from botyard.formats.base import Options, Source, read_source
from botyard.model.objects import (
    Described,
    Offer,
)
from botyard.model.obstacles import BoxObject

T = TypeVar("T")


def _described(scope: Scope) -> Described:
    """Return all objects that a description file contains."""
    for key in ("soft bodies", "multibody"):
        if key in scope.root:
            scope.warn(
                f'{scope.source.name}: "{key}" is ignored: botyard does not support it'
            )

    boxes: list[BoxObject] = []
    offers: dict[str, Offer] = {}
    for key, table in scope.listed("bodies"):
        body = read_body(scope, key, table)
        if body is not None:
            boxes.append(body[0])
            offers[body[0].name] = body[1]

    # Joints are read before sensors and actuators, which cannot be mounted on the child
    # body of a joint (a carried body).
    joints = _all_of(scope, "joints", read_joint)
    scope.carried = {joint.child for joint in joints}
    made = Described(
        bodies=tuple(box for box in boxes if box.name not in scope.carried),
        carried=tuple(box.name for box in boxes if box.name in scope.carried),
        offers=offers,
        joints=joints,
        sensors=_all_of(scope, "sensors", read_sensor),
        views=(
            *_all_of(scope, "cameras", read_camera),
            *_all_of(scope, "lights", read_light),
        ),
        vehicles=_all_of(scope, "vehicles", read_vehicle),
        actuators=_all_of(scope, "actuators", read_actuator),
    )
    for known in [k for k, name in scope.qualified.items() if name in scope.carried]:
        # Objects of other files cannot be mounted on a carried body.
        del scope.qualified[known]

    return made


def _all_of(
    scope: Scope, kind: str, make: Callable[[Scope, str, Table], T | None]
) -> tuple[T, ...]:
    """Return the objects that one list of the file names.

    As in AMBF, an object that refers to a missing body is left out, with a note.
    """
    made = []
    for key, table in scope.listed(kind):
        try:
            one = make(scope, key, table)
        except LeftOut as reason:
            scope.note(table, f"{reason}: the object is left out")
            continue

        if one is not None:
            made.append(one)

    return tuple(made)


def read_adf(
    path: str | Path, options: Options = Options(), others: dict[str, str] | None = None
) -> Described:
    """Read an AMBF description file.

    Parameters
    ----------
    path : str or Path
        File to read.
    options : Options
        Limits, and receiver of notes about ignored parts.
    others : dict of str to str, optional
        Names of the bodies of files read before, by namespace and key; the bodies of
        this file are added.

    Raises
    ------
    FormatError
        The file is invalid. The error names the line, the expected and the found value.
    """
    return parse_adf(read_source(path, options.budget), options, others)


def parse_adf(
    source: Source, options: Options = Options(), others: dict[str, str] | None = None
) -> Described:
    """Parse the contents of an AMBF description file; see `read_adf`.

    Parameters
    ----------
    source : Source
        File contents, with the name for messages.
    options : Options
        Limits, and receiver of notes about ignored parts.
    others : dict of str to str, optional
        Names of the bodies of files read before, by namespace and key; the bodies of
        this file are added.

    Raises
    ------
    FormatError
        The file is invalid. The error names the line, the expected and the found value.
    """
    return _described(Scope(source, options, {} if others is None else others))


__all__ = ["parse_adf", "read_adf"]
