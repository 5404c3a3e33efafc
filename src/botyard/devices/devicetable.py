"""Base class of device tables that every world has.

It adds two things to the columns: the expected rows of a world, and values derived from
restored columns.
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
    """Table of a kind of device that every world has (`botyard.devices.worldtables`).

    Attributes
    ----------
    may_lack_rows : bool
        Whether rows may be missing although their devices are still described.
    """

    may_lack_rows: ClassVar[bool] = False

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return `Row.key` of all rows in a world with these robots and joints.

        Saved states with other rows are refused.
        """
        raise NotImplementedError

    def restored(self, engine: Engine) -> None:
        """Compute values derived from the columns after a state was restored.

        Bodies and columns are restored already. Does nothing by default.
        """


__all__ = ["DeviceTable"]
