"""Tree of a ROS master's parameter server, with limits for untrusted callers.

Source: wiki.ros.org/ROS/Parameter Server API.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from botyard.errors import PeerError
from botyard.protocols.tcpros import api

MAX_DEPTH: Final = 28
"""Depth limit of the parameter tree.

With the levels of an answer that contains the tree, the depth is less than
`xmlrpc.MAX_DEPTH`.
"""
MAX_PARAMETERS: Final = 16_000
"""Limit of the values in the parameter tree."""
MAX_PARAMETER_TEXT: Final = 4 << 20
"""Limit of the characters of names and texts in the parameter tree."""


def resolved(name: str, caller: str = "/") -> str:
    """Return an absolute name without a trailing slash.

    Parameters
    ----------
    name : str
        Name of a topic, service or parameter, absolute, relative or private.
    caller : str
        Absolute name of the node that uses the name: private names (``~``) are in its
        own namespace, and relative names in the namespace of the node.
    """
    if name.startswith("~"):
        name = f"{caller}/{name[1:]}"
    elif not name.startswith("/"):
        name = f"{caller.rpartition('/')[0]}/{name}"

    return "/" + "/".join(part for part in name.split("/") if part)


class Size(NamedTuple):
    """Size of a value of a parameter, for the limits of the tree.

    Attributes
    ----------
    values : int
        Number of values, including dictionaries and lists.
    text : int
        Characters of texts and of keys.
    depth : int
        Levels of dictionaries and lists; 0 for a scalar.
    key : int
        Characters of the longest key within the value, with its slashes.
    """

    values: int = 0
    text: int = 0
    depth: int = 0
    key: int = 0


_NOTHING: Final = object()


def size(value: Any) -> Size:
    """Return the size of a value.

    Parameters
    ----------
    value : object
        Value from XML-RPC; see `xmlrpc.Document`.
    """
    if value is _NOTHING:
        return Size()
    if not isinstance(value, dict | list):
        return Size(1, len(value) if isinstance(value, str | bytes) else 0)
    values, text, depth, longest = 1, 0, 0, 0

    # Use a list of pending values instead of recursion, so that deep nesting cannot
    # overflow the stack.
    todo: list[tuple[Any, int, int]] = [(value, 1, 0)]
    while todo:
        holder, level, key = todo.pop()
        depth = max(depth, level)
        values += len(holder)
        named = holder.items() if type(holder) is dict else [("", v) for v in holder]
        for name, inner in named:
            long = key
            if name or type(holder) is dict:
                long += len(name) + 1
                text += len(name) + 1
                longest = max(longest, long)

            kind = type(inner)
            if kind is dict or kind is list:
                todo.append((inner, level + 1, long))
            elif kind is str or kind is bytes:
                text += len(inner)

    return Size(values, text, depth, longest)


def _with(node: Any, parts: list[str], value: Any) -> Any:
    """Return a copy of a tree with one value replaced (path copying).

    Parameters
    ----------
    node : object
        Root of the tree. It is not changed.
    parts : list of str
        Keys on the path to the value.
    value : object
        New value at the path.
    """
    if not parts:
        return value
    below = node if isinstance(node, dict) else {}
    return {**below, parts[0]: _with(below.get(parts[0]), parts[1:], value)}


class Parameters:
    """Tree of the parameter server.

    Dictionaries are immutable: a change copies the dictionaries on its path, so that
    returned values stay valid.
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self.values, self.text = 1, 0
        """Number of values in the tree, and number of characters of their names and texts."""

    def get(self, key: str) -> Any:
        """Return the value of a key.

        Parameters
        ----------
        key : str
            Absolute key without a trailing slash (`resolved`); ``/`` for the whole
            tree.

        Returns
        -------
        object
            The stored value itself, which callers must not change.

        Raises
        ------
        KeyError
            The key does not exist.
        """
        value: Any = self._root
        for part in key.split("/")[1:] if key != "/" else ():
            if not isinstance(value, dict):
                raise KeyError(key)
            value = value[part]

        return value

    def set(self, key: str, value: Any) -> None:
        """Set a key, and create the dictionaries on its path.

        Parameters
        ----------
        key : str
            Absolute key without a trailing slash (`resolved`).
        value : object
            Value from XML-RPC, which becomes a part of the tree.

        Raises
        ------
        PeerError
            The root is not a dictionary, or a limit of depth, key length or size is
            exceeded.
        """
        if key == "/" and not isinstance(value, dict):
            raise PeerError("the root of the parameter tree: expected a dictionary")

        parts = key.split("/")[1:] if key != "/" else []
        new = size(value)
        if len(parts) + new.depth > MAX_DEPTH:
            raise PeerError(
                f"parameter: expected at most {MAX_DEPTH} levels, found {len(parts) + new.depth}"
            )
        if len(key) + new.key > api.MAX_KEY:
            raise PeerError(
                f"parameter: expected a key of at most {api.MAX_KEY} characters, "
                f"found {len(key) + new.key}"
            )

        values, text = self._more(parts)
        values, text = self.values + values + new.values, self.text + text + new.text
        if values > MAX_PARAMETERS or text > MAX_PARAMETER_TEXT:
            raise PeerError(
                f"the parameter tree is full: at most {MAX_PARAMETERS} values with "
                f"{MAX_PARAMETER_TEXT} characters"
            )

        self._root = _with(self._root, parts, value)
        self.values, self.text = values, text

    def _more(self, parts: list[str]) -> tuple[int, int]:
        """Return the change of the tree's size by an empty value at a path.

        It counts new dictionaries and keys on the path, minus replaced values.

        Parameters
        ----------
        parts : list of str
            Keys on the path.

        Returns
        -------
        tuple of int
            Change of the number of values, and of the number of characters.
        """
        values = text = 0
        node: Any = self._root
        for part in parts:
            # A new dictionary is created here, and may replace another value.
            if not isinstance(node, dict):
                gone = size(node)
                values, text, node = values + 1 - gone.values, text - gone.text, {}

            if part not in node:
                text += len(part) + 1
            node = node.get(part, _NOTHING)

        gone = size(node)
        return values - gone.values, text - gone.text

    def delete(self, key: str) -> None:
        """Delete a key.

        Parameters
        ----------
        key : str
            Absolute key without a trailing slash (`resolved`).

        Raises
        ------
        KeyError
            The key does not exist.
        """
        # The root always exists, so deleting it means emptying it.
        if key == "/":
            self._root, self.values, self.text = {}, 1, 0
            return

        above, _, last = key.rpartition("/")
        node = self.get(above or "/")
        if not isinstance(node, dict):
            raise KeyError(key)

        # The counts of the tree change by the size of the deleted value.
        gone = size(node[last])
        without = {k: v for k, v in node.items() if k != last}
        self._root = _with(self._root, above.split("/")[1:] if above else [], without)
        self.values, self.text = (
            self.values - gone.values,
            self.text - gone.text - len(last) - 1,
        )

    def names(self) -> list[str]:
        """Return all keys of leaf values, sorted."""
        found: list[str] = []

        def walk(value: Any, way: str) -> None:
            if isinstance(value, dict):
                for key, below in value.items():
                    walk(below, f"{way}/{key}")
            else:
                found.append(way or "/")

        walk(self._root, "")
        return sorted(found)

    def search(self, namespace: str, key: str) -> str | None:
        """Return the nearest key of a name, from a namespace upwards, or None.

        Source: wiki.ros.org/ROS/Parameter Server API, searchParam: the first part of
        the name decides in which namespace the key is found.

        Parameters
        ----------
        namespace : str
            Absolute name of the node that searches.
        key : str
            Key, absolute or relative.
        """
        first = key.strip("/").split("/")[0]
        # An absolute key is not searched for.
        if key.startswith("/"):
            return key if self._has(key) else None
        parts = [p for p in namespace.split("/") if p]
        for depth in range(len(parts), -1, -1):
            base = "/" + "/".join(parts[:depth])
            candidate = f"{base.rstrip('/')}/{first}"
            if self._has(candidate):
                return f"{base.rstrip('/')}/{key}"

        return None

    def _has(self, key: str) -> bool:
        try:
            self.get(key)
        except KeyError:
            return False

        return True
