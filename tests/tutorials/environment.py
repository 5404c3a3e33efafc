"""The environment of a reader: `botyard` on the PATH, and an empty HOME."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final

from botyard.native.cache import cache_root
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = ROOT / "src/botyard/native/lib"
_SCRIPT: Final = """#!{python}
import re
import sys
from {module} import main
sys.exit(main())
"""
_PROGRAMS: Final = {"botyard": "botyard.__main__", "pip": "pip._internal.cli.main"}


def layered(folder: Path, below: Path, programs: dict[str, str]) -> Path:
    """Make a virtual environment that sees the packages of another one.

    The reader installs packages into it, and not into the other one.
    """
    venv.EnvBuilder(symlinks=os.name == "posix").create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    line = f"import site; site.addsitedir({str(below)!r})\n"
    (site / "below.pth").write_text(line, "utf-8")
    for name, module in programs.items():
        script = folder / "bin" / name
        script.write_text(_SCRIPT.format(python=folder / "bin/python", module=module))
        script.chmod(0o755)
    return folder


def variables(home: Path, *environments: Path) -> dict[str, str]:
    """Return the variables of a terminal; the first environment is active."""
    path = [*(str(folder / "bin") for folder in environments), "/usr/local/sbin"]
    path += ["/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    env = {
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "100",
        # Packages that pip builds take their tools from the checkout's environment: there
        # is no network. In this variable of pip, 0 means that nothing is isolated.
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INDEX": "1",
    }
    if not LIBRARY.is_dir():
        # Without the library of kernels, each page would compile them again.
        env["NUMBA_CACHE_DIR"] = str(cache_root())
    return env


def installed(folder: Path) -> Path:
    """Make an environment with botyard as a wheel of this checkout brings it.

    The wheel's requirements are the packages of the developers' environment. A checkout
    without the library of kernels, whose build takes minutes, is used in place.
    """
    made = layered(folder, Path(sysconfig.get_path("purelib")), _PROGRAMS)
    if LIBRARY.is_dir():
        wheels = folder / "wheels"
        build = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
            "-d",
            wheels,
        ]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=600)
        pip = [
            folder / "bin/pip",
            "install",
            "--quiet",
            "--ignore-installed",
            "--no-deps",
        ]
        env = variables(folder)
        subprocess.run([*pip, *wheels.iterdir()], env=env, check=True, timeout=PATIENCE)
    return made


def environment(folder: Path, below: Path) -> Path:
    """Make an environment of one reader, over one with botyard."""
    (site,) = below.glob("lib/python*/site-packages")
    return layered(folder, site, _PROGRAMS)


assert sys.prefix != sys.base_prefix, "tests run in a virtual environment"
