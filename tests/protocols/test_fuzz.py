"""No bytes of a client raise, end a session or stop the reports.

Where atheris runs, fuzzing is guided by coverage.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botyard.geometry import Pose
from botyard.protocols.pioneer.commands import C, Ctrl
from botyard.protocols.pioneer.packet import frame, int_argument
from botyard.sim.simulation import Simulation
from tests.protocols.lines import Client


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redirect pictures of a fuzzed SIM_CTRL 8 to a folder of the test."""
    monkeypatch.chdir(tmp_path)


CLOSING = {C.CLOSE}
numbers = st.sampled_from([c for c in C if c not in CLOSING]) | st.integers(
    0, 255
).filter(lambda n: n not in CLOSING)
arguments = st.one_of(
    st.just(b""),
    st.integers(-65535, 65535).map(int_argument),
    st.builds(
        lambda n, i: int_argument(n) + bytes((i,)),
        st.integers(-200, 200),
        st.integers(0, 3),
    ),
    st.builds(
        lambda op, data: b"\x3b" + int(op).to_bytes(2, "little") + data,
        st.sampled_from([o for o in Ctrl if o is not Ctrl.SNAPSHOT]),
        st.binary(max_size=12),
    ),
    st.binary(max_size=190),
)
sequences = st.lists(st.tuples(numbers, arguments), min_size=1, max_size=30)

_SETTINGS = [
    {},
    {"laser_compat": False, "gripper_layout": "p2os"},
    {"srisim_compat": True, "warn_unsupported": True, "log_packets": True},
]
_MODELS = [
    "p3dx-equipped",
    "p3dx-with-rear-laser",
    "peoplebot-sh",
    "seekur",
    "pioneer-lx",
]


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    sequences, st.sampled_from(_MODELS), st.sampled_from(_SETTINGS), st.integers(1, 3)
)
def test_any_commands_in_any_order(
    commands: list[tuple[int, bytes]], model: str, options: dict, gap: int
) -> None:
    sim = Simulation()
    sim.add_robot(model, "r", pose=Pose())
    sim.add_robot("small-box", "box", pose=Pose(0.3, 0.0, 0.0))
    c = Client(sim=sim, **options)
    for i, (number, data) in enumerate(commands):
        c.line.send(frame(number, data))
        if i % gap == 0:
            c.run(0.1)

    reports = [p for p in c.run(0.3) if p.id == 0x32]
    assert not c.line.closed
    assert len(reports) == 3
    assert not any("internal error" in text for text in c.log), c.log


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.binary(max_size=80) | st.builds(frame, numbers, st.binary(max_size=20)),
        max_size=20,
    )
)
def test_any_bytes_before_and_in_a_session(chunks: list[bytes]) -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "r", pose=Pose())
    c = Client(sim=sim)
    fresh = c.sim.add_robot("amigo", "other")
    line = c.modem.connect(fresh.name)
    for chunk in chunks:
        line.send(chunk)
        c.line.send(chunk.replace(frame(2), b""))
        c.modem.run(0.1)

    assert not any("internal error" in text for text in [*c.log, *line.log])
    if not c.line.closed:
        assert c.run(0.3)


def test_reports_stay_within_their_fields_in_extreme_states() -> None:
    """Huge poses, odometry and speeds: integers saturate or wrap, and nothing raises."""
    c = Client("seekur")
    c.send(237, 2)
    for value in (2**31 - 1, -(2**31)):
        c.line.send(frame(224, b"\x3b" + value.to_bytes(4, "little", signed=True) * 3))
        c.line.send(frame(7, b"\x3b" + (32767).to_bytes(2, "little") * 3))
        assert {p.id for p in c.run(0.2)} >= {0x32, 0x62}

    assert not any("internal error" in text for text in c.log)


@pytest.mark.peer
def test_coverage_guided_fuzzing(tmp_path: Path) -> None:
    """A bounded run of atheris over parser, session and commands, in a separate
    process.
    """
    if importlib.util.find_spec("atheris") is None:
        if os.environ.get("CI"):
            pytest.fail("atheris is missing, and in CI it must be there")
        pytest.skip("atheris has no wheel for this platform")

    target = Path(__file__).with_name("fuzz_session.py")
    # A process in between is needed: Linux counts a parent's memory to the child's
    # peak, and libFuzzer stops at a limit of it.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))",
            sys.executable,
            str(target),
            "-runs=20000",
            "-max_total_time=40",
            "-max_len=400",
            "-len_control=0",
            "-seed=1",
        ],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr
