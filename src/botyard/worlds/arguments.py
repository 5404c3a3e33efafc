"""Checks of arguments of `botyard.worlds.worlds.Worlds`: seeds, poses, world numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from botyard.api import arguments
from botyard.engine.commands import check_pose
from botyard.engine.layout import F8, I8, U8
from botyard.engine.rng import episode_seeds
from botyard.errors import ArgumentError
from botyard.model.obstacles import BoxObject
from botyard.sim.episodes import FEW_NUMBERS, wrapped_poses

Starts = Callable[[U8], ArrayLike]
# Python seeds may be negative or larger than a word; masking maps them onto it.
WORD: Final = 0xFFFF_FFFF_FFFF_FFFF
"""Mask of 64 bits, for seeds of any size."""


def checked_boxes(given: Sequence[BoxObject]) -> list[BoxObject]:
    """Return boxes for `Worlds` after a check.

    Parameters
    ----------
    given : sequence of BoxObject
        Boxes that a caller has passed.

    Raises
    ------
    ArgumentError
        `given` is no sequence, or an item is no box.
    CommandError
        A pose is not finite, or out of the bounds of the world.
    """
    boxes = arguments.several(given, "boxes", "boxes")
    for box in boxes:
        arguments.instance(box, "boxes", BoxObject)
        check_pose(box.pose)

    return list(boxes)


def poses_of(
    poses: ArrayLike | Starts | None, what: str, seeds: U8, episodes: I8, count: int
) -> F8 | None:
    """Return start poses of the same bodies in some worlds.

    Parameters
    ----------
    poses : array-like, callable or None
        Poses, or a function that gets the seeds of the episodes, (k,) uint64, and
        returns poses: m, m, rad. Poses of one world are used in all worlds.
    what : str
        Name of the argument, for messages.
    seeds, episodes : (k,) uint64, (k,) int64
        Seeds of the worlds, and numbers of the new episodes.
    count : int
        Number of bodies in each world.

    Returns
    -------
    (k, count, 3) float64 or None
        Poses with wrapped headings; None if `poses` is None.

    Raises
    ------
    ArgumentError
        The array has another shape or type, or a pose is not finite or out of bounds.
    """
    if poses is None:
        return None
    if callable(poses):
        # Functions get the seeds of episodes, so that their poses can be repeated.
        poses = poses(episode_seeds(seeds, episodes))
    given: F8 = array_of(poses, what, np.float64, (len(seeds), count, 3))
    return wrapped_poses(given, what)


def places_of(given: ArrayLike, what: str, count: int) -> F8:
    """Return places in each world as one contiguous array.

    Parameters
    ----------
    given : array-like
        Places, m: (count, k, 2), or (k, 2) for the same places in all worlds.
    what : str
        Name of the argument, for messages.
    count : int
        Number of worlds.

    Returns
    -------
    (count, k, 2) float64
        Places, m.

    Raises
    ------
    ArgumentError
        The array has another shape or type.
    """
    places = arguments.numbers(given, what)
    if (
        places.ndim not in (2, 3)
        or places.shape[-1] != 2
        or (places.ndim == 3 and len(places) not in (1, count))
    ):
        form = f"an array of shape ({count}, k, 2), or (k, 2)"
        raise ArgumentError(f"{what}: expected {form}, found {arguments.found(given)}")

    # Kernels take the address of each row, which a broadcast view does not have.
    return np.ascontiguousarray(np.broadcast_to(places, (count, *places.shape[-2:])))


def are_different(numbers: I8, count: int) -> bool:
    """Return whether numbers are distinct and in a range.

    Parameters
    ----------
    numbers : (k,) int64
        Numbers, k > 0.
    count : int
        The range is 0 … count − 1.
    """
    # For few numbers this takes less time than one call of NumPy.
    if len(numbers) <= FEW_NUMBERS:
        listed = numbers.tolist()
        return (
            min(listed) >= 0 and max(listed) < count and len(set(listed)) == len(listed)
        )

    # Sorting finds duplicates without an array as long as the number of worlds.
    ordered = np.sort(numbers)
    return bool(
        ordered[0] >= 0 and ordered[-1] < count and (ordered[1:] != ordered[:-1]).all()
    )


def kind_of_readings(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type of readings that a caller has named, as a dtype.

    Parameters
    ----------
    dtype : dtype-like
        Argument of the caller.

    Raises
    ------
    ArgumentError
        `dtype` is neither float32 nor float64.
    """
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(np.void)

    # The kernel has one output for each of these two types.
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ArgumentError(
            f"dtype: expected float32 or float64, found {arguments.found(dtype)}"
        )

    return kind


def seeds_of_worlds(given: ArrayLike, count: int) -> U8:
    """Return seeds of worlds as 64-bit words.

    Parameters
    ----------
    given : int or array-like of int
        Seed of each world; with one number s, world i has the seed s + i. The low 64
        bits of Python integers count.
    count : int
        Number of worlds.

    Returns
    -------
    (count,) uint64
        Seeds.

    Raises
    ------
    ArgumentError
        There are not as many numbers as worlds, or they are not whole numbers.
    """
    # NumPy would convert large Python integers to floats.
    if isinstance(given, (list, tuple)) and len(given) == count:
        return np.array(
            [arguments.seed(one, f"seeds[{k}]") & WORD for k, one in enumerate(given)],
            np.uint64,
        )

    try:
        found = np.asarray(given)
    # NumPy refuses rows of different lengths.
    except ValueError:
        found = np.zeros(0)

    if found.ndim == 0:
        first = arguments.seed(given, "seeds")
        # Worlds get consecutive seeds; the sum wraps around at 64 bits.
        return np.uint64(first & WORD) + np.arange(count, dtype=np.uint64)

    # A float seed would lose digits above 2⁵³.
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise ArgumentError(
            f"seeds: expected a whole number, or {count} of them, "
            f"found {arguments.found(given)}"
        )

    return found.astype(np.uint64)


def array_of(
    given: ArrayLike, what: str, kind: type[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return numbers with a given type and shape.

    Parameters
    ----------
    given : array-like
        Numbers that a caller has passed.
    what : str
        Name of the argument, for messages.
    kind : type
        ``np.float64``, or ``np.int64``, which accepts whole numbers only.
    shape : tuple of int
        Shape of the result.

    Returns
    -------
    array
        `given` itself if it fits; otherwise a copy, which may be read-only.

    Raises
    ------
    ArgumentError
        The numbers have another type, or cannot be broadcast.
    """
    try:
        found = np.asarray(given)
        # The usual case in a training loop: no copy.
        if found.dtype == kind and found.shape == shape:
            return found
        if found.dtype.kind not in ("iu" if kind is np.int64 else "iuf"):
            raise ValueError
        # A view without a copy: callers only read it.
        return np.broadcast_to(found.astype(kind), shape)
    except (TypeError, ValueError):
        of = "whole numbers" if kind is np.int64 else "numbers"
        raise ArgumentError(
            f"{what}: expected {of} of shape {shape}, found {arguments.found(given)}"
        ) from None


__all__ = [
    "Starts",
    "are_different",
    "array_of",
    "checked_boxes",
    "kind_of_readings",
    "places_of",
    "poses_of",
    "seeds_of_worlds",
]
