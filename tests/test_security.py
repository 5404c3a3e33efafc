"""The tables of the page about limits equal the constants of the code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from botyard.formats.budget import Budget

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/limits.md"
UNITS = {
    "": 1.0,
    "s": 1.0,
    "ms": 1e-3,
    "bytes": 1.0,
    "KiB": 1024.0,
    "MiB": 1024.0**2,
    "%": 0.01,
}


def rows(header: str) -> list[list[str]]:
    """Return the cells of all tables whose header starts with a text."""
    table = []
    for part in PAGE.read_text("utf-8").split(header)[1:]:
        for line in part.splitlines()[2:]:
            if not line.startswith("|"):
                break
            table.append([cell.strip() for cell in line.strip("|").split("|")])

    return table


def number(text: str) -> float:
    found = re.match(r"([\d,.]+)\s*(KiB|MiB|ms|s|bytes|%)?(?=\W|$)", text)
    assert found, text
    return float(found[1].replace(",", "")) * UNITS[found[2] or ""]


def test_limits_of_reading_are_told_as_they_are() -> None:
    told = {
        cells[0].strip("`"): number(cells[2]) for cells in rows("| limit of reading |")
    }
    budget = Budget()
    assert told == {
        name: float(getattr(budget, name)) for name in Budget.__dataclass_fields__
    }, (
        'the table "limit of reading" of docs/reference/limits.md has one row for each field of Budget, with its default'
    )


def test_limits_of_clients_are_told_as_they_are() -> None:
    table = rows("| limit | value |")
    constants = 0
    for what, default, where in table:
        for name in re.findall(r"`([a-z_.0-9]+\.[A-Z][A-Z_0-9]*)`", where):
            module, _, constant = name.rpartition(".")
            value = getattr(
                importlib.import_module(f"botyard.{module}"), constant, None
            )
            assert value is not None, (
                f"docs/reference/limits.md names {name}, which is not there: {what}"
            )
            assert number(default) == float(value), f"{what}: {name} is {value}"
            constants += 1

    assert constants >= 60


OF_FORMATS = {
    "control.placing.MAX_SEED",
    "formats.importers.values.MAX_NUMBER",
    "control.trips.MAX_GOAL_SPEED",
    "formats.importers.shapes.MAX_SAGITTA",
    "formats.importers.shapes.MAX_SIDE",
    "api.arguments.MAX_SEED",
    "app.assembly.MAX_NAMED",
    "processes.safefile.MAX_ATTEMPTS",
    "processes.safefile.MAX_LOCKED_BYTES",
    "servers.hub.MAX_LATE_S",
    "servers.mdns.MAX_LABEL",
    "servers.mdns.MAX_VALUE",
    "interfaces.ros.traffic.MAX_ID",
    "protocols.vda5050.orders.MAX_ID",
    "protocols.pioneer.batch.MAX_SCANS",
    "protocols.pioneer.packet.MAX_DATA",
    "protocols.pioneer.packet.MAX_PACKET",
    "app.declaration.MAX_READ_HELP",
    "studies.runners.MAX_WORLDS",
    "formats.base.MAX_LISTED",
    "formats.drawing.MAX_SAGITTA",
    "formats.stagescene.MAX_MOVABLE_PIXELS",
    "protocols.ambf.stepping.MAX_CATCH_UP",
    "protocols.ros_messages.reconfigure.MAX_RAMP",
    "protocols.rosbridge.values.MAX_FLOAT32",
    "protocols.rtps.wire.MAX_NUMBER",
    "protocols.rtps.wire.MAX_COUNT",
    "protocols.rtps.limits.MAX_SET_BITS",
    "protocols.rtps.limits.MAX_DATAGRAM_BYTES",
    "protocols.rtps.limits.MAX_LOCAL_DATAGRAM_BYTES",
    "protocols.rtps.limits.MAX_DATA_BYTES",
    "protocols.rtps.limits.MAX_LOCAL_DATA_BYTES",
    "servers.ros.rtps.MAX_PACKET_BYTES",
    "servers.ros.rtps.MAX_INDEX",
    "calibration.covariance.MAX_NEWTON_STEPS",
    "calibration.matching.MAX_CURVE_M",
    "calibration.matching.MAX_SLOPE",
    "calibration.matching.MAX_UNEXPLAINED",
    "calibration.motion.MAX_LATENCY_S",
    "calibration.motion.MAX_REFINEMENTS",
    "calibration.odometry.MAX_OUTLIER_ROUNDS",
    "calibration.odometry.MAX_VARIANCE_SPREAD",
    "calibration.ranges.MAX_BIAS_DEVIATION_M",
}
"""Not limits on what others send: the greatest value a format of ours can express,
accuracies, defaults.
"""
LIMIT = re.compile(
    r"^((?:MAX|MOST|LONGEST|TALLEST)(?:_[A-Z_0-9]+)?)\b.*?=", re.MULTILINE
)


def test_every_limit_of_what_others_send_is_told() -> None:
    source = PAGE.parents[2] / "src/botyard"
    told = set(re.findall(r"`([a-z_.0-9]+\.[A-Z][A-Z_0-9]*)`", PAGE.read_text("utf-8")))
    limits = set()
    for path in source.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        if module.partition(".")[0] in {
            "calibration",
            "cli",
            "clients",
            "api",
            "app",
            "control",
            "interfaces",
            "errors",
            "formats",
            "names",
            "pictures",
            "processes",
            "protocols",
            "recording",
            "servers",
            "studies",
            "traffic",
        }:
            limits |= {
                f"{module}.{name}" for name in LIMIT.findall(path.read_text("utf-8"))
            }

    assert len(limits) > 100
    untold = limits - told - OF_FORMATS
    assert not untold, (
        'add a row for each to a table "limit | value" of docs/reference/limits.md, or its name to OF_FORMATS in '
        f"tests/test_security.py if it is no limit on what others send: {', '.join(sorted(untold))}"
    )
