"""Plans of studies: YAML data, checked with the line of each mistake.

A plan may name code as ``module:function``. This code runs with the study, because the
user has named the plan on the command line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.errors import BotyardError, ModelError, PlanError, did_you_mean
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.formats.jsonfile import brief
from botyard.formats.models import find_robot, is_robot_file
from botyard.formats.yamlfile import YamlFile
from botyard.model.filetables import Pair
from botyard.model.library import robot_of
from botyard.model.tablecheck import Strict, TableError, checked
from botyard.names import shown
from botyard.processes.codeload import is_code
from botyard.studies.run_spec import KEYS, RobotPart, Setup, filled, names_in, place_of

VERSION: Final = 1
MAX_RUNS: Final = 1_000_000
"""Maximum number of runs of a plan."""
MAX_PARAMETERS: Final = 100
"""Maximum number of parameters of a plan."""
MAX_RETRIES: Final = 100
"""Maximum number of repetitions of a run whose process died."""
MAX_WALL_S: Final = 1e6
"""Maximum wall time of a run, s."""
SEED: Final = "seed"
"""Name of the seed among the parameters of a run, and in the table."""
KEY, STATUS, ERROR = "key", "status", "error"
"""Columns of the table in addition to parameters, seed and results."""
TAKEN: Final = (SEED, KEY, STATUS, ERROR)
"""Reserved names, which a parameter cannot have."""

Record = Literal["never", "on-failure", "always"]


class RangeKeys(Strict, kw_only=True):
    """Range of a sampled parameter, distributed uniformly or log-uniformly."""

    uniform: Pair | None = None
    log: Pair | None = None


class SampleKeys(Strict, kw_only=True):
    """Sampling of parameters.

    Attributes
    ----------
    count : int
        Number of points, each with one value per parameter.
    values : dict
        Ranges by name of the parameter.
    method : str
        ``random``: independent numbers; ``sobol``: a scrambled Sobol sequence.
    seed : int
        Seed of the sample; it does not affect the runs otherwise.
    """

    count: int
    values: dict[str, RangeKeys]
    method: Literal["random", "sobol"] = "random"
    seed: int = 1


class SeedKeys(Strict, kw_only=True):
    """Consecutive seeds.

    Attributes
    ----------
    count : int
        Number of seeds, 1 … `MAX_RUNS`.
    first : int
        First seed.
    """

    count: int
    first: int = 1


class LimitKeys(Strict, kw_only=True):
    """Limits of a run.

    Attributes
    ----------
    simulated : float or None
        Simulated time, s; None: no limit. Runs with a world need one.
    wall : float
        Wall time, s.
    memory : float or None
        Memory in MiB, in addition to the memory that a worker uses when it starts;
        None: no limit.
    retries : int
        Number of repetitions of a run whose process died.
    """

    simulated: float | None = None
    wall: float = 3600.0
    memory: float | None = None
    retries: int = 1


class PlanKeys(Strict, kw_only=True):
    """Keys of a plan, apart from the keys of `Setup`.

    Attributes
    ----------
    study : int
        Version of the format, `VERSION`.
    name : str
        Name of the study; empty: the stem of the file's name.
    grid : dict
        Values of the grid by name of the parameter; all combinations run.
    sample : SampleKeys or None
        Sampled parameters; None: none.
    seeds : int, list of int or SeedKeys
        Number of seeds from 1 on, or the seeds.
    limits : LimitKeys
        Limits of each run.
    record : str
        Recordings to keep: ``never``, ``on-failure`` or ``always``.
    units : dict
        Units by name of a parameter or result, for the table.
    files : list of str
        Further files on whose contents the runs depend.
    """

    study: int
    name: str = ""
    grid: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    sample: SampleKeys | None = None
    seeds: int | list[int] | SeedKeys = 1
    limits: LimitKeys = msgspec.field(default_factory=LimitKeys)
    record: Record = "never"
    units: dict[str, str] = msgspec.field(default_factory=dict)
    files: list[str] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that has been read and checked.

    Attributes
    ----------
    path : Path
        File of the plan.
    keys : PlanKeys
        Keys that describe the study.
    setup : dict
        Description of a run, with ``$name`` for parameters
        (`botyard.studies.run_spec`).
    seeds : list of int
        Seeds with which each point runs.
    """

    path: Path
    keys: PlanKeys
    setup: dict[str, Any]
    seeds: list[int]

    @property
    def folder(self) -> Path:
        """Folder of the plan; relative paths in the plan start here."""
        return self.path.parent

    @property
    def name(self) -> str:
        """Name of the study; by default the stem of its file name."""
        return self.keys.name or self.path.stem

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in order, without the seed."""
        return [*self.keys.grid, *(self.keys.sample.values if self.keys.sample else ())]

    @property
    def count(self) -> int:
        """Number of runs."""
        points = math.prod(len(values) for values in self.keys.grid.values())
        return (
            points
            * (self.keys.sample.count if self.keys.sample else 1)
            * len(self.seeds)
        )

    def setup_of(self, values: dict[str, Any], seed: int) -> Setup:
        """Return the description of the run with these values.

        Parameters
        ----------
        values : dict
            A value for each parameter.
        seed : int
            Seed of the run, for ``$seed``.

        Raises
        ------
        TableError
            A value does not fit.
        KeyError
            A parameter has no value.
        """
        return checked(filled(self.setup, {**values, SEED: seed}), Setup)


def read_plan(path: str | Path, budget: Budget = Budget()) -> Plan:
    """Read a plan.

    Parameters
    ----------
    path : str or Path
        The file.
    budget : Budget
        Limits of reading, such as the size of the file.

    Returns
    -------
    Plan
        The checked plan, with its absolute path. The files that it names are not read
        yet.

    Raises
    ------
    PlanError
        The file cannot be read or is not valid; the error names the line.
    """
    path = Path(path).resolve()
    meter = Meter(budget, str(path), PlanError)
    try:
        text = read_bytes(path, meter, PlanError).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError("expected text in UTF-8, found other bytes", path) from None

    return _Reader(path, YamlFile(text, meter, PlanError)).plan()


class _Reader:
    """Checks of the data in a plan's file."""

    def __init__(self, path: Path, file: YamlFile) -> None:
        self._path, self._file = path, file

    def plan(self) -> Plan:
        """Return the checked plan."""
        data = self._file.data
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            raise self._file.fail(
                "$", f"expected the keys of a study, found {brief(data)}"
            )

        try:
            keys = checked(
                {k: v for k, v in data.items() if k not in KEYS}, PlanKeys, lambda: KEYS
            )
        except TableError as error:
            raise self._file.fail(f"$.{error.where}", error.reason, error.key) from None

        setup = {k: v for k, v in data.items() if k in KEYS}
        if keys.study != VERSION:
            raise self._file.fail(
                "$.study", f"expected version {VERSION}, found {keys.study}"
            )

        plan = Plan(self._path, keys, setup, self._seeds(keys))
        self._check_parameters(plan)
        self._check_limits(keys)
        self._check_setup(plan)
        return plan

    def _seeds(self, keys: PlanKeys) -> list[int]:
        """Return the list of seeds from a number, a list, or `SeedKeys`."""
        given = keys.seeds
        if isinstance(given, int):
            given = SeedKeys(count=given)
        if isinstance(given, SeedKeys):
            if not 1 <= given.count <= MAX_RUNS:
                raise self._file.fail(
                    "$.seeds", f"expected 1 … {MAX_RUNS} seeds, found {given.count}"
                )

            given = list(range(given.first, given.first + given.count))

        if not given or len(set(given)) < len(given):
            raise self._file.fail(
                "$.seeds", "expected at least one seed, and none of them twice"
            )
        for seed in (min(given), max(given)):
            if not MIN_SEED <= seed <= MAX_SEED:
                raise self._file.fail(
                    "$.seeds",
                    f"expected whole numbers from {MIN_SEED} to {MAX_SEED}, found {seed}",
                )

        return given

    def _check_parameters(self, plan: Plan) -> None:
        """Check names, values and number of the parameters."""
        keys, fail = plan.keys, self._file.fail
        for name, values in keys.grid.items():
            if not values:
                raise fail(f"$.grid.{name}", "expected values, found none")
            seen: set[str] = set()
            for k, value in enumerate(values):
                where = f"$.grid.{name}[{k}]"
                if not _is_plain(value):
                    raise fail(
                        where,
                        "expected a number, a text, true, false or a list of "
                        f"these, found {brief(value)}",
                    )

                # Compare the values as JSON text: in Python, 1 == 1.0 == True, but runs
                # treat these differently.
                if (text := msgspec.json.encode(value).decode()) in seen:
                    raise fail(
                        where, f"expected each value once, found {brief(value)} twice"
                    )
                seen.add(text)

        if keys.sample is not None:
            self._check_sample(keys.sample)
            for name in keys.sample.values:
                if name in keys.grid:
                    raise fail(
                        "$.sample.values",
                        f'the parameter "{shown(name)}" is also in the grid',
                        name,
                    )

        for name in plan.parameters:
            if not name.isidentifier() or name in TAKEN:
                where = "$.grid" if name in keys.grid else "$.sample.values"
                raise fail(
                    where,
                    f'expected a name of letters, digits and _, but not {", ".join(TAKEN)}, found "{shown(name)}"',
                    name,
                )

        # Each parameter is a column of the table of results.
        if len(plan.parameters) > MAX_PARAMETERS:
            raise fail(
                "$.grid",
                f"expected at most {MAX_PARAMETERS} parameters, found {len(plan.parameters)}",
            )

        if plan.count > MAX_RUNS:
            raise fail("$", f"expected at most {MAX_RUNS} runs, found {plan.count}")

    def _check_sample(self, sample: SampleKeys) -> None:
        """Check the count, seed and ranges of a sample."""
        if not 1 <= sample.count <= MAX_RUNS:
            raise self._file.fail(
                "$.sample.count", f"expected 1 … {MAX_RUNS}, found {sample.count}"
            )

        if not sample.values:
            raise self._file.fail("$.sample.values", "expected parameters, found none")
        # NumPy's PCG64, which scrambles the Sobol sequence, accepts no negative seeds.
        least = 0 if sample.method == "sobol" else MIN_SEED
        if not least <= sample.seed <= MAX_SEED:
            raise self._file.fail(
                "$.sample.seed",
                f"expected a whole number from {least} to {MAX_SEED}, found {sample.seed}",
            )

        for name, one in sample.values.items():
            where = f"$.sample.values.{name}"
            if (one.uniform is None) == (one.log is None):
                raise self._file.fail(
                    where,
                    "expected either uniform: [low, high] or log: [low, high], found both or neither",
                )

            low, high = one.uniform or one.log or (0.0, 0.0)
            if not low < high:
                raise self._file.fail(
                    where,
                    f"expected a lower and a higher number, found {low:g} and {high:g}",
                )

            # Finite ends can still lie so far apart that scaling overflows.
            if math.isinf(high - low):
                raise self._file.fail(
                    where, f"expected a finite range, found {low:g} to {high:g}"
                )

            if one.log is not None and low <= 0.0:
                raise self._file.fail(where, f"expected numbers above 0, found {low:g}")

    def _check_limits(self, keys: PlanKeys) -> None:
        """Check that the limits of a run are in range."""
        limits = keys.limits
        for name, value, high in (
            ("simulated", limits.simulated, 1e9),
            ("wall", limits.wall, MAX_WALL_S),
            ("memory", limits.memory, 1e9),
        ):
            if value is not None and not 0.0 < value <= high:
                raise self._file.fail(
                    f"$.limits.{name}",
                    f"expected a number above 0 and up to {high:g}, found {value:g}",
                )

        if not 0 <= limits.retries <= MAX_RETRIES:
            raise self._file.fail(
                "$.limits.retries",
                f"expected 0 … {MAX_RETRIES}, found {limits.retries}",
            )

    def _check_setup(self, plan: Plan) -> None:
        """Check the description of a run, with the first value of each parameter."""
        fail, keys = self._file.fail, plan.keys
        known = {*plan.parameters, SEED}
        used = names_in(plan.setup)
        for name in sorted(used - known):
            raise fail(
                place_of(plan.setup, name),
                f"unknown parameter ${shown(name)}{did_you_mean(name, known)}",
            )

        # The plan is filled with the first values, because most errors show with any
        # value.
        values = {name: options[0] for name, options in keys.grid.items()}
        if keys.sample is not None:
            values |= {
                name: (one.uniform or one.log or (0.0,))[0]
                for name, one in keys.sample.values.items()
            }

        try:
            setup = plan.setup_of(values, plan.seeds[0])
        except TableError as error:
            raise fail(f"$.{error.where}", error.reason, error.key) from None

        # A function receives all parameters, so none can be unused.
        if not setup.run:
            for name in plan.parameters:
                if name not in used:
                    where = "$.grid" if name in keys.grid else "$.sample.values"
                    raise fail(
                        where,
                        f"unused parameter: expected ${name} somewhere in the plan",
                        name,
                    )

        try:
            check_setup(setup, keys.limits.simulated)
        except TableError as error:
            raise fail(f"$.{error.where}", error.reason, error.key) from None
        except BotyardError as error:
            raise fail("$", str(error)) from None


def check_setup(setup: Setup, simulated: float | None) -> None:
    """Check that the parts of a run's description fit together.

    Parameters
    ----------
    setup : Setup
        The description, with the first value of each parameter.
    simulated : float or None
        Limit of simulated time, s; a run with a world needs one.

    Raises
    ------
    TableError
        Two parts exclude each other, or a part is missing.
    """
    # A traffic task has its own robots, paths and end.
    if setup.traffic is not None:
        for name in (
            "run",
            "map",
            "robots",
            "controllers",
            "program",
            "goal",
            "measures",
        ):
            if getattr(setup, name):
                raise TableError(name, "cannot be combined with traffic")

        return

    if setup.run:
        if not is_code(setup.run):
            raise TableError(
                "run",
                f'expected module:function or file.py:function, found "{shown(setup.run)}"',
            )

        for name in ("program", "goal", "measures"):
            if getattr(setup, name):
                raise TableError(
                    name,
                    "cannot be combined with run: the function does this itself",
                )

        return

    if not setup.has_world:
        raise TableError("", "expected one of run, map, robots and traffic, found none")
    # Models are looked up now, so that no worker fails at its first run.
    for name, robot in setup.robots.items():
        _check_model(
            f"robots.{name}" if isinstance(robot, str) else f"robots.{name}.model",
            name,
            robot,
        )

    if not setup.measures:
        raise TableError("measures", "expected at least one measure, found none")
    if simulated is None:
        raise TableError(
            "limits", "expected simulated (time after which a run ends, s), found none"
        )

    if setup.goal is None and "reached" in setup.measures:
        raise TableError(
            "measures", 'expected a goal for the measure "reached", found none'
        )
    if setup.program is not None:
        if not setup.program.command:
            raise TableError(
                "program.command", "expected a program with its arguments, found none"
            )
        if setup.program.speed < 0.0:
            raise TableError(
                "program.speed",
                f"expected a number of 0 or more, found {setup.program.speed:g}",
            )


def _check_model(where: str, name: str, robot: str | RobotPart) -> None:
    """Check the model of a robot; model files are read only when runs start.

    Raises
    ------
    TableError
        The model's name is unknown, or its table is not valid.
    """
    model = robot if isinstance(robot, str) else robot.model
    try:
        if isinstance(model, dict):
            robot_of(model, name)
        elif not is_robot_file(model):
            find_robot(model)
    except TableError as error:
        raise error.inside(where) from None
    except ModelError as error:
        raise TableError(where, str(error)) from None


def _is_plain(value: object, depth: int = 0) -> bool:
    """Return whether a value survives being written as JSON and read back."""
    if isinstance(value, list):
        # Three levels suffice for matrices of poses; deeper data belongs in a file.
        return depth < 3 and all(_is_plain(one, depth + 1) for one in value)
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return MIN_SEED <= value <= MAX_SEED
    return isinstance(value, float) and math.isfinite(value)


__all__ = [
    "ERROR",
    "KEY",
    "MAX_PARAMETERS",
    "MAX_RETRIES",
    "MAX_RUNS",
    "MAX_WALL_S",
    "SEED",
    "STATUS",
    "LimitKeys",
    "Plan",
    "PlanKeys",
    "RangeKeys",
    "Record",
    "SampleKeys",
    "check_setup",
    "read_plan",
]
