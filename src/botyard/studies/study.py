"""A study from plan to table: open runs, finished runs, and the table of results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botyard.errors import CommandLineError
from botyard.studies.plan import Plan
from botyard.studies.results import Folder, Row
from botyard.studies.run_hash import Run, runs_of
from botyard.studies.table import Table, make_table, write_table

if TYPE_CHECKING:
    from botyard.studies.messages import Done

FOLDER_SUFFIX: Final = "-results"
"""Suffix of the results folder: ``plan.yaml`` gives ``plan-results``."""


def results_folder(plan: Plan) -> Path:
    """Return the default folder for results, in the working folder."""
    return Path(f"{plan.path.stem}{FOLDER_SUFFIX}")


@dataclass(frozen=True, slots=True)
class Study:
    """A plan with its runs and their results.

    Attributes
    ----------
    plan : Plan
        Plan of the study.
    folder : Folder
        Folder of the results.
    runs : list of Run
        All runs of the plan.
    rows : mapping of str to Row
        Rows in the folder by hash, including runs that the plan no longer contains.
    """

    plan: Plan
    folder: Folder
    runs: list[Run]
    rows: Mapping[str, Row]

    @classmethod
    def open(cls, plan: Plan, folder: Path, *, anew: bool = False) -> Study:
        """Open a study with the results in its folder.

        Parameters
        ----------
        plan : Plan
            Plan of the study.
        folder : Path
            Folder of the results; it need not exist.
        anew : bool
            Delete the existing results, after the plan has proved valid.

        Raises
        ------
        PlanError
            A file that the plan names cannot be read.
        CommandLineError
            The folder contains something other than results, or a package is not
            installed.
        OSError
            The folder cannot be read or cleared.
        """
        results, runs = Folder(folder), runs_of(plan)
        if anew:
            results.clear()
        return cls(plan, results, runs, results.rows())

    def left(self, *, only_failed: bool = False) -> list[Run]:
        """Return the runs to carry out.

        Parameters
        ----------
        only_failed : bool
            False: the runs without a row. True: the runs whose row is not ``ok``.

        Returns
        -------
        list of Run
            Runs in the plan's order.
        """
        if only_failed:
            return [
                run
                for run in self.runs
                if run.key in self.rows and self.rows[run.key].status != "ok"
            ]

        return [run for run in self.runs if run.key not in self.rows]

    def carry_out(
        self,
        runs: list[Run],
        workers: int | None = None,
        done: Callable[[Done], object] = lambda _done: None,
        *,
        ray: str | None = None,
    ) -> Study:
        """Carry out runs; return the study with their rows.

        Parameters
        ----------
        runs : list of Run
            Runs of this study. Without runs, nothing is started.
        workers : int or None
            Maximum number of concurrent runs; None: one per CPU core of this computer,
            or per CPU of the cluster.
        done : callable
            Called with each run that has ended.
        ray : str or None
            Address of a Ray cluster (`botyard.studies.onray`); None: run on this
            computer.

        Returns
        -------
        Study
            The study with all rows of its folder; this one is unchanged.

        Raises
        ------
        CommandLineError
            The runs cannot be carried out. Results so far are kept.
        OSError
            The results folder cannot be written.
        """
        if not runs:
            return self
        # Import the executors late: both take long to import, and a finished study does
        # not need them.
        if ray is not None:
            from botyard.studies.onray import RayStudy

            RayStudy(self.plan, self.folder, ray, workers, done).carry_out(runs)
        else:
            from botyard.studies.local import LocalStudy

            LocalStudy(
                self.plan,
                self.folder,
                min(workers or os.cpu_count() or 1, len(runs)),
                done,
            ).carry_out(runs)

        return Study(self.plan, self.folder, self.runs, self.folder.rows())

    def counts(self) -> dict[str, int]:
        """Return the number of runs by status, and the number of runs ``left``.

        Returns
        -------
        dict of str to int
            Numbers for ``ok``, ``failed``, ``timeout``, ``lost`` and ``left``, also if
            they are 0. Their sum is the number of runs.
        """
        found = dict.fromkeys(("ok", "failed", "timeout", "lost", "left"), 0)
        for run in self.runs:
            row = self.rows.get(run.key)
            found["left" if row is None else row.status] += 1

        return found

    def table(self) -> Table:
        """Return the table of all runs that have ended.

        Raises
        ------
        CommandLineError
            No run has ended.
        """
        table = make_table(self.plan, self.runs, self.rows)
        if not len(table):
            others = (
                f" (it holds {len(self.rows)} results of other runs: the plan or "
                "its files have changed)"
                if self.rows
                else ""
            )
            raise CommandLineError(
                f"{self.folder.path}: expected results of this plan, found none{others}"
            )

        return table

    def write_table(self) -> Path:
        """Write the table into the folder and return its path.

        Raises
        ------
        CommandLineError
            No run has ended.
        OSError
            The table cannot be written.
        """
        return write_table(self.table(), self.plan, self.folder.path)


__all__ = ["Study", "results_folder"]
