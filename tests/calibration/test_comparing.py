"""Comparison of two logs, in Python and by command."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from botyard.calibration import Log, Series, calibrate, compare
from botyard.calibration.comparing import write_comparison
from botyard.calibration.report import write_report
from botyard.formats.models import load_robot as load_file
from botyard.model.library import load_robot
from tests.calibration.making import CLOCK_S, HALL, Known, twenty
from tests.cli.test_cli import call

BASE = load_robot("p3dx")


def with_truth(one: Known) -> Log:
    return replace(one.log, truth=one.truth.shifted(-CLOCK_S))


def test_what_two_logs_tell() -> None:
    """Drift, scan residuals and timing agree with the known robots."""
    a, b = twenty()[7], twenty()[8]
    found = compare(with_truth(a), with_truth(b), BASE, scene=HALL)
    by_name = {one.name: one for one in found.quantities}
    for name, value, size in (
        ("drift along on each m", "forward error", 1.0),
        ("drift of heading for each turn of 360°", "turning error", 2 * np.pi),
        ("accel x", "accel x", 1.0),
        ("latency", "latency", 1.0),
    ):
        one = by_name[name]
        assert one.real is not None
        assert one.simulated is not None
        assert one.real.value == pytest.approx(
            size * a.values[value], abs=0.02 * size
        ), name
        assert one.simulated.value == pytest.approx(
            size * b.values[value], abs=0.02 * size
        ), name

    bias = by_name["mean residual of ranges"]
    assert bias.real is not None
    assert bias.real.value == pytest.approx(a.values["range_bias"], abs=0.006)
    rate = by_name["rate of odometry"]
    assert rate.real is not None
    assert rate.real.value == pytest.approx(10.0, rel=1e-6)
    assert not by_name["accel a"].is_alike
    same = compare(with_truth(a), with_truth(a), BASE, scene=HALL)
    assert all(one.is_alike in (True, None) for one in same.quantities)


def test_jitter_and_what_is_missing() -> None:
    rng = np.random.default_rng(5)
    one = with_truth(twenty()[9])
    late = one.odometry.time + np.abs(rng.normal(0.0, 0.02, len(one.odometry)))
    jittering = replace(
        one,
        odometry=Series.of(late, one.odometry.values),
        commands=Series(),
        scans=None,
        truth=Series(),
    )
    found = compare(jittering, one, BASE)
    jitter = next(
        q for q in found.quantities if q.name.startswith("jitter of odometry")
    )
    assert jitter.real is not None
    assert jitter.simulated is not None
    assert 0.02 < jitter.real.value < 0.08
    assert jitter.simulated.value < 1e-6
    assert {note.partition(": ")[2].partition(":")[0] for note in found.notes} == {
        "scans",
        "drift",
        "latency",
    }


def test_pages_stand_alone(tmp_path: Path) -> None:
    one, other = twenty()[0], twenty()[1]
    found = calibrate([one.log], BASE, truths=[one.truth], scene=HALL, hold_out=False)
    write_report(found, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<img") == 4
    assert "http:" not in page.replace("http://www.w3.org", "")
    for value in found.values:
        assert value.name in page
    evil = replace(with_truth(one), source="<script>alert(1)</script>")
    write_comparison(
        compare(evil, with_truth(other), BASE, scene=HALL), tmp_path / "c.html"
    )
    page = (tmp_path / "c.html").read_text("utf-8")
    assert "<script>" not in page
    assert page.count("<img") == 2
    assert "drift of heading for each turn" in page


def write_csv(one: Known, folder: Path, name: str) -> tuple[Path, Path]:
    """Write the log and the truth as tables."""
    log, truth = folder / f"{name}.csv", folder / f"{name}-truth.csv"
    at = np.searchsorted(one.log.commands.time, one.log.odometry.time, "right") - 1
    commands = one.log.commands.values[np.maximum(at, 0)]
    rows = np.column_stack(
        [
            one.log.odometry.time,
            one.log.odometry.values,
            one.log.velocities.values,
            commands,
        ]
    )
    head = "time,odom x,odom y,odom heading,vx,vy,yaw rate,command vx,command vy,command yaw rate"
    np.savetxt(log, rows, "%.9g", ",", header=head, comments="")
    rows = np.column_stack(
        [one.truth.time, one.truth.values * [1000, 1000, 180 / np.pi]]
    )
    np.savetxt(
        truth,
        rows,
        "%.12g",
        ",",
        header="time [s],x [mm],y [mm],heading [deg]",
        comments="",
    )
    return log, truth


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = twenty()[10]
    log, truth = write_csv(one, tmp_path, "real")
    robot = tmp_path / "robot.toml"
    common = ("-r", "p3dx", "--truth", str(truth))
    code, out, err = call(
        "calibrate",
        str(log),
        *common,
        "-o",
        str(robot),
        "--report",
        str(tmp_path / "r.html"),
        capsys=capsys,
    )
    assert code == 0
    assert "wheel separation" in out
    assert "held out" in out
    assert "laser: the logs contain no scans" in err
    table = tomllib.loads(robot.read_text("utf-8"))
    assert table["extends"] == "p3dx"
    spec = load_file(robot)
    assert spec.odometry_error_low is not None
    middle = 0.5 * (spec.odometry_error.x + spec.odometry_error_low.x)
    assert middle == pytest.approx(one.values["forward error"], abs=0.01)
    assert spec.limits.accel.x == pytest.approx(one.values["accel x"], rel=0.05)
    assert "<img" in (tmp_path / "r.html").read_text("utf-8")
    code, out, _ = call("calibrate", str(log), *common, "--json", capsys=capsys)
    values = json.loads(out)["values"]
    assert (code, values["turning error"]["told"]) == (0, True)
    code, out, _ = call(
        "compare",
        str(log),
        str(log),
        *common,
        "--json",
        "--report",
        str(tmp_path / "c.html"),
        capsys=capsys,
    )
    assert code == 0
    assert {q["group"] for q in json.loads(out)["quantities"]} == {"drift", "timing"}
    for line, words in (
        (
            ("calibrate", str(log), "-r", "p3dx", "-o", str(tmp_path / "a.yaml")),
            "expected a .toml file",
        ),
        (
            ("calibrate", str(log), "-r", "p3dx", "--truth", "scans"),
            "expected scans and a map",
        ),
        (
            ("calibrate", str(log), "-r", "p3dx", "--truth", "log", "--truth", "scans"),
            "--truth: expected",
        ),
        (
            ("calibrate", str(log), "-r", "p3dx", "--topic", "odom=/odom"),
            "--topic: expected odometry=TOPIC",
        ),
        (("calibrate", str(tmp_path / "none.csv"), "-r", "p3dx"), "cannot be read"),
        (
            ("compare", str(log), str(log), "-r", "p3dx", "--start", "outside"),
            "--start: expected x,y,th",
        ),
    ):
        code, _, err = call(*line, capsys=capsys)
        assert code != 0
        assert words in err, line
