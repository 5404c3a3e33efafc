"""Tables of the keys of an imported format: the use of each key, or why it is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from botyard.errors import did_you_mean
from botyard.formats.importers.values import Value
from botyard.formats.notes import Notes
from botyard.names import shown


@dataclass(frozen=True, slots=True)
class Use:
    """Use of a key of an imported format.

    Attributes
    ----------
    text : str
        Meaning in botyard, or the reason for leaving the key out.
    is_read : bool
        Whether the key is read.
    harmless : tuple of values
        Values with which a key that is left out has no effect, so that no note is needed.
    """

    text: str
    is_read: bool
    harmless: tuple[Any, ...] = ()


def read(text: str) -> Use:
    """Return the use of a key that is read; `text` describes the result."""
    return Use(text, True)


def left_out(text: str, *harmless: Any) -> Use:
    """Return the use of a key that is left out; `text` gives the reason."""
    return Use(text, False, harmless)


class _Anything:
    """Value that equals every value."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def silent(text: str) -> Use:
    """Return the use of a key that is left out without a note, as botyard acts alike anyway."""
    return Use(text, False, (_Anything(),))


def drawing(*keys: str) -> dict[str, Use]:
    """Return the uses of keys that only affect the window of the other simulator."""
    return dict.fromkeys(keys, left_out("affects only the drawing"))


class Keys:
    """Table of the keys of a format.

    Parameters
    ----------
    kinds : mapping of str to mapping of str to Use
        Kind of mapping or element (``world``, ``robot``, …) → key → use.
    """

    def __init__(self, kinds: Mapping[str, Mapping[str, Use]]) -> None:
        self.kinds: Final = kinds

    def check(self, kind: str, keys: Mapping[str, Value], notes: Notes) -> None:
        """Add a note for each key of a mapping that is left out or unknown.

        Parameters
        ----------
        kind : str
            Kind of the mapping.
        keys : mapping of str to Value
            Keys that the file has, and their values.
        notes : Notes
            Collects the notes, one for each key of a kind.
        """
        known = self.kinds[kind]
        for key, value in keys.items():
            use = known.get(key)
            if use is None:
                notes.add(
                    f"{kind} {key}",
                    value,
                    f'"{shown(key, 60)}" of {kind} is left out: the key is not known'
                    f"{did_you_mean(key, known)}",
                )
            elif not use.is_read and not any(
                value.data is h or (value.data == h and h is not None)
                for h in use.harmless
            ):
                notes.add(
                    f"{kind} {key}", value, f'"{key}" of {kind} is left out: {use.text}'
                )

    def rows(self) -> Iterator[tuple[str, str, Use]]:
        """Yield each key of the table with its kind of mapping and its use."""
        for kind, keys in self.kinds.items():
            for key, use in keys.items():
                yield kind, key, use

    def markdown(self) -> Iterable[str]:
        """Yield the lines of the table for the documentation."""
        yield "| in | key | in botyard |"
        yield "|---|---|---|"
        # Keys of one kind with one use share a row.
        grouped: dict[tuple[str, str], list[str]] = {}
        for kind, key, use in self.rows():
            text = use.text if use.is_read else f"left out: {use.text}"
            grouped.setdefault((kind, text), []).append(key)
        for (kind, text), keys in grouped.items():
            names = ", ".join(f"`{key}`" for key in keys)
            yield f"| `{kind}` | {names} | {text} |"


__all__ = ["Keys", "Use", "drawing", "left_out", "read", "silent"]
