"""Limits on the content of files:

the error names the limit, and a user can raise it.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from botyard.errors import (
    ArgumentError,
    BudgetError,
    CommandLineError,
    ExitCode,
    FormatError,
    MapError,
    ModelFileError,
    WorldFileError,
)
from botyard.formats.base import Options, read_bytes, read_source
from botyard.formats.budget import WHAT, Budget, Meter
from botyard.traffic.task import TaskError


def test_a_meter_counts_together_and_says_what_was_passed() -> None:
    meter = Meter(Budget(robots=10, extent=5.5), "lab.yaml", WorldFileError)
    meter.add("robots", 6)
    meter.add("robots", 4)
    with pytest.raises(BudgetError) as error:
        meter.add("robots", 90, line=7)
    assert str(error.value) == (
        "lab.yaml:7: too large: found 100 robots, expected at most 10 (--max-read "
        "robots=NUMBER raises this limit)"
    )
    assert (error.value.limit, error.value.found) == ("robots", 100)
    meter.check("extent", 5.5)
    for far in (5.6, float("nan"), float("inf")):
        with pytest.raises(BudgetError, match="--max-read extent"):
            meter.check("extent", far)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (MapError, ExitCode.MAP_LOAD),
        (WorldFileError, ExitCode.WORLD_INIT),
        (ModelFileError, ExitCode.PARAMETER_FILE),
        (FormatError, ExitCode.WORLD_INIT),
        (TaskError, ExitCode.WORLD_INIT),
    ],
)
def test_the_error_is_one_of_the_format_and_survives_another_process(
    kind: type[MapError], status: ExitCode
) -> None:
    error = Meter(Budget(cells=1), "a", kind).error("cells", 2, 3)
    assert (
        isinstance(error, kind)
        and isinstance(error, BudgetError)
        and error.exit_code == status
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert (again.limit, again.found, again.line, again.exit_code) == (
        "cells",
        2,
        3,
        status,
    )
    plain = pickle.loads(pickle.dumps(kind("reason", "a", 5)))
    assert (str(plain), plain.path, plain.line) == ("a:5: reason", "a", 5)


def test_limits_are_raised_by_name() -> None:
    budget = Budget().raised(["cells=1e9", " robots =5", "extent=1.5"])
    assert (budget.cells, budget.robots, budget.extent) == (10**9, 5, 1.5)
    assert isinstance(budget.cells, int) and budget.bytes == Budget().bytes
    assert set(WHAT) == set(Budget.__dataclass_fields__)
    for text, complaint in (
        ("cell=5", 'did you mean "cells"'),
        ("cells", "expected a number of 0 or more"),
        ("cells=-1", "expected a number of 0 or more"),
        ("cells=nan", "expected a number of 0 or more"),
        ("cells=1e999", "expected a number of 0 or more"),
        ("cells=ten\x1b[2J", r"ten\x1b[2J"),
        ("=5", "expected NAME=NUMBER"),
    ):
        with pytest.raises(CommandLineError) as error:
            Budget().raised([text])
        assert complaint in str(error.value)

    with pytest.raises(
        ArgumentError, match="robots: expected a number of 0 or more, found -1"
    ):
        Budget(robots=-1)


def test_only_plain_files_of_the_allowed_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(b"12345")
    assert read_source(path).data == b"12345"
    with pytest.raises(
        BudgetError,
        match=r"a\.map: too large: found 5 bytes in a file, expected at most 4",
    ):
        read_source(path, Budget(bytes=4))

    # A plain open of a pipe would wait forever.
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(MapError, match=r"expected a file|cannot be read"):
            read_source(tmp_path / name)

    with pytest.raises(MapError, match="cannot be read"):
        read_bytes("a\0b", Meter(Budget(), "a"))
    assert Options().budget == Budget()
