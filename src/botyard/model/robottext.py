"""Text of robot files: tables as TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def toml_text(
    table: Mapping[str, Any], remarks: Sequence[str] = (), digits: int = 17
) -> str:
    """Return the text of a robot file.

    Parameters
    ----------
    table : mapping
        Contents: values, and tables of values. None stands for a missing value.
    remarks : sequence of str
        Comments at the start of the file.
    digits : int
        Number of significant digits of numbers; 17 keeps each bit.
    """
    # TOML: values of the root must precede the first table.
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"# {line}" for line in remarks]
    lines += [
        f"{key} = {toml_value(value, digits)}"
        for key, value in table.items()
        if key not in tables and value is not None
    ]
    for key, value in tables.items():
        lines += [
            "",
            f"[{key}]",
            *(
                f"{inner} = {toml_value(one, digits)}"
                for inner, one in value.items()
                if one is not None
            ),
        ]
    return "\n".join(lines) + "\n"


def toml_value(value: Any, digits: int = 17) -> str:
    """Return a value in TOML's notation, with inline tables inside of lists."""
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{name} = {toml_value(one, digits)}"
            for name, one in value.items()
            if one is not None
        )
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(one, digits) for one in value) + "]"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "-inf" if value < 0 else "inf"
        return repr(float(f"{value:.{digits}g}"))
    return json.dumps(value)


def tables_equal(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    """Return whether two tables are equal.

    Parameters
    ----------
    a, b : object
        Plain data: mappings, lists, numbers and texts. Missing values equal None.
    tolerance : float
        Greatest relative difference of two numbers, for example by rounding.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return all(tables_equal(a.get(k), b.get(k), tolerance) for k in {*a, *b})
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(
            tables_equal(x, y, tolerance) for x, y in zip(a, b, strict=True)
        )
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-9)
    return bool(a == b)


def merged(own: Any, before: Any, after: Any) -> Any:
    """Return a value with the changes between two other values (three-way merge).

    Parameters
    ----------
    own : object
        Plain data to change: mappings, lists, numbers and texts.
    before, after : object
        Plain data of the same kind. `own` may have more keys, and keeps them.
    """
    if tables_equal(before, after, 1e-7):
        return own
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        kept = dict(own) if isinstance(own, Mapping) else {}
        for key in {**before, **after}:
            value = merged(kept.get(key), before.get(key), after.get(key))
            kept.pop(key, None)
            if value is not None:
                kept[key] = value
        return kept
    lists = [v for v in (own, before, after) if isinstance(v, list | tuple)]
    # Lists of numbers, such as poses, are merged element by element. Lists of lists, such
    # as the corners of an outline, are replaced as a whole.
    is_flat = len(lists) == 3 and not any(isinstance(v, list | tuple) for v in after)
    if is_flat and len({*map(len, lists)}) == 1:
        return [merged(*three) for three in zip(own, before, after, strict=True)]
    return after


__all__ = ["merged", "tables_equal", "toml_text", "toml_value"]
