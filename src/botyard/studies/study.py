"""A study from its plan to its table: what is to be done, what is done already, and the
table of both.
"""

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
"""Results of ``plan.yaml`` go to ``plan-results`` in the working folder."""


def results_folder(plan: Plan) -> Path:
    """Where results go when nobody says."""
    return Path(f"{plan.path.stem}{FOLDER_SUFFIX}")


@dataclass(frozen=True, slots=True)
class Study:
    """A plan, its runs, and what has become of them.

    Attributes
    ----------
    plan : Plan
        The plan.
    folder : Folder
        Its results.
    runs : list of Run
        All runs of the plan.
    rows : mapping of str to Row
        Rows of the folder by their keys; also of runs that the plan has no more.
    """

    plan: Plan
    folder: Folder
    runs: list[Run]
    rows: Mapping[str, Row]

    @classmethod
    def open(cls, plan: Plan, folder: Path, *, anew: bool = False) -> Study:
        """A study with what its folder holds; `anew`: that is deleted, once the runs
        are known.
        """
        results, runs = Folder(folder), runs_of(plan)
        if anew:
            results.clear()
        return cls(plan, results, runs, results.rows())

    def left(self, *, only_failed: bool = False) -> list[Run]:
        """Runs that are to be carried out: those without a row, or those whose row is
        not ``ok``.
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
        """Carry out runs; the study with their rows.

        Parameters
        ----------
        runs : list of Run
            Some of the study's.
        workers : int or None
            How many at a time; None: one for each core, or each processor of the
            cluster.
        done : callable
            Called with each run that has ended.
        ray : str or None
            Address of a cluster of Ray (`botyard.studies.onray`); None: on this
            computer.

        Raises
        ------
        CommandLineError
            They cannot be carried out.
        """
        if not runs:
            return self
        # these import much, which is not needed where nothing is left to do
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
        """Number of runs by status, and ``left``."""
        found = dict.fromkeys(("ok", "failed", "timeout", "lost", "left"), 0)
        for run in self.runs:
            row = self.rows.get(run.key)
            found["left" if row is None else row.status] += 1

        return found

    def table(self) -> Table:
        """The table of what has ended.

        Raises
        ------
        CommandLineError
            Nothing has.
        """
        table = make_table(self.plan, self.runs, self.rows)
        if not len(table):
            others = (
                f" (there are {len(self.rows)} of other runs: the plan or its files have changed)"
                if self.rows
                else ""
            )
            raise CommandLineError(
                f"{self.folder.path}: there are no results of this plan{others}"
            )

        return table

    def write_table(self) -> Path:
        """Write the table into the folder."""
        return write_table(self.table(), self.plan, self.folder.path)


__all__ = ["Study", "results_folder"]
