"""Saved states of a simulation: saved as bytes, restored, and continued with clients connected.

The bytes hold everything that changes, and digests of the constant parts: the map, and
the models of robots and boxes. They can be restored only into a simulation that has the
same map and knows the same models. A simulation knows models that it has used before,
and models installed under the same names. `botyard.engine.state` defines the layout and the
columns, `botyard.sim.statehead` the rest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from botyard.api.revisions import SAVED
from botyard.engine.state import CHECKSUM, MAGIC, columns_of, digest_of, join
from botyard.formats.budget import Budget
from botyard.model.scene import Scene
from botyard.sim.branching import branch
from botyard.sim.core import Core
from botyard.sim.journal import Restore
from botyard.sim.programs import employ
from botyard.sim.renaming import rename_robots
from botyard.sim.restoring import restore
from botyard.sim.statehead import Known, controllers_of, digested_head, head_of


class SavedStates:
    """State of a simulation as bytes.

    Attributes
    ----------
    known : Known
        Descriptions that states of this simulation refer to.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self.known = Known()

    def save(self, programs: bool) -> bytes:
        """Return the state; see `Simulation.save_state`.

        Parameters
        ----------
        programs : bool
            Whether to include the controllers that drive robots, with their states.

        Raises
        ------
        StateError
            The state of a robot's controller cannot be saved.
        """
        controllers = controllers_of(self._core) if programs else []
        return join(
            msgspec.msgpack.encode(head_of(self._core, self.known, controllers)),
            list(columns_of(self._core.engine)),
        )

    def save_moment(self, number: int, programs: bool = True) -> bytes:
        """Return a saved state with a number of the caller in place of its checksum.

        The method serves callers that save often, because the checksum takes most of
        the time. `sealed` turns the bytes into a state.

        Parameters
        ----------
        number : int
            Number for the caller's use, 0 to 2⁶⁴ − 1.
        programs : bool
            Whether to include the controllers, see `save`.

        Raises
        ------
        StateError
            The state of a robot's controller cannot be saved.
        """
        controllers = controllers_of(self._core) if programs else []
        head = msgspec.msgpack.encode(head_of(self._core, self.known, controllers))
        columns = [
            np.ascontiguousarray(column).data
            for column in columns_of(self._core.engine)
        ]
        return b"".join(
            (
                MAGIC,
                struct.pack("<I", len(head)),
                head,
                *columns,
                # The number has the size of the checksum, so that `sealed` keeps the
                # length.
                number.to_bytes(CHECKSUM, "little"),
            )
        )

    def restore(
        self, state: bytes, *, programs: bool = True, budget: Budget = Budget()
    ) -> None:
        """Continue from a state; see `Simulation.restore`."""
        core = self._core
        core.check_thread()
        tick, models = core.tick, list[object]()
        # The restoration is one journal entry, so the changes that it consists of get
        # none.
        try:
            with core.journal:
                restore(
                    core,
                    self.known,
                    state,
                    budget,
                    employ if programs else None,
                    models,
                )
        finally:
            core.feed.record_change(*SAVED)

        # The bytes are copied only for a listener; they may be large.
        if core.journal.is_read:
            core.journal.note(tick, None, Restore(bytes(state), tuple(models)))

    def branch(self, state: bytes, scene: Scene | None = None) -> None:
        """Continue from an earlier state of this simulation with clients connected.

        The whole world is restored, as with `Simulation.restore`. Properties of connections keep
        their present values: the sources that command robots (`Robot.clients`), hold
        bodies and read sensors. Robots under command of clients also keep rays, motors,
        limits and ramps.

        Commands that waited in the state are dropped. Robots that clients command, or
        commanded at that moment, stop and wait for the next command. Pioneer clients
        see the change as a placement of the robot.

        Parameters
        ----------
        state : bytes
            Result of `Simulation.save_state`.
        scene : Scene, optional
            Map of that time, if it may differ from the present one.

        Raises
        ------
        StateError
            See `Simulation.restore`. In this case, at most the map has changed.
        """
        self._core.check_thread()
        branch(self._core, self.known, self.restore, state, scene)

    def rename_robots(self, names: Mapping[str, str]) -> dict[str, str]:
        """Give robots other names between two steps; their trailers are renamed with them.

        A renamed robot has a new handle and other random draws, and the whole state of
        the old one.

        Parameters
        ----------
        names : mapping of str to str
            New names by the old names of robots.

        Returns
        -------
        dict of str to str
            New names by old names of all bodies that were renamed, trailers included.

        Raises
        ------
        UnknownNameError
            No robot has one of the old names.
        NameRuleError, NameTakenError
            A new name is not valid, is given twice, or is the name of another body.
        WorldError
            A robot is a trailer, whose name follows from the robot that pulls it.
        """
        self._core.check_thread()
        return rename_robots(self._core, self.known, names)

    def models(self) -> tuple[object, ...]:
        """Return models, boxes and description files that a state saved now refers to.

        Pass them to `know` later: a world forgets unused descriptions after some time.
        """
        specs = {id(robot.spec): robot.spec for robot in self._core.robots.values()}
        return (
            *specs.values(),
            *self._core.scene.boxes,
            self._core.descriptions.described,
        )

    def know(self, described: Sequence[object]) -> None:
        """Remember models and boxes that later restored states may refer to.

        The effect is the same as if they had been in this world.

        Parameters
        ----------
        described : sequence of objects
            Models, boxes and description files, as `models` returned them.
        """
        for one in described:
            self.known.digest(one)

    def digest(self) -> int:
        """Return the digest of the state; see `Simulation.digest`."""
        return digest_of(
            digested_head(head_of(self._core, self.known, [])),
            columns_of(self._core.engine),
        )


def sealed(moment: bytes) -> bytes:
    """Return a state that `Simulation.restore` accepts, with its checksum.

    Parameters
    ----------
    moment : bytes
        Result of `SavedStates.save_moment`.
    """
    body = moment[:-CHECKSUM]
    return body + hashlib.blake2b(body, digest_size=CHECKSUM).digest()


__all__ = ["SavedStates", "sealed"]
