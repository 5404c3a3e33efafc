"""Joints and ray sensors of description files (`botyard.model.objects`)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import cast

from botyard.devices.joints import Joint, Joints, joint_key
from botyard.devices.ranging import RangeDevices
from botyard.devices.rays import RaySensor
from botyard.engine.simulation import Engine
from botyard.engine.tables import NOBODY
from botyard.model.objects import Described


class Descriptions:
    """Description files of a simulation, with the devices that they declare.

    Attributes
    ----------
    described : Described
        Joints and sensors of all files, also those whose bodies were removed.
    rays : dict of str to RaySensor
        Ray sensors by name.
    """

    def __init__(self, engine: Engine, devices: RangeDevices) -> None:
        self._engine = engine
        self._devices = devices
        self.described = Described()
        self.rays: dict[str, RaySensor] = {}

    @property
    def joints(self) -> Mapping[str, Sequence[Joint]]:
        """Joints by name of their parent body."""
        joints: dict[str, list[Joint]] = {}
        for joint in cast(Sequence[Joint], self._engine.table(Joints).rows):
            joints.setdefault(joint.spec.parent, []).append(joint)
        return joints

    def add(self, described: Described) -> None:
        """Add the joints and sensors of a file; the bodies of the file must exist already."""
        # Keep the descriptions for saved states, which must recreate the devices.
        self.described |= described
        self.add_missing(
            {Joints.name: [joint_key(joint) for joint in described.joints]}
        )

    def add_missing(self, keys: Mapping[str, Collection[Hashable]]) -> None:
        """Create missing ray sensors, and missing joints with the given keys.

        Parameters
        ----------
        keys : mapping of str to collection
            Keys of rows by name of their table. A joint that is missing in `keys` was
            removed with its bodies, and stays removed.
        """
        rows, joints = self._engine.rows, self._engine.table(Joints)
        there, wanted = {row.key for row in joints.rows}, keys.get(joints.name, ())
        for joint in self.described.joints:
            if joint_key(joint) in wanted and joint_key(joint) not in there:
                Joint(joint, joints, rows.get(joint.parent, NOBODY))

        for sensor in self.described.sensors:
            if sensor.parent in rows and not (
                sensor.name in self.rays and self.rays[sensor.name].is_there
            ):
                self.rays[sensor.name] = RaySensor(sensor, self._devices, self._engine)


__all__ = ["Descriptions"]
