"""Conformance check of map formats: required behaviour of readers for any file."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from botyard.errors import FormatError
from botyard.formats.base import Format, Options, Source
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate


def check_map_format(
    one: Format, examples: Iterable[bytes], *, rounds: int = 60, seed: int = 1
) -> list[str]:
    """Check the reader of a map format; return a list of problems.

    The reader must read the examples. From a damaged copy it must create a world, or
    raise a `FormatError` that names the file.

    Parameters
    ----------
    one : Format
        Map format whose reader is checked.
    examples : iterable of bytes
        Contents of valid files of the format.
    rounds : int
        Number of damaged copies of each example.
    seed : int
        Seed of the damage.

    Returns
    -------
    list of str
        Problems found.
    """
    problems = []
    draw = random.Random(f"{seed} {one.name}")
    name = f"example{one.suffixes[0]}"
    for number, data in enumerate(examples):
        if not one.fits(Source(name, data)):
            problems.append(f"example {number}: the format does not recognise it")
        try:
            # Formats without a scale of their own, such as pictures, need a resolution.
            world = one.read(Source(name, data), Options(resolution=0.05))
            sim = Simulation(world.scene)
            populate(sim, world)
            # A world that can be read but not simulated is of no use.
            sim.step()
            if not np.isfinite(world.scene.segments).all():
                problems.append(f"example {number}: expected finite walls")
        except FormatError as error:
            problems.append(f"example {number} cannot be read: {error}")

        for damaged in damaged_copies(data, draw, rounds):
            try:
                one.read(Source(name, damaged), Options(resolution=0.05))
            except FormatError as error:
                if name not in str(error):
                    problems.append(
                        f"expected an error that names the file, found: {error}"
                    )
            # Only a FormatError may leave a reader: programs catch no other error of a
            # user's file.
            except Exception as error:
                problems.append(
                    f"{type(error).__name__} of a damaged file: {error}: {damaged[:80]!r}"
                )

    return problems


def damaged_copies(data: bytes, draw: random.Random, rounds: int) -> Iterable[bytes]:
    """Yield damaged copies: truncated, changed, duplicated and inserted bytes.

    Parameters
    ----------
    data : bytes
        Valid file or message.
    draw : random.Random
        Source of the damage; its state changes.
    rounds : int
        Number of copies in addition to the empty one.

    Yields
    ------
    bytes
        A copy with one to four changes.
    """
    # An empty file is the most common damage.
    yield b""
    for _ in range(rounds):
        copy = bytearray(data)
        # Several changes at once reach code that one changed byte cannot, such as a
        # length and its data.
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(copy) + 1)
            kind = draw.randrange(5)
            if kind == 0:
                del copy[at:]
            elif kind == 1 and at < len(copy):
                copy[at] = draw.randrange(256)
            elif kind == 2:
                copy[at:at] = bytes(
                    draw.randrange(256) for _ in range(draw.randint(1, 8))
                )
            elif kind == 3:
                del copy[at : at + draw.randint(1, 20)]
            else:
                copy[at:at] = copy[draw.randrange(len(copy) + 1) :][
                    : draw.randint(1, 40)
                ]

        yield bytes(copy)
