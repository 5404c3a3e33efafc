"""``python -m tools.digests``: run fourteen scenes and compare their digests with those
of the repository; ``--write`` makes them anew.

The digests must be the same on every system and processor, with every kind of kernels
(``BOTYARD_KERNELS=native``, ``jit``, ``python``) and any number of threads. Needs
botyard alone, so that it runs where there are no tests.

A digest is over the numbers of the state, of the map as the engine has it, of the
outlines, and of the readings: what `Simulation.digest` covers without versions and
descriptions, so that a new release or field changes nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.digestscenes import TRIALS

from botyard.devices import ranging

FILE: Final = (
    Path(__file__).resolve().parents[1] / "tests" / "determinism" / "digests.toml"
)
HEAD: Final = (
    "# Made by `python -m tools.digests --write`: the digest after this number of "
    "steps (of traffic: events), the same on every machine."
)


def digests(
    name: str, threads: int = 1, first_only: bool = False
) -> Iterator[tuple[int, str]]:
    """Run a scene. Yields pairs of steps done and digest."""
    trial = TRIALS[name]
    before = ranging.MIN_PARALLEL_BEAMS
    # A limit of one beam makes even few beams use several threads.
    ranging.MIN_PARALLEL_BEAMS = 1 if threads > 1 else before
    try:
        with warnings.catch_warnings():
            # Robots may start on an obstacle, and 64-bit products wrap around as intended; both
            # warn.
            warnings.simplefilter("ignore")
            run = trial.make(threads)
            for steps in trial.steps[: 1 if first_only else None]:
                yield steps, f"{run(steps):016x}"
    finally:
        ranging.MIN_PARALLEL_BEAMS = before


def known() -> dict[str, dict[int, str]]:
    """Return the digests stored in the repository."""
    found = tomllib.loads(FILE.read_text("utf-8"))
    return {
        name: {int(steps): text for steps, text in row.items()}
        for name, row in found.items()
    }


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.digests", description=__doc__
    )
    parser.add_argument(
        "scenes",
        nargs="*",
        metavar="SCENE",
        help=f"default: all of {', '.join(TRIALS)}",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--first",
        action="store_true",
        help="only the first digest of each scene; fast even without compiled kernels",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="store the computed digests in the repository as the new reference",
    )
    asked = parser.parse_args()
    if asked.write and (asked.scenes or asked.first):
        parser.error("--write is for all scenes and all steps")
    right = {} if asked.write else known() if FILE.exists() else {}
    made, wrong = HEAD, 0
    for name in asked.scenes or TRIALS:
        began = time.perf_counter()
        found = dict(digests(name, asked.threads, asked.first))
        made += f"\n[{name}]\n" + "".join(
            f'{steps} = "{text}"\n' for steps, text in found.items()
        )
        differs = [
            steps
            for steps, text in found.items()
            if not asked.write and right.get(name, {}).get(steps) != text
        ]
        wrong += len(differs)
        said = (
            f"differs after {differs[0]}: {found[differs[0]]}"
            if differs
            else "as expected"
            if not asked.write
            else "written"
        )
        print(f"{name:10} {said} ({time.perf_counter() - began:.1f} s)", flush=True)

    if asked.write:
        FILE.write_text(made, "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
