"""Fast encoding of states: a message is encoded once, and its numbers are overwritten.

At 1000 Hz for each of many objects, building message objects would take too long.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

Group = tuple[str, Sequence[float]]
"""Adjacent numbers of a message: their `struct` format (without byte order), and values."""


class Template:
    """Message in which numbers change, but texts and lengths do not.

    Parameters
    ----------
    encode : callable
        Returns the bytes of the message with given groups of numbers.
    formats : sequence of str
        Formats of the groups, in the order of the message.

    Raises
    ------
    ValueError
        A group is not found in the encoded message.
    """

    def __init__(
        self,
        encode: Callable[[Sequence[Sequence[float]]], bytes],
        formats: Sequence[str],
    ) -> None:
        # Find the offsets of the groups: encode the message with two different sets of
        # marker values. A group is at the offset at which both messages have their
        # marker of the group.
        marks = [
            [self._marks(f, k, salt) for k, f in enumerate(formats)] for salt in (0, 1)
        ]
        first, second = (encode(m) for m in marks)

        spots: list[tuple[str, int]] = []

        at = 0
        for k, form in enumerate(formats):
            packer = struct.Struct(f"<{form}")
            # Groups may be empty, for example without joints.
            if packer.size == 0:
                continue
            a, b = packer.pack(*marks[0][k]), packer.pack(*marks[1][k])
            at = first.find(a, at)
            while at >= 0 and second[at : at + len(b)] != b:
                at = first.find(a, at + 1)
            if at < 0:
                raise ValueError(
                    f"template: expected the marker values of group {k} ({form}) in the "
                    "encoded message, found none"
                )

            # Adjacent groups are merged.
            if spots and at == spots[-1][1] + struct.calcsize(f"<{spots[-1][0]}"):
                spots[-1] = (spots[-1][0] + form, spots[-1][1])
            else:
                spots.append((form, at))

            at += packer.size

        # Build one `struct` format for the whole message, with the constant parts as
        # bytes between the numbers.
        layout, at, begin = "<", 0, 0
        pieces: list[tuple[bytes, int, int]] = []
        for form, where in spots:
            layout += f"{where - at}s{form}"
            pieces.append((first[at:where], begin, begin + _count(form)))
            at, begin = where + struct.calcsize(f"<{form}"), begin + _count(form)

        self._rest = first[at:]
        self._pack = struct.Struct(f"{layout}{len(self._rest)}s").pack
        self._pieces = pieces

    @staticmethod
    def _marks(form: str, k: int, salt: int) -> list[Any]:
        """Return marker values of a group, which are unlikely elsewhere in a message.

        Parameters
        ----------
        form : str
            Format of the group; its last character decides between floats and integers.
        k : int
            Index of the group, so that groups have different markers.
        salt : int
            0 or 1, for the two messages that are compared.
        """
        count = _count(form)
        base = 1000003 + 7919 * k + 104729 * salt
        return [
            float(base + 31 * n) if form[-1] in "fd" else base + 31 * n
            for n in range(count)
        ]

    def fill(self, numbers: Sequence[float]) -> bytes:
        """Return the message with the given numbers.

        Parameters
        ----------
        numbers : sequence of float
            Values of all groups, one after the other. Integer formats need integers.

        Returns
        -------
        bytes
            Message with the texts and lengths of the template.

        Raises
        ------
        struct.error
            A number does not fit, or their count is wrong.
        """
        pieces, rest = self._pieces, self._rest
        # Fast path: nearly all messages have two groups of numbers, in the header and
        # after the name.
        if len(pieces) == 2:
            (first, _, cut), (second, _, _) = pieces
            return self._pack(first, *numbers[:cut], second, *numbers[cut:], rest)

        values: list[float | bytes] = []
        for constant, begin, end in pieces:
            values.append(constant)
            values += numbers[begin:end]

        return self._pack(*values, rest)


def _count(form: str) -> int:
    """Return the number of values in a format."""
    return len(struct.unpack(f"<{form}", bytes(struct.calcsize(f"<{form}"))))


__all__ = ["Template"]
