"""Recordings of runs: write, read, and simulate them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botyard.recording.arrays import Event, Recording, Scans, load
    from botyard.recording.table import export
    from botyard.recording.verify import Proof, resimulate

# Module of each public name; a name is imported at its first use, because arrays and
# simulation load slowly.
_MODULE_OF = {
    "Event": "arrays",
    "Proof": "verify",
    "Recording": "arrays",
    "Scans": "arrays",
    "export": "table",
    "load": "arrays",
    "resimulate": "verify",
}

__all__ = ["Event", "Proof", "Recording", "Scans", "export", "load", "resimulate"]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        import importlib

        return getattr(
            importlib.import_module(f"botyard.recording.{_MODULE_OF[name]}"), name
        )

    raise AttributeError(f"module 'botyard.recording' has no attribute '{name}'")
