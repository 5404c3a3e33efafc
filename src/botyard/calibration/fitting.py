"""Least squares with confidence intervals.

Parameters that the data do not determine are detected by the information matrix, and
keep their initial values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from botyard.calibration.planar import F8
from botyard.studies.statistics import student_quantile

UNTOLD_SHARE: Final = 0.3
"""Maximum uncertainty of a fitted parameter that counts as determined, relative to its prior.

Above it, the parameter counts as undetermined (`Parameter.prior`).
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a fit.

    Attributes
    ----------
    name, unit, about : str
        Texts for reports.
    start : float
        Initial value, which an undetermined parameter keeps.
    prior : float
        Prior standard deviation around the initial value. It scales the information in
        the data.
    low, high : float
        Bounds.
    """

    name: str
    unit: str
    about: str
    start: float
    prior: float
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, slots=True)
class Value:
    """A fitted value.

    Attributes
    ----------
    name, unit, about : str
        Texts for reports.
    value : float
        The estimate; for an undetermined value, the value before the fit.
    low, high : float
        Ends of the 95 % interval. For an undetermined value they are NaN, except for an
        end that is a known bound.
    before : float
        Value in the robot's model before the fit; NaN for none.
    is_determined : bool
        Whether the logs determine the value.
    """

    name: str
    unit: str
    about: str
    value: float
    low: float
    high: float
    before: float = math.nan
    is_determined: bool = True

    @property
    def is_told(self) -> bool:
        """Former name of `is_determined`, kept for one release."""
        warnings.warn(
            "Value.is_told has a new name: is_determined",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.is_determined

    def holds(self, truth: float) -> bool:
        """Return whether a number is within the 95 % interval."""
        return self.is_determined and self.low <= truth <= self.high

    def as_dict(self) -> dict[str, Any]:
        """Return the value for JSON, with None instead of NaN."""
        numbers = {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "before": self.before,
        }
        plain = {
            name: number if math.isfinite(number) else None
            for name, number in numbers.items()
        }
        return {
            "unit": self.unit,
            "about": self.about,
            **plain,
            "told": self.is_determined,
        }


def untold(name: str, unit: str, about: str, before: float) -> Value:
    """Return the `Value` of a quantity that the data do not determine: it keeps its old value."""
    return Value(
        name, unit, about, before, math.nan, math.nan, before, is_determined=False
    )


def estimated(
    name: str,
    unit: str,
    about: str,
    value: float,
    deviation: float,
    freedom: int,
    before: float,
) -> Value:
    """Return a value with its 95 % interval by Student's t distribution.

    Parameters
    ----------
    name, unit, about : str
        Texts for reports.
    value : float
        Estimate.
    deviation : float
        Standard deviation of the estimate.
    freedom : int
        Degrees of freedom of that deviation.
    before : float
        Value of the model before the fit; NaN for none.
    """
    half = student_quantile(max(1, freedom)) * deviation
    return Value(name, unit, about, value, value - half, value + half, before)


@dataclass(frozen=True, slots=True)
class Direction:
    """An eigenvector of the information matrix, scaled by the priors.

    Attributes
    ----------
    information : float
        Its eigenvalue: the squared ratio of prior uncertainty to the data's
        uncertainty.
    weights : mapping of str to float
        Squared components of the parameters; their sum is 1.
    """

    information: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Result of a least-squares fit.

    Attributes
    ----------
    parameters : tuple of Parameter
        All p parameters.
    values : (p,) array
        Values of the parameters.
    covariance : (p, p) array
        Covariance of the values; zeros for undetermined ones.
    determined : tuple of bool
        Whether the data determine each parameter.
    directions : tuple of Direction
        Eigenvectors of the information matrix of all parameters, in ascending order of
        eigenvalues.
    freedom : int
        Degrees of freedom of the residuals.
    residuals : array
        Residuals in units of their standard deviations.
    """

    parameters: tuple[Parameter, ...]
    values: F8
    covariance: F8
    determined: tuple[bool, ...]
    directions: tuple[Direction, ...]
    freedom: int
    residuals: F8 = field(repr=False)

    def __getitem__(self, name: str) -> float:
        return float(self.values[self._index(name)])

    def _index(self, name: str) -> int:
        return next(i for i, one in enumerate(self.parameters) if one.name == name)

    def tells(self, *names: str) -> bool:
        """Return whether the data determine all of the named parameters."""
        return all(self.determined[self._index(name)] for name in names)

    def value(self, name: str) -> Value:
        """Return the fitted value of a parameter with its 95 % interval."""
        i = self._index(name)
        one = self.parameters[i]
        if not self.determined[i]:
            return untold(one.name, one.unit, one.about, one.start)
        deviation = math.sqrt(self.covariance[i, i])
        return estimated(
            one.name,
            one.unit,
            one.about,
            float(self.values[i]),
            deviation,
            self.freedom,
            one.start,
        )

    def derived(
        self,
        name: str,
        unit: str,
        about: str,
        of: Callable[[Mapping[str, float]], float],
        needs: Sequence[str],
        before: float,
    ) -> Value:
        """Return a value computed from the parameters, with its interval by the delta method.

        Parameters
        ----------
        name, unit, about : str
            Texts for reports.
        of : callable
            Returns the value for the parameters by name.
        needs : sequence of str
            Parameters that the data must determine; otherwise the value is
            undetermined.
        before : float
            Value of the model before the fit.
        """
        if not self.tells(*needs):
            return untold(name, unit, about, before)
        names = [one.name for one in self.parameters]

        def at(values: F8) -> float:
            return of(dict(zip(names, values.tolist(), strict=True)))

        # Undetermined parameters have no covariance, so their derivatives do not
        # matter.
        gradient = np.zeros(len(names))
        for i, one in enumerate(self.parameters):
            if self.determined[i]:
                step = np.zeros(len(names))
                step[i] = 1e-4 * one.prior
                gradient[i] = (at(self.values + step) - at(self.values - step)) / (
                    2.0 * step[i]
                )

        deviation = math.sqrt(max(0.0, float(gradient @ self.covariance @ gradient)))
        return estimated(
            name, unit, about, at(self.values), deviation, self.freedom, before
        )


Residuals = Callable[[F8], F8]


def least_squares(
    parameters: Sequence[Parameter],
    residuals: Residuals,
    *,
    is_scaled: bool,
    loss: str = "linear",
    start: F8 | None = None,
    difference: float = 1e-4,
) -> Fit:
    """Fit parameters to residuals.

    Parameters that the data do not determine keep their initial values. Such parameters
    are removed one by one, the most uncertain first.

    Parameters
    ----------
    parameters : sequence of Parameter
        Parameters to fit.
    residuals : callable
        Returns whitened residuals, (n,), for values, (p,).
    is_scaled : bool
        Whether the residuals have a standard deviation of 1; otherwise it is estimated.
    loss : str
        Loss function, as for `scipy.optimize.least_squares`. Residuals beyond 3
        standard deviations count as outliers.
    start : (p,) array, optional
        Start of the search. The default is the initial values.
    difference : float
        Step of numerical derivatives, relative to the priors. Residuals with small
        jumps need a larger one.
    """
    from scipy import optimize

    parameters = tuple(parameters)
    values = (
        np.array([one.start for one in parameters]) if start is None else start.copy()
    )
    # All parameters are scaled by their priors, so that one step size fits metres and
    # radians.
    prior = np.array([one.prior for one in parameters])
    low, high = (
        np.array([one.low for one in parameters]),
        np.array([one.high for one in parameters]),
    )
    determined = np.ones(len(parameters), bool)
    directions: tuple[Direction, ...] = ()
    while True:
        # Defaults bind the current arrays: the function is used within this round only.
        def some(part: F8, determined: Any = determined, values: F8 = values) -> F8:
            whole = values.copy()
            whole[determined] = part
            return residuals(whole)

        solution = optimize.least_squares(
            some,
            np.clip(values[determined], low[determined], high[determined]),
            bounds=(low[determined], high[determined]),
            x_scale=prior[determined],
            loss=loss,
            f_scale=3.0,
            jac=lambda at, some=some, scale=prior[determined]: (
                _jacobian(some, at, scale, difference) / scale
            ),
        )
        values[determined] = solution.x
        jacobian = _jacobian(some, solution.x, prior[determined], difference)
        r = some(solution.x)
        freedom = max(1, len(r) - int(determined.sum()))
        scale = 1.0 if is_scaled else _variance(r, freedom)
        # The information is in units of the priors.
        information = jacobian.T @ jacobian / scale
        if not directions:
            directions = _directions(information, parameters)
        # Remaining uncertainty of each parameter, relative to its prior.
        shares = (
            np.sqrt(np.diag(np.linalg.inv(information + np.eye(int(determined.sum())))))
            if determined.any()
            else np.zeros(0)
        )
        if not len(shares) or shares.max() <= UNTOLD_SHARE:
            break
        # Remove only the worst parameter: without it, the data may determine the
        # others.
        worst = np.flatnonzero(determined)[int(shares.argmax())]
        determined[worst] = False
        values[worst] = parameters[worst].start
        if not determined.any():
            r = residuals(values)
            information = np.zeros((0, 0))
            freedom = max(1, len(r))
            break

    # Back from units of the priors to units of the parameters.
    covariance = np.zeros((len(parameters),) * 2)
    if determined.any():
        found = np.linalg.inv(information) * np.outer(
            prior[determined], prior[determined]
        )
        covariance[np.ix_(determined, determined)] = found

    return Fit(
        parameters,
        values,
        covariance,
        tuple(determined.tolist()),
        directions,
        freedom,
        r,
    )


def _variance(r: F8, freedom: int) -> float:
    """Return the variance of residuals, leaving out outliers.

    Parameters
    ----------
    r : (n,) float64
        Residuals. Beyond 5 robust standard deviations they are outliers.
    freedom : int
        Degrees of freedom with all residuals.
    """
    # 1.4826 times the median deviation is the standard deviation of a normal
    # distribution.
    # The median ignores up to half of the residuals as outliers.
    spread = 1.4826 * float(np.median(np.abs(r)))
    inside = r[np.abs(r) <= 5.0 * spread] if spread else r
    return max(
        float(inside @ inside) / max(1, freedom - (len(r) - len(inside))), 1e-300
    )


def _jacobian(residuals: Residuals, at: F8, scale: F8, difference: float) -> F8:
    """Return the Jacobian of the residuals by central differences.

    Parameters
    ----------
    residuals : callable
        Returns residuals, (n,), for values, (p,).
    at : (p,) float64
        Values.
    scale : (p,) float64
        Unit of each value.
    difference : float
        Step, in these units.

    Returns
    -------
    (n, p) float64
        Derivatives for one unit of each value.
    """
    columns = []
    for i, size in enumerate(scale):
        step = np.zeros(len(at))
        step[i] = difference * size
        columns.append(
            (residuals(at + step) - residuals(at - step)) / (2.0 * difference)
        )

    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _directions(
    information: F8, parameters: Sequence[Parameter]
) -> tuple[Direction, ...]:
    eigenvalues, vectors = np.linalg.eigh(information)
    return tuple(
        Direction(
            max(0.0, float(eigenvalues[k])),
            {one.name: float(vectors[i, k] ** 2) for i, one in enumerate(parameters)},
        )
        for k in range(len(eigenvalues))
    )


__all__ = [
    "Direction",
    "Fit",
    "Parameter",
    "Value",
    "estimated",
    "least_squares",
    "untold",
]
