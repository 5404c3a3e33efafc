from __future__ import annotations

import pytest

from botyard.model.colors import GREY, hex_of, rgb


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("red", (255, 0, 0)),
        ("light blue", (173, 216, 230)),
        ("LightBlue", (173, 216, 230)),
        ("gray30", (76, 76, 76)),
        ("grey100", (255, 255, 255)),
        ("NavyBlue", (0, 0, 128)),
        ("red1", (255, 0, 0)),
        ("red3", (205, 0, 0)),
        ("green4", (0, 70, 0)),
        ("#12ab34", (18, 171, 52)),
        ("no such colour", GREY),
        ("gray101", GREY),
        ("", GREY),
    ],
)
def test_names_of_x11(name: str, value: tuple[int, int, int]) -> None:
    """Values of rgb.txt; numbered shades follow CSS where the CSS colour of that name
    differs (green).
    """
    assert rgb(name) == value
    assert hex_of(name) == "#{:02x}{:02x}{:02x}".format(*value)
