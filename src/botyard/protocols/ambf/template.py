"""States as bytes without making message objects: a message is encoded once, and its numbers are written over in place.

At 1000 Hz for each of many objects the making of message objects would take all the time there is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

Group = tuple[str, Sequence[float]]
"""Format of `struct` (little-endian, without its sign) and values of numbers that stand side by side."""


class Template:
    """A message whose numbers change and whose texts and lengths do not.

    Parameters
    ----------
    encode : callable
        Bytes of the message with these groups of numbers in it.
    groups : sequence of Group
        Formats, in the order in which the groups stand in the message; the values are replaced by marks.
    """

    def __init__(self, encode: Callable[[Sequence[Sequence[float]]], bytes], formats: Sequence[str]) -> None:
        # two sets of marks: where the bytes of one stand in the first message and those of the other in the second, the group is
        marks = [[self._marks(f, k, salt) for k, f in enumerate(formats)] for salt in (0, 1)]
        first, second = (encode(m) for m in marks)
        self._data = bytearray(first)
        self._spots: list[tuple[struct.Struct, int]] = []
        at = 0
        for k, form in enumerate(formats):
            packer = struct.Struct(f"<{form}")
            if packer.size == 0:
                continue
            a, b = packer.pack(*marks[0][k]), packer.pack(*marks[1][k])
            at = first.find(a, at)
            while at >= 0 and second[at : at + len(b)] != b:
                at = first.find(a, at + 1)
            if at < 0:
                raise ValueError(f"group {k} ({form}) is not in the message as it should be")
            self._spots.append((packer, at))
            at += packer.size
        self._formats = [f for f in formats if struct.calcsize(f"<{f}")]

    @staticmethod
    def _marks(form: str, k: int, salt: int) -> list[Any]:
        count = len(struct.unpack(f"<{form}", bytes(struct.calcsize(f"<{form}"))))
        base = 1000003 + 7919 * k + 104729 * salt
        return [float(base + 31 * n) if form[-1] in "fd" else base + 31 * n for n in range(count)]

    def fill(self, *groups: Sequence[float]) -> bytes:
        """The bytes with these numbers, one sequence for each group that has any.

        Raises
        ------
        struct.error
            A number does not fit.
        """
        data = self._data
        for (packer, at), values in zip(self._spots, groups, strict=True):
            packer.pack_into(data, at, *values)
        return bytes(data)


__all__ = ["Template"]
