"""Bounds of an RTPS participant: what peers can make it keep, send or compute."""

from __future__ import annotations

from typing import Final

# -- what is kept of peers

MAX_PARTICIPANTS: Final = 256
"""Most remote participants. When all places are taken, the address that has most of
them gives one up for one that has fewer, and among participants of one address those
give way that have matched nothing of ours.
"""
IDLE_S: Final = 5.0
"""A participant that has matched nothing of ours for this long, s, gives way."""
MAX_PEER_ENDPOINTS: Final = 4096
"""Most endpoints of one participant."""
MAX_ENDPOINTS: Final = 16384
"""Most remote endpoints in all. When all places are taken, the address that has most of
them gives one up for one that has fewer, and of an address the participant that has
most.
"""
MAX_PEER_ADDRESSES: Final = 8
"""Most addresses that samples are sent to for one participant: each gets a datagram of
its own.
"""
MAX_IGNORED: Final = 1024
"""Most participants that are remembered as not served."""
MAX_LEASE_S: Final = 300.0
"""Longest lease that is granted, s: a participant may ask for an infinite one, but all
announce themselves more often than this.
"""
DEFAULT_LEASE_S: Final = 100.0
"""Lease of a participant that names none (DDSI-RTPS 2.5, table 9.13)."""
MAX_PARAMETER_BYTES: Final = 64 << 10
"""Longest parameter list, bytes."""
MAX_PARAMETERS: Final = 512
"""Most parameters of a list."""
MAX_NAME_BYTES: Final = 256
"""Longest name of a topic or type with its NUL, bytes."""
MAX_USER_DATA_BYTES: Final = 1024
"""Longest user data, bytes."""
MAX_LOCATORS: Final = 16
"""Most locators of a kind that are read."""
MAX_GREETED_LOCATORS: Final = 4
"""Most locators of an unverified participant that something is sent to."""
MAX_AMPLIFICATION: Final = 3
"""Bytes that an unverified participant is sent for each byte of its announcements: it
may have announced somebody else's address (QUIC has the same before a path is
validated: RFC 9000, §8.1).
"""

# -- what is received

MAX_SAMPLE_BYTES: Final = 8 << 20
"""Longest sample that a reader takes if it does not say otherwise, bytes."""
MAX_HELD_SAMPLES: Final = 256
"""Most samples of a writer that are held behind a missing one."""
MAX_HELD_BYTES: Final = 4 << 20
"""The same in bytes."""
MAX_TOTAL_HELD_BYTES: Final = 32 << 20
"""The same of all writers together; of those of one address a quarter."""
HELD_OVERHEAD_BYTES: Final = 512
"""A held sample, or one that is put together, counts so many bytes more than it has."""
MAX_ASSEMBLIES: Final = 16
"""Most samples of a writer that are put together from fragments at a time."""
MAX_ASSEMBLY_BYTES: Final = 32 << 20
"""Bytes of all samples that are put together from fragments at a time, of those of one
address a quarter; one sample as long as its reader allows always fits.
"""
ASSEMBLY_TIMEOUT_S: Final = 5.0
"""A sample of which no fragment has come for this long, s, is given up; a reliable
reader asks for it again.
"""
MIN_FRAGMENT_BYTES: Final = 64
"""Shortest fragment size that is taken, bytes."""
MAX_SET_BITS: Final = 256
"""Most bits of a number set (DDSI-RTPS 2.5, §9.4.2.6)."""
ANNOUNCEMENTS_PER_S: Final = 50.0
"""Participant announcements with news per second from one address."""

# -- what is sent

MAX_DATAGRAM_BYTES: Final = 8192
"""Longest datagram to another host, bytes."""
MAX_LOCAL_DATAGRAM_BYTES: Final = 60000
"""Longest datagram to a program of this host, bytes."""
MAX_DATA_BYTES: Final = 8000
"""Longest sample that is sent in one piece, bytes: with all headers it fits into a
datagram to another host.
"""
MAX_LOCAL_DATA_BYTES: Final = 59000
"""The same when all readers are on this host."""
FRAGMENT_BYTES: Final = 1344
"""Fragment size, bytes: a fragment fits into an Ethernet frame."""
LARGE_SAMPLE_BYTES: Final = 1 << 20
"""From this size on, bytes, a sample is cut into larger fragments: a request for
fragments names at most 256 of them.
"""
LARGE_FRAGMENT_BYTES: Final = 6 * FRAGMENT_BYTES
"""The larger fragment size, bytes."""
MAX_FRAGMENTS_AGAIN: Final = 256
"""Most fragments that are sent again for one request."""
PACE_BYTES_PER_S: Final = 64_000 / 0.005
"""Sustained rate to one address, bytes/s."""
PACE_BURST_BYTES: Final = 64_000
"""Burst to one address, bytes: it fits into a default socket buffer."""
MAX_SPREAD_S: Final = 0.05
"""Longest time over which a longer burst is spread, s."""
MAX_QUEUED_BYTES: Final = 2 << 20
"""Bytes that wait for one address, for example while a simulator that was held up makes
the steps that it is behind with; what does not fit is dropped, and reliable readers ask
for it again.
"""
MAX_TOTAL_QUEUED_BYTES: Final = 64 << 20
"""The same for all addresses together."""
RESEND_BYTES_PER_S: Final = 1 << 20
"""Sustained rate of resending to one reader, bytes/s; what it gets for the first time
is not counted.
"""
RESEND_BURST_BYTES: Final = 1 << 20
"""The same: burst, bytes."""
MAX_HISTORY_BYTES: Final = 256 << 20
"""Bytes that a writer keeps; the newest sample is always kept."""
MIN_KEPT_S: Final = 0.25
"""A reliable volatile writer keeps a sample for this long, s, even if more than its
depth have come since: at 1 kHz the last ten would be gone before a reader can ask for
one.
"""
MAX_YOUNG_BYTES: Final = 1 << 20
"""Bytes of a writer's history up to which samples are kept for that reason."""
MAX_DISPOSALS: Final = 4096
"""Most endpoints of ours that have gone and of which not every participant knows so."""
MAX_GREETINGS: Final = 8
"""Greetings to a participant that does not answer, after which its next announcement is
waited for.
"""
MAX_UNANSWERED: Final = 10
"""A reader that has not answered so many heartbeats keeps nothing from being dropped,
until it speaks.
"""
MAX_AT_ONCE: Final = 256
"""Endpoints that one call matches, unmatches, asks or reminds beyond what its packet
names: the next call goes on.
"""
MAX_EVENTS: Final = 256
"""Events that are kept until somebody asks for them; then the oldest are dropped."""
