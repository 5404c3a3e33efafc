"""Seeds and identities for the counter-based generator of `kernels.noise`, host side."""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

DEFAULT_SEED: Final = 1


def seed_word(seed: int) -> np.uint64:
    """Any Python integer as the 64-bit word that kernels take (its low 64 bits)."""
    return np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)


def body_uid(name: str) -> int:
    """Stable 64-bit identity of a body: BLAKE2b of its name. The same in every run and on every machine."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
