"""Names, poses and notes that all objects of an AMBF description file share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from botyard.errors import FormatError, WorldError, WorldFileError
from botyard.formats.adftable import LeftOut, Table
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.jsonfile import brief
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import Pose
from botyard.model.objects import (
    HIGH,
    LOW,
    NAMESPACE,
    Offer,
)
from botyard.names import check_name, shown

_LISTS: Final = (
    "bodies",
    "joints",
    "sensors",
    "actuators",
    "vehicles",
    "cameras",
    "lights",
)


class Mass(NamedTuple):
    """Mass of a body and its moments of inertia.

    Attributes
    ----------
    mass : float
        Mass, kg.
    about : (float, float, float)
        Moments of inertia about x, y and z, as the file gives them, kg·m².
    moment : float
        Moment of inertia about the vertical, kg·m².
    """

    mass: float = 0.0
    about: tuple[float, float, float] = (0.0, 0.0, 0.0)
    moment: float = 0.0


class Scope:
    """State of the reading of a description file: its names, and the keys that were read.

    Attributes
    ----------
    qualified : dict of str to str
        Names of the bodies of all files, by namespace and key.
    carried : set of str
        Names of the bodies that are the child of a joint.
    masses : dict of str to Mass
        Masses of the bodies read so far.
    """

    def __init__(
        self, source: Source, options: Options, others: dict[str, str]
    ) -> None:
        self.source = source
        self.warn = options.warn
        self.meter = Meter(options.budget, source.name, WorldFileError)
        self._yaml = YamlFile(source.text, self.meter, WorldFileError, unique=False)
        self.root = Table(
            self.fail, self._yaml.data if self._yaml.data is not None else {}, "$"
        )
        if not any(key in self.root for key in _LISTS):
            raise WorldFileError(
                f"expected an AMBF description with one of {', '.join(_LISTS)}, "
                "found none",
                source.name,
                1,
            )

        self._namespace = self.root.text("namespace", NAMESPACE)
        self._names: dict[str, str] = {}
        self.qualified = others
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.carried: set[str] = set()
        self.masses: dict[str, Mass] = {}

    def fail(self, where: str, reason: str) -> FormatError:
        """Return an error about a key, with the line of the key; the caller raises it.

        Parameters
        ----------
        where : str
            Path of the key, for example ``$.BODY base.mass``.
        reason : str
            Expected and found value.
        """
        return self._yaml.fail(where, reason)

    def note(self, table: Table, text: str) -> None:
        """Add a note about an object of the file."""
        self.warn(f"{self.source.name}: {table.where.removeprefix('$.')}: {text}")

    def note_unread(self, table: Table) -> None:
        """Add a note that names the keys of an object that were not read."""
        for key in table.unread():
            self.note(table, f'the key "{key}" is ignored')

    def listed(self, key: str) -> Iterator[tuple[str, Table]]:
        """Yield the key and the table of each object of a list.

        Parameters
        ----------
        key : str
            One of `_LISTS`, whose value names the objects.

        Raises
        ------
        FormatError
            The value is not a list, or an object is not described.
        """
        # An empty list is often written as a key without a value.
        names = self.root.get(key) or []
        if not isinstance(names, list):
            raise self.root.fail(key, f"expected a list of names, found {brief(names)}")

        for name in map(str, names):
            if name not in self.root:
                raise self.root.fail(
                    key, f'"{shown(name)}" is listed, but not described'
                )

            table = self.root.table(name)
            assert table is not None
            yield name, table

    def name(self, key: str, table: Table, base: str = "") -> str:
        """Return the name of an object, without blanks; a number makes it unique.

        The rules are in ambf-messages.md §3.

        Parameters
        ----------
        key : str
            Key of the object. If the description has no name, the part of the key after
            the first blank is used.
        table : Table
            Description of the object.
        base : str
            Prefix of the name.

        Raises
        ------
        FormatError
            The name breaks the rule for names.
        """
        # The key has the kind in front of the name, as in "BODY base".
        wanted = table.text("name", key.split(" ", 1)[-1]).replace(" ", "") or "object"
        name, n = base + wanted, self._numbers.get(base + wanted, 2)
        while name in self._taken:
            name, n = f"{base}{wanted}{n}", n + 1
        # All lower numbers are already in use for this name.
        self._numbers[base + wanted] = n
        try:
            check_name(name, "object")
        except WorldError as error:
            raise table.fail("name", str(error)) from None

        self._taken.add(name)
        self._names[key] = name
        return name

    def offer(self, table: Table, sub: str = "") -> Offer:
        """Return the settings by which an object is published to clients.

        Parameters
        ----------
        table : Table
            Description of the object.
        sub : str
            Part of the default namespace after the file's namespace, for example
            ``sensors/``.
        """
        rates = table.table("publish frequency")
        low, high = (
            (LOW, HIGH)
            if rates is None
            else (
                rates.number("low", LOW, 0.1, 1e4),
                rates.number("high", HIGH, 0.1, 1e4),
            )
        )
        space = table.text("namespace", self._namespace + sub)
        return Offer(
            namespace=space if space.endswith("/") else f"{space}/",
            passive=bool(table.flag("passive", False)),
            low=low,
            high=high,
            children=table.flag("publish children names"),
            joint_names=table.flag("publish joint names"),
            joint_positions=table.flag("publish joint positions"),
        )

    def pose(self, table: Table, key: str) -> Pose:
        """Return the pose in the plane that a key of an object gives.

        Parameters
        ----------
        table : Table
            Description of the object.
        key : str
            Key of a mapping with ``position`` and ``orientation`` (roll, pitch, yaw),
            or with x and y. Absent: the origin.

        Returns
        -------
        Pose
            x and y, m, and the yaw, rad in [−π, π]. Heights, roll and pitch are
            ignored.
        """
        part = table.table(key)
        if part is None:
            return Pose()
        # Older files give sensors and actuators only a position.
        x, y = (
            part.vector("position")[:2]
            if "position" in part
            else (part.number("x", 0.0), part.number("y", 0.0))
        )
        roll, pitch, yaw = part.rotation("orientation")
        if abs(roll) > 1e-6 or abs(pitch) > 1e-6:
            self.note(table, f"{key}: roll and pitch are ignored")
        return Pose(x, y, math.remainder(yaw, 2.0 * math.pi))

    def body_name(self, table: Table, key: str) -> str:
        """Return the unique name of the body that a key refers to.

        As in AMBF, the key is first looked up among the bodies of this file, then among the bodies
        of all files, by namespace and key or by a part of these.

        Raises
        ------
        LeftOut
            There is no such body.
        """
        value = table.text(key)
        if not value:
            raise LeftOut(f'expected a body as its "{key}", found none')
        if value in self._names:
            return self._names[value]
        for known, name in self.qualified.items():
            if value == known:
                return name

        for known, name in self.qualified.items():
            if value in known:
                return name

        raise LeftOut(f'{key}: there is no body "{shown(value)}"')

    def mount_name(self, table: Table) -> str:
        """Return the name of the body that carries a sensor or an actuator.

        The body must not be the child of a joint, because the engine has no pose for such a body.

        Raises
        ------
        LeftOut
            There is no such body, or a joint carries it.
        """
        parent = self.body_name(table, "parent")
        if parent in self.carried:
            raise LeftOut(
                f'parent: botyard cannot mount objects on "{shown(parent)}", which a '
                "joint moves"
            )

        return parent


__all__ = ["Mass", "Scope"]
