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
        spots: list[tuple[str, int]] = []
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
            if spots and at == spots[-1][1] + struct.calcsize(f"<{spots[-1][0]}"):  # side by side: written at once
                spots[-1] = (spots[-1][0] + form, spots[-1][1])
            else:
                spots.append((form, at))
            at += packer.size
        self._spots = [(struct.Struct(f"<{form}").pack_into, at, _count(form)) for form, at in spots]

    @staticmethod
    def _marks(form: str, k: int, salt: int) -> list[Any]:
        count = _count(form)
        base = 1000003 + 7919 * k + 104729 * salt
        return [float(base + 31 * n) if form[-1] in "fd" else base + 31 * n for n in range(count)]

    def fill(self, numbers: Sequence[float]) -> bytes:
        """The bytes with these numbers, those of all groups one after the other.

        Raises
        ------
        struct.error
            A number does not fit, or there are too few.
        """
        data, begin = self._data, 0
        for pack_into, at, count in self._spots:
            pack_into(data, at, *numbers[begin : begin + count])
            begin += count
        return bytes(data)


def _count(form: str) -> int:
    """How many numbers a format takes."""
    return len(struct.unpack(f"<{form}", bytes(struct.calcsize(f"<{form}"))))


__all__ = ["Template"]
