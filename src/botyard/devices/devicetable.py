"""Base class of tables that hold the state of devices of one kind, in each world.

The class adds two methods to the columns: one returns the expected rows of a world, the other
computes derived values after columns were restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from botyard.engine.tables import Table

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine
    from botyard.model.objects import Described
    from botyard.model.robot import RobotSpec


class DeviceTable(Table):
    """Table of one kind of device that exists in each world (`botyard.devices.worldtables`).

    Attributes
    ----------
    may_lack_rows : bool
        Whether rows may be missing although their devices are still described.
    """

    may_lack_rows: ClassVar[bool] = False

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return the keys (`Row.key`) of the rows that a world with these robots and joints must
        have.

        Saved states with other rows are refused.

        Parameters
        ----------
        robots : mapping of str to RobotSpec
            Models of the robots by name.
        described : Described
            Joints and bodies of description files.
        """
        raise NotImplementedError

    def restored(self, engine: Engine) -> None:
        """Compute values that are derived from the columns, after a state was restored.

        Bodies and columns are restored already. Does nothing by default.

        Parameters
        ----------
        engine : Engine
            Engine that has this table.
        """


__all__ = ["DeviceTable"]
