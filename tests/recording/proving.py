"""Helpers for tests of recorded runs."""

from __future__ import annotations

from pathlib import Path

from botyard.recording import resimulate


def prove(path: Path, steps: int) -> None:
    """Re-simulate a recording and compare."""
    proof = resimulate(path)
    assert proof.divergence is None, str(proof.divergence)
    assert proof.steps >= steps and proof.states >= 2 and not proof.notes
