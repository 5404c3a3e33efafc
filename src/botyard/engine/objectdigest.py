"""Digests of descriptions, by which saved states and recordings refer to them."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np

from botyard.model.shapes import digested


def object_digest(value: object) -> bytes:
    """Return the digest of a description, 16 bytes.

    A description is a frozen dataclass of the model, with arrays.
    `botyard.model.shapes` defines what the digest covers.

    Parameters
    ----------
    value : object
        Description, such as a robot model or a scene.
    """
    return hashlib.blake2b(
        msgspec.msgpack.encode(digested(value), enc_hook=_plain), digest_size=16
    ).digest()


def _plain(value: object) -> object:
    """Convert a value that MessagePack cannot encode to one that it can."""
    if isinstance(value, np.ndarray):
        return [
            value.dtype.str,
            list(value.shape),
            np.ascontiguousarray(value).tobytes(),
        ]

    if isinstance(value, np.generic):
        return value.item()
    return str(value)


__all__ = ["object_digest"]
