"""``botyard doctor``: what this installation can do, what it lacks, and how to get it."""

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

from botyard.errors import ExitCode, KernelsError
from botyard.extras import EXTRAS, install_command, is_installed, lacking
from botyard.version import __version__

_MARKS: Final = {"ok": "ok  ", "warn": "–   ", "bad": "BAD "}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was looked at.

    Attributes
    ----------
    state : str
        ``ok``, ``warn`` (something is not there that not everybody needs) or ``bad``
        (botyard cannot work so).
    text : str
        What was found, and what to do.
    """

    state: str
    text: str


def _of_python() -> Iterator[Finding]:
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    yield Finding(
        "ok" if good else "bad",
        f"Python {version} on {platform.platform()}"
        + ("" if good else ": 3.11 or newer is needed"),
    )
    for name in ("numpy", "click", "starlette", "uvicorn", "msgspec"):
        try:
            yield Finding("ok", f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding(
                "bad", f"{name} is missing: pip install --force-reinstall botyard"
            )


def _of_extras() -> Iterator[Finding]:
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
            "the compiler is off: kernels run as Python functions, which is slow",
        )
        return

    if is_shipped(PACKAGE, whole=False):
        rest = (
            ""
            if library().is_whole
            else "; others are compiled when first used (all ahead: make kernels)"
        )
        yield Finding("ok", f"kernels come compiled for {library().target}{rest}")
        return

    why = library().why_not or "compiled kernels were built from other sources"
    if chosen == "jit":
        why = "BOTYARD_KERNELS=jit"
    if chosen == "native":
        yield Finding(
            "bad", f"{why}, and BOTYARD_KERNELS=native excludes all other code"
        )
        return

    if not is_installed("jit"):
        yield Finding("bad", f"{why}; {lacking('compiling them', 'jit')}")
        return

    folder = cache_root()
    if not folder.is_absolute():
        yield Finding(
            "warn",
            f"{why}, and there is no home folder: kernels are compiled anew in "
            "each run; set NUMBA_CACHE_DIR",
        )
        return

    compiled = folder.is_dir() and any(folder.rglob("*.nbc"))
    if compiled:
        yield Finding("ok", f"kernels are compiled ({folder})")
    else:
        yield Finding(
            "warn",
            f'{why}: the first run takes 10 to 20 s longer, or run "botyard warmup" ({folder})',
        )

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield Finding(
            "warn",
            f"{folder} cannot be written ({error.strerror}): kernels are compiled anew in each run",
        )


def _of_page() -> Iterator[Finding]:
    static = Path(__file__).parents[1] / "ui" / "static" / "index.html"
    if static.is_file():
        yield Finding("ok", "the page is built")
    else:
        yield Finding(
            "warn",
            "the page is not built: make web builds it in a checkout; wheels have it",
        )


def _of_ports(first: int, count: int) -> Iterator[Finding]:
    for port in (8100, *range(first, first + count)):
        with socket.socket() as probe:
            try:
                if os.name == "posix":
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                what = (
                    "the page takes the next one"
                    if port == 8100
                    else "choose another one with -p"
                )
                yield Finding("warn", f"port {port}: {error.strerror}; {what}")
            else:
                yield Finding("ok", f"port {port} is free")


def _of_ros() -> Iterator[Finding]:
    for name in (
        "ROS_MASTER_URI",
        "ROS_DISTRO",
        "ROS_DOMAIN_ID",
        "RMW_IMPLEMENTATION",
        "ROS_AUTOMATIC_DISCOVERY_RANGE",
    ):
        if name in os.environ:
            yield Finding("ok", f"{name}={os.environ[name]}")

    if shutil.which("roscore"):
        yield Finding("ok", f"roscore: {shutil.which('roscore')}")


def findings(first: int = 8101, count: int = 2) -> Iterator[tuple[str, Finding]]:
    """Everything that is looked at, with the name of its part."""
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
@click.option("--json", "as_json", is_flag=True, help="As JSON, one object a line.")
def command(port: int, as_json: bool) -> int:
    """Look at this installation: what it can do, what it lacks, and how to get it. Ends
    with 0 if botyard can work.
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
