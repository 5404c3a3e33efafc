"""`botyard packets`: print a recording in words, and replay it as a client."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import botyard
from botyard.cli.packets import command as packets
from botyard.clients.pioneer import PioneerClient
from botyard.clients.trace import Passed, TracePlayer, trace_of
from botyard.control import SetSpeed, StartRecording, StopRecording
from botyard.errors import BotyardError, PeerError
from botyard.interfaces.pioneer.tracefile import read_trace
from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.packet import command, frame
from tests.waiting import wait


def told(path: Path, *lines: dict[str, object]) -> list[str]:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = CliRunner().invoke(
        packets, [str(path)], catch_exceptions=False, standalone_mode=False
    )
    assert result.exit_code == 0
    return result.output.splitlines()


def line(
    data: bytes, who: str = "client", session: int = 1, robot: str = "ann"
) -> dict[str, object]:
    return {
        "robot": robot,
        "session": session,
        "sim": 0.1,
        "wall": 0.1,
        "from": who,
        "data": data.hex(),
    }


def names(lines: list[str]) -> list[str]:
    return [text.split(" → ")[1].split(" (")[0] for text in lines]


def test_numbers_0_to_2_are_named_by_where_the_session_stands(tmp_path: Path) -> None:
    talk = [
        frame(0),
        frame(0),
        frame(1),
        frame(2),
        frame(0),
        frame(1),
        frame(2),
        frame(1),
        frame(0),
        frame(1),
        frame(2),
        frame(0),
    ]
    lines = told(tmp_path / "a", *(line(data) for data in talk))
    assert names(lines) == [
        "SYNC0",
        "SYNC0",
        "SYNC1",
        "SYNC2",
        "SYNC0",
        "SYNC1",
        "SYNC2",
        "OPEN",
        "PULSE",
        "OPEN",
        "CLOSE",
        "PULSE",
    ]


def test_commands_before_open_and_in_one_piece(tmp_path: Path) -> None:
    lines = told(
        tmp_path / "a",
        line(frame(0) + frame(1) + frame(2) + command(18) + command(4, 1)),
        line(command(1, 1) + command(11, 100) + command(2) + command(99)),
    )
    assert names(lines) == [
        "SYNC0",
        "SYNC1",
        "SYNC2",
        "CONFIG",
        "ENABLE",
        "OPEN",
        "VEL",
        "CLOSE",
        "99",
    ]


def test_sessions_are_told_apart_and_foreign_names_shown(tmp_path: Path) -> None:
    lines = told(
        tmp_path / "a",
        line(frame(0)),
        line(frame(0), session=2),
        line(frame(1), robot="a\nb\x1b[2J"),
    )
    assert names(lines) == ["SYNC0", "SYNC0", "SYNC1"]
    assert "a\\nb\\x1b[2J #1" in lines[2]


def test_gaps_are_told(tmp_path: Path) -> None:
    lines = told(tmp_path / "a", line(frame(0)), {"lost": 12, "sim": 3.5, "wall": 3.5})
    assert (
        lines[1]
        == "    3.500 12 lines are missing here: the recorder could not write them"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "7",
        "[" * 100_000,
        '{"session": 1e999}',
        '{"lost": "x", "sim": 1}',
        '{"lost": 1}',
        "\udcff",
    ],
)
def test_nonsense_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    from botyard.errors import FormatError

    (tmp_path / "a").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(FormatError):
        CliRunner().invoke(
            packets,
            [str(tmp_path / "a")],
            catch_exceptions=False,
            standalone_mode=False,
        )


# -- playing a recording


def office(trace: Path | None = None) -> tuple[botyard.Simulation, dict[str, object]]:
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx-sh", "ann", pose=(10.0, 14.0, 0.0))
    options: dict[str, object] = {"page": False, "discovery": False}
    return sim, options | ({"record_packets": str(trace)} if trace else {})


def test_a_recorded_client_is_played_against_another_robot(tmp_path: Path) -> None:
    """The replay ends at the recorded place.

    The other world runs a little faster, so that a busy machine does not cut its paths
    short.
    """
    trace = tmp_path / "trace.jsonl"
    sim, options = office(trace)
    with (
        botyard.serve(sim, port=0, **options) as one,
        PioneerClient("127.0.0.1", one.ports["ann"].port) as client,
    ):
        client.enable()
        client.move(400)
        while client.x_mm < 385 or client.vel_mm_s:
            client.update()
        client.dhead(30)
        while client.th_deg < 28.5 or client.rot_vel_deg_s:
            client.update()
        for _ in range(4):
            client.update()
        last = client.sip

    sim, options = office()
    with botyard.serve(sim, port=0, **options) as two:
        two.do(SetSpeed(speed=1.5))
        address = f"127.0.0.1:{two.ports['ann'].port}"
        result = CliRunner().invoke(
            packets,
            [str(trace), "--play", address],
            catch_exceptions=False,
            standalone_mode=False,
        )
        assert result.exit_code == 0

    *lines, summary = result.output.splitlines()
    for name in ("SYNC2", "OPEN", "ENABLE", "MOVE", "DHEAD"):
        assert any(f"→ {name} (" in line for line in lines), name
    assert sum("← SIP" in line for line in lines) > 10
    found = re.search(
        r"wire\): (-?\d+) (-?\d+) (-?\d+), recorded (-?\d+) (-?\d+) (-?\d+)", summary
    )
    assert found is not None
    here, there = (
        [int(n) for n in found.groups()[:3]],
        [int(n) for n in found.groups()[3:]],
    )
    assert there == [last.x, last.y, last.th]
    assert here == pytest.approx(there, abs=20), (
        "15 mm and 1.5 degrees (units of 0.00153 rad)"
    )


def test_a_recording_has_the_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With packets requested, a recording has the same pieces as the file of packets.

    A recording that starts within a session knows that it is open.
    """
    monkeypatch.chdir(tmp_path)
    sim, options = office(tmp_path / "trace.jsonl")
    sim.add_robot("p3dx", "bob", pose=(12.0, 14.0, 0.0))
    recorded = {
        "record": str(tmp_path / "run.mcap"),
        "record_robots": ["ann"],
        "record_split_time": 0.5,
    }
    with botyard.serve(sim, port=0, **options, **recorded) as one:
        with (
            PioneerClient("127.0.0.1", one.ports["bob"].port) as other,
            PioneerClient("127.0.0.1", one.ports["ann"].port) as client,
        ):
            client.enable()
            client.move(300)
            while client.x_mm < 285 or client.vel_mm_s:
                client.update()
            other.update()
            one.do(StopRecording())
            late = one.do(StartRecording(recording="late"))
            client.send(C.PULSE)
            client.vel(0)
            client.update()

        wait(lambda: not one.call(lambda: sim.robots["ann"].clients))

    files = ["run.mcap", *sorted(p.name for p in tmp_path.glob("run_*.mcap"))]
    assert len(files) > 1
    in_recordings = [one for name in files for one in read_trace(str(tmp_path / name))]
    in_lines = [
        one
        for one in read_trace(str(tmp_path / "trace.jsonl"))
        if isinstance(one, Passed) and one.robot == "ann"
    ]
    pieces = [
        (one.session, one.from_client, one.data)
        for one in in_recordings
        if isinstance(one, Passed)
    ]
    assert (
        len(pieces) > 10
        and pieces
        == [(one.session, one.from_client, one.data) for one in in_lines][: len(pieces)]
    )
    assert [one.order for one in in_recordings if isinstance(one, Passed)] == list(
        range(len(pieces))
    )
    result = CliRunner().invoke(
        packets,
        [str(late), "--robot", "ann"],
        catch_exceptions=False,
        standalone_mode=False,
    )
    assert not result.exit_code and "SYNC" not in result.output
    assert names([text for text in result.output.splitlines() if "→" in text])[:2] == [
        "PULSE",
        "VEL",
    ]
    assert (
        " bob #"
        in CliRunner().invoke(packets, [str(late)], standalone_mode=False).output
    )
    whole = tmp_path / "cut.mcap"
    whole.write_bytes(late.read_bytes()[:-40])
    result = CliRunner().invoke(
        packets, [str(whole)], catch_exceptions=False, standalone_mode=False
    )
    assert "the file was cut short" in result.stderr and "PULSE" in result.stdout


@pytest.mark.parametrize(
    ("topics", "has_packets"),
    [(["*"], True), (["/tf", "/botyard/packets"], True), ([], False), (["/tf"], False)],
)
def test_packets_are_recorded_if_their_topic_is_named(
    topics: list[str], has_packets: bool, tmp_path: Path
) -> None:
    sim, options = office()
    path = tmp_path / "run.mcap"
    with (
        botyard.serve(
            sim, port=0, **options, record=str(path), record_topics=topics
        ) as one,
        PioneerClient("127.0.0.1", one.ports["ann"].port) as client,
    ):
        client.update()

    assert (
        any(
            isinstance(one, Passed) and one.from_client for one in read_trace(str(path))
        )
        == has_packets
    )


def test_packets_that_a_recording_lacks_are_told(tmp_path: Path) -> None:
    sim, _ = office()
    recording = sim.record(tmp_path / "run.mcap")
    recording._writer.lost["packets"] = 3  # type: ignore[attr-defined]
    sim.step(2)
    recording.close()
    result = CliRunner().invoke(
        packets,
        [str(tmp_path / "run.mcap")],
        catch_exceptions=False,
        standalone_mode=False,
    )
    assert (
        result.output.split(maxsplit=1)[1]
        == "3 packets are missing here: the recorder could not write them\n"
    )


def test_the_player_waits_for_the_handshake_and_keeps_the_times() -> None:
    """Repeated packets of the handshake are sent once.

    The replay ends with the recording.
    """
    talk = [
        passed(frame(0) + frame(0) + frame(1), 0.0),
        passed(frame(2) + command(C.OPEN, 1), 0.3),
        passed(command(C.VEL, 100), 0.9),
        passed(b"", 2.3),
    ]
    trace = trace_of(talk)
    assert [data for _, data in trace.sent] == [command(C.OPEN, 1), command(C.VEL, 100)]
    assert [at for at, _ in trace.sent] == pytest.approx(
        [0.0, 0.6]
    ) and trace.lasts == pytest.approx(2.0)
    player, now = TracePlayer(trace, speed=2.0), 100.0
    for number in range(3):
        assert player.send(now) == frame(number) and player.send(now) == b""
        now = player.next_time(now) - 1.0
        player.feed_bytes(frame(number), now)

    assert player.send(now) == command(C.OPEN, 1)
    assert player.next_time(now) == pytest.approx(now + 0.3)
    said = [player.send(now + later) for later in (0.29, 0.31, 0.99, 1.01)]
    assert said == [b"", command(C.VEL, 100), b"", b""] and player.next_time(
        now + 0.31
    ) == pytest.approx(now + 1.0)
    assert player.is_over
    silent = TracePlayer(trace)
    silent.send(0.0)
    with pytest.raises(PeerError, match="an answer to packet 0"):
        silent.send(silent.next_time(0.0))


def test_a_silent_client_is_kept_alive() -> None:
    opened = passed(frame(0) + frame(1) + frame(2) + command(C.OPEN), 0.0)
    player = TracePlayer(trace_of([opened, passed(command(C.STOP), 5.0)]))
    for number in range(3):
        player.send(0.0)
        player.feed_bytes(frame(number), 0.0)

    now, said = 0.0, [player.send(0.0)]
    while not player.is_over:
        now = player.next_time(now)
        said.append(player.send(now))

    assert now == 5.0 and said == [
        command(C.OPEN),
        *[command(C.PULSE)] * 4,
        command(C.STOP),
    ]


def passed(data: bytes, at: float) -> Passed:
    return Passed("ann", 1, at, at, True, data)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--play", "nowhere"], "expected HOST:PORT"),
        (["--play", "localhost:0"], "expected HOST:PORT"),
        (
            ["--play", "localhost:1"],
            r"expected one session, found 1 \(ann\), 2 \(ann\)",
        ),
        (
            ["--play", "localhost:1", "--session", "7"],
            "expected one session, found none",
        ),
        (["--play", "127.0.0.1:1", "--session", "2"], "no robot at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_played(tmp_path: Path, options: list[str], error: str) -> None:
    (tmp_path / "a").write_text(
        "".join(json.dumps(line(frame(0), session=n)) + "\n" for n in (1, 2))
    )
    with pytest.raises(BotyardError, match=error):
        CliRunner().invoke(
            packets,
            [str(tmp_path / "a"), *options],
            catch_exceptions=False,
            standalone_mode=False,
        )
