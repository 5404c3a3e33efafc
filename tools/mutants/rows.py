"""``python -m tools.mutants.rows [ROW …] --each 3``: do the tests of a row of the
feature table notice errors in its code?

For each row that works (`docs/reference/compatibility.toml`), mutants are drawn from
the statements that its tests execute: first those that the fewest other rows' tests
execute, for these are the row's own. The row's tests alone are asked. A mutant that
survives them is a defect of the row, or equivalent to the original: `.mutants/rows.md`
lists them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.mutants import covered, trial
from tools.mutants.__main__ import NOTICED, ROOT, key, percent
from tools.mutants.changes import Change, changes, is_real

Drawn = tuple[Change, bytes]


def rows(priorities: str = "M") -> dict[str, list[str]]:
    """Return the tests of the rows that work, ``path::name``."""
    table = tomllib.loads(
        (ROOT / "docs/reference/compatibility.toml").read_text("utf-8")
    )["features"]
    return {
        row: v[3].split()
        for row, v in table.items()
        if v[0] in priorities and v[1] == "works"
    }


def tests_of(names: list[str], record: covered.Record) -> set[str]:
    """Return the ids of recorded tests, one for each set of parameters."""
    wanted = set(names)
    return {test for test in record.seconds if test.partition("[")[0] in wanted}


def lines_of(
    row_tests: dict[str, set[str]], record: covered.Record
) -> dict[str, dict[tuple[str, int], int]]:
    """Return for each row the lines that its tests execute, and how many rows' tests execute
    each line.
    """
    rows_by_test: dict[str, set[str]] = {}
    for row, tests in row_tests.items():
        for test in tests:
            rows_by_test.setdefault(test, set()).add(row)

    found: dict[str, dict[tuple[str, int], int]] = {row: {} for row in row_tests}
    for path, lines in record.lines.items():
        for line, tests in lines.items():
            executing = set().union(*(rows_by_test.get(test, set()) for test in tests))
            for row in executing:
                found[row][path, line] = len(executing)

    return found


def draw(
    lines: dict[tuple[str, int], int],
    pool: dict[tuple[str, int], list[Drawn]],
    each: int,
    seed: str,
) -> Iterator[Drawn]:
    """Draw the mutants of a row, at most one for a statement: first the mutants of lines that
    the fewest rows execute.
    """
    order = [place for place in lines if place in pool]
    random.Random(seed).shuffle(order)
    order.sort(key=lines.__getitem__)
    seen: set[tuple[str, tuple[int, int]]] = set()
    for place in order:
        change, source = random.Random(f"{seed}{place}").choice(pool[place])
        if (change.path, change.lines) in seen or not is_real(change, source):
            continue
        seen.add((change.path, change.lines))
        yield change, source
        if len(seen) == each:
            return


def pool_of(places: set[tuple[str, int]]) -> dict[tuple[str, int], list[Drawn]]:
    """Return all mutants of these lines; leave kernels out, because Numba compiles them."""
    pool: dict[tuple[str, int], list[Drawn]] = {}
    for name in sorted({path for path, _ in places if path.startswith("src/")}):
        source = (ROOT / name).read_bytes()
        if b"\n@kernel" in source:
            continue
        for change in changes(name, source):
            if (name, change.line) in places:
                pool.setdefault((name, change.line), []).append((change, source))

    return pool


def main() -> int:
    """Run; return 1 if a mutant survived."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rows", nargs="*", help="rows, such as MOT-002; default: all of --priority"
    )
    parser.add_argument(
        "--priority", default="M", help="priorities of the rows to check, such as MS"
    )
    parser.add_argument(
        "--each", type=int, default=3, help="number of mutants for each row"
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
        "--minutes",
        type=float,
        default=math.inf,
        help="stop after this time and report the mutants tried so far",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=covered.KEPT / "rows.md",
        help="file of the report",
    )
    args = parser.parse_args()
    named = {
        row: names
        for row, names in rows(args.priority).items()
        if not args.rows or row in args.rows
    }
    files = sorted(
        {name.partition("::")[0] for names in rows("MSC").values() for name in names}
    )
    # Tests of these folders run the code in other processes, where coverage is not recorded.
    files = [
        path for path in files if not path.startswith(("tests/page/", "tests/ros/"))
    ]
    record = covered.record(files, args.jobs)
    row_tests = {row: tests_of(names, record) for row, names in named.items()}
    every = {row: tests_of(names, record) for row, names in rows("MSC").items()}
    lines = lines_of(every, record)
    pool = pool_of(set().union(*(lines[row].keys() for row in named)))
    asked = [
        (row, item)
        for row in named
        for item in draw(lines[row], pool, args.each, f"{args.seed}{row}")
    ]
    journal = covered.KEPT / covered.state_of(files) / "rows"
    known = (
        dict(json.loads(line) for line in journal.read_text().splitlines())
        if journal.exists()
        else {}
    )
    trial.load_others()
    until = time.monotonic() + 60.0 * args.minutes
    waiting = [
        (row, item) for row, item in reversed(asked) if _key(row, item) not in known
    ]
    running: dict[trial.Trial, tuple[str, Drawn]] = {}
    try:
        while running or (waiting and time.monotonic() < until):
            while waiting and len(running) < args.jobs and time.monotonic() < until:
                row, (change, source) = waiting.pop()
                tests = sorted(row_tests[row], key=record.seconds.__getitem__)
                seconds = sum(record.seconds[test] for test in tests)
                running[
                    trial.Trial(
                        ROOT, change.path, change.applied(source), tests, seconds
                    )
                ] = row, (change, source)

            for one in list(running):
                if (outcome := one.poll()) is not None:
                    row, item = running.pop(one)
                    known[_key(row, item)] = [outcome.verdict, outcome.test]
                    with journal.open("a", encoding="utf-8") as file:
                        file.write(
                            json.dumps([_key(row, item), known[_key(row, item)]]) + "\n"
                        )

                    change = item[0]
                    print(
                        f"{row} {outcome.verdict:9} {change.path}:{change.line} {change.kind}"[
                            :160
                        ],
                        flush=True,
                    )

            time.sleep(0.01)
    finally:
        for one in running:
            one.end()

    done = [
        (row, item, known[_key(row, item)][0])
        for row, item in asked
        if _key(row, item) in known
    ]
    unseen = [row for row in named if not row_tests[row]]
    return report(args.output, done, unseen)


def _key(row: str, item: Drawn) -> str:
    return f"{row} {key(item[0])}"


def report(output: Path, done: list[tuple[str, Drawn, str]], unseen: list[str]) -> int:
    """Write the score and all mutants that survived; return 1 if there is one."""
    counts = Counter(verdict for *_, verdict in done)
    lines = [
        "# Mutants of rows",
        "",
        (
            "- Detected by the tests of the row: "
            f"{percent(sum(counts[v] for v in NOTICED), len(done))}"
        ),
        f"- Rows whose tests run only in other processes: {' '.join(unseen) or 'none'}",
        "",
        "```diff",
    ]
    for row, (change, source), verdict in done:
        if verdict not in NOTICED:
            old, new = change.shown(source)
            lines += [
                f"@ {row} {change.path}:{change.line} {change.kind}",
                f"-{old}",
                f"+{new}",
            ]

    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join([*lines, "```", ""]), encoding="utf-8")
    print("\n".join(lines[2:4]), f"written to {output}", sep="\n")
    return int(any(verdict not in NOTICED for *_, verdict in done))


if __name__ == "__main__":
    sys.exit(main())
