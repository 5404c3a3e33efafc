"""Protocols know a robot only by `RobotPort`:

they import without the engine, the simulation and the compiler.
"""

import subprocess
import sys
from pathlib import Path

import botyard.protocols

ROOT = Path(botyard.protocols.__file__).parent


def test_protocols_need_neither_the_engine_nor_its_compiler() -> None:
    modules = ["botyard.model.robotport"]
    for path in ROOT.rglob("*.py"):
        modules.append(
            ".".join(
                ("botyard", "protocols", *path.relative_to(ROOT).with_suffix("").parts)
            )
        )

    assert len(modules) > 50
    program = f"""
import importlib, sys
for name in {modules!r}:
    try:
        importlib.import_module(name.removesuffix(".__init__"))
    except ImportError as error:  # of an extra that is not installed
        if "botyard" in str(error):
            raise
# files of devices, which the registry finds by their names, have columns (engine.tables) and nothing else of it
above = ("botyard.engine.simulation", "botyard.engine.commands", "botyard.engine.kernels", "botyard.sim", "botyard.formats", "numba")
found = [m for m in sys.modules if m.startswith(above)]
assert not found, found
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
