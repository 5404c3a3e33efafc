"""Writes the interfaces of ros/botyard_msgs from the program's definitions. Run by
``make compatibility``; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

from tools.ros2_peers import definitions

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "ros"
PACKAGE = "botyard_msgs"


def interfaces() -> dict[str, str]:
    """Return the texts of messages and services by their file."""
    return {
        name: f"{text.strip()}\n"
        for name, text in definitions("jazzy")
        if name.startswith(f"{PACKAGE}/")
    }


def main() -> None:
    """Write the files."""
    for name, text in interfaces().items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
