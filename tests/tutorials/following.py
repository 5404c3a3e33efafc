"""Follow a page of documentation as its reader does.

- A block behind "Save this as `FILE`:" becomes a file; behind "Add this to `FILE`:" it
  is appended.
- A ``console`` block is a terminal. Lines with ``$ `` are commands, which a shell
  runs; the lines below them are what the reader sees. ``...`` alone on a line stands
  for any lines, within a line for any text. ``^C`` is Ctrl-C in the terminal of the
  program that was left running last. A command may fail where the output is an error,
  or ``echo $?`` follows.
- A block before "Leave it running" has a program that does not end: the next block is
  another terminal. A block without a command is what that program prints then.
- ``sh``, ``cpp`` and ``text`` blocks are shown alone: what they need is not here. All
  other blocks must be saved or run.

Nothing of the page is known here: what is not as the page says is an error that names
the line.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.networks import Network
from tests.waiting import PATIENCE, wait

SHOWN: Final = {"sh", "cpp", "text"}
"""Languages of blocks that nobody runs."""
ANY: Final = "..."
_FENCE: Final = re.compile(r"^```(\S*)(.*)$")
_FILE: Final = re.compile(r"(Save|Add) this (?:as|to) (?:the end of )?`([^`]+)`")
Matches = Callable[[str, str], "re.Match[str] | None"]
_LEFT: Final = "leave it running"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, first line (from 0), lines, and what is said before
    and after it.
    """

    language: str
    start: int
    lines: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True)
class Said:
    """A command (or ``^C``), where its output stands on the page, and that output."""

    command: str
    start: int
    lines: tuple[str, ...]


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, with the paragraphs around each."""
    lines = text.splitlines()
    fences = [k for k, line in enumerate(lines) if _FENCE.match(line)]
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        before = "\n".join(lines[:start]).rstrip().rpartition("\n\n")[2].split()
        after = "\n".join(lines[end + 1 :]).lstrip().partition("\n\n")[0].split()
        language = lines[start][3:]
        inside = tuple(lines[start + 1 : end])
        yield Block(language, start + 1, inside, " ".join(before), " ".join(after))


def commands_of(block: Block) -> Iterator[Said]:
    """Yield the commands of a terminal."""
    lines = block.lines
    k = 0
    while k < len(lines):
        if lines[k] == "^C":
            command = lines[k]
        elif not lines[k].startswith("$ "):
            # The block shows more of a program that was left running.
            command, k = "", k - 1
        else:
            command = lines[k][2:]
            while command.endswith("\\"):
                k += 1
                command += "\n" + lines[k].removeprefix("> ")
        k += 1
        first = k
        while k < len(lines) and lines[k] != "^C" and not lines[k].startswith("$ "):
            k += 1
        yield Said(command, block.start + first, lines[first:k])


def pattern(lines: tuple[str, ...]) -> str:
    """Return the regular expression of an output."""
    return "".join(
        r"(?:[^\n]*\n)*?"
        if line.strip() == ANY
        else ".*?".join(map(re.escape, line.rstrip().split(ANY))) + r"[ \t]*\n"
        for line in lines
    )


def _says_failure(said: Said) -> bool:
    """Return whether the page shows an error as the output."""
    return any("Error: " in line or " error: " in line for line in said.lines)


@dataclass
class Running:
    """A program that was left running, its output, and how much of it was seen."""

    process: subprocess.Popen[bytes]
    log: Path
    line: int
    seen: int = 0

    def output(self) -> str:
        """Return all that it has printed."""
        return plain(self.log.read_bytes())

    def stop(self, number: int) -> None:
        """Send a signal to the program and its children, and wait for its end."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(PATIENCE)


def plain(data: bytes) -> str:
    """Return an output without colours and progress, and with a last line that ends."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", data.decode("utf-8", "replace"))
    text = text.replace("\r\n", "\n")
    # Slow machines announce work that takes seconds, on a line of its own.
    text = re.sub(r"^botyard: \w+ing .*\n", "", text, flags=re.MULTILINE)
    return text if text.endswith("\n") or not text else text + "\n"


@dataclass
class Reader:
    """A reader with an empty folder, in which the page is followed.

    Parameters
    ----------
    folder : Path
        Folder of the working folder, of HOME, and of outputs.
    env : mapping
        Variables of the terminals.
    network : Network
        The network of all programs.
    found : dict
        Line of the page → how many lines of output stand there, and those that came
        instead. With `notes` differences are noted here, not raised.
    """

    folder: Path
    env: Mapping[str, str]
    network: Network
    notes: bool = False
    found: dict[int, tuple[int, list[str]]] = field(default_factory=dict)
    _running: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.folder / "work"
        self.work.mkdir()
        (self.folder / "home").mkdir()
        (self.folder / "state").write_text(f"cd {self.work}\n")

    def follow(self, page: Path) -> None:
        """Do what the page says, from top to bottom."""
        try:
            for block in blocks_of(page.read_text("utf-8")):
                self._do(block)
            for one in self._running:
                assert not one.process.poll(), (
                    f"line {one.line}: it was left running, but has failed:\n{one.output()}"
                )
        finally:
            for one in reversed(self._running):
                one.stop(signal.SIGTERM)

    def _do(self, block: Block) -> None:
        name = _FILE.search(block.before)
        if name is not None and block.before.endswith(":"):
            path = self.work / name[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if name[1] == "Add" else "w", encoding="utf-8") as file:
                file.write("\n".join(block.lines) + "\n")
        elif block.language == "console":
            said = list(commands_of(block))
            is_left = _LEFT in block.after.lower()
            for k, one in enumerate(said):
                is_last = k == len(said) - 1
                asks = not is_last and said[k + 1].command == "echo $?"
                self._type(one, is_left and is_last, asks or _says_failure(one))
        else:
            assert block.language in SHOWN, (
                f"line {block.start}: where does the reader save this? "
                "Expected 'Save this as `FILE`:' before the block"
            )

    def _type(self, said: Said, is_left: bool, may_fail: bool) -> None:
        if said.command in ("", "^C"):
            assert self._running, (
                f"line {said.start}: expected '$ ' and a command, or a program that was "
                "left running"
            )
            if said.command:
                self._interrupt(said)
            else:
                self._see(self._running[-1], said)
            return
        state = self.folder / "state"
        script = (
            f". {state}; {said.command}\n"
            f"{{ s=$?; export -p; echo \"cd '$PWD'; (exit $s)\"; }} > {state}.new\n"
            f"mv {state}.new {state}; exit $s"
        )
        log = self.folder / f"line{said.start}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self.network.inside(self.work, "bash", "-c", script),
                env=dict(self.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        one = Running(process, log, said.start)
        if is_left:
            self._running.append(one)
            self._see(one, said)
            return
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            one.stop(signal.SIGKILL)
            raise AssertionError(
                f"line {said.start}: '{said.command}' has not ended:\n{one.output()}"
            ) from None
        if process.returncode and not may_fail and not self.notes:
            raise AssertionError(
                f"line {said.start}: '{said.command}' ended with the status "
                f"{process.returncode}, which the page does not say:\n{one.output()}"
            )
        self._compare(said, one.output(), re.fullmatch)

    def _see(self, one: Running, said: Said) -> None:
        """Wait until a program has printed the lines of the page."""
        expected = re.compile(pattern(said.lines))

        def is_seen() -> bool:
            return (
                expected.match(one.output(), one.seen) is not None
                or one.process.poll() is not None
            )

        if self.notes:
            with suppress(AssertionError):
                wait(is_seen, 40.0 if said.lines else 10.0)
        else:
            wait(is_seen, what=lambda: f"line {said.start}:\n{one.output()}")
        text = one.output()
        self._compare(said, text[one.seen :], re.match)
        found = expected.match(text, one.seen)
        one.seen = found.end() if found else len(text)

    def _interrupt(self, said: Said) -> None:
        """Press Ctrl-C; where the page shows lines below it, compare the output from
        then on.
        """
        one = self._running.pop()
        assert one.process.poll() is None, (
            f"line {one.line}: it was left running, but has ended:\n{one.output()}"
        )
        one.stop(signal.SIGINT)
        if said.lines:
            self._compare(said, one.output()[one.seen :], re.fullmatch)

    def _compare(self, said: Said, text: str, match: Matches) -> None:
        if match(pattern(said.lines), text):
            return
        self.found[said.start] = (len(said.lines), text.splitlines())
        if not self.notes:
            expected = "\n".join(said.lines)
            raise AssertionError(
                f"line {said.start}: '{said.command}'\n"
                f"-- the page says:\n{expected}\n-- found:\n{text}"
            )


def corrected(text: str, found: Mapping[int, tuple[int, list[str]]]) -> str:
    """Return a page with the outputs that were found."""
    lines = text.splitlines()
    for start, (count, new) in sorted(found.items(), reverse=True):
        lines[start : start + count] = [line.rstrip() for line in new]
    return "\n".join(lines) + "\n"
