"""``python tools/ros2_peers.py FOLDER``: environments with rclpy and Fast DDS of two
distributions of ROS 2, and one with colcon, made of wheels, for the tests of tests/ros.

They get the interfaces that have no wheels: our own definitions, as rosidl compiles
them. Then colcon builds ros/botyard_msgs. Nothing is done when neither these nor the
lock files have changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import platformdirs

from botyard.protocols.ros_messages import simulation_interfaces as simulation
from botyard.protocols.ros_messages.typedefinitions import ACTIONS, EXTRA, SERVICES

ROOT: Final = Path(__file__).resolve().parent.parent
WHEELS: Final = ROOT / "tests/ros/wheels"
DISTRIBUTIONS: Final = ("jazzy", "kilted")
COLCON: Final = "colcon"
MESSAGES: Final = ROOT / "ros/botyard_msgs"
BUILT_FOR: Final = "jazzy"
"""Distribution for which colcon builds the messages."""
PYTHONS: Final = ("3.11", "3.12", "3.13")
"""Versions that have wheels."""
GENERATED: Final = ("tf2_msgs", "botyard_msgs", "rosaria")
"""Packages without wheels, besides simulation_interfaces."""


def definitions(distro: str) -> Iterator[tuple[str, str]]:
    """Yield the names of files, and the texts of interfaces."""
    for name, text in simulation.messages(distro).items():
        yield f"{simulation.PACKAGE}/msg/{name}.msg", text
    for name, parts in simulation.services(distro).items():
        yield f"{simulation.PACKAGE}/srv/{name}.srv", "\n---\n".join(parts)
    for name, texts in ACTIONS.items():
        yield f"{name.replace('/', '/action/')}.action", "\n---\n".join(texts)
    for name, text in EXTRA.items():
        if name.partition("/")[0] in GENERATED:
            yield f"{name.replace('/', '/msg/')}.msg", text
    for name, parts in SERVICES.items():
        if name.partition("/")[0] in GENERATED:
            yield f"{name.replace('/', '/srv/')}.srv", "\n---\n".join(parts)
    # Definitions of all distributions, and of this one.
    for root in (WHEELS, WHEELS / distro):
        for path in sorted((root / "nav2_msgs").rglob("*.*")):
            yield path.relative_to(root).as_posix(), path.read_text("utf-8").strip()


def digest(*texts: str) -> str:
    """Return a key of texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def version(python: str) -> str:
    """Return the version of a Python that can make environments; empty if it cannot."""
    code = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def base() -> tuple[str, str]:
    """Return a Python that has wheels, and its version."""
    own = str(getattr(sys, "_base_executable", sys.executable))
    for python in (own, *(f"python{v}" for v in PYTHONS), "/usr/bin/python3"):
        found = version(python)
        if found in PYTHONS:
            return python, found
    raise SystemExit(
        f"ros2_peers: expected a Python of version {', '.join(PYTHONS)} with venv, "
        "found none"
    )


def clean() -> dict[str, str]:
    """Return the environment variables without the ones of another Python: the wheels start
    Python again with all of them.
    """
    foreign = ("PYTHON", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "_ROS", "AMENT", "ROS")
    return {k: v for k, v in os.environ.items() if not k.startswith(foreign)}


def install(folder: Path, lock: Path, python: str) -> None:
    """Make an environment of the packages that a lock file names."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True, env=clean())
    command = [str(folder / "bin/python"), str(ROOT / "tools/install.py")]
    subprocess.run(
        [*command, "--require-hashes", "--requirement", str(lock)],
        check=True,
        env=clean(),
    )


def cache() -> Path:
    """Return the folder of what is made once for all checkouts."""
    return Path(platformdirs.user_cache_path("botyard")) / "ros2-interfaces"


def interfaces(folder: Path, distro: str, key: str) -> Path:
    """Return the folder of the compiled interfaces, which is made once for all checkouts."""
    kept = cache()
    out = kept / f"{distro}-{key}"
    if out.is_dir():
        return out

    print(f"peers: compiling interfaces for {distro} (a minute)", flush=True)
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as work:
        for name, text in definitions(distro):
            path = Path(work) / "definitions" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", "utf-8")

        command = [str(folder / "bin/python"), str(WHEELS / "generate.py")]
        done = subprocess.run(
            [*command, f"{work}/definitions", f"{work}/out"],
            env=clean(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"ros2_peers: {distro}: {done.stderr[-2000:]}")
        # Another checkout may have finished the same folder in the meantime.
        if not out.is_dir():
            os.replace(f"{work}/out", out)

    return out


def relocate(folder: Path) -> None:
    """Let CMake's files name headers of this environment.

    Those of the wheels name folders of the machine that built them.
    """
    code = "import numpy, sysconfig as s; print(s.get_path('include'), numpy.get_include())"
    command = [str(folder / "bin/python"), "-c", code]
    done = subprocess.run(
        command, env=clean(), capture_output=True, text=True, check=True
    )
    python, numpy = done.stdout.split()
    for path in (folder / "share").glob("*/cmake/*Export.cmake"):
        old = path.read_text("utf-8")
        new = re.sub(r"/opt/python/[^;\"]*/include/python3\.\d+", python, old)
        new = re.sub(r"/opt/python/[^;\"]*/numpy/[^;\"]*include", numpy, new)
        if new != old:
            path.write_text(new, "utf-8")


def built(environments: Path) -> Path:
    """Return the folder where colcon has installed botyard_msgs, once for all checkouts.

    Parameters
    ----------
    environments : Path
        Folder of the environments.

    Raises
    ------
    SystemExit
        colcon or CMake fails.
    """
    folder, tools = environments / BUILT_FOR, environments / COLCON
    keys = [(at / ".wheels").read_text() for at in (folder, tools)]
    files = sorted(p for p in MESSAGES.rglob("*") if p.is_file())
    texts = [text for p in files for text in (p.name, p.read_text("utf-8"))]
    out = cache() / f"colcon-{digest(*keys, *texts)}"
    if out.is_dir():
        return out

    print("peers: colcon builds botyard_msgs (a minute)", flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        env = {
            **clean(),
            "PATH": f"{folder}/bin:{tools}/bin:{os.environ['PATH']}",
            "AMENT_PREFIX_PATH": str(folder),
            "CMAKE_PREFIX_PATH": str(folder),
            "LD_LIBRARY_PATH": str(folder / "lib"),
        }
        command = [
            *(str(tools / "bin/colcon"), "--log-base", f"{work}/log", "build"),
            *("--base-paths", str(MESSAGES), "--build-base", f"{work}/build"),
            *("--install-base", f"{work}/out", "--cmake-args", "-DBUILD_TESTING=OFF"),
            *(f"-DPython3_EXECUTABLE={folder}/bin/python", "-DCMAKE_CXX_FLAGS=-O0"),
        ]
        done = subprocess.run(
            command, env=env, cwd=work, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"ros2_peers: colcon: {(done.stdout + done.stderr)[-3000:]}"
            )
        # Another checkout may have finished the same folder in the meantime.
        if not out.is_dir():
            os.replace(f"{work}/out", out)

    return out


def has(stamp: Path, key: str) -> bool:
    """Return whether a file holds a key."""
    return stamp.exists() and stamp.read_text() == key


def wheels(folder: Path, name: str) -> str:
    """Install the wheels of a lock file, if they have changed, and return their key."""
    lock = WHEELS / f"{name}.lock"
    python, found = base()
    key = digest(lock.read_text("utf-8"), found)
    stamp = folder / ".wheels"
    if not has(stamp, key):
        install(folder, lock, python)
        stamp.write_text(key)
    return key


def make(folder: Path, distro: str) -> None:
    """Make the environment of a distribution, as far as its parts have changed."""
    key = wheels(folder, distro)
    texts = [text for pair in definitions(distro) for text in pair]
    relocate(folder)
    ours = digest(key, (WHEELS / "generate.py").read_text("utf-8"), *texts)
    stamp = folder / ".interfaces"
    if not has(stamp, ours):
        made = interfaces(folder, distro, ours)
        # copytree replaces files, but no links.
        for link in (made / "lib").glob("*.so"):
            (folder / "lib" / link.name).unlink(missing_ok=True)
        shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
        stamp.write_text(ours)


def main() -> int:
    """Run the command."""
    for distro in DISTRIBUTIONS:
        make(Path(sys.argv[1]).absolute() / distro, distro)
    wheels(Path(sys.argv[1]).absolute() / COLCON, COLCON)
    built(Path(sys.argv[1]).absolute())
    return 0


if __name__ == "__main__":
    sys.exit(main())
