"""Participants that come and go on lossy sockets, and the memory of one that stays; see
`tests.servers.rtps_churn`.

It runs for 20 s; ``BOTYARD_CHURN_S=600``, as in ``make test-long``, runs longer.
"""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from tests.servers.rtps_churn import Tally, come_and_go

SECONDS = float(os.environ.get("BOTYARD_CHURN_S", "20"))
LEASE_S = 6.0
OF_OTHERS = (
    "peers",
    "endpoints",
    "reader proxies",
    "writer proxies",
    "routes",
    "destinations",
    "busy",
    "queued",
    "asking",
    "waiting",
    "assemblies",
    "held",
)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_stays_of_those_who_have_gone() -> None:
    """All get their data although every twentieth packet is lost.

    Afterwards nothing is kept of them, and memory is back at its start.
    """
    tally = Tally()
    asyncio.run(come_and_go(180, LEASE_S, SECONDS, tally))
    first, last = tally.counts[0], tally.counts[-1]
    assert tally.lives >= SECONDS / 5.0
    assert tally.killed and last["met"] >= tally.lives
    assert last["taken"] >= 2 * tally.lives and last["malformed"] == 0
    assert max(c["peers"] for c in tally.counts) > 1
    assert {name: last[name] for name in OF_OTHERS} == dict.fromkeys(OF_OTHERS, 0)
    assert last["files"] <= first["files"] and last["timers"] <= first["timers"] + 2
    assert last["kept"] <= 2 + 5 * 20, (
        "a map, a response, and what is young of the streams"
    )
    warm = max(c["rss_kib"] for c in tally.counts[: len(tally.counts) // 2])
    assert max(c["rss_kib"] for c in tally.counts) < warm + 4096
