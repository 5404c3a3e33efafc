"""Check the files of a release: ``python -m tools.distcheck dist [--install]``.

Prints contents, sizes and dependencies with their budgets, and fails where one is exceeded
or a file is missing. ``--install`` installs the wheel for this platform in a clean
environment of each Python that is there, and drives a robot in it.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""Versions of Python that a release supports."""
MAX_WHEEL: Final = 6_000_000
"""Budget of a wheel, bytes."""
MAX_UNPACKED: Final = 20_000_000
"""Budget of the unpacked package, bytes."""
MAX_SDIST: Final = 8_000_000
"""Budget of the source archive, bytes."""
MAX_DEPENDENCIES: Final = 13
"""Budget of packages that a wheel requires without extras."""
NEEDED: Final = (
    "botyard/__init__.py",
    "botyard/py.typed",
    "botyard/ui/static/index.html",
    "botyard/model/builtin/robots/p3dx.toml",
)
"""Files of each wheel."""
LIBRARY: Final = "botyard/native/lib/kernels."
"""Start of the name of the library of kernels, in wheels for a platform."""
DRIVE: Final = """
import botyard
sim = botyard.Simulation.load("office", seed=1)
robot = sim.add_robot("p3dx", lasers=["lms200"])
while sim.time < 2:
    robot.command(v=0.3)
    sim.step()
assert robot.laser.read().ranges.min() > 0.1 and robot.odom.x > 0.2, robot.odom
print(f"Python {sys.version.split()[0]}: botyard {botyard.__version__} drives")
"""


class Package(NamedTuple):
    """Properties of a wheel or a source archive.

    Attributes
    ----------
    path : Path
        The file.
    names : frozenset of str
        Names of its files.
    unpacked : int
        Size of its files, bytes.
    requires : tuple of str
        Required packages without extras.
    """

    path: Path
    names: frozenset[str]
    unpacked: int
    requires: tuple[str, ...]


def read_wheel(path: Path) -> Package:
    """Return the properties of a wheel."""
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        (name,) = (i.filename for i in infos if i.filename.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    requires = (one for one in metadata.get_all("Requires-Dist", []))
    return Package(
        path,
        frozenset(i.filename for i in infos),
        sum(i.file_size for i in infos),
        # Numba is for processors that no wheel with kernels is for.
        tuple(
            r for r in requires if "extra ==" not in r and "platform_machine" not in r
        ),
    )


def wheel_problems(wheel: Package) -> Iterator[str]:
    """Yield the faults of a wheel."""
    for needed in NEEDED:
        if needed not in wheel.names:
            yield f"{wheel.path.name}: no {needed}"
    has_library = any(name.startswith(LIBRARY) for name in wheel.names)
    if has_library == wheel.path.name.endswith("-any.whl"):
        yield f"{wheel.path.name}: {'a' if has_library else 'no'} library of kernels"
    for name in sorted(wheel.names):
        if name.endswith((".pyc", ".js.map", ".css.map")) or name.startswith(
            ("tests/", "tools/")
        ):
            yield f"{wheel.path.name}: {name} is not for users"
    for what, found, most in (
        ("size", wheel.path.stat().st_size, MAX_WHEEL),
        ("unpacked size", wheel.unpacked, MAX_UNPACKED),
        ("dependencies", len(wheel.requires), MAX_DEPENDENCIES),
    ):
        if found > most:
            yield f"{wheel.path.name}: {what}: expected at most {most}, found {found}"


def sdist_problems(path: Path) -> Iterator[str]:
    """Yield the faults of a source archive."""
    if path.stat().st_size > MAX_SDIST:
        yield (
            f"{path.name}: size: expected at most {MAX_SDIST}, found {path.stat().st_size}"
        )
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "LICENSE", *(f"src/{one}" for one in NEEDED)):
        if needed not in names:
            yield f"{path.name}: no {needed}"


def check(folder: Path) -> list[str]:
    """Print a table of the files of a release, and return their faults.

    Parameters
    ----------
    folder : Path
        Folder with wheels and a source archive.
    """
    problems = []
    for path in sorted(folder.iterdir()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        size = path.stat().st_size / 1e6
        if path.suffix == ".whl":
            wheel = read_wheel(path)
            problems += wheel_problems(wheel)
            print(
                f"{path.name}: {size:.2f} MB of {MAX_WHEEL / 1e6:g}, unpacked "
                f"{wheel.unpacked / 1e6:.1f} MB of {MAX_UNPACKED / 1e6:g}, "
                f"{len(wheel.requires)} dependencies of {MAX_DEPENDENCIES}, sha256 {digest}"
            )
        elif path.name.endswith(".tar.gz"):
            problems += sdist_problems(path)
            print(f"{path.name}: {size:.2f} MB of {MAX_SDIST / 1e6:g}, sha256 {digest}")
    if not any(folder.glob("*.whl")) or not any(folder.glob("*.tar.gz")):
        problems.append(f"{folder}: expected a wheel and a source archive")
    return problems


def pythons() -> list[Path]:
    """Return the interpreters of `PYTHONS` that are there and work."""
    found = []
    for version in PYTHONS:
        path = shutil.which(f"python{version}")
        # A shim of pyenv may be there without its Python.
        if (
            path
            and not subprocess.run([path, "-c", ""], capture_output=True).returncode
        ):
            found.append(Path(path))
    return found


def install(folder: Path) -> list[str]:
    """Install the wheel for this platform in clean environments; return the faults.

    Parameters
    ----------
    folder : Path
        Folder with the wheels.
    """
    problems = []
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    for python in pythons():
        with tempfile.TemporaryDirectory() as place:
            # An empty HOME: a user's first start.
            clean = env | {"HOME": place}
            made = Path(place, "env")
            subprocess.run([python, "-m", "venv", made], check=True, env=clean)
            pip = [made / "bin/python", "-m", "pip", "--disable-pip-version-check"]
            # pip chooses the wheel of this platform; settings of pip stay.
            done = subprocess.run(
                [*pip, "install", "-q", "--find-links", folder.resolve(), "botyard"],
                env=env,
            )
            if not done.returncode:
                done = subprocess.run(
                    [made / "bin/python", "-c", f"import sys\n{DRIVE}"],
                    cwd=place,
                    env=clean,
                )
            if done.returncode:
                problems.append(f"{python.name}: exit status {done.returncode}")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args(arguments)
    problems = install(options.folder) if options.install else check(options.folder)
    for problem in problems:
        print(f"distcheck: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
