"""Operations that differ between systems need a reason here: functions of the C
library, and BLAS.

Allowed are `+ - * /`, `math.sqrt`, `math.remainder`, `math.fmod`, `math.degrees`,
`math.radians`, `math.fsum`, and NumPy's `sum` and `cumsum` (which add in one order on
all processors). This test does not detect `sum` of floats, which differs between Python
3.12 and earlier; see `botyard.numerics.elementary.total`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "botyard"

OF_THE_SYSTEM = {
    "math": {
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "pow",
        "cbrt",
        "hypot",
        "dist",
        "gamma",
        "lgamma",
        "erf",
        "erfc",
        "fma",
        "sumprod",
    },
    "np": {
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "arctan2",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "logaddexp",
        "power",
        "float_power",
        "cbrt",
        "hypot",
        "sinc",
        "dot",
        "vdot",
        "inner",
        "outer",
        "matmul",
        "einsum",
        "tensordot",
        "linalg",
        "interp",
        "convolve",
        "correlate",
        "cross",
        "fft",
        "polyfit",
        "polyval",
        "geomspace",
        "logspace",
        "cov",
        "corrcoef",
    },
    "random": {
        "gauss",
        "normalvariate",
        "lognormvariate",
        "expovariate",
        "gammavariate",
        "betavariate",
        "vonmisesvariate",
    },
}
METHODS = {
    "dot",
    "normal",
    "standard_normal",
    "exponential",
    "standard_exponential",
    "gauss",
    "normalvariate",
    "expovariate",
}
MODULES = {"cmath", "scipy"}

REASONS = {
    "studies/expand.py: scipy.stats": "Sobol points: whole numbers and exclusive "
    "or, divided by a power of two",
    "engine/velocities.py: np.dot": "a sum that is only tested for being finite",
    "protocols/pioneer/commandbatch.py: @": "whole numbers: the bits of the axes",
    "formats/svg.py: @": "the product of two maps of a drawing, six Python "
    "floats (`svgtransforms.Matrix`)",
    "formats/svgpaths.py: @": "the same",
    "formats/svgtransforms.py: @": "the same",
    "interfaces/page/robotdetails.py: math.dist": "a number that the page shows",
}
"""What is used all the same: what reaches no state, reading or journal."""


def _is_of_the_system(module: str, name: str) -> bool:
    return name in OF_THE_SYSTEM.get(module, ())


def is_exact_power(node: ast.BinOp | ast.AugAssign) -> bool:
    """Return whether a power is exact:

    constant integers, or squares, are computed at compile time or in integers.
    """
    if isinstance(node, ast.AugAssign):
        return False

    def constant(value: ast.expr) -> object:
        value = value.operand if isinstance(value, ast.UnaryOp) else value
        return value.value if isinstance(value, ast.Constant) else None

    base, exponent = constant(node.left), constant(node.right)
    return (type(base) is int or base == 2.0) and (
        type(exponent) is int or type(base) is int
    )


def uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Return lines and the operations used there."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and _is_of_the_system(node.value.id, node.attr)
        ):
            yield node.lineno, f"{node.value.id}.{node.attr}"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS
        ):
            owner = node.func.value
            # `View.normal` is botyard's own function, and `np.dot` is replaced.
            if not (isinstance(owner, ast.Name) and owner.id in ("view", "np")):
                yield node.lineno, f".{node.func.attr}()"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(
            node.op, ast.MatMult
        ):
            yield node.lineno, "@"
        elif (
            isinstance(node, ast.BinOp | ast.AugAssign)
            and isinstance(node.op, ast.Pow)
            and not is_exact_power(node)
        ):
            yield node.lineno, "**"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            yield from (
                (node.lineno, m) for m in modules if m.partition(".")[0] in MODULES
            )
            if (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and node.module in ("math", "numpy", "random")
            ):
                known = OF_THE_SYSTEM["np" if node.module == "numpy" else node.module]
                yield from (
                    (node.lineno, f"{node.module}.{n}") for n in names if n in known
                )


def test_functions_of_the_system_are_used_for_what_is_shown_only() -> None:
    found: dict[str, int] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        # Only people read the results of these packages, or pass them on as rounded numbers.
        if path.parent.name in (
            "pictures",
            "calibration",
        ):
            continue

        for line, what in uses(ast.parse(path.read_text("utf-8"))):
            found.setdefault(f"{path.relative_to(SOURCE).as_posix()}: {what}", line)

    unknown = {
        f"{use}, line {line}" for use, line in found.items() if use not in REASONS
    }
    assert not unknown, (
        "take botyard.numerics.elementary or botyard.numerics.elementwise; or "
        "say in REASONS why it does not matter"
    )
    assert set(REASONS) <= set(found), "reasons for what is no longer there"


@pytest.mark.parametrize(
    "text",
    [
        "math.sin(x)",
        "np.hypot(x, y)",
        "f = math.atan2",
        "a @ b",
        "a @= b",
        "x ** 0.5",
        "x ** 2",
        "2.0 ** x",
        "np.linalg.norm(x)",
        "from math import cos",
        "import cmath",
        "draw.gauss(0, 1)",
        "rng.normal(size=3)",
        "a.dot(b)",
        "x **= 3",
        "from numpy import interp",
    ],
)
def test_they_are_found(text: str) -> None:
    assert list(uses(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "math.sqrt(x)",
        "math.remainder(a, b)",
        "2**31",
        "10**n",
        "2.0**-52",
        "np.cumsum(x)",
        "view.normal(3)",
        "f(**x)",
    ],
)
def test_nothing_else_is_found(text: str) -> None:
    assert not list(uses(ast.parse(text)))
