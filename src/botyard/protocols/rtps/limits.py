"""Limits of an RTPS participant on memory, traffic and CPU time that peers can cause."""

from __future__ import annotations

from typing import Final

# -- data kept for peers

MAX_PARTICIPANTS: Final = 256
"""Limit of remote participants.

At the limit, a new participant replaces one of the address with the most participants,
if its own address has fewer. Of that address, a participant without a match is dropped
first.
"""
IDLE_S: Final = 5.0
"""Time without a match after which a participant may be dropped at the limit, s."""
MAX_PEER_ENDPOINTS: Final = 4096
"""Limit of the endpoints of one participant."""
MAX_ENDPOINTS: Final = 16384
"""Limit of all remote endpoints.

At the limit, a new endpoint replaces one of the address with the most endpoints, if its
own address has fewer. Of that address, the participant with the most endpoints loses
it.
"""
MAX_PEER_ADDRESSES: Final = 8
"""Limit of the addresses of one participant to which samples are sent.

Each address gets its own datagram.
"""
MAX_IGNORED: Final = 1024
"""Limit of the ignored participants that are remembered."""
MAX_LEASE_S: Final = 300.0
"""Longest lease of a participant, s; longer announced leases are cut to it.

Every implementation announces its participants more often than this.
"""
DEFAULT_LEASE_S: Final = 100.0
"""Lease of a participant that does not announce one, s (DDSI-RTPS 2.5, table 9.13)."""
MAX_PARAMETER_BYTES: Final = 64 << 10
"""Longest parameter list, bytes."""
MAX_PARAMETERS: Final = 512
"""Limit of the parameters in a list."""
MAX_NAME_BYTES: Final = 256
"""Longest name of a topic or type with its NUL, bytes."""
MAX_USER_DATA_BYTES: Final = 1024
"""Longest user data, bytes."""
MAX_LOCATORS: Final = 16
"""Limit of the locators of one kind that are read from an announcement."""
MAX_GREETED_LOCATORS: Final = 4
"""Limit of an unverified participant's locators to which greetings are sent."""
MAX_AMPLIFICATION: Final = 3
"""Limit of the bytes that are sent to an unverified participant, per byte of its announcements.

An announcement may be forged, with the address of a victim. QUIC has the same limit
before a path is validated (RFC 9000, §8.1).
"""

# -- received data

MAX_SAMPLE_BYTES: Final = 8 << 20
"""Default limit of a sample that a reader accepts, bytes."""
MAX_HELD_SAMPLES: Final = 256
"""Limit of a remote writer's samples that wait for a missing one."""
MAX_HELD_BYTES: Final = 4 << 20
"""Limit of a remote writer's samples that wait for a missing one, bytes."""
MAX_TOTAL_HELD_BYTES: Final = 32 << 20
"""Limit of the waiting samples of all remote writers together, bytes.

The writers of one address have a quarter of it.
"""
HELD_OVERHEAD_BYTES: Final = 512
"""Number of bytes by which a waiting or incomplete sample counts more than its size."""
MAX_ASSEMBLIES: Final = 16
"""Limit of a writer's samples that are reassembled from fragments at a time."""
MAX_ASSEMBLY_BYTES: Final = 32 << 20
"""Limit of all samples that are reassembled at a time, bytes.

The writers of one address have a quarter of it. One sample of the length that its
reader allows always fits.
"""
ASSEMBLY_TIMEOUT_S: Final = 5.0
"""Time without a new fragment after which an incomplete sample is dropped, s.

A reliable reader requests it again.
"""
MIN_FRAGMENT_BYTES: Final = 64
"""Smallest fragment size that is accepted, bytes."""
MAX_SET_BITS: Final = 256
"""Limit of the bits in a number set (DDSI-RTPS 2.5, §9.4.2.6)."""
ANNOUNCEMENTS_PER_S: Final = 50.0
"""Rate limit of changed participant announcements from one address, 1/s."""

# -- sent data

MAX_DATAGRAM_BYTES: Final = 8192
"""Longest datagram to another host, bytes."""
MAX_LOCAL_DATAGRAM_BYTES: Final = 60000
"""Longest datagram to a program of this host, bytes."""
MAX_DATA_BYTES: Final = 8000
"""Longest sample that is sent in one piece, bytes.

With all headers it fits into a datagram to another host.
"""
MAX_LOCAL_DATA_BYTES: Final = 59000
"""Longest sample that is sent in one piece if all readers are on this host, bytes."""
FRAGMENT_BYTES: Final = 1344
"""Fragment size, bytes: a fragment fits into an Ethernet frame."""
LARGE_SAMPLE_BYTES: Final = 1 << 20
"""Size from which a sample is cut into larger fragments, bytes.

A request for fragments names at most 256 of them.
"""
LARGE_FRAGMENT_BYTES: Final = 6 * FRAGMENT_BYTES
"""Fragment size of large samples, bytes."""
LOCAL_FRAGMENT_BYTES: Final = 58 << 10
"""Fragment size if the reader is on this host, bytes: a fragment fills a datagram.

A request then names all fragments of a sample of up to 15 MB.
"""
MAX_FRAGMENTS_AGAIN: Final = 256
"""Limit of the fragments that are sent again for one request."""
PACE_BYTES_PER_S: Final = 64_000 / 0.005
"""Sustained rate to one address, bytes/s."""
LOCAL_PACE_BYTES_PER_S: Final = 10 * PACE_BYTES_PER_S
"""Sustained rate to one address of this host, bytes/s.

It is higher, because there are no switches whose queues fill, and a program that waits
for data runs within fractions of a millisecond.
"""
PACE_BURST_BYTES: Final = 64_000
"""Burst to one address, bytes; it fits into a default socket buffer."""
MAX_SPREAD_S: Final = 0.05
"""Longest time over which a burst longer than `PACE_BURST_BYTES` is spread, s."""
MAX_QUEUED_BYTES: Final = 2 << 20
"""Limit of the queued bytes for one address.

A queue builds up, for example, when a delayed simulator catches up with its steps. Data
that does not fit is dropped, and reliable readers request it again.
"""
MAX_TOTAL_QUEUED_BYTES: Final = 64 << 20
"""Limit of the queued bytes for all addresses together."""
RESEND_BYTES_PER_S: Final = 1 << 20
"""Sustained rate of repeated data to one reader, bytes/s.

Data that is sent for the first time does not count.
"""
RESEND_BURST_BYTES: Final = 1 << 20
"""Burst of repeated data to one reader, bytes."""
LOCAL_RESEND_FACTOR: Final = 16
"""Factor of `RESEND_BYTES_PER_S` and `RESEND_BURST_BYTES` for fragments to a reader on this host.

Fragments to this host use no network, and cost less time per byte than short samples.
"""
MAX_HISTORY_BYTES: Final = 256 << 20
"""Limit of the bytes in a writer's history; the newest sample is always kept."""
MIN_KEPT_S: Final = 0.25
"""Shortest time for which a reliable volatile writer keeps a sample, s.

The writer keeps samples for this time even beyond its depth. Otherwise, with a depth of
ten and 1 kHz, a sample would be dropped before a reader can request it again.
"""
MAX_YOUNG_BYTES: Final = 1 << 20
"""Limit of the bytes that a writer's history keeps because of `MIN_KEPT_S`."""
MAX_DISPOSALS: Final = 4096
"""Limit of the kept disposals of local endpoints that not all peers have acknowledged."""
MAX_GREETINGS: Final = 8
"""Limit of greetings to a participant that does not answer; see `Discovery._greet`.

Greetings start again after the next announcement of the participant.
"""
MAX_UNANSWERED: Final = 10
"""Number of unanswered HEARTBEATs after which a writer keeps no samples for a reader.

When the reader answers again, the writer keeps samples for it again.
"""
MAX_AT_ONCE: Final = 256
"""Number of endpoints that one call handles besides the endpoints in its packet.

The next call handles further endpoints.
"""
MAX_EVENTS: Final = 256
"""Limit of the events in the buffer; the oldest are dropped."""
