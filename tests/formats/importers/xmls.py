"""Changes of XML files in tests: elements by path, and keys as children or attributes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping

from botyard.formats.base import Options, Source
from botyard.formats.importers.keys import Keys
from botyard.model.world import World
from tests.formats.importers.checks import check_key

Reader = Callable[[Source, Options], World]


def changed(
    base: str, path: str, key: str, value: str | None, *, attribute: bool
) -> str:
    """Return a file in which an element has a key, as a child or as an attribute.

    The value is the text of the child, or XML that replaces the child's contents.
    Without a value, the file is returned with all elements of the path.
    """
    root = ET.fromstring(base)
    target = root
    for step in filter(None, path.split("/")):
        found = target.find(step)
        target = ET.SubElement(target, step) if found is None else found
    if value is not None:
        if attribute:
            target.set(key, value)
        else:
            old = target.find(key)
            made = ET.fromstring(f"<{key}>{value}</{key}>")
            if value.startswith(f"<{key}"):
                made = ET.fromstring(value)
            if old is None:
                target.append(made)
            else:
                target[list(target).index(old)] = made
    return ET.tostring(root, "unicode")


def check_xml_key(
    keys: Keys,
    kind: str,
    key: str,
    read: Reader,
    name: str,
    base: str,
    paths: Mapping[str, str],
    values: Mapping[tuple[str, str], str],
    attributes: frozenset[tuple[str, str]],
) -> None:
    """Check that a key of an element is read, or that a warning names it."""
    value = values.get((kind, key), "2")

    def made(given: str | None, told: list[str]) -> World:
        text = changed(
            base, paths[kind], key, given, attribute=(kind, key) in attributes
        )
        return read(Source(name, text.encode()), Options(warn=told.append))

    check_key(
        keys,
        kind,
        key,
        lambda told: made(value, told),
        lambda told: made(None, told),
    )
