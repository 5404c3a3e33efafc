"""The log: formats, files, and no waiting of the simulator for a disk or terminal."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from botyard import __version__
from botyard.cli import logs, run
from botyard.cli.daemon import _free_log_file
from botyard.cli.logs import set_up_logging
from botyard.cli.run import _say_ready
from botyard.errors import CommandLineError, ExitCode
from botyard.processes.safefile import Hold
from botyard.servers.pioneer.connection import RobotLog
from tests.cli.test_cli import FAST, call
from tests.ports import free_port
from tests.running import running
from tests.waiting import Stalls, wait

log = logging.getLogger("botyard.test")


def test_plain_lines_have_time_level_and_text(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("of an earlier run\n")
    made = set_up_logging(file=str(file))
    log.info("hello %d", 5)
    log.debug("nobody asked")
    made.close()
    earlier, line = file.read_text().splitlines()
    assert earlier == "of an earlier run"
    assert line.endswith("INFO    hello 5")
    assert len(line.split(" ")[0]) == len("2026-01-01")


def test_html_escapes_what_clients_say(tmp_path: Path) -> None:
    made = set_up_logging(file=str(tmp_path / "a.html"), form="html")
    log.warning("the client says: %s", "<script>&")
    made.close()
    text = (tmp_path / "a.html").read_text()
    assert text.startswith('<span class="stage-log stage-log-Warning warning">')
    assert "&lt;script&gt;&amp;" in text
    assert "<script>" not in text


def test_json_lines(tmp_path: Path) -> None:
    made = set_up_logging(file=str(tmp_path / "a.json"), form="json", verbose=True)
    log.debug("two\nlines")
    try:
        raise ValueError("raised for the log")
    except ValueError:
        log.exception("it failed")

    RobotLog(log, {"robot": "ann"}).info("hello")
    made.close()
    first, second, third = (
        json.loads(line) for line in (tmp_path / "a.json").read_text().splitlines()
    )
    assert (first["level"], first["source"], first["text"]) == (
        "debug",
        "botyard.test",
        "two\nlines",
    )
    assert abs(first["time"] - time.time()) < 60
    assert second["text"].startswith("it failed\nTraceback")
    assert second["text"].endswith("ValueError: raised for the log")
    assert "robot" not in first
    assert (third["robot"], third["text"]) == ("ann", "ann: hello"), (
        "for programs that look for a robot"
    )


def test_less_and_more_verbose(tmp_path: Path) -> None:
    made = set_up_logging(file=str(tmp_path / "a.log"), quiet=True)
    log.info("not said")
    log.warning("said")
    made.close()
    assert "not said" not in (tmp_path / "a.log").read_text()
    assert "said" in (tmp_path / "a.log").read_text()


def test_five_old_files_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    made = set_up_logging(file=str(file), max_size=200)
    for k in range(201):
        log.info("line %d of the log", k)
    made.flush()
    made.rotate()
    log.info("after")
    made.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "a.log",
        *(f"a.log-{n}" for n in range(1, 6)),
    ]
    (line,) = file.read_text().splitlines()
    assert line.endswith("after"), "the file was started anew"


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("--noninteractive", 5_000_000),
        ("--no-gui", 5_000_000),
        ("", 0),
        ("--noninteractive --log-file-max-size 0", 0),
        ("--noninteractive --log-file-max-size 70", 70),
        ("--log-file-max-size 70", 70),
    ],
)
def test_the_size_of_log_files(
    options: str,
    size: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """CLI-026: 5 MB (10⁶ bytes) without a terminal, otherwise unlimited."""
    file = tmp_path / "a.log"

    def log_much(*_: object) -> int:
        for _ in range(2):
            log.info("x" * 40)
        (root,) = logging.getLogger("botyard").handlers
        root.flush()
        handlers.append(root._target)
        return 0

    handlers: list[Any] = []
    monkeypatch.setattr(run, "_simulate", log_much)
    code, _, err = call(
        "--nomap",
        *options.split(),
        "--no-crash-restart",
        "-l",
        str(file),
        capsys=capsys,
    )
    assert code == 0, err
    assert [handler.maxBytes for handler in handlers] == [size]
    assert file.with_name("a.log-1").exists() == (size == 70)


def test_a_stuck_disk_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named pipe without a reader stands for a disk that does not answer."""
    monkeypatch.setattr(logs, "WAITING", 50)
    monkeypatch.setattr(logs, "CLOSE_TIMEOUT_S", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    target = logging.StreamHandler(os.fdopen(os.open(pipe, os.O_WRONLY), "w"))
    made = logs.Logs(target)
    root = logging.getLogger("botyard")
    root.handlers[:] = [made]
    root.setLevel(logging.INFO)
    begin, stalls = time.monotonic(), Stalls()
    for _ in range(3000):
        log.info("x" * 1000)
    assert time.monotonic() - begin < 5.0 + stalls.end()
    assert made.lost > 1000
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                seen.append(os.read(reader, 1 << 16))
            except BlockingIOError:
                time.sleep(0.01)

    seen: list[bytes] = []
    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: len(seen) > 1)
    log.info("it goes on")
    made.close()
    target.stream.close()
    wait(lambda: b"it goes on" in b"".join(seen))
    stop.set()
    thread.join()
    os.close(reader)
    text = b"".join(seen).decode()
    assert "log lines were lost" in text
    assert "it goes on" in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_costs_lines_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = call(
        "--nomap",
        *FAST,
        str(free_port()),
        "--log-file",
        "/dev/full",
        "--log-file-max-size",
        "0",
        "--log-timing-stats",
        "0.1",
        capsys=capsys,
    )
    assert (code, "ready" in out) == (0, True)


def test_a_closed_log_is_not_waited_for(tmp_path: Path) -> None:
    """Python flushes all handlers at its end."""
    made = set_up_logging(file=str(tmp_path / "a.log"))
    made.close()
    begin, stalls = time.monotonic(), Stalls()
    made.flush()
    made.close()
    assert time.monotonic() - begin < 0.5 + stalls.end()


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CommandLineError, match="--log-file: cannot write"):
        set_up_logging(file=str(tmp_path / "nowhere" / "a.log"))


def test_a_log_that_another_simulator_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two simulators would mix their lines and rename each other's old files."""
    file = tmp_path / "a.log"
    with running("--nomap", "--no-gui", "-p", str(free_port()), "-l", str(file)):
        # A thread writes the log; this is its last line.
        wait(lambda: "seed 1" in file.read_text())
        before = file.read_text()
        code, _, err = call(
            "--nomap", "-l", str(file), *FAST, str(free_port()), capsys=capsys
        )
        assert (
            code == ExitCode.COMMAND_LINE and "a.log: is already being written" in err
        )
        assert file.read_text() == before

    code, _, err = call(
        "--nomap", "-l", str(file), *FAST, str(free_port()), capsys=capsys
    )
    assert code == 0 and file.read_text().startswith(before), "it was released"
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".lock"] == []


def test_a_log_can_be_set_up_again(tmp_path: Path) -> None:
    set_up_logging(file=str(tmp_path / "a.log"))
    set_up_logging(file=str(tmp_path / "a.log")).close()


def test_each_simulator_in_the_background_has_a_log_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _free_log_file() == "botyard.log"
    with Hold("botyard.log"):
        assert _free_log_file() == "botyard-2.log"
        with Hold("botyard-2.log"):
            assert _free_log_file() == "botyard-3.log"


def test_timing_statistics_and_html_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.html"
    args = (
        "--nomap",
        "--duration",
        "1.0",
        "--noninteractive",
        "-p",
        str(free_port()),
        "--html",
        "-l",
        str(file),
    )
    code, _, _ = call(*args, "--log-timing-stats", "0.3", capsys=capsys)
    assert code == 0
    assert "steps of" in file.read_text()
    assert "<br>" in file.read_text()


def test_what_runs_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "-r",
        "amigo:bob",
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert code == 0
    line = next(text for text in err.splitlines() if "Python 3." in text)
    assert f"botyard {__version__} (" in line
    assert "office.map, robots: ann (p3dx), bob (amigo), seed 1" in line


def test_libraries_log_through_ours_and_at_a_rate(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No library bypasses the log, whatever peers provoke.

    It has at most one line a second, which counts the others.
    """
    file = tmp_path / "a.log"
    made = set_up_logging(file=str(file))
    made.libraries._clock = lambda: now[0]
    now = [100.0]
    for name in ("websockets.server", "asyncio", "zeroconf", "uvicorn.error"):
        for number in range(600):
            try:
                raise ValueError(f"wrong {number}")
            except ValueError:
                logging.getLogger(name).exception("Invalid %s", "bytes")

    now[0] += 1.0
    logging.getLogger("asyncio").error("again")
    logging.getLogger("asyncio").info("nobody asked")
    made.close()
    text = file.read_text()
    assert text.count("Traceback") == 4 * logs.LIBRARY_BURST
    assert text.count("asyncio: Invalid bytes") == logs.LIBRARY_BURST
    assert (
        "ERROR   asyncio: again (and 595 more messages of asyncio)" in text
        and "nobody" not in text
    )
    assert capfd.readouterr() == ("", "")


def test_what_nothing_catches_is_logged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exceptions of threads and finalizers are logged.

    Afterwards Python prints as before.
    """
    file = tmp_path / "a.log"
    made = set_up_logging(file=str(file))

    class Going:
        def __del__(self) -> None:
            raise ValueError("gone")

    thread = threading.Thread(target=lambda: 1 / 0, name="worker")
    thread.start()
    thread.join()
    del_me = [Going()]
    del_me.clear()
    made.close()
    text = file.read_text()
    assert (
        "internal error in worker" in text
        and "ZeroDivisionError" in text
        and "ValueError: gone" in text
    )
    assert capfd.readouterr() == ("", "")
    assert (
        threading.excepthook is threading.__excepthook__
        and sys.unraisablehook is sys.__unraisablehook__
    )


class Writes(io.RawIOBase):
    """An unbuffered standard output."""

    def __init__(self) -> None:
        self.all: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.all += [bytes(data)] if len(data) else []
        return len(data)


def test_the_ready_line_is_written_with_its_newline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log on the same pipe could come between two writes.

    Two writes happen with PYTHONUNBUFFERED, and for a line longer than the buffer.
    """
    for line, through in (("ready", True), ("r" * 20_000, False)):
        raw = Writes()
        out: Any = raw if through else io.BufferedWriter(raw)
        monkeypatch.setattr(
            "sys.stdout", io.TextIOWrapper(out, "utf-8", write_through=through)
        )
        _say_ready(line, again=False)
        assert raw.all == [f"{line}\n".encode()]


def test_commands_print_lines_at_once() -> None:
    """`print` writes a text and its newline separately, `click.echo` together."""
    for folder in ("cli", "app", "servers"):
        for file in (Path(logs.__file__).parents[1] / folder).glob("*.py"):
            for one in ast.walk(ast.parse(file.read_text("utf-8"))):
                if (
                    isinstance(one, ast.Call)
                    and isinstance(one.func, ast.Name)
                    and one.func.id == "print"
                ):
                    words = {word.arg for word in one.keywords}
                    assert "end" in words or "file" in words, f"{file}:{one.lineno}"
