"""Mutation testing: ``python -m tools.mutants --count 3000 --seed 1`` (``make
mutants``).

Mutants (`tools.mutants.changes`) are drawn by the seed from all that could be made in
protocols, formats and the engine, without what Numba compiles. For each, the tests that
cover its statement are run, the quick ones first, in a process of its own
(`tools.mutants.trial`). The score is the share of mutants that are killed; some of the
others are equivalent to the original, so it cannot reach 100 %. Results are kept as
they come: the same command goes on where it was ended.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from tools.mutants import covered, trial
from tools.mutants.changes import Change, changes, is_real

ROOT = covered.ROOT
CODE = ("protocols", "formats", "engine")
NOTICED = ("killed", "import", "limit")
Z95 = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 %."""


def files() -> list[Path]:
    """Return the files that are mutated: files of the layers in `CODE` without kernels, which
    Numba has compiled.
    """
    found = [
        path for layer in CODE for path in (ROOT / "src/botyard" / layer).rglob("*.py")
    ]
    return sorted(
        path
        for path in found
        if "kernels" not in path.parts and b"\n@kernel" not in path.read_bytes()
    )


def draw(count: int, seed: int, within: str = "") -> list[tuple[Change, bytes]]:
    """Draw `count` different mutants, all equally likely; `within`: only from files whose paths
    contain this text.
    """
    pool: list[tuple[Change, bytes]] = []
    for path in files():
        name, source = path.relative_to(ROOT).as_posix(), path.read_bytes()
        if within in name:
            pool += [(change, source) for change in changes(name, source)]

    print(f"{len(pool)} errors could be made in {len({c.path for c, _ in pool})} files")
    random.Random(seed).shuffle(pool)
    chosen: list[tuple[Change, bytes]] = []
    for change, source in pool:
        if len(chosen) == count:
            break
        if is_real(change, source):
            chosen.append((change, source))

    return chosen


def interval(part: int, whole: int) -> tuple[float, float]:
    """Return Wilson's confidence interval of 95 % for a proportion (Wilson, JASA 22, 1927)."""
    if whole == 0:
        return 0.0, 1.0
    p, z2 = part / whole, Z95 * Z95
    middle = (p + z2 / (2 * whole)) / (1 + z2 / whole)
    half = (
        Z95
        * math.sqrt(p * (1 - p) / whole + z2 / (4 * whole * whole))
        / (1 + z2 / whole)
    )
    return max(0.0, middle - half), min(1.0, middle + half)


def choose(
    record: covered.Record, change: Change, budget: float
) -> tuple[list[str], float, bool]:
    """Return the tests to run, quick ones and tests of the same layer first; how long they
    take, s; and whether they are all tests that cover the mutant.
    """
    layer = f"tests/{Path(change.path).parts[2]}/"
    order = sorted(
        record.tests(change),
        key=lambda t: (record.seconds[t] * (1.0 if t.startswith(layer) else 3.0), t),
    )
    taken, seconds = [], 0.0
    for test in order:
        if taken and seconds + record.seconds[test] > budget:
            break
        taken.append(test)
        seconds += record.seconds[test]

    return taken, seconds, len(taken) == len(order)


def percent(part: int, whole: int) -> str:
    low, high = interval(part, whole)
    return (
        f"{part} of {whole}: {100.0 * part / max(1, whole):.1f} % (95 %: "
        f"{100.0 * low:.1f} to {100.0 * high:.1f} %)"
    )


def main() -> int:
    """Run; return 0 unless tests fail without a mutant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--count", type=int, default=3000, help="number of mutants to draw at random"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the random choice of mutants"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=max(1, (os.cpu_count() or 1) - 1),
        help="number of mutants that run at the same time",
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=20.0,
        help="limit of the time of tests for one mutant, s",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="stop after this time and report the mutants tried so far",
    )
    parser.add_argument(
        "--within", default="", help="mutate only files whose paths contain this text"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=covered.KEPT / "mutants.md",
        help="file of the report",
    )
    parser.add_argument(
        "tests",
        nargs="*",
        default=list(covered.SUITE),
        help="tests that may kill a mutant",
    )
    args = parser.parse_args()
    record = covered.record(args.tests, args.jobs)
    chosen = draw(args.count, args.seed, args.within)
    journal = covered.KEPT / covered.state_of(args.tests) / "outcomes"
    known = (
        dict(json.loads(line) for line in journal.read_text().splitlines())
        if journal.exists()
        else {}
    )
    trial.load_others()
    until = time.monotonic() + 60.0 * args.minutes

    running: dict[trial.Trial, tuple[Change, bool]] = {}
    waiting = [item for item in reversed(chosen) if key(item[0]) not in known]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        while running or (waiting and time.monotonic() < until):
            while waiting and len(running) < args.jobs and time.monotonic() < until:
                change, source = waiting.pop()
                tests, seconds, complete = choose(record, change, args.budget)
                if tests:
                    running[
                        trial.Trial(
                            ROOT, change.path, change.applied(source), tests, seconds
                        )
                    ] = change, complete
                else:
                    keep(journal, known, change, "unseen", "")

            for one in list(running):
                if (outcome := one.poll()) is not None:
                    change, complete = running.pop(one)
                    some = outcome.verdict == "survived" and not complete
                    keep(
                        journal,
                        known,
                        change,
                        "survived some" if some else outcome.verdict,
                        outcome.test,
                    )

            time.sleep(0.01)
    finally:
        for one in running:
            one.end()

    asked = [
        (change, source, *known[key(change)])
        for change, source in chosen
        if key(change) in known
    ]
    unfit = control(
        record, {test for *_, verdict, test in asked if verdict == "killed"}
    )
    report(args, asked, unfit, len(record.seconds))
    return 1 if unfit else 0


def key(change: Change) -> str:
    """Return the key of a mutant within one state of the code."""
    return f"{change.path}:{change.start}:{change.end}:{change.new}"


def keep(
    journal: Path, known: dict[str, list[str]], change: Change, verdict: str, test: str
) -> None:
    """Keep and print the outcome of a mutant."""
    known[key(change)] = [verdict, test]
    with journal.open("a", encoding="utf-8") as file:
        file.write(json.dumps([key(change), known[key(change)]]) + "\n")
    print(
        f"{len(known):5} {verdict:13} {change.path}:{change.line} {change.kind} {test}"[
            :160
        ],
        flush=True,
    )


def control(record: covered.Record, killers: set[str]) -> list[str]:
    """Return the tests that have killed a mutant, but also fail in such a process without one."""
    tests = sorted(killers)
    if not tests:
        return []
    seconds = sum(record.seconds[t] for t in tests if t in record.seconds)
    outcome = trial.Trial(ROOT, "", None, tests, seconds, stop=False).wait()
    return [] if outcome.verdict == "survived" else outcome.test.splitlines()


def report(
    args: argparse.Namespace,
    asked: list[tuple[Change, bytes, str, str]],
    unfit: list[str],
    tests: int,
) -> None:
    """Print the score, and write it to a file with all mutants that survived."""
    asked = [item for item in asked if not (item[2] == "killed" and item[3] in unfit)]
    counts = Counter(verdict for *_, verdict, _ in asked)
    noticed = sum(counts[v] for v in NOTICED)
    seen = [item for item in asked if item[2] != "unseen"]
    lines = [
        "# Mutants",
        "",
        (
            f"`python -m tools.mutants --count {args.count} --seed "
            f"{args.seed}{(f' --within {args.within}' if args.within else '')}`: "
            f"{len(asked)} small errors were injected one at a time, and {tests} tests "
            "were run to detect them."
        ),
        "",
        f"- Detected: {percent(noticed, len(asked))}",
        (
            "- Detected, of the errors in lines that tests execute: "
            f"{percent(noticed, len(seen))}"
        ),
        (
            f"- How: a test failed {counts['killed']}, an import failed "
            f"{counts['import']}, a limit of time or memory was exceeded "
            f"{counts['limit']}"
        ),
        (
            f"- Not detected: {counts['survived']} with all tests that execute the line, "
            f"{counts['survived some']} with the tests that fit into {args.budget:g} s, "
            f"{counts['unseen']} in lines that no test executes in its own process"
        ),
        "",
        "| layer | detected |",
        "|---|---|",
    ]
    for layer in CODE:
        own = [
            item for item in asked if item[0].path.startswith(f"src/botyard/{layer}/")
        ]
        lines.append(
            f"| {layer} | {percent(sum(v in NOTICED for *_, v, _ in own), len(own))} |"
        )

    if unfit:
        lines += [
            "",
            (
                "Tests that fail in such a process without any error (their detections "
                "are left out):"
            ),
            *(f"- `{t}`" for t in unfit),
        ]

    print("\n".join(lines[4:]))
    lines += ["", "## Not detected", "", "```diff"]
    for change, source, verdict, _ in sorted(
        asked, key=lambda item: (item[0].path, item[0].start)
    ):
        if verdict not in NOTICED:
            old, new = change.shown(source)
            lines += [
                f"@ {change.path}:{change.line} {change.kind}, {verdict}",
                f"-{old}",
                f"+{new}",
            ]

    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text("\n".join([*lines, "```", ""]), encoding="utf-8")
    print(f"written to {args.output}")


if __name__ == "__main__":
    sys.exit(main())
