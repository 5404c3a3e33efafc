"""``python -m botyard`` and the console script ``botyard``.

Signal handlers are installed before anything else is imported.
"""

from __future__ import annotations

from botyard.cli import interrupts


def main() -> None:
    """Run the command line of this process."""
    interrupts.begin()
    from botyard.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
