"""Bounded parser of untrusted JSON, and short descriptions of values for messages."""

from __future__ import annotations

import json
import re
from typing import Any

from botyard.errors import FormatError, MapError
from botyard.formats.budget import Meter
from botyard.names import shown


def loads(text: str, meter: Meter, error: type[FormatError] = MapError) -> Any:
    """Parse a JSON text.

    Objects of the text count as entities; the caller counts the values of arrays.

    Parameters
    ----------
    text : str
        JSON text.
    meter : Meter
        Budget, and path for messages.
    error : type of FormatError
        Class of the errors.

    Raises
    ------
    FormatError
        The text is not JSON; the error is of the class `error` and names the line.
    BudgetError
        There are too many objects, or they are nested too deeply.
    """
    # Braces in strings count as well. The bound is too high then, which is harmless.
    meter.add("entities", text.count("{"))
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise error(f"not JSON: {problem.msg}", meter.path, problem.lineno) from None
    # The decoder recurses once per level, so deep nesting ends at Python's recursion
    # limit.
    except RecursionError:
        raise meter.error(
            "nesting", max(_depth(text), meter.budget.nesting + 1)
        ) from None
    except ValueError as problem:
        # Python refuses to convert integers of thousands of digits.
        raise error(f"not JSON: {shown(problem, 100)}", meter.path) from None


def _depth(text: str) -> int:
    """Return the approximate nesting depth of a text, for the message only.

    Brackets in strings count as well.
    """
    deepest = depth = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth += 1 if match[0] in "[{" else -1
        deepest = max(deepest, depth)

    return deepest


def brief(value: Any, limit: int = 60) -> str:
    """Shorten a value for a message to one line of bounded length.

    Parameters
    ----------
    value : object
        Value of JSON or YAML, of any size and depth. Only its first four elements are
        shown.
    limit : int
        Largest number of characters.
    """
    # Only the first four elements are visited, because the value may be huge.
    if isinstance(value, dict):
        inner = ", ".join(
            f"{shown(k, 20)}: …" for k, _ in zip(value, range(4), strict=False)
        )
        return shown("{" + inner + (", …" if len(value) > 4 else "") + "}", limit)

    if isinstance(value, list | tuple):
        inner = ", ".join(
            "[…]"
            if isinstance(v, list | tuple)
            else "{…}"
            if isinstance(v, dict)
            else brief(v, 20)
            for v, _ in zip(value, range(4), strict=False)
        )
        return shown("[" + inner + (", …" if len(value) > 4 else "") + "]", limit)

    if isinstance(value, str):
        return '"' + shown(value, limit) + '"'
    # Python refuses to print integers of thousands of digits.
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and value.bit_length() > 200
    ):
        return "a whole number of more than 60 digits"

    return shown(value, limit)


__all__ = ["brief", "loads"]
