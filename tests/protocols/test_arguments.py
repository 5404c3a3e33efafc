"""The table of arguments is true of the handlers that read them."""

from __future__ import annotations

import inspect
import re

import pytest

from botyard.protocols.pioneer import accessoryhandlers, handlers, simhandlers
from botyard.protocols.pioneer.arguments import ARGUMENTS, DATA
from botyard.protocols.pioneer.commands import C

# Numbers 35 to 38 have two meanings; the table describes them on a real robot.
HANDLERS = handlers.table(laser_compat=True) | handlers.table(laser_compat=False)


def test_every_supported_command_and_operation_has_a_row() -> None:
    assert set(HANDLERS) == set(ARGUMENTS)
    assert set(simhandlers.OPERATIONS) == set(DATA)


@pytest.mark.parametrize("number", ARGUMENTS, ids=lambda c: c.name)
def test_units_are_those_that_the_handler_converts(number: C) -> None:
    source = inspect.getsource(HANDLERS[number])
    unit = ARGUMENTS[number].unit
    if "_m(packet)" in source:
        assert unit.startswith("mm")
    elif "_rad(packet)" in source:
        assert unit.startswith("deg")
    elif "from_mm(r." in source:
        assert unit == "mm, mm, deg"
    else:
        assert not re.match(r"mm/s|deg/s", unit)
    reads = re.search(
        r"packet\.(?:integer|string|byte_pair|reader|data)|_m\(|_rad\(", source
    )
    if not ARGUMENTS[number].kind:
        assert reads is None
    assert accessoryhandlers.CARRY_UNIT == 0.02, "GRIPPERVAL states 20 ms"
