"""The navigation benchmark as runs of a study.

A plan names it with ``run: botyard.learning.navigationstudy:drive``
(docs/howto/study.md).
"""

from __future__ import annotations

from typing import Any

from botyard.learning.baselines import find_policy
from botyard.learning.benchmark import run


def drive(sim: object, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run one world of the benchmark.

    The run with seed n drives in world n − 1 of ``botyard bench navigation --seed 1``.

    Parameters
    ----------
    sim : None
        Unused: the plan has no world of its own.
    params : dict
        ``policy``: a name, as for the command. ``class``: class of the world.
    seed : int
        Seed of the run, from 1.

    Returns
    -------
    dict
        ``success``, ``outcome``, ``time`` (None without success), ``way``,
        ``clearance`` and ``turning``, see `botyard.learning.benchmark.Result`.

    Raises
    ------
    ArgumentError, CommandLineError
        The class or the policy is unknown.
    """
    (one,) = run(
        find_policy(str(params.get("policy"))),
        str(params.get("class")),
        1,
        first=seed - 1,
    )
    success = one.outcome == "goal"
    return {
        "success": success,
        "outcome": one.outcome,
        "time": one.time_s if success else None,
        "way": one.way_m,
        "clearance": one.clearance_m,
        "turning": one.turning,
    }


__all__ = ["drive"]
