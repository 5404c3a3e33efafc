"""Undo parts for edits of the map and of the floor's zones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from botyard.control.caller import Caller
from botyard.control.mapediting import replace_static
from botyard.control.site import Site
from botyard.control.undo_part import Kept, Log, Part, Placements, TakingBack
from botyard.model.floor import Floor
from botyard.model.scene import Scene


@dataclass
class MapEdited(Part):
    """Undo part for walls, places and zones that were edited.

    Attributes
    ----------
    before, after : Scene
        The map before and after the edit.
    """

    before: Scene
    after: Scene
    kept: Mapping[str, Kept] = field(default_factory=dict, init=False)

    @property
    def size(self) -> int:
        """Size of the map that the part keeps, bytes; 0 if nothing has changed."""
        if _is_same(self.before, self.after):
            return 0
        return 1 + int(self.before.segments.nbytes)

    @property
    def what(self) -> str:
        """Description of the edit, for messages."""
        before, after = self.before, self.after
        walls = len(after.segments) - len(before.segments)
        places = len(after.places) - len(before.places)
        zones = len(_zones(after.floor)) - len(_zones(before.floor))
        parts = [
            f"{'drawing' if n > 0 else 'erasing'} {abs(n)} {one}{'s' * (abs(n) > 1)}"
            for n, one in ((walls, "wall"), (places, "place"), (zones, "zone"))
            if n
        ]
        return ", ".join(parts) or "an edit of the map"

    def touched(self) -> Iterable[tuple[str, object]]:
        """Return no bodies: placements do not matter to the map."""
        return ()

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Restore the earlier walls, places and zones; see `Part.take_back`."""
        yield None
        sim = control.sim
        # Another client may have edited or replaced the map since.
        if not _is_same(sim.scene, self.after):
            notes.append("the map has changed since")
            return []
        if _zones(sim.scene.floor) != _zones(self.before.floor):
            sim.floor.replace(self.before.floor)
        if not (
            np.array_equal(sim.scene.segments, self.before.segments)
            and sim.scene.places == self.before.places
        ):
            replace_static(sim, replace(self.before, floor=None))
        return [MapEdited(self.after, self.before)]


def _zones(floor: Floor | None) -> tuple[object, ...]:
    return () if floor is None else floor.zones


def _is_same(one: Scene, other: Scene) -> bool:
    """Return whether two maps have the same walls, places and zones."""
    return (
        np.array_equal(one.segments, other.segments)
        and one.places == other.places
        and _zones(one.floor) == _zones(other.floor)
    )


__all__ = ["MapEdited"]
