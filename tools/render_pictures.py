"""Makes the pictures of docs/howto/render.md by the code and the command lines that
stand there: ``python -m tools.render_pictures``.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/howto/render.md"
IMAGES = ROOT / "docs/images"


def make(folder: Path) -> None:
    """Run the page's code and its commands that make pictures, in their order, in a folder."""
    for language, block in re.findall(
        r"^```(sh|python)\n(.*?)^```$",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    ):
        if language == "python":
            subprocess.run([sys.executable, "-c", block], cwd=folder, check=True)
            continue

        for line in block.splitlines():
            if "render-" in line:
                subprocess.run(
                    [sys.executable, "-m", *shlex.split(line)], cwd=folder, check=True
                )


def main() -> None:
    """Write the pictures to docs/images."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for name in sorted(
            {*re.findall(r"images/(render-[\w.-]+)", PAGE.read_text("utf-8"))}
        ):
            (IMAGES / name).write_bytes((Path(folder) / name).read_bytes())
            print(f"{IMAGES / name}: {(IMAGES / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
