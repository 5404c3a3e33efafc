"""``botyard doctor``: check this installation and show how to add missing parts."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from botyard.errors import ExitCode, KernelsError, WorldError
from botyard.extras import EXTRAS, install_command, is_installed, lacking
from botyard.version import __version__

_MARKS: Final = {"ok": "ok  ", "warn": "–   ", "bad": "BAD "}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    state : str
        ``ok``, ``warn`` (an optional part is missing) or ``bad`` (botyard cannot work).
    text : str
        Result, and the remedy.
    """

    state: str
    text: str


def _of_python() -> Iterator[Finding]:
    """Check the version of Python and the required packages; yield the findings."""
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    yield Finding(
        "ok" if good else "bad",
        f"Python {version} on {platform.platform()}"
        + ("" if good else ": expected 3.11 or newer"),
    )
    for name in ("numpy", "click", "starlette", "uvicorn", "msgspec"):
        try:
            yield Finding("ok", f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding(
                "bad", f"{name} is missing: pip install --force-reinstall botyard"
            )


def _of_extras() -> Iterator[Finding]:
    """Check which optional packages are installed; yield the findings."""
    for name, extra in EXTRAS.items():
        if is_installed(name):
            yield Finding("ok", f"{name}: {extra.purpose}")
        else:
            remark = f" ({extra.remark})" if extra.remark else ""
            yield Finding(
                "warn",
                f"{name}: not installed ({extra.purpose}); {install_command([name])}{remark}",
            )


def _of_kernels() -> Iterator[Finding]:
    """Check in which form the kernels (compiled numerical functions) run.

    They are compiled in advance, compiled on first use, or interpreted by Python.
    """
    from botyard.engine.kernels.jit import PACKAGE
    from botyard.native.cache import cache_root
    from botyard.native.packages import mode
    from botyard.native.shipped import is_shipped, library

    try:
        chosen = mode()
    except KernelsError as error:
        yield Finding("bad", str(error))
        return

    if chosen == "python":
        yield Finding(
            "warn",
            "compilation is off: kernels run as Python functions, which is slow",
        )
        return

    if is_shipped(PACKAGE, whole=False):
        rest = (
            ""
            if library().is_whole
            else "; others are compiled on first use (make kernels compiles all in advance)"
        )
        yield Finding(
            "ok", f"kernels are shipped compiled for {library().target}{rest}"
        )
        return

    why = library().why_not or "compiled kernels were built from other sources"
    if chosen == "jit":
        why = "BOTYARD_KERNELS=jit"
    if chosen == "native":
        yield Finding(
            "bad", f"{why}, and BOTYARD_KERNELS=native allows compiled kernels only"
        )
        return

    if not is_installed("jit"):
        yield Finding("bad", f"{why}; {lacking('compiling them', 'jit')}")
        return

    folder = cache_root()
    if not folder.is_absolute():
        yield Finding(
            "warn",
            f"{why}, and there is no home folder: each run compiles the kernels "
            "again; set NUMBA_CACHE_DIR",
        )
        return

    compiled = folder.is_dir() and any(folder.rglob("*.nbc"))
    if compiled:
        yield Finding("ok", f"kernels were compiled on this computer ({folder})")
    else:
        yield Finding(
            "warn",
            f'{why}: the first run takes 10 to 20 s longer; "botyard warmup" '
            f"compiles the kernels in advance ({folder})",
        )

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield Finding(
            "warn",
            f"cannot write to {folder} ({error.strerror}): each run compiles the kernels again",
        )


def _of_page() -> Iterator[Finding]:
    """Check that the built page for browsers is installed."""
    static = Path(__file__).parents[1] / "ui" / "static" / "index.html"
    if static.is_file():
        yield Finding("ok", "the page is built")
    else:
        yield Finding(
            "warn",
            "the page is not built: run make web in a checkout; wheels contain it",
        )


def _of_ports(first: int, count: int) -> Iterator[Finding]:
    """Check that the default ports of the page and of the first robots are free."""
    for port in (8100, *range(first, first + count)):
        with socket.socket() as probe:
            try:
                if os.name == "posix":
                    # Without this option, a port whose connections closed shortly
                    # before seems in use. On Windows, the same option would allow two
                    # servers on one port.
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                # The page starts at port 8100; robots start at 8101.
                what = (
                    "the page uses the next free port"
                    if port == 8100
                    else "choose another port with -p"
                )
                yield Finding("warn", f"port {port}: {error.strerror}; {what}")
            else:
                yield Finding("ok", f"port {port} is free")


def _of_ros() -> Iterator[Finding]:
    """Report the environment variables of ROS."""
    for name in (
        "ROS_MASTER_URI",
        "ROS_DISTRO",
        "ROS_DOMAIN_ID",
        "RMW_IMPLEMENTATION",
        "ROS_LOCALHOST_ONLY",
        "ROS_AUTOMATIC_DISCOVERY_RANGE",
        "ROS_STATIC_PEERS",
        "FASTDDS_BUILTIN_TRANSPORTS",
    ):
        if name in os.environ:
            yield Finding("ok", f"{name}={os.environ[name]}")

    from botyard.protocols.dds.environment import Environment

    try:
        Environment.read()
    except WorldError as error:
        yield Finding("warn", f"{error}; botyard run --ros2 fails with this setting")

    for remark in Environment.unserved():
        yield Finding("warn", f"ROS 2: {remark}")

    yield from _of_buffers()
    if shutil.which("roscore"):
        yield Finding("ok", f"roscore: {shutil.which('roscore')}")


def _of_buffers(folder: Path = Path("/proc/sys/net/core")) -> Iterator[Finding]:
    """Check the limit of receive buffers (Linux), which large ROS 2 messages fill.

    Parameters
    ----------
    folder : Path
        Folder with the kernel's settings. Without the setting there is no finding.
    """
    from botyard.servers.ros.rtps import ENOUGH_BUFFER_BYTES, RECEIVE_BUFFER_BYTES

    try:
        limit = int((folder / "rmem_max").read_text("utf-8"))
    except (OSError, ValueError):
        return

    # The kernel grants twice the size that a program requests (socket(7)).
    if 2 * limit < ENOUGH_BUFFER_BYTES:
        size = RECEIVE_BUFFER_BYTES
        yield Finding(
            "warn",
            f"ROS 2: net.core.rmem_max is {limit} bytes: packets of large messages, such "
            "as maps, may get lost, and come again later; as root: sysctl -w "
            f"net.core.rmem_max={size}, and net.core.rmem_default={size} for Fast DDS",
        )


def findings(first: int = 8101, count: int = 2) -> Iterator[tuple[str, Finding]]:
    """Yield the results of all checks.

    Parameters
    ----------
    first : int
        First TCP port to check.
    count : int
        Number of ports to check.

    Yields
    ------
    section : str
        Name of the section, the same for findings that follow each other.
    finding : Finding
        Result of one check.
    """
    for part, found in (
        ("Python", _of_python()),
        ("kernels", _of_kernels()),
        ("page", _of_page()),
        ("extras", _of_extras()),
        ("ports", _of_ports(first, count)),
        ("ROS", _of_ros()),
    ):
        for finding in found:
            yield part, finding


@click.command("doctor")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65530),
    default=8101,
    show_default=True,
    help="TCP port of the first robot.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object per line."
)
def command(port: int, as_json: bool) -> int:
    """Check this installation: features, missing parts and how to add them.

    Exits with 0 if botyard can work.
    """
    bad = False
    if not as_json:
        click.echo(f"botyard {__version__}")
    last = ""
    for part, finding in findings(port):
        bad |= finding.state == "bad"
        if as_json:
            import json

            click.echo(
                json.dumps(
                    {"part": part, "state": finding.state, "text": finding.text},
                    ensure_ascii=False,
                )
            )
            continue

        if part != last:
            click.echo(f"\n{part}")
            last = part

        click.echo(f"  {_MARKS[finding.state]} {finding.text}")

    return int(ExitCode.PEER) if bad else 0


__all__ = ["Finding", "command", "findings"]
