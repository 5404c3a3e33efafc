"""Links and joints of URDF files: a tree of frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from botyard.formats.importers.solids import Frame, Point, Polyhedron, Rotation
from botyard.formats.importers.urdfkeys import KEYS
from botyard.formats.importers.xmlfile import Element
from botyard.formats.notes import Notes
from botyard.names import shown
from botyard.numerics.elementary import hypot

MOVING: Final = ("continuous", "revolute", "prismatic", "floating", "planar")
STEEP: Final = 0.9
"""Least vertical component of a unit vector that counts as upright."""
FLAT: Final = 0.1
"""Greatest vertical component of a unit vector that counts as level."""


class Moving(NamedTuple):
    """Joint that can move.

    Attributes
    ----------
    name, kind, child : str
        Name, URDF's type, and the link that it carries.
    frame : Frame
        Frame of the child at position 0, in the frame of the root link.
    axis : (float, float, float)
        Unit vector in the frame of the root link.
    element : Element
        Element of the file.
    above : tuple of str
        Names of the moving joints between the root link and this one.
    """

    name: str
    kind: str
    child: str
    frame: Frame
    axis: Point
    element: Element
    above: tuple[str, ...]

    @property
    def rolls(self) -> bool:
        """Whether a wheel may turn about it: it rotates about a level axis."""
        return self.kind in ("continuous", "revolute") and abs(self.axis[2]) <= FLAT

    @property
    def turns(self) -> bool:
        """Whether it rotates about an upright axis."""
        return self.kind in ("continuous", "revolute") and abs(self.axis[2]) >= STEEP

    def limit(self, name: str) -> float | None:
        """Return a value of the joint's element ``limit``; None: the file has none."""
        limit = self.element.child("limit")
        value = None if limit is None else limit.given(name)
        return None if value is None else value.number()


@dataclass(slots=True)
class Tree:
    """Links of a robot with their frames.

    Attributes
    ----------
    root : str
        Link without a parent.
    links : mapping of str to Element
        Links by name.
    frames : dict of str to Frame
        Frame of each link at position 0 of all joints, in the frame of the root.
    moving : dict of str to Moving
        Joints that can move, by name.
    solids : dict of str to list of (Polyhedron, Frame)
        Convex collision shapes of each link, in the frame of the root.
    """

    root: str
    links: Mapping[str, Element]
    frames: dict[str, Frame] = field(default_factory=dict)
    moving: dict[str, Moving] = field(default_factory=dict)
    solids: dict[str, list[tuple[Polyhedron, Frame]]] = field(default_factory=dict)

    def heights(self, links: Iterable[str]) -> Iterator[float]:
        """Yield the heights of all corners of the collision shapes of links, m."""
        for link in links:
            for solid, frame in self.solids.get(link, ()):
                yield from (frame.apply(p)[2] for p in solid.corners)


def origin_of(element: Element, notes: Notes) -> Frame:
    """Return the frame that the element ``origin`` of another element describes."""
    origin = element.child("origin")
    if origin is None:
        return Frame()
    KEYS.check("origin", origin.keys(), notes)

    def three(name: str) -> Point:
        value = origin.attribute(name)
        if value is None or not value.data:
            return 0.0, 0.0, 0.0
        x, y, z = value.numbers(3)
        return x, y, z

    return Frame(three("xyz"), Rotation.of_angles(*three("rpy")))


def _named(elements: Iterator[Element]) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.attributes.get("name")
        if not name:
            raise element.fail("a name")
        if name in found:
            raise element.fail("different names", f'"{shown(name)}" twice')
        found[name] = element
    return found


def read_tree(robot: Element, notes: Notes) -> Tree:
    """Return the links and joints of a robot as a tree.

    Raises
    ------
    WorldFileError
        A joint names a link that does not exist, a link has two parents, or the links
        do not form a tree with one root.
    """
    links = _named(robot.named("link"))
    joints = _named(robot.named("joint"))
    carried: dict[str, list[tuple[str, Element, str]]] = {}
    parents: set[str] = set()
    for link in links.values():
        KEYS.check("link", link.keys(), notes)
    for name, joint in joints.items():
        KEYS.check("joint", joint.keys(), notes)
        ends = []
        for tag in ("parent", "child"):
            end = joint.child(tag)
            link_name = "" if end is None else end.attributes.get("link", "")
            if link_name not in links:
                raise (end or joint).fail(
                    f"the name of a link as {tag}", f'"{shown(link_name)}"'
                )
            ends.append(link_name)
        if ends[1] in parents:
            raise joint.fail("links with one parent", f'two of "{shown(ends[1])}"')
        parents.add(ends[1])
        carried.setdefault(ends[0], []).append((name, joint, ends[1]))

    roots = [name for name in links if name not in parents]
    if len(roots) != 1:
        raise robot.fail("links that are a tree with one root", f"{len(roots)} roots")
    tree = Tree(roots[0], links)
    pending: list[tuple[str, Frame, tuple[str, ...]]] = [(roots[0], Frame(), ())]
    while pending:
        name, frame, above = pending.pop()
        tree.frames[name] = frame
        for title, joint, child in carried.get(name, ()):
            at = frame.compose(origin_of(joint, notes))
            kind = joint.attributes.get("type", "fixed")
            chain = above
            if kind in MOVING:
                limit = joint.child("limit")
                if limit is not None:
                    KEYS.check("limit", limit.keys(), notes)
                axis = at.turn.apply(_axis(joint))
                tree.moving[title] = Moving(title, kind, child, at, axis, joint, above)
                chain = (*above, title)
            elif kind != "fixed":
                raise joint.fail(f"one of the types fixed, {', '.join(MOVING)}", kind)
            pending.append((child, at, chain))
    if len(tree.frames) != len(links):
        raise robot.fail("links that are a tree with one root", "a circle")
    return tree


def _axis(joint: Element) -> Point:
    """Return the unit vector of a joint's axis, in its own frame."""
    element = joint.child("axis")
    value = None if element is None else element.attribute("xyz")
    if value is None:
        return 1.0, 0.0, 0.0
    x, y, z = value.numbers(3)
    size = hypot(hypot(x, y), z)
    if not size:
        raise value.fail("a vector that is not 0")
    return x / size, y / size, z / size


__all__ = ["Moving", "Tree", "origin_of", "read_tree"]
