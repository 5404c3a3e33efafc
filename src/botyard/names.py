"""Validation of names, and escaping of untrusted text.

Names come from files, clients, the page and ROS, and end up in log lines, terminals,
web pages and topic names. One rule applies to all: 1 to 64 printable characters. Thus
no name can inject a line into a log, a terminal escape sequence, or a bidirectional
control character.
"""

from __future__ import annotations

from typing import Final

from botyard.errors import BotyardError, WorldError, escaped

MAX_NAME: Final = 64
"""Maximum length of the name of a robot or another object, characters."""


def is_name(name: object) -> bool:
    """Return whether `name` is a valid name.

    A valid name is a str of 1 to `MAX_NAME` printable characters (`str.isprintable`),
    not only spaces.

    Parameters
    ----------
    name : object
        Name; any object, because names come from messages of clients.
    """
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME
        and name.isprintable()
        and not name.isspace()
    )


def is_host(text: str) -> bool:
    """Return whether the operating system can look up a host name or an address.

    Functions of sockets raise UnicodeError for labels that are empty or too long.

    Parameters
    ----------
    text : str
        Host name or address, such as an option's value. It is not looked up.
    """
    try:
        return bool(text.encode("idna")) and text.isprintable()
    except UnicodeError:
        return False


def check_name(
    name: object, what: str = "robot", error: type[BotyardError] = WorldError
) -> str:
    """Return `name` if it is a valid name.

    Parameters
    ----------
    name : object
        The name; any type other than str is rejected.
    what : str
        Kind of the named object, for the message.
    error : type of BotyardError
        Type of the error to raise.

    Returns
    -------
    str
        `name` itself.

    Raises
    ------
    WorldError
        Or `error`: the name is not a str, is empty, too long, or contains an
        unprintable character.
    """
    if isinstance(name, str) and is_name(name):
        return name
    if not isinstance(name, str):
        found = f"{type(name).__name__}"
    elif len(name) > MAX_NAME:
        found = f"{len(name)} characters: {shown(name, 24)}"
    elif not name or name.isspace():
        found = "an empty name" if not name else "only spaces"
    else:
        found = f'"{shown(name)}"'

    raise error(
        f"name of a {what}: expected 1 to {MAX_NAME} printable characters, found {found}"
    )


def shown(text: object, limit: int = MAX_NAME) -> str:
    """Return untrusted text made safe for a log line, a message or a window.

    The text is escaped and cut to `limit` characters with an ellipsis.

    Parameters
    ----------
    text : object
        Text, or an object whose `str` is shown.
    limit : int
        Greatest length of the result, characters.
    """
    raw = str(text)
    safe = escaped(raw[: limit + 1])
    return safe if len(raw) <= limit and len(safe) <= limit else safe[: limit - 1] + "…"


def body_name(name: str) -> str:
    """Return a valid name for an object of a map.

    The name in the file can be any text: it is escaped and cut. A name without a
    printable character becomes "box".

    Parameters
    ----------
    name : str
        Name in the file.
    """
    found = shown(name)
    return found if is_name(found) else "box"


def file_stem(name: str) -> str:
    """Return a safe stem of a file name from a name sent by a client.

    It contains letters, digits, ``-`` and ``_`` only, so it never leaves the folder.

    Parameters
    ----------
    name : str
        Name or path; folders and the last suffix are dropped. Without a usable
        character the result is "botyard".
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
