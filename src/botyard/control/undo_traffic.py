"""Undo part for changes of a run of traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botyard.control.caller import Caller
from botyard.control.operation import Operation
from botyard.control.site import Site
from botyard.control.traffic import (
    EndTraffic,
    GrantSector,
    HoldTraffic,
    RevokeSector,
    RunTraffic,
)
from botyard.control.trafficpart import Permit
from botyard.control.undo_part import (
    Kept,
    Key,
    Log,
    Part,
    Placements,
    TakingBack,
    performed,
)
from botyard.names import shown


@dataclass(slots=True)
class TrafficChanged(Part):
    """Change of a run of traffic, with the operations that undo and redo it.

    Attributes
    ----------
    text : str
        Description of the change, for messages.
    version : int
        `botyard.control.trafficpart.TrafficPart.version` after the change.
    back, again : Operation
        Operations that undo and redo the change.
    """

    text: str
    version: int
    back: Operation[Any]
    again: Operation[Any]
    kept: Mapping[str, Kept] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls, control: Site, operation: Operation[Any], result: object
    ) -> TrafficChanged | None:
        """Return the part for a performed operation; None if it cannot be undone."""
        if control.traffic is None:
            return None
        back: Operation[Any]
        again = operation
        if isinstance(operation, RunTraffic):
            what, back = "starting the traffic", EndTraffic()
        elif isinstance(operation, HoldTraffic):
            what = (
                "holding decisions" if operation.on else "letting decisions take effect"
            )
            back = HoldTraffic(on=not operation.on)
        elif isinstance(result, Permit):
            first = min(result.before, result.after) + 1
            give = GrantSector(robot=result.robot, sector=max(result[1:]))
            take = RevokeSector(robot=result.robot, sector=first)
            granted = result.after > result.before
            back, again = (take, give) if granted else (give, take)
            what = (
                f"{'granting' if granted else 'taking back'} sector {first} of "
                f"{shown(result.robot)}"
            )
        else:
            return None
        return cls(what, control.traffic.version, back, again)

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return self.text

    @property
    def size(self) -> int:
        """A size greater than 0: the part always has an effect."""
        return 1

    def touched(self) -> Iterable[Key]:
        """Return no bodies: placements do not matter to permissions."""
        return ()

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Perform the inverse operation; see `Part.take_back`."""
        yield None
        if control.traffic is None or control.traffic.version != self.version:
            notes.append("the traffic has changed since")
            return []
        if not performed(self.back, control, caller, notes):
            return []
        return [
            TrafficChanged(self.text, control.traffic.version, self.again, self.back)
        ]


__all__ = ["TrafficChanged"]
