"""Comparison of traffic supervisors (``botyard traffic compare``), run as a study.

Each case is one run. The results folder is temporary, so no file remains.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from botyard.errors import CommandLineError
from botyard.formats.budget import Budget
from botyard.studies.plan import MAX_WALL_S, LimitKeys, Plan, PlanKeys
from botyard.studies.results import Folder
from botyard.studies.results import Row as StudyRow
from botyard.studies.run_hash import Run
from botyard.studies.study import Study
from botyard.traffic.compare import Case, Row, run_case
from botyard.traffic.rules import Rules


def compare(
    cases: Sequence[Case],
    rules: Rules = Rules(),
    workers: int | None = None,
    done: Callable[[], object] = lambda: None,
    max_read: Sequence[str] = (),
) -> list[Row]:
    """Carry out cases in several processes, in the working folder.

    Parameters
    ----------
    cases : sequence of Case
        Cases to run.
    rules : Rules
        Rules that all runs share.
    workers : int or None
        Number of worker processes; None: one per CPU core.
    done : callable
        Called each time a run ends.
    max_read : sequence of str
        Raised limits for reading task files, each ``name=number``.

    Returns
    -------
    list of Row
        Results, in the order of the cases.

    Raises
    ------
    CommandLineError
        A run fails: a supervisor raises an error, or the worker process dies.
    """
    # Workers are separate processes: everything they need travels as plain parameters.
    common = {"rules": dataclasses.asdict(rules), "max_read": list(max_read)}
    keys = PlanKeys(study=1, limits=LimitKeys(wall=MAX_WALL_S))
    plan = Plan(Path.cwd() / "comparison", keys, {"run": f"{__name__}:run_one"}, [])
    runs = [
        Run(str(number), {**_values(case), **common}, case.seed)
        for number, case in enumerate(cases)
    ]
    with tempfile.TemporaryDirectory(prefix="botyard-comparison-") as folder:
        study = Study(plan, Folder(Path(folder)), runs, {})
        rows = study.carry_out(runs, workers, lambda _done: done()).rows
        return [
            _row(case, rows[run.key], study)
            for case, run in zip(cases, runs, strict=True)
        ]


def run_one(_sim: None, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run the case given by a study's parameters.

    Parameters
    ----------
    _sim : None
        Unused: a study's function gets its world here, but a case has none.
    params : dict
        Fields of the `Case`, and ``rules`` and ``max_read`` as plain data.
    seed : int
        Seed of the case.

    Returns
    -------
    dict
        Fields of the `Row` without its case; the cycle is one text.
    """
    case = Case(params["family"], params["robots"], seed, params["supervisor"])
    row = run_case(case, Rules(**params["rules"]), Budget().raised(params["max_read"]))
    fields = {
        field.name: getattr(row, field.name)
        for field in dataclasses.fields(row)
        if field.name != "case"
    }
    return {**fields, "cycle": " ".join(map(str, row.cycle))}


def _values(case: Case) -> dict[str, Any]:
    """Return the parameters of the study's run for a case."""
    return {"family": case.family, "robots": case.robots, "supervisor": case.supervisor}


def _row(case: Case, row: StudyRow, study: Study) -> Row:
    """Return the result of a case.

    Parameters
    ----------
    case : Case
        The case.
    row : Row
        Row of its run in the study.
    study : Study
        The study, for the log of a failed run.

    Raises
    ------
    CommandLineError
        The run failed; the message contains its log.
    """
    if row.status != "ok":
        log = study.folder.log(row.key)
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        raise CommandLineError(
            f"{case.family}, seed {case.seed}, {case.supervisor}: {row.error}\n{text}".rstrip()
        )

    # Study results are scalars only, so `run_one` sends the cycle as text.
    cycle = tuple(map(int, row.result["cycle"].split()))
    return Row(case, **{**row.result, "cycle": cycle})


__all__ = ["compare", "run_one"]
