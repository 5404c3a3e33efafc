"""Makes docs/gallery.md's films and pictures in docs/gallery, and the film of the README.

The build of the docs calls `demos`, `worlds` and `scripts` for the parts of the page,
which make the pictures that are missing or older than their source.
``python -m tools.gallery`` writes the film of the README, docs/images/demo.gif.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from botyard import serve
from botyard.demos.catalog import SHOWS
from botyard.formats.mapsearch import builtin_maps
from botyard.pictures.files import save_picture
from botyard.pictures.filming import film_options, film_run, picture_after
from botyard.pictures.options import picture_options
from botyard.sim.simulation import Simulation

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs/gallery"
HERO: Final = ROOT / "docs/images/demo.gif"
MAX_HERO_BYTES: Final = 1_500_000
WORLD_S: Final = 15.0
"""Simulated time before the picture of a world, s."""
FILM_S: Final = 60.0
EXAMPLES: Final = (
    "two_robots",
    "patrol",
    "docking",
    "go_to",
    "push_box",
    "deadlock",
    "swarm_orca",
    "mapping",
    "particle_filter",
)
"""Examples that make a world in this process, in the order of the page."""
TELEOPS: Final = ("ros1", "ros2", "rosbridge")
"""Folders of the examples that drive a robot by keys."""


def example(name: str, target: Path) -> None:
    """Run an example in an empty folder, and draw the world that it makes last."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
        finally:
            os.chdir(before)
    sim = found.get("found", found["sim"])
    sim.render(target, size=720, overwrite=True)


def teleop(target: Path) -> None:
    """Draw a world in which the teleop of rosbridge has driven a robot by keys."""
    sim = Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    with serve(sim, port=0, page=False, discovery=False, rosbridge=0) as running:
        url = f"ws://127.0.0.1:{running.interfaces['rosbridge'].port}"
        subprocess.run(
            [sys.executable, ROOT / "examples/rosbridge/teleop.py", "ann", url],
            input=b"i" * 25 + b"l" * 4 + b"i" * 35,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        running.call(lambda: sim.render(target, size=720, overwrite=True))


def world(name: str, target: Path) -> None:
    """Draw a shipped world after some seconds."""
    sim = Simulation.load(name, seed=1)
    image = picture_after(
        sim, WORLD_S, picture_options(size=720, trails=8.0, scans=False)
    )
    save_picture(image, target, force=True)


def film(name: str, target: Path, seconds: float = FILM_S, size: int = 560) -> None:
    """Film a demo."""
    one = SHOWS[name]
    picture = picture_options(
        area=one.area, scans=one.scans or False, trails=one.trails, size=size
    )
    film_run(
        one.make(1),
        target,
        seconds,
        picture,
        film_options(speed=6.0, fps=10.0),
        force=True,
    )


def made(name: str, source: Path, maker: Callable[[Path], None]) -> str:
    """Make a picture unless a newer one exists; return its path as the page sees it."""
    target = FOLDER / name
    FOLDER.mkdir(exist_ok=True)
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        maker(target)
    return f"gallery/{name}"


def demos() -> str:
    """Return the part of the page with all demos."""
    parts = []
    catalog = ROOT / "src/botyard/demos/catalog.py"
    for name, one in SHOWS.items():
        image = made(f"demo-{name}.gif", catalog, partial(film, name))
        parts.append(
            f"### {name}\n\n{one.sentence}: `botyard demo {name}`\n\n![{one.sentence}]({image})\n"
        )
    return "\n".join(parts)


def worlds() -> str:
    """Return the part of the page with all shipped worlds and their files."""
    parts = []
    for name, path in builtin_maps().items():
        image = made(f"world-{name}.png", path, partial(world, name))
        text = f"### {name}: the world\n\n`botyard {name}`\n\n![The world {name}]({image})\n"
        if path.suffix == ".yaml":
            text += _source("yaml", path)
        parts.append(text)
    return "\n".join(parts)


def scripts() -> str:
    """Return the part of the page with all examples and their sources."""
    parts = []
    for name in EXAMPLES:
        path = ROOT / "examples" / f"{name}.py"
        image = made(f"example-{name}.png", path, partial(example, name))
        about = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split(
            "\n\n"
        )[0]
        about = " ".join(about.split())
        parts.append(
            f"### {name}.py\n\n{about}\n\n![The world at the end of {name}.py]({image})\n"
            + _source("python", path)
        )
    return "\n".join(parts)


def teleops() -> str:
    """Return the part of the page with the teleops and their sources."""
    paths = [ROOT / f"examples/{name}/teleop.py" for name in TELEOPS]
    image = made("example-teleop.png", paths[-1], teleop)
    sources = "\n".join(_source("python", path) for path in paths)
    return f"![The office after a drive by keys]({image})\n\n{sources}"


def _source(language: str, path: Path) -> str:
    """Return a folded block with the text of a file."""
    return (
        f":::{{dropdown}} {path.relative_to(ROOT)}\n```{{literalinclude}} ../{path.relative_to(ROOT)}\n"
        f":language: {language}\n```\n:::\n"
    )


def hero() -> None:
    """Write the film of the README."""
    film("office", HERO, 36.0, 640)
    size = HERO.stat().st_size
    print(f"{HERO}: {size} bytes")
    if size > MAX_HERO_BYTES:
        sys.exit(f"{HERO}: expected at most {MAX_HERO_BYTES} bytes, found {size}")


if __name__ == "__main__":
    hero()
