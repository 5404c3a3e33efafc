"""Scenes have the digests stored in the repository, on any system, processor, kernels
and threads.

`make test` runs this with the library of kernels, with Numba's compiler, and without a
compiler. If results change on purpose, run ``python -m tools.digests --write``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from tools import digests

from botyard.controllers import steering
from botyard.native.packages import mode
from botyard.numerics import elementary


@pytest.mark.parametrize("name", digests.TRIALS)
@pytest.mark.parametrize("threads", [1, 2])
def test_digests_are_those_of_the_repository(name: str, threads: int) -> None:
    # Plain Python is a hundred times slower.
    only_first = mode() == "python"
    right = digests.known()[name]
    assert dict(digests.digests(name, threads, only_first)) == (
        dict([min(right.items())]) if only_first else right
    )


def test_every_scene_has_digests_of_its_own() -> None:
    known = digests.known()
    assert list(known) == list(digests.TRIALS)
    assert all(tuple(row) == digests.TRIALS[name].steps for name, row in known.items())
    texts = [text for row in known.values() for text in row.values()]
    assert len(set(texts)) == len(texts)


def test_one_bit_of_one_arctangent_changes_a_digest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before: Callable[[float, float], float] = elementary.atan2
    monkeypatch.setattr(
        steering, "atan2", lambda y, x: math.nextafter(before(y, x), math.inf)
    )
    assert dict(digests.digests("visitors", first_only=True)) != dict(
        [min(digests.known()["visitors"].items())]
    )
