"""Write the tables of keys into the pages of imported formats.

``python -m tools.format_keys`` replaces the table between the marks of each page of
docs/formats; tests compare them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs/formats"
START, END = "<!-- keys: python -m tools.format_keys -->", "<!-- end of keys -->"
MODULES = {
    "irsim": "irsimkeys",
    "sdf": "sdfkeys",
    "rmf": "rmfkeys",
    "flatland": "flatlandkeys",
    "navground": "navgroundkeys",
    "argos": "argoskeys",
    "mvsim": "mvsimkeys",
    "urdf": "urdfkeys",
}


def main() -> None:
    """Write all tables."""
    for name, module in MODULES.items():
        keys = import_module(f"botyard.formats.importers.{module}").KEYS
        path = DOCS / f"{name}.md"
        before, _, rest = path.read_text("utf-8").partition(START)
        after = rest.partition(END)[2]
        table = "\n".join(keys.markdown())
        path.write_text(f"{before}{START}\n\n{table}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
