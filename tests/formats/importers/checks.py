"""Checks that all importers share: of the table of keys, and of hostile files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from botyard.formats.base import Format, Options, Source
from botyard.formats.importers.keys import Keys
from botyard.formats.registry import FORMATS, load_world, read_world
from botyard.model.world import World
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate

DOCS = Path(__file__).parents[3] / "docs/formats"
PROGRAMS = frozenset({"waypoints", "orca", "socialforce", "walk", "wander"})


def format_named(name: str) -> Format:
    """Return a format of the registry."""
    return next(one for one in FORMATS if one.name == name)


def loaded(text: str | bytes, name: str, told: list[str] | None = None) -> World:
    """Read a file of its own, and check that the world runs."""
    data = text.encode() if isinstance(text, str) else text
    options = Options(
        warn=(told if told is not None else []).append,
        is_program=PROGRAMS.__contains__,
    )
    return read_world(Source(name, data), options)


def run(world: World, steps: int = 5) -> Simulation:
    """Simulate a world for some steps."""
    sim = Simulation(world.scene)
    populate(sim, world)
    sim.step(steps)
    return sim


def load(path: Path, told: list[str] | None = None) -> World:
    """Read a file of a folder."""
    return load_world(path, Options(warn=(told if told is not None else []).append))


def description(world: World) -> str:
    """Return all that a world holds, as a text."""
    scene = world.scene
    return repr(
        (
            scene.name,
            scene.segments.tolist(),
            scene.special_walls,
            scene.traced,
            scene.boxes,
            scene.places,
            scene.areas,
            scene.view,
            scene.georeference,
            world.robots,
            world.settings,
        )
    )


def check_key(
    keys: Keys,
    kind: str,
    key: str,
    with_key: Callable[[list[str]], World],
    without: Callable[[list[str]], World],
) -> None:
    """Check that a key is read, or that a warning names it.

    A key that is read changes the world or says something of its value; one that is
    left out changes nothing.
    """
    told: list[str] = []
    before: list[str] = []
    changed, plain = with_key(told), without(before)
    use = keys.kinds[kind][key]
    note = f'"{key}" of {kind} is left out'
    if use.is_read:
        assert not any(note in text for text in told), told
        assert (description(changed), told) != (description(plain), before), (
            f"{kind} {key} changes nothing"
        )
    else:
        silent = bool(use.harmless) and use.harmless[0] == object()
        assert any(note in text for text in told) is not silent, told
        assert description(changed) == description(plain)


def check_page(keys: Keys, name: str) -> None:
    """Check that the page of a format has the table of its keys."""
    page = (DOCS / f"{name}.md").read_text("utf-8")
    table = "\n".join(keys.markdown())
    assert table in page, (
        f"run: python -m tools.format_keys, which writes the table of docs/formats/{name}.md"
    )


def all_keys(keys: Keys) -> Iterator[tuple[str, str]]:
    """Yield kind and key of all keys."""
    for kind, key, _ in keys.rows():
        yield kind, key
