"""What a kind of device declares of its columns beside them: which rows a world has,
and what follows from restored columns.
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
    """Columns of a kind of device of which every world has a table
    (`botyard.devices.worldtables`).

    Attributes
    ----------
    may_lack_rows : bool
        Rows may have been removed while what they were made for is still described.
    """

    may_lack_rows: ClassVar[bool] = False

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """`Row.key` of all rows in a world with these robots and joints: saved states
        with other rows are refused.
        """
        raise NotImplementedError

    def restored(self, engine: Engine) -> None:
        """Compute what follows from the columns, after bodies and columns were
        restored. Nothing by default.
        """


__all__ = ["DeviceTable"]
