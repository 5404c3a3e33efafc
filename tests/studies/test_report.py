"""Intervals against SciPy's, and the page:

its content, no external files, and no text taken for markup.
"""

from __future__ import annotations

import base64
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import CommandLineError, KeptFileError
from botyard.studies.plan import read_plan
from botyard.studies.report import write_report
from botyard.studies.results import Part, Row
from botyard.studies.statistics import mean_interval, share_interval, student_quantile
from botyard.studies.study import Study
from botyard.studies.summary import groups_of, quantities_of

stats = pytest.importorskip("scipy.stats")
VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50).filter(
    lambda v: max(v) - min(v) > 1e-3
)


@pytest.mark.parametrize(
    "freedom", [*range(1, 41), 99, 100, 199, 200, 201, 1000, 100_000]
)
def test_quantiles_of_students_distribution(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(
        stats.t.ppf(0.975, freedom), rel=1e-9
    )


@given(VALUES)
def test_the_interval_of_a_mean(values: list[float]) -> None:
    wanted = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    found = mean_interval(values)
    assert (found.low, found.high) == (
        pytest.approx(wanted.low, rel=1e-6, abs=1e-6),
        pytest.approx(wanted.high, rel=1e-6, abs=1e-6),
    )
    assert found.number == len(values)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_share(one: tuple[int, int]) -> None:
    wanted = stats.binomtest(*one).proportion_ci(0.95, "wilson")
    found = share_interval(*one)
    assert (found.low, found.high) == (
        pytest.approx(wanted.low, abs=1e-9),
        pytest.approx(wanted.high, abs=1e-9),
    )


def test_few_values() -> None:
    assert math.isnan(mean_interval([]).value)
    assert mean_interval([3.0])[0] == 3.0
    assert math.isnan(mean_interval([3.0]).low)
    assert math.isnan(share_interval(0, 0).value)


PLAN = """study: 1
name: <b>fast</b>
run: lab.py:drive
grid: {speed: [1, 2, 3], kind: [a$b$, "<i>"]}
sample: {count: 8, values: {gain: {log: [0.1, 10]}}}
seeds: 5
units: {way: m}
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study with given rows:

    way = speed + gain, outcome by kind; one run in forty fails.
    """
    (tmp_path / "lab.py").write_text("def drive(sim, params, seed):\n    return {}\n")
    (tmp_path / "plan.yaml").write_text(PLAN)
    one = Study.open(read_plan(tmp_path / "plan.yaml"), tmp_path / "results")
    part = Part(one.folder.part(one.folder.new_session(), "001"))
    for k, run in enumerate(one.runs):
        if k % 40 == 7:
            part.add(
                Row(
                    key=run.key,
                    status="failed",
                    error="<oh>",
                    values=run.values,
                    seed=run.seed,
                )
            )
            continue

        result = {
            "way": run.values["speed"] + 0.01 * run.seed,
            "good": run.values["speed"] > 1,
            "note": f"text {k}",
            "outcome": "done" if run.seed > 1 else "stuck",
        }
        part.add(
            Row(
                key=run.key,
                status="ok",
                result=result,
                values=run.values,
                seed=run.seed,
            )
        )

    part.close()
    return Study.open(one.plan, one.folder.path)


def test_groups_and_what_is_summarised(study: Study) -> None:
    table = study.table()
    names = [q.name for q in quantities_of(table)]
    assert names == [
        "way",
        "good",
        "outcome = done",
        "outcome = stuck",
        # All notes differ, so they do not form groups.
    ]
    groups = groups_of(table, ["speed", "kind"])
    assert [(g.count, len(g.rows)) for g in groups] == [(40, 39)] * 6
    way, good, done, _ = quantities_of(table)
    first = groups[0]
    wanted = [table.columns["way"][row] for row in first.rows]
    assert way.interval(first.rows) == mean_interval(wanted)
    assert good.interval(first.rows) == share_interval(0, 39)
    assert done.interval(first.rows) == share_interval(
        sum(table.columns["seed"][row] > 1 for row in first.rows), 39
    )


def test_the_page_stands_alone(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(study, path)
    text = path.read_text("utf-8")
    assert "240 runs: 234 ok, 6 failed." in text
    assert "&lt;b&gt;fast&lt;/b&gt;" in text
    assert not re.search(
        r"<b>|<i>|<oh>|<script|https?://|(?:src|href)='(?!data:)", text
    )
    assert text.count("<tr>") == 1 + 6 + 1 + 6
    way = mean_interval(
        [1 + 0.01 * seed for seed in [*[1, 2, 4, 5] * 8, *[3] * 7]]
        # of speed 1; a run of seed 3 has failed
    )
    assert (
        f"<td>1.03 <span class='i'>({way.low:.4g} … {way.high:.4g}; 39)</span></td>"
        in text
    )
    pictures = re.findall(
        r"<img alt='([^']*)' src='data:image/svg\+xml;base64,([^']*)'>", text
    )
    assert [name for name, _ in pictures] == [
        f"{q} over {p}"
        for q in ("way", "good", "outcome = done", "outcome = stuck")
        for p in ("speed", "gain")
    ]
    assert all(b"<svg" in base64.b64decode(data) for _, data in pictures)
    # A report that botyard wrote is replaced, with the same content.
    write_report(study, path)
    assert path.read_text("utf-8") == text
    path.write_text("mine")
    with pytest.raises(KeptFileError):
        write_report(study, path)


def test_nothing_to_report(study: Study, tmp_path: Path) -> None:
    study.folder.clear()
    with pytest.raises(
        CommandLineError, match="expected results of this plan, found none"
    ):
        write_report(
            Study.open(study.plan, study.folder.path), tmp_path / "report.html"
        )
