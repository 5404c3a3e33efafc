"""Files of users are never lost, and files of the program are written to their named
places.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from botyard.errors import BusyFileError, KeptFileError
from botyard.processes import safefile
from botyard.processes.safefile import (
    MARK,
    check_replaceable,
    copy_own,
    is_device,
    is_ours,
    open_own,
    read_own,
    remove_own,
    replace_own,
    replacing,
    write_text,
)

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and rights")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.write_text("precious")
    return path


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# -- files named by a user


def test_what_the_program_did_not_write_stays(mine: Path, tmp_path: Path) -> None:
    with pytest.raises(
        KeptFileError, match=r"mine: was not written by botyard.*--force"
    ):
        write_text(mine, "new")

    with pytest.raises(KeptFileError):
        check_replaceable(mine)
    assert mine.read_text() == "precious" and names(tmp_path) == ["mine"]
    write_text(mine, "new", force=True)
    assert mine.read_text() == "new"


@pytest.mark.parametrize("place", ["beginning", "end", "empty", "format"])
def test_what_it_wrote_is_replaced(place: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    big = "x" * 100_000
    path.write_text(
        {
            "beginning": f"# {MARK}\n{big}",
            "end": f"{big}\n# {MARK}\n",
            "empty": "",
            "format": "t,robot\n1,2\n",
        }[place]
    )
    write_text(path, f"{big}{MARK}{big}", begins=b"t,robot\n")
    assert path.read_text() == f"{big}{MARK}{big}"
    assert not is_ours(path), "in the middle of something it says nothing"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_text(path, MARK)

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == MARK and names(tmp_path) == ["a"]


@posix
def test_rights_and_links_of_the_user_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    before = os.umask(0o027)
    try:
        write_text(path, MARK)
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    write_text(link, MARK + "2")
    assert link.is_symlink() and path.read_text() == MARK + "2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@posix
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    code = (
        "from botyard.processes.safefile import write_text; "
        "write_text('/dev/stdout', 'hello')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "hello"
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")


# -- files of the program


def acts(path: Path) -> dict[str, Callable[[], object]]:
    return {
        "append": lambda: open_own(path, append=True).close(),
        "empty": lambda: open_own(path).close(),
        "replace": lambda: replace_own(path, b"state"),
        "remove": lambda: remove_own(path),
        "read": lambda: read_own(path, 100),
    }


@posix
@pytest.mark.parametrize("what", ["append", "empty", "replace", "remove", "read"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe"])
def test_only_regular_files_are_touched(
    what: str, kind: str, mine: Path, tmp_path: Path
) -> None:
    path = tmp_path / "own"
    if kind == "link":
        path.symlink_to(mine)
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)

    before = names(tmp_path)
    with pytest.raises(OSError, match=rf"found a {kind.split()[-1]}"):
        acts(path)[what]()
    assert names(tmp_path) == before and mine.read_text() == "precious"


@posix
def test_secrets_are_for_their_owner(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    path.chmod(0o666)
    replace_own(path, b"secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and read_own(path, 6) == b"secret"
    with pytest.raises(OSError, match="at most 5 bytes"):
        read_own(path, 5)
    copy_own(path, tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="found a link"):
        copy_own(path, tmp_path / "link")
    with pytest.raises(OSError, match="found a link"):
        copy_own(tmp_path / "link", tmp_path / "copy")
    remove_own(path)
    remove_own(path)
    assert names(tmp_path) == ["copy", "link"]


@posix
def test_names_of_new_files_cannot_be_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Path, int]] = []
    real = os.replace

    def replace(old: str, new: str) -> None:
        seen.append((Path(old), os.stat(old).st_mode))
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    for _ in range(2):
        replace_own(tmp_path / "state", b"x")
    (first, mode), (second, _) = seen
    assert first != second and first.parent == tmp_path and stat.S_IMODE(mode) == 0o600


@posix
def test_devices_are_written_to_and_nothing_else() -> None:
    assert (
        is_device("/dev/null") and not is_device("/tmp/x") and not is_device("dev/null")
    )
    with open_own("/dev/null", append=True) as file:
        file.write(b"x")
    with pytest.raises(OSError, match="found a device"):
        remove_own("/dev/null")
    with pytest.raises(OSError, match="found a device"):
        replace_own("/dev/null", b"x")


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError) as error,
        replacing(tmp_path / "none" / "a.png"),
    ):
        pass

    assert error.value.filename == str(tmp_path / "none" / "a.png")


# -- the writer of a file

HOLDER = """
import sys
from botyard.processes.safefile import Hold
held = Hold(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds "file"."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "file")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_file_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with safefile.Hold(path), safefile.Hold(tmp_path / "another"):
        with pytest.raises(BusyFileError, match=f"{path}: is already being written"):
            safefile.Hold(path)
        link = tmp_path / "link"
        link.symlink_to(path)
        with pytest.raises(BusyFileError):
            safefile.Hold(link)

    with safefile.Hold(path):
        pass
    assert names(tmp_path) == ["link"]


def test_a_file_that_another_process_holds(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    """It is neither opened nor replaced.

    A killed process holds nothing, though its hidden file remains.
    """
    path = tmp_path / "file"
    path.write_text(f"{safefile.MARK} before")
    with pytest.raises(BusyFileError):
        safefile.write_text(path, "after", force=True)
    assert path.read_text().endswith("before")
    holder.kill()
    holder.wait()
    assert ".file.lock" in names(tmp_path)
    safefile.write_text(path, "after")
    assert path.read_text() == "after" and ".file.lock" not in names(tmp_path)


def test_a_lock_that_cannot_be_made_refuses_nothing(tmp_path: Path) -> None:
    (tmp_path / ".file.lock").mkdir()
    with (
        safefile.Hold(tmp_path / "file"),
        safefile.Hold("/dev/stdout"),
        safefile.Hold(tmp_path / "none" / "file"),
    ):
        pass


def test_a_lock_that_was_deleted_while_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is created again, because otherwise two processes would hold the file by
    different locks.
    """
    path, lock = tmp_path / "file", safefile._lock
    deleted = list[bool]()

    def late(number: int) -> bool:
        if not deleted:
            deleted.append(True)
            (tmp_path / ".file.lock").unlink()

        return lock(number)

    monkeypatch.setattr(safefile, "_lock", late)
    with safefile.Hold(path), pytest.raises(BusyFileError):
        safefile.Hold(path)


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127, "n" * 241])
def test_a_file_with_a_long_name_is_held_too(name: str, tmp_path: Path) -> None:
    other = tmp_path / (name[:-1] + "x")
    with (
        safefile.Hold(tmp_path / name),
        safefile.Hold(other),
        pytest.raises(BusyFileError),
    ):
        safefile.Hold(tmp_path / name)

    assert list(tmp_path.iterdir()) == []


@posix
def test_a_lock_whose_identity_cannot_be_told_is_held_after_some_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On some network file systems an open file and its name have different inode
    numbers.
    """
    monkeypatch.setattr(os.path, "samestat", lambda _a, _b: False)
    with safefile.Hold(tmp_path / "a"), pytest.raises(BusyFileError):
        safefile.Hold(tmp_path / "a")


def test_a_file_of_the_user_with_the_name_of_a_lock_stays(tmp_path: Path) -> None:
    own = tmp_path / ".a.lock"
    own.write_text("precious")
    with safefile.Hold(tmp_path / "a"), pytest.raises(BusyFileError):
        safefile.Hold(tmp_path / "a")
    assert own.read_text() == "precious"


@posix
def test_two_names_of_one_file_are_one_file(tmp_path: Path) -> None:
    """Hard links: a write in parts reaches both names."""
    (tmp_path / "a").write_bytes(b"x")
    os.link(tmp_path / "a", tmp_path / "b")
    with safefile.Hold(tmp_path / "a"), pytest.raises(BusyFileError):
        safefile.Hold(tmp_path / "b")
    with safefile.Hold(tmp_path / "b"), safefile.replacing(tmp_path / "c") as file:
        file.write(b"y")
