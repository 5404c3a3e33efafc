"""Validation of names, and escaping of untrusted text for logs and messages. A leaf:
imports only the errors.

Names come from files, clients, the page and ROS; they end up in log lines, terminal
windows, web pages and topic names. One rule for all of them: 1 to 64 printable
characters. So no name can inject a line into a log, terminal escape sequences, or
bidirectional controls.
"""

from __future__ import annotations

from typing import Final

from botyard.errors import BotyardError, WorldError, escaped

MAX_NAME: Final = 64
"""Longest name of a robot or another object, characters."""


def is_name(name: object) -> bool:
    """Whether `name` obeys the rule for names: a str of 1 to `MAX_NAME` printable
    characters (`str.isprintable`), not only spaces.
    """
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME
        and name.isprintable()
        and not name.isspace()
    )


def check_name(
    name: object, what: str = "robot", error: type[BotyardError] = WorldError
) -> str:
    """Return `name` if it obeys the rule for names.

    Parameters
    ----------
    name : object
        The name; anything but a str breaks the rule.
    what : str
        What has the name, for the message.
    error : type of BotyardError
        Raised with a message if the rule is broken.

    Raises
    ------
    WorldError
        Or `error`: it is no str, is empty, too long, or holds a character that is not
        printable.
    """
    if isinstance(name, str) and is_name(name):
        return name
    if not isinstance(name, str):
        found = f"{type(name).__name__}"
    elif len(name) > MAX_NAME:
        found = f"{len(name)} characters: {shown(name, 24)}"
    elif not name or name.isspace():
        found = "an empty one" if not name else "only spaces"
    else:
        found = f'"{shown(name)}"'

    raise error(
        f"a {what} has a name of 1 to {MAX_NAME} printable characters; found {found}"
    )


def shown(text: object, limit: int = MAX_NAME) -> str:
    """Untrusted text made safe for a log line, a message or a window: escaped, and cut
    to `limit` characters with an ellipsis.
    """
    raw = str(text)
    safe = escaped(raw[: limit + 1])
    return safe if len(raw) <= limit and len(safe) <= limit else safe[: limit - 1] + "…"


def body_name(name: str) -> str:
    """A valid body name for an object of a map, whose name in the file may be anything."""
    found = shown(name)
    return found if is_name(found) else "box"


def file_stem(name: str) -> str:
    """What of a name that a client has sent may be the stem of a file: letters, digits,
    ``-`` and ``_``; never a folder.
    """
    stem = name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    return (
        "".join(c for c in stem[0] or stem[2] if c.isalnum() or c in "-_")[:MAX_NAME]
        or "botyard"
    )


__all__ = [
    "MAX_NAME",
    "body_name",
    "check_name",
    "escaped",
    "file_stem",
    "is_name",
    "shown",
]
