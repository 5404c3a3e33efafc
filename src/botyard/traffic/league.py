"""Reader of League of Robot Runners plans: output files of 2023, 2024 and 2026.

Until 2024 a path is a string of moves, one for each step: ``F,R,C,W``. Since 2026 it is a
string of segments, ``[(t,row,column,heading,counter):(F 10,W 2)]…``: the state at tick t,
and moves with their numbers of ticks. A move takes ``agentMaxCounter`` ticks, without
the ticks in which the robot waits; ``counter`` says how many of them have passed.
Source: MAPF-Competition/Start-Kit, Input_Output_Format.md.
"""

from __future__ import annotations

import re
from typing import Any, Final

from botyard.formats.jsonfile import brief
from botyard.traffic.task import TaskError

Cell = tuple[int, int]

MAX_STEPS: Final = 10_000_000
"""Largest number of steps of all agents of a plan together."""
_HEADINGS: Final = {"E": 0, "S": 1, "W": 2, "N": 3, "0": 0, "1": 1, "2": 2, "3": 3}
_NEXT_CELL: Final = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Row and column offsets of the next cell to the east, south, west and north."""
_SEGMENT: Final = re.compile(
    r"\[\((\d{1,9}),(-?\d{1,9}),(-?\d{1,9}),(\w{1,4}),(\d{1,9})\):\(([^()\[\]]*)\)\]"
)
_MOVES: Final = re.compile(r"([A-Z]) ?(\d{1,9})")


class _Agent:
    """State of an agent, and the cells that it has been in."""

    def __init__(self, row: int, column: int, heading: int, ticks: int) -> None:
        self.state = row, column, heading
        self.counter = 0
        self.cells = [(column, -row)]
        self._ticks = ticks

    def move(self, move: str, count: int) -> None:
        """Make a move for a number of ticks, and store the cell after each tick.

        Parameters
        ----------
        move : str
            F: to the next cell ahead; R, C: a quarter turn clockwise or
            counterclockwise; W, T: wait.
        count : int
            Number of ticks.
        """
        if move in "WT":
            self.cells += [self.cells[-1]] * count
            return

        for _ in range(count):
            self.counter += 1
            if self.counter >= self._ticks:
                self.counter = 0
                row, column, heading = self.state
                if move == "F":
                    self.state = (
                        row + _NEXT_CELL[heading][0],
                        column + _NEXT_CELL[heading][1],
                        heading,
                    )
                else:
                    self.state = row, column, (heading + (1 if move == "R" else 3)) % 4

            self.cells.append((self.state[1], -self.state[0]))


class _Reader:
    """Reader of the parts of a document; error messages name the key."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._steps = 0

    def fail(self, key: str, expected: str, found: object) -> TaskError:
        """Return the error for a key."""
        return TaskError(
            f"{key}: expected {expected}, found {brief(found)}", self._path
        )

    def plan(self, data: Any) -> list[list[Cell]]:
        """Return the cells of all agents.

        Parameters
        ----------
        data : dict
            The JSON document.

        Returns
        -------
        list of lists of (int, int)
            The cell (x, y) of each agent at each step, y up.

        Raises
        ------
        TaskError
            The document is not such a plan; the message names the key.
        """
        for key in ("start", "actualPaths"):
            if key in data:
                continue
            # The input of a planner looks similar, and users often give it by mistake.
            if "mapFile" in data:
                raise TaskError(
                    "expected the output of a planner of the League of Robot "
                    f"Runners, with {key}: found its input, with mapFile",
                    self._path,
                )

            raise TaskError(
                f"expected a plan of the League of Robot Runners: {key} is missing",
                self._path,
            )

        starts, paths = data["start"], data["actualPaths"]
        for key, value in (("start", starts), ("actualPaths", paths)):
            if not isinstance(value, list):
                raise self.fail(key, "an array with an entry for each robot", value)

        if len(starts) != len(paths):
            raise self.fail(
                "actualPaths",
                f"a path for each of {len(starts)} starts",
                f"{len(paths)} paths",
            )

        if data.get("actionModel", "MAPF_T") != "MAPF_T":
            raise self.fail("actionModel", "MAPF_T", data["actionModel"])
        ticks = data.get("agentMaxCounter", 1)
        if type(ticks) is not int or not 1 <= ticks <= MAX_STEPS:
            raise self.fail(
                "agentMaxCounter", f"a number of ticks from 1 to {MAX_STEPS}", ticks
            )

        return [
            self._cells(i, start, path, ticks)
            for i, (start, path) in enumerate(zip(starts, paths, strict=True))
        ]

    def _cells(self, i: int, start: Any, path: Any, ticks: int) -> list[Cell]:
        good = (
            isinstance(start, list)
            and len(start) >= 3
            and type(start[0]) is int
            and type(start[1]) is int
        )
        if not good or str(start[2]) not in _HEADINGS:
            raise self.fail(f"start[{i}]", "[row, column, E, S, W or N]", start)
        where = f"actualPaths[{i}]"
        if not isinstance(path, str):
            raise self.fail(where, "a string of moves", path)
        is_segments = path.lstrip().startswith("[")
        # In the old form each move takes one step, whatever the document says.
        agent = _Agent(
            start[0], start[1], _HEADINGS[str(start[2])], ticks if is_segments else 1
        )
        if is_segments:
            self._segments(where, path, agent)
        else:
            for move in path.replace(",", "").replace(" ", ""):
                self._move(where, agent, move, 1)

        return agent.cells

    def _move(self, where: str, agent: _Agent, move: str, count: int) -> None:
        if move not in "FRCWT":
            raise self.fail(where, "moves F, R, C, W or T", move)
        self._steps += count
        if self._steps > MAX_STEPS:
            raise TaskError(
                f"expected a plan of at most {MAX_STEPS} steps, found more", self._path
            )

        agent.move(move, count)

    def _segments(self, where: str, path: str, agent: _Agent) -> None:
        """Make the moves of segments.

        The state of each segment must be the state in which the previous segment ends.
        """
        text = "".join(path.split())
        at = 0
        while at < len(text):
            found = _SEGMENT.match(text, at)
            if found is None:
                raise self.fail(
                    where,
                    "[(t,row,column,heading,counter):(F 10,W 2)]",
                    text[at : at + 40],
                )

            t, row, column, heading, counter, moves = found.groups()
            if heading not in _HEADINGS:
                raise self.fail(where, "a heading E, S, W or N", heading)
            state, ticks = (
                (int(row), int(column), _HEADINGS[heading]),
                len(agent.cells) - 1,
            )
            if (int(t), state) != (ticks, agent.state):
                raise self.fail(
                    f"{where}: tick {t}",
                    f"the state after the moves before it, tick {ticks}, {agent.state}",
                    state,
                )

            # A segment can start in the middle of a move.
            agent.counter = int(counter)
            for part in filter(None, moves.split(",")):
                move = _MOVES.fullmatch(part)
                if move is None:
                    raise self.fail(
                        where, 'a move and its number of ticks, such as "F 10"', part
                    )
                self._move(where, agent, move[1], int(move[2]))

            at = found.end()


def plan_of_league(data: Any, path: str) -> list[list[Cell]]:
    """Return the paths of all agents from a parsed output file.

    Parameters
    ----------
    data : dict
        The JSON document.
    path : str
        Its file, for messages.

    Returns
    -------
    list of lists of (int, int)
        The cell (x, y) of each agent at each step (2026: tick), y up.

    Raises
    ------
    TaskError
        The document is not such a plan.
    """
    return _Reader(path).plan(data)


__all__ = ["MAX_STEPS", "plan_of_league"]
