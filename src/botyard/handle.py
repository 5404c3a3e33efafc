"""What all objects have in common that a user holds of a simulation. A leaf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NoReturn


class Handle:
    """What a user holds of a simulation: it says what to call where it cannot be assigned to, and refuses to be copied by itself.

    A copy of a robot without its world would be half of something. Whole worlds can be copied, pickled and saved (`Simulation.clone`,
    `Simulation.save_state`).
    """

    _instead: ClassVar[Mapping[str, str]] = {}
    """Attributes that are only read, and what to call to change what they tell of."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._instead:
            raise AttributeError(f"{type(self).__name__}.{name} cannot be assigned: {self._instead[name]}")
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled by itself: copy, pickle or clone its simulation "
            "(Simulation.clone, Simulation.save_state)"
        )


__all__ = ["Handle"]
