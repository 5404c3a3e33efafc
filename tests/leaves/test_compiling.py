"""Messages about compilation: they appear when Numba compiles, and only then."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from botyard.native import compiler
from botyard.native.kernels import Entry, entry_kernels
from botyard.native.packages import Package
from botyard.processes import compiling
from botyard.processes.compiling import Watch
from tests.waiting import PATIENCE, wait

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """A watch that reports everything; its time does not advance by itself."""
    monkeypatch.setattr(compiling, "MIN_REPORTED", 0.0)
    monkeypatch.setattr(compiling, "REFRESH_PERIOD", 0.001)
    monkeypatch.setattr(
        compiling,
        "IDLE_TIMEOUT",
        PATIENCE,
        # On a busy machine it may take seconds until the line is written.
    )
    made = Watch()
    # The watch of the process is off: tests of the command line may have enabled its
    # messages.
    monkeypatch.setattr(compiler.LISTENER, "reporter", made)
    monkeypatch.setenv("BOTYARD_KERNELS", "jit")
    yield made
    made.finish()


def kernel_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Entry[int]:
    """Return a kernel like botyard's, with its own cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))

    def twice(x: int) -> int:
        return 2 * x

    twice.__module__ = "botyard.engine.kernels.twice"
    monkeypatch.setitem(
        sys.modules,
        twice.__module__,
        ModuleType(twice.__module__),
        # Code from Numba's cache looks for its module.
    )
    return entry_kernels(Package("twice", [Path(__file__)]))(twice)


def test_it_speaks_when_something_is_compiled_and_only_then(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    assert kernel_of(tmp_path, monkeypatch)(3) == 6
    wait(lambda: "so far" in screen.getvalue())
    watch.finish()
    said = screen.getvalue()
    assert "compiling kernels, this is needed once" in said and re.search(
        r"kernels compiled in \d+ s\n$", said
    )
    assert watch.count == 1

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    clock = iter(range(0, 100_000, 100))
    monkeypatch.setattr(
        compiling,
        "time",
        SimpleNamespace(monotonic=lambda: float(next(clock))),
        # This clock shows a very busy machine: it jumps by 100 s each time.
    )
    assert kernel_of(tmp_path, monkeypatch)(3) == 6, "from the cache"
    watch.finish()
    assert (screen.getvalue(), watch.count) == ("", 1)


def test_what_is_said_where_nobody_looks_on(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal there is no message unless the command line asks for plain
    lines.

    Plain lines include advice when code cannot be cached.
    """
    monkeypatch.setattr(sys, "stderr", screen := io.StringIO())
    kernel_of(tmp_path / "a", monkeypatch)(3)
    watch.finish()
    assert screen.getvalue() == ""
    watch.always, watch.unwritable_cache = True, "/read/only"
    # This context writes the line even if the compilation is short.
    with watch.elsewhere():
        kernel_of(tmp_path / "b", monkeypatch)(3)
        wait(screen.getvalue)

    watch.finish()
    assert re.sub(r"\d+ s$", "0 s", screen.getvalue(), flags=re.M).splitlines() == [
        "botyard: compiling kernels …",
        "botyard: kernels compiled in 0 s",
        "botyard: cannot store the kernels: /read/only is not writable; set "
        "NUMBA_CACHE_DIR to a writable folder",
    ]


def test_an_interrupted_compilation_claims_nothing(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    kernel = kernel_of(tmp_path, monkeypatch)

    def interrupted(*_: object) -> None:
        wait(screen.getvalue)
        raise KeyboardInterrupt

    monkeypatch.setattr(
        compiler.dispatcher_of(kernel.function)._compiler, "compile", interrupted
    )
    with pytest.raises(KeyboardInterrupt):
        kernel(3)
    watch.finish()
    assert "compiling kernels" in screen.getvalue()
    assert "compiled in" not in screen.getvalue()
    assert screen.getvalue().endswith("\r"), "the line is gone"


def test_the_line_goes_by_itself(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python code does not report the end of a compilation."""
    monkeypatch.setattr(compiling, "IDLE_TIMEOUT", 0.001)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with watch.elsewhere():
        wait(screen.getvalue)
    wait(lambda: re.search(r"kernels compiled in \d+ s\n$", screen.getvalue()))
    wait(lambda: watch._teller is None)


def test_kernels_of_others_are_none_of_our_business(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    assert numba.njit(lambda x: x + 1)(2) == 3
    watch.finish()
    assert (screen.getvalue(), watch.count) == ("", 0)


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal")
def test_a_program_in_python_shows_it(tmp_path: Path) -> None:
    """`import botyard` and an uncached kernel on a real terminal; in a pipe there is no
    message.
    """
    import pty

    code = (
        "from botyard.processes import compiling; compiling.MIN_REPORTED = 0.0; "
        "compiling.REFRESH_PERIOD = 0.001; compiling.IDLE_TIMEOUT = 100.0\n"
        "import sys, types\n"
        "from botyard.engine.kernels.jit import entry_kernel\n"
        "def f(x: int) -> int: return x + 1\n"
        "f.__module__ = 'botyard.f'\n"
        "sys.modules['botyard.f'] = types.ModuleType('botyard.f')\n"
        "assert entry_kernel(f)(1) == 2\n"
        "while compiling.watch._teller is not None and not compiling.watch._reported: pass\n"
        "compiling.watch.finish()\n"
    )
    (tmp_path / "program.py").write_text(code)
    line = [sys.executable, str(tmp_path / "program.py")]
    env = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "BOTYARD_KERNELS": "jit",
    }
    ours, theirs = pty.openpty()
    subprocess.run(line, stderr=theirs, env=env, timeout=PATIENCE, check=True)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    # Reading fails when the other end of the terminal is closed.
    except OSError:
        pass

    os.close(ours)
    assert b"compiling kernels, this is needed once" in shown and re.search(
        rb"kernels compiled in \d+ s", shown
    )
    env["NUMBA_CACHE_DIR"] = str(tmp_path / "another")
    done = subprocess.run(
        line, capture_output=True, env=env, timeout=PATIENCE, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
