"""Quality of service of endpoints, and the compatibility of writers and readers.

Source: DDS 1.4, §2.2.3; DDSI-RTPS 2.5, table 9.14.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from botyard.protocols.rtps import parameters as p
from botyard.protocols.rtps.limits import MAX_NAME_BYTES
from botyard.protocols.rtps.parameters import INFINITE, Parameters
from botyard.protocols.rtps.wire import OURS, Layout, MalformedError

XCDR1: Final = 0
"""Number of the only data representation that this implementation uses: plain CDR."""
_BEST_EFFORT, _RELIABLE = 1, 2
# Default of ``max_blocking_time`` (DDS 1.4, §2.2.3). Peers do not use it, but the
# parameter RELIABILITY is invalid without it.
_MAX_BLOCKING_S: Final = 0.1
# Greatest length of a list of partitions or data representations. ROS 2 uses at most
# one partition, and there are three representations, so longer lists are hostile.
_MAX_SEQUENCE: Final = 16


class Durability(IntEnum):
    """Kinds of durability."""

    VOLATILE = 0
    TRANSIENT_LOCAL = 1
    TRANSIENT = 2
    PERSISTENT = 3


@dataclass(frozen=True, slots=True)
class Qos:
    """Policies of an endpoint; the defaults are the defaults of ROS 2's topics.

    Attributes
    ----------
    reliable : bool
        Reliable, or best effort.
    durability : Durability
        With `Durability.TRANSIENT_LOCAL` the writer keeps its last samples for late
        readers.
    depth : int
        Number of samples that a writer keeps.
    deadline, latency_budget, lifespan, lease : float
        Periods of the policies of these names, s; `lease` is the lease duration of
        liveliness.
    liveliness : int
        0 automatic, 1 by participant, 2 by topic.
    ownership, destination_order : int
        Kinds of these policies: 0 means shared ownership, and order by reception.
    presentation : tuple of int
        Access scope, coherent, ordered.
    partitions : tuple of str
        Names of partitions; an empty tuple equals one partition without a name.
    representations : tuple of int
        Data representations: a writer offers the first of them, a reader accepts all.
    """

    reliable: bool = True
    durability: Durability = Durability.VOLATILE
    depth: int = 10
    deadline: float = INFINITE
    latency_budget: float = 0.0
    lifespan: float = INFINITE
    liveliness: int = 0
    lease: float = INFINITE
    ownership: int = 0
    destination_order: int = 0
    presentation: tuple[int, int, int] = (0, 0, 0)
    partitions: tuple[str, ...] = ()
    representations: tuple[int, ...] = (XCDR1,)

    @property
    def is_kept(self) -> bool:
        """Whether samples are kept for late readers."""
        return self.durability >= Durability.TRANSIENT_LOCAL

    def parameters(self) -> list[bytes]:
        """Return the policies as parameters.

        Policies with default values are left out, unless an implementation requires
        them.
        """
        found = [
            p.parameter(
                p.RELIABILITY,
                p.int32s(_RELIABLE if self.reliable else _BEST_EFFORT)
                + p.duration(_MAX_BLOCKING_S),
            ),
            p.parameter(p.DURABILITY, p.int32s(self.durability)),
            p.parameter(
                p.LIVELINESS, p.int32s(self.liveliness) + p.duration(self.lease)
            ),
            p.parameter(p.HISTORY, p.int32s(0, self.depth)),
            p.parameter(
                p.DATA_REPRESENTATION,
                p.int32s(len(self.representations))
                + b"".join(OURS.uint16.pack(r) for r in self.representations),
            ),
        ]
        if self.deadline != INFINITE:
            found.append(p.parameter(p.DEADLINE, p.duration(self.deadline)))
        if self.latency_budget:
            found.append(p.parameter(p.LATENCY_BUDGET, p.duration(self.latency_budget)))
        if self.lifespan != INFINITE:
            found.append(p.parameter(p.LIFESPAN, p.duration(self.lifespan)))
        if self.ownership:
            found.append(p.parameter(p.OWNERSHIP, p.int32s(self.ownership)))
        if self.destination_order:
            found.append(
                p.parameter(p.DESTINATION_ORDER, p.int32s(self.destination_order))
            )

        if any(self.presentation):
            scope, coherent, ordered = self.presentation
            found.append(
                p.parameter(
                    p.PRESENTATION, p.int32s(scope) + bytes((coherent, ordered))
                )
            )

        if self.partitions:
            names = b"".join(_padded(p.string(name)) for name in self.partitions)
            found.append(
                p.parameter(p.PARTITION, p.int32s(len(self.partitions)) + names)
            )

        return found

    @classmethod
    def read(cls, found: Parameters, layout: Layout, is_writer: bool) -> Qos:
        """Return the policies of a parameter list.

        A missing parameter has its default. The default of reliability differs for
        writers and readers.

        Parameters
        ----------
        found : dict of int to list of bytes
            Parameters of the list.
        layout : Layout
            Byte order of the list.
        is_writer : bool
            Whether the policies are of a writer.

        Raises
        ------
        MalformedError
            A value is too short or invalid.
        """

        def time(pid: int, otherwise: float) -> float:
            return p.seconds(found[pid][0], layout) if pid in found else otherwise

        def number(pid: int, otherwise: int = 0) -> int:
            return (
                p.integers(found[pid][0], layout, 1)[0] if pid in found else otherwise
            )

        presentation = (0, 0, 0)
        if p.PRESENTATION in found:
            value = found[p.PRESENTATION][0]
            if len(value) < 6:
                raise MalformedError(
                    f"presentation: expected 6 bytes, found {len(value)}"
                )
            presentation = (
                p.integers(value, layout, 1)[0],
                int(value[4] != 0),
                int(value[5] != 0),
            )

        durability = number(p.DURABILITY)
        if not 0 <= durability <= Durability.PERSISTENT:
            raise MalformedError(f"durability: expected 0 to 3, found {durability}")

        liveliness = found.get(p.LIVELINESS)

        history = (
            # The default of the standard is to keep the last sample.
            p.integers(found[p.HISTORY][0], layout, 2) if p.HISTORY in found else (0, 1)
        )

        return cls(
            # Defaults of the standard: writers are reliable, readers are not.
            reliable=number(p.RELIABILITY, _RELIABLE if is_writer else _BEST_EFFORT)
            == _RELIABLE,
            durability=Durability(durability),
            depth=history[1],
            deadline=time(p.DEADLINE, INFINITE),
            latency_budget=time(p.LATENCY_BUDGET, 0.0),
            lifespan=time(p.LIFESPAN, INFINITE),
            liveliness=number(p.LIVELINESS),
            # The value of LIVELINESS is the kind, 4 bytes, and then the lease.
            lease=p.seconds(liveliness[0][4:], layout) if liveliness else INFINITE,
            ownership=number(p.OWNERSHIP),
            destination_order=number(p.DESTINATION_ORDER),
            presentation=presentation,
            partitions=_partitions(found[p.PARTITION][0], layout)
            if p.PARTITION in found
            else (),
            representations=_representations(found[p.DATA_REPRESENTATION][0], layout)
            if p.DATA_REPRESENTATION in found
            else (XCDR1,),
        )


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) & 3)


def _partitions(value: bytes, layout: Layout) -> tuple[str, ...]:
    """Return the names of a partition parameter.

    Raises
    ------
    MalformedError
        There are more than `_MAX_SEQUENCE` names, or the value is too short.
    """
    (count,) = p.integers(value, layout, 1)
    if not 0 <= count <= _MAX_SEQUENCE:
        raise MalformedError(
            f"expected at most {_MAX_SEQUENCE} partitions, found {count}"
        )

    names, at = [], 4
    for _ in range(count):
        raw = p.octets(value[at:], layout, MAX_NAME_BYTES)
        names.append(raw.rstrip(b"\0").decode("utf-8", "replace"))
        # Strings in CDR are padded to 4 bytes.
        at += 4 + len(raw) + (-len(raw) & 3)

    return tuple(names)


def _representations(value: bytes, layout: Layout) -> tuple[int, ...]:
    """Return the data representations in a parameter; plain CDR for an empty list.

    Raises
    ------
    MalformedError
        There are more than `_MAX_SEQUENCE` numbers, or the value is too short.
    """
    (count,) = p.integers(value, layout, 1)
    if not 0 <= count <= _MAX_SEQUENCE or len(value) < 4 + 2 * count:
        raise MalformedError(
            f"data representations: expected at most {_MAX_SEQUENCE} numbers within "
            f"{len(value)} bytes, found {count}"
        )
    return tuple(
        layout.uint16.unpack_from(value, 4 + 2 * i)[0] for i in range(count)
    ) or (XCDR1,)


def _share_partition(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two endpoints share a partition. Of patterns, only ``*`` is supported."""
    # No partition is the same as one partition without a name (DDS 1.4, §2.2.3.13).
    ones, others = set(one or ("",)), set(other or ("",))
    return bool(ones & others) or "*" in ones or "*" in others


def mismatch(offered: Qos, wanted: Qos) -> str:
    """Return the reason why a writer's policies do not satisfy a reader; empty if they do.

    History, depth and lifespan need not fit (DDS 1.4, §2.2.3, "RxO").

    Parameters
    ----------
    offered : Qos
        Policies of the writer.
    wanted : Qos
        Policies of the reader.

    Returns
    -------
    str
        Each policy that does not fit, with the offered and the requested value.
    """
    # Most kinds are ordered by strength: a writer may offer more than a reader
    # requests, but not less.
    ordered = zip(offered.presentation, wanted.presentation, strict=True)

    checks = (
        (
            "reliability",
            offered.reliable or not wanted.reliable,
            offered.reliable,
            wanted.reliable,
        ),
        (
            "durability",
            offered.durability >= wanted.durability,
            offered.durability.name,
            wanted.durability.name,
        ),
        (
            "deadline",
            offered.deadline <= wanted.deadline,
            offered.deadline,
            wanted.deadline,
        ),
        (
            "latency budget",
            offered.latency_budget <= wanted.latency_budget,
            offered.latency_budget,
            wanted.latency_budget,
        ),
        (
            "liveliness",
            offered.liveliness >= wanted.liveliness,
            offered.liveliness,
            wanted.liveliness,
        ),
        (
            "liveliness lease",
            offered.lease <= wanted.lease,
            offered.lease,
            wanted.lease,
        ),
        (
            "ownership",
            # Ownership has no order of strength: shared and exclusive exclude each
            # other.
            offered.ownership == wanted.ownership,
            offered.ownership,
            wanted.ownership,
        ),
        (
            "destination order",
            offered.destination_order >= wanted.destination_order,
            offered.destination_order,
            wanted.destination_order,
        ),
        (
            "presentation",
            all(a >= b for a, b in ordered),
            offered.presentation,
            wanted.presentation,
        ),
        (
            "partition",
            _share_partition(offered.partitions, wanted.partitions),
            offered.partitions,
            wanted.partitions,
        ),
        (
            "representation",
            offered.representations[0] in wanted.representations,
            offered.representations[0],
            wanted.representations,
        ),
    )

    return "; ".join(
        f"{name}: offered {have}, requested {want}"
        for name, fits, have, want in checks
        if not fits
    )
