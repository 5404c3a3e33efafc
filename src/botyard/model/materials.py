"""Materials of surfaces, as laser scanners see them.

A surface sends back a matt share of the light in all directions (Lambert), and a glossy share
near the mirror direction (Phong). The rest is absorbed, or passes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

WHITE: Final = 0.9
"""Matt share of the white target to which data sheets refer.

Slamtec and SICK state ranges for targets of 90 % and 10 % remission.
"""


class Material(NamedTuple):
    """Shares of the light that falls on a surface.

    Attributes
    ----------
    matt : float
        Share that is scattered in all directions.
    glossy : float
        Share that is reflected near the mirror direction.
    clear : float
        Share that passes through.
    """

    matt: float
    glossy: float = 0.0
    clear: float = 0.0


MATERIALS: Final[Mapping[str, Material]] = MappingProxyType(
    {
        # The first one is the material of surfaces that name none.
        "": Material(WHITE),
        "white": Material(WHITE),
        "grey": Material(0.18),
        "black": Material(0.1),
        "velvet": Material(0.01),
        # Two faces of glass with the refractive index 1.5 reflect 4 % each (Fresnel).
        "glass": Material(0.0005, 0.08, 0.9),
        "mirror": Material(0.0005, 0.9),
        "metal": Material(0.2, 0.5),
        # Half of the area of a wire mesh, a fence or a curtain of lace is open.
        "mesh": Material(0.4, 0.0, 0.5),
    }
)
"""Materials by name. White and black are the targets of data sheets, grey is a grey card.

The other numbers are typical, chosen for this model.
"""
CODES: Final[Mapping[str, int]] = MappingProxyType(
    {name: code for code, name in enumerate(MATERIALS)}
)
"""Number of each material in the arrays of kernels."""

__all__ = ["CODES", "MATERIALS", "WHITE", "Material"]
