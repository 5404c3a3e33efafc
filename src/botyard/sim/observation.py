"""Results of a run that observers take: contacts, history, pictures, recordings.

None of them changes the world, and clones of a simulation do not have them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.api.extensions import extension
from botyard.api.listeners import Listeners
from botyard.engine.snapshot import Snapshot
from botyard.sim.contacts import ContactLog
from botyard.sim.history import History, make_history
from botyard.sim.recordings import Recording
from botyard.sim.robot import R
from botyard.sim.simulationcore import SimulationCore
from botyard.sim.state import Restorable

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger("botyard")


class Observable(Restorable[R]):
    """Simulation that can be watched, drawn and recorded."""

    def __init__(self, core: SimulationCore) -> None:
        super().__init__(core)
        # A failing observer would otherwise log an error in each step.
        self._looks = Listeners[Snapshot](log, "steps", ends_failed=True)
        self._history: History[Self] | None = None
        self._contacts: ContactLog | None = None
        self._live: Any = None

    def after_step(self, look: Callable[[Snapshot], object]) -> Callable[[], None]:
        """Call `look` with the snapshot after every step.

        Use this method for observers that change nothing, such as a recording.
        Observers are not a part of the world, and clones do not have them. An exception
        is logged, and ends the calls.

        Parameters
        ----------
        look : callable
            Takes the snapshot, which is valid until the step after the next; its result
            is ignored.

        Returns
        -------
        callable
            Ends the calls.

        Raises
        ------
        ArgumentError
            `look` is not callable.
        """
        return self._looks.add(arguments.function(look, "look"))

    @property
    def _is_observed(self) -> bool:
        """Whether functions of `after_step` are called, other than the history's own.

        The history depends on simulated time alone.
        """
        of_history = self._history is not None and self._history.is_on
        return len(self._looks) > of_history

    @property
    def events(self) -> ContactLog:
        """Contacts of robots with time, place and partner.

        Contacts are logged from the first use of this property on, over all episodes.
        Clones start a new log.
        """
        # The log costs time in each step, so that it starts with its first use.
        if self._contacts is None:
            self._contacts = ContactLog(self.core, self.core.episodes)
            self.after_step(self._contacts.look)

        return self._contacts

    @property
    def history(self) -> History[Self]:
        """The last minutes of the simulation, to show and to continue from.

        The history is off until `history.keep()` is called.
        """
        if self._history is None:
            self._history = make_history(self)
        return self._history

    def render(
        self,
        path: str | Path | None = None,
        *,
        area: Sequence[float] | None = None,
        follow: str | None = None,
        trails: float = 0.0,
        scans: bool | str | Sequence[str] = True,
        size: int | tuple[int, int] = 1000,
        theme: str = "light",
        colors: str = "model",
        goals: ArrayLike = (),
        overwrite: bool = False,
    ) -> Image:
        """Draw the world from above, as the page shows it.

        Parameters
        ----------
        path : str or Path, optional
            File to which the picture is also written; its suffix selects the format.
        area : four numbers, optional
            Part of the world: least x, least y, greatest x, greatest y, m; with `follow` two
            numbers, width and height, m. Default: the whole world, or 12 m around the robot.
        follow : str, optional
            Name of the robot in the centre.
        trails : float
            Length of trails, s; needs the history (``sim.history.keep()``).
        scans : bool or names of robots
            Beams of sensors with a reader (True), of no sensor (False), or of all range sensors
            of these robots.
        size : int or tuple of two
            Greatest width, or width and height, pixels. With a width alone, the picture gets
            narrower if the world is more than four times as high as wide, or if the picture
            would have more than 10⁸ pixels.
        theme : str
            ``light`` or ``dark``.
        colors : str
            Whether robots have the colour of their ``model``, or each ``robot`` its own.
        goals : (k, 2) or (k, 3) array
            Further places to mark like goals of the map: x, y, m, and a heading, rad.
        overwrite : bool
            Also replace a file at `path` that botyard did not write.

        Raises
        ------
        ArgumentError
            The size is not from 16 to 20,000 or has more than 10⁸ pixels, the area is empty,
            the theme is unknown, trails are requested without a history, or the suffix belongs
            to no picture format.
        UnknownNameError
            No robot has this name.
        KeptFileError
            The file at `path` exists, and botyard did not write it.
        OSError
            The file cannot be written.
        """
        options = {
            "area": area,
            "follow": follow,
            "trails": trails,
            "scans": scans,
            "size": size,
            "theme": theme,
            "colors": colors,
            "goals": goals,
        }
        return render(
            self,
            None if path is None else arguments.path(path, "path"),
            options,
            overwrite,
        )

    def show(
        self,
        *,
        height: int = 480,
        speed: float | None = None,
        url: str | None = None,
        port: int | None = None,
    ) -> None:
        """Show the world live: in a notebook below the cell, otherwise in the browser.

        The page follows each later step. It only watches: it cannot change the run.
        Changes between two steps appear at the end of the cell, or at the next step. In
        a notebook a picture is saved with the page; it is shown wherever the page
        cannot be reached. Outside of notebooks the call prints the address of the page,
        and opens it in the browser if there is a display.

        The page has a server of its own, in a thread of this process, which only this
        computer can reach. Further calls use it again. It ends with the program, with
        `close`, or when the simulation is no longer used.

        Parameters
        ----------
        height : int
            Height in a notebook, pixels.
        speed : float, optional
            Simulated time per wall time that later steps keep to at most: 1 is real time.
            Default: as fast as possible.
        url : str, optional
            Address at which your browser reaches the port, if the notebook runs on another
            computer: ``{port}`` stands for its number. Default: the notebook tries the
            proxy of Jupyter (jupyter-server-proxy) and this computer.
        port : int, optional
            Port of the page in the first call. Default: 8100, or the next free one; 0: any
            free port.

        Raises
        ------
        ArgumentError
            A parameter is out of range or of another type.
        PortError
            The port is in use. A notebook shows the picture alone, with a warning.
        """
        show(self, height, speed, url, port)

    def record(
        self,
        path: str | Path,
        *,
        topics: Sequence[str] | None = None,
        robots: Sequence[str] = ("*",),
        rate: float | Mapping[str, float] | None = None,
        split_mb: float | None = None,
        split: float | None = None,
        last: float | None = None,
        on_stall: bool = False,
        overwrite: bool = False,
    ) -> Recording:
        """Record from now on to an MCAP file until the recording is closed.

        Use it as ``with sim.record("run.mcap"): …``. The file has topics as in ROS 2,
        and all data needed to repeat the run. Foxglove, PlotJuggler and ``ros2 bag``
        open it.

        Parameters
        ----------
        path : str or Path
            File to write. Further files have a number after its name.
        topics : sequence of str, optional
            Patterns of topics, such as ``"/p3dx/*"``; a sensor whose topic is named measures
            for the recording. Default: odometry, true poses, commands, transforms, the map, the
            log, and scans of lasers that have another reader.
        robots : sequence of str
            Patterns of robot names.
        rate : float or mapping of str to float, optional
            Highest number of messages per topic and simulated second, or by pattern of topics
            (the first match counts); 0: one for every step. Default: transforms 5, odometry and
            true poses 2, all others 10.
        split_mb, split : float, optional
            Size, megabytes (10⁶ bytes), or simulated time, s, after which another file starts.
        last : float, optional
            Simulated time, s, that is kept in memory (at most 500 MiB) until `Recording.save`
            writes it.
        on_stall : bool
            Save the kept data two seconds after a robot has stalled, at most 20 times.
        overwrite : bool
            Also replace a file that botyard did not write.

        Raises
        ------
        ArgumentError
            A parameter is out of range or of another type.
        KeptFileError
            The file exists, and botyard did not write it.
        OSError
            The file cannot be written. Later errors end the recording, and nothing else.
        """
        return record(
            self,
            arguments.path(path, "path"),
            {
                "topics": topics,
                "robots": robots,
                "rate": rate,
                "split_mb": split_mb,
                "split": split,
                "last": last,
                "on_stall": on_stall,
                "overwrite": overwrite,
            },
        )


@extension("render")
def render(
    sim: Any,
    path: str | Path | None,
    options: Mapping[str, Any],
    overwrite: bool,
) -> Image:
    """Draw a simulation, and write the picture to a file; see `Simulation.render`.

    Parameters
    ----------
    sim : Simulation
        Simulation to draw.
    path : str, Path or None
        File to write; None: only return the picture.
    options : mapping
        The other arguments of `Simulation.render` by name.
    overwrite : bool
        Also replace a file that botyard did not write.
    """
    raise NotImplementedError


@extension("show")
def show(
    sim: Any, height: int, speed: float | None, url: str | None, port: int | None
) -> None:
    """Show the live page of a simulation; see `Simulation.show`."""
    raise NotImplementedError


@extension("record")
def record(sim: Any, path: str | Path, choices: Mapping[str, Any]) -> Recording:
    """Start to record a simulation.

    Parameters
    ----------
    sim : Simulation
        Simulation to record.
    path : str or Path
        File to write.
    choices : mapping
        The other arguments of `Simulation.record` by name.
    """
    raise NotImplementedError


@extension("png")
def png(sim: Any, robot: str | None) -> bytes:
    """Return a PNG picture for notebooks: the whole world, or a robot's surroundings."""
    raise NotImplementedError


__all__ = ["Observable", "png", "record", "render", "show"]
