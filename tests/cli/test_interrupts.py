"""Ctrl-C at any moment.

Before "ready": one line, status 130, no traceback. After it: status 0 and no further
line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE, wait

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

LINE = "botyard: interrupted"


@contextmanager
def _started(*args: str, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Start a process that is interrupted only after our first line has run.

    Until then Python's own handling of the signal applies.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process = subprocess.Popen(
            args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )  # type: ignore[call-overload]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _simulator(*more: str) -> list[str]:
    return [
        *BOTYARD,
        "-m",
        "office",
        "-r",
        "p3dx",
        "--noninteractive",
        "--no-gui",
        "-p",
        str(free_port(2)),
        *more,
    ]


def _judge(process: subprocess.Popen[str], when: object) -> bool:
    """Wait for the end and check it; return whether the simulator had been ready."""
    out, err = process.communicate(timeout=PATIENCE)
    was_ready = "botyard ready" in out
    lines = err.splitlines()
    assert process.returncode == (0 if was_ready else 130), (when, out, err)
    assert lines.count(LINE) == (0 if was_ready else 1), (when, err)
    assert was_ready or lines[-1] == LINE, (when, err)
    assert "Traceback" not in err and "Exception ignored" not in err, (when, err)
    return was_ready


@pytest.mark.peer
@pytest.mark.parametrize(
    "more", [("--no-crash-restart",), ()], ids=["alone", "supervised"]
)
def test_at_many_moments_of_the_start(more: tuple[str, ...]) -> None:
    """Delays are fractions of a measured start; the last ones come after it."""
    # The first start may compile kernels, so the second one is measured.
    for _ in range(2):
        begin = time.monotonic()
        with _started(*_simulator(*more)) as process:
            assert process.stdout is not None
            assert "botyard ready" in process.stdout.readline()
            took = time.monotonic() - begin
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, LINE in err, "Traceback" in err) == (
                0,
                False,
                False,
            ), err

    met = set()
    for k in range(6):
        with _started(*_simulator(*more)) as process:
            time.sleep(took * k / 4)
            process.send_signal(signal.SIGINT)
            met.add(_judge(process, f"{k}/4 of {took:.2f} s"))

    assert False in met


@pytest.mark.peer
def test_a_terminal_reaches_the_supervisor_and_the_simulator() -> None:
    """Both processes get the signal, and the supervisor forwards it: still one line."""
    with _started(*_simulator(), start_new_session=True) as process:
        time.sleep(0.4)
        os.killpg(process.pid, signal.SIGINT)
        _judge(process, "the whole group")


PROGRAM = """
import os, signal, sys, time
from botyard.cli import interrupts
interrupts.begin()
me = lambda number=signal.SIGINT: os.kill(os.getpid(), number)
{}
"""


def _ended(body: str, grace: float = 0.3) -> tuple[int, str, str]:
    """Return status, output and errors of a small program that interrupts itself."""
    code = PROGRAM.format(
        f"interrupts.SHUTDOWN_GRACE_S, interrupts.REPEAT_WINDOW_S = {grace}, 0.05\n{body}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_before_a_command_it_ends_at_once() -> None:
    assert _ended("me(); time.sleep(100)") == (130, "", f"{LINE}\n")


def test_a_command_may_tidy_up() -> None:
    body = (
        "interrupts.command()\ntry:\n  me(); time.sleep(100)\n"
        "except interrupts.Interrupted:\n  print('tidy'); interrupts.exit_interrupted()"
    )
    assert _ended(body, 100.0) == (130, "tidy\n", f"{LINE}\n")


@pytest.mark.parametrize(
    "swallows",
    [
        "while True:\n  try:\n    me(); time.sleep(100)\n  except BaseException: pass",
        # An exception in `__del__` cannot propagate.
        "class A:\n  def __del__(self): me(); time.sleep(0.01)\nA()\nwhile True: time.sleep(1)",
        # A lock of C that is taken twice blocks for ever, and no signal ends it.
        "import ctypes, threading\nthreading.Timer(0.05, me).start()\nlock, c = "
        "ctypes.create_string_buffer(256), ctypes.CDLL(None)\n"
        "c.pthread_mutex_lock(lock); c.pthread_mutex_lock(lock)",
    ],
    ids=["caught", "in __del__", "in C"],
)
def test_who_swallows_it_has_a_limit(swallows: str) -> None:
    assert _ended(f"interrupts.command()\n{swallows}") == (130, "", f"{LINE}\n")


def test_a_second_one_does_not_wait() -> None:
    body = (
        "interrupts.command()\nimport threading\nthreading.Timer(0.2, me).start()\n"
        "try:\n  me(); time.sleep(100)\nexcept interrupts.Interrupted:\n  time.sleep(100)"
    )
    assert _ended(body, 100.0) == (130, "", f"{LINE}\n")


def test_an_end_that_looks_good_or_bad_is_still_an_interruption() -> None:
    assert (
        _ended(
            "interrupts.command()\ntry: me(); time.sleep(1)\nexcept "
            "BaseException: pass\ninterrupts.exit_program(7)"
        )[0]
        == 130
    )
    body = (
        "from botyard.cli import main\nimport click\n"
        "@click.command('x')\ndef x():\n  try: me(); time.sleep(1)\n  except "
        "BaseException: raise {}\n"
        "main.program.get_command = lambda *_: x\nmain.main(['models'])"
    )
    for error in (
        "ValueError('no')",
        "click.UsageError('no')",
        "main.BotyardError('no')",
        "SystemError",
    ):
        assert _ended(body.format(error), 100.0) == (130, "", f"{LINE}\n"), error


LOOP = (
    "import asyncio\ninterrupts.command(); interrupts.terminate_too()\n"
    "async def work():\n{}\ntry: interrupts.exit_program(interrupts.run_loop(work()))\n"
    "except interrupts.Interrupted: interrupts.exit_interrupted()"
)


def test_in_a_loop_the_task_is_cancelled_and_tidies_up() -> None:
    body = (
        "  try:\n    me(); await asyncio.sleep(100)\n  finally:\n    await "
        "asyncio.sleep(0.1); print('tidy')"
    )
    assert _ended(LOOP.format(body), 100.0) == (130, "tidy\n", f"{LINE}\n")
    body = body.replace("me()", "me(signal.SIGTERM)")
    assert _ended(LOOP.format(body), 100.0) == (0, "tidy\n", ""), (
        "who sends SIGTERM wants no word"
    )


def test_a_loop_that_swallows_it_never_becomes_ready() -> None:
    body = (
        "  try:\n    me(); await asyncio.sleep(100)\n  except asyncio.CancelledError: pass\n"
        "  interrupts.ready(print); print('ready')\n  return 0"
    )
    assert _ended(LOOP.format(body), 100.0) == (130, "", f"{LINE}\n")


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_once_it_is_ready_it_ends_well(number: str) -> None:
    """Repeated and late signals, during clean-up and while Python ends."""
    body = (
        "  import atexit; atexit.register(lambda: (me(), time.sleep(0.1)))\n"
        "  stop = asyncio.Event(); interrupts.ready(stop.set); print('ready', flush=True)\n"
        f"  me(signal.{number}); await stop.wait()\n  time.sleep(0.1); "
        f"me(signal.{number}); await asyncio.sleep(0.1)\n  return 0"
    )
    assert _ended(LOOP.format(body)) == (0, "ready\n", "")


DRIVEN = (
    "  import logging, threading, botyard; from botyard.controllers.base import call_in\n"
    "  logging.basicConfig(format='%(message)s', level=logging.ERROR)\n"
    "  def drive(robot):\n{}\n"
    "  sim = botyard.Simulation(); sim.add_robot('p3dx', 'bob', controller=drive)\n"
    "  stop = asyncio.Event(); interrupts.ready(stop.set, call_in)\n"
    "  for k, number in enumerate({}): threading.Timer(0.2 * (k + 1), me, (number,)).start()\n"
    "  sim.step(); await stop.wait(); print('ended well'); return 0"
)
"""A controller of a simulator that is ready, and the signals that come while it is
called.
"""


@pytest.mark.parametrize(
    "code", ["while True: pass", "while True: time.sleep(100)"], ids=["busy", "waits"]
)
@pytest.mark.parametrize(
    ("numbers", "grace"),
    [
        ("[signal.SIGINT] * 2", 100.0),
        ("[signal.SIGTERM] * 2", 100.0),
        ("[signal.SIGTERM]", 0.3),
    ],
    ids=["Ctrl-C twice", "SIGTERM twice", "SIGTERM once"],
)
def test_a_controller_that_does_not_return_is_ended_and_the_simulator_ends_well(
    code: str, numbers: str, grace: float
) -> None:
    status, out, err = _ended(LOOP.format(DRIVEN.format(f"    {code}", numbers)), grace)
    assert (status, out) == (0, "ended well\n"), err
    assert (
        "the controller of robot bob ends" in err
        and "Unreturned: it did not return" in err
    )
    assert "<string>, line" in err and "in drive)" in err


@pytest.mark.parametrize(
    "code",
    [
        "    while True:\n      try: time.sleep(100)\n      except BaseException: pass",
        "    import ctypes; lock, c = ctypes.create_string_buffer(256), ctypes.CDLL(None)\n"
        "    c.pthread_mutex_lock(lock); c.pthread_mutex_lock(lock)",
    ],
    ids=["caught", "in C"],
)
@pytest.mark.parametrize(
    "numbers", ["[signal.SIGINT]", "[signal.SIGINT] * 2"], ids=["once", "twice"]
)
def test_a_controller_that_stays_all_the_same_ends_with_the_process(
    code: str, numbers: str
) -> None:
    status, out, err = _ended(LOOP.format(DRIVEN.format(code, numbers)))
    assert (status, out) == (130, ""), err
    assert (
        err.startswith("botyard: the controller of robot bob does not return")
        and len(err.splitlines()) == 1
    )


def test_what_holds_a_simulator_up_and_is_no_controller() -> None:
    """The first signal waits for the blocking code, the second does not."""
    holds = (
        "  import threading; stop = asyncio.Event(); interrupts.ready(stop.set)\n"
        "  for k in range({}): threading.Timer(0.2 * (k + 1), me).start()\n"
        "  try: time.sleep(1.0)\n  finally: print('tidy')\n  await stop.wait(); "
        "print('ended well'); return 0"
    )
    assert _ended(LOOP.format(holds.format(1)), 0.3) == (0, "tidy\nended well\n", "")
    assert _ended(LOOP.format(holds.format(2)), 100.0) == (130, "tidy\n", f"{LINE}\n")


@pytest.mark.peer
def test_a_supervisor_that_is_starting_a_process() -> None:
    """A signal during the start reaches the process, and no second one is started."""
    body = (
        "from botyard.servers.jobs import supervise\nimport subprocess, pathlib\n"
        "old = subprocess.Popen\n"
        "def begin(command, **more):\n  me()\n  return old([sys.executable, '-c', "
        "'from botyard.cli import interrupts; interrupts.begin(); import time; "
        "time.sleep(100)'], **more)\n"
        "subprocess.Popen = begin\ninterrupts.hand_over()\n"
        "interrupts.exit_program(supervise.supervise([], None, None, pathlib.Path()))"
    )
    assert _ended(body) == (130, "", f"{LINE}\n")


@pytest.mark.peer
def test_processes_of_a_comparison_end_with_it() -> None:
    """Workers ignore Ctrl-C, and are gone when their parent is, however it ended."""
    line = [
        *BOTYARD,
        "traffic",
        "compare",
        "-n",
        "40",
        "--seeds",
        "50",
        "--processes",
        "2",
    ]
    for number in (signal.SIGINT, signal.SIGKILL):
        with _started(*line, start_new_session=True) as process:
            wait(lambda pid=process.pid: len(_children(pid)) == 2)  # type: ignore[misc]
            children = _children(process.pid)
            time.sleep(0.5)
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
                _, err = process.communicate(timeout=PATIENCE)
                assert (process.returncode, err.count(LINE), "Traceback" in err) == (
                    130,
                    1,
                    False,
                ), err
            else:
                process.kill()
                process.wait(PATIENCE)

            wait(lambda c=children: not any(map(_is_alive, c)))  # type: ignore[misc]


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
