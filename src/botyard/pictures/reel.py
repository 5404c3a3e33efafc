"""Moments of a movie as plain data (`Reel`), and the child process that makes the movie.

A reel contains data that several moments share, such as the map, only once. See
`botyard.processes.child_process` for the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from botyard.errors import BotyardError
from botyard.model.scene import Scene
from botyard.pictures.files import save_picture
from botyard.pictures.frame import Words
from botyard.pictures.movies import SUFFIXES, check_frame, writing_movie
from botyard.pictures.options import PictureOptions
from botyard.pictures.painter import Painter
from botyard.pictures.still import Array, Beams, Figure, Looks, Still
from botyard.processes.child_process import Send, serve

MODULE: Final = "botyard.pictures.reel"
TYPES: Final = {"drawn": int, "part": bytes, "refused": str}
"""Messages from the child process.

``drawn``: number of frames drawn so far. ``part``: the next bytes of the file.
``refused``: reason why there is no movie.
"""
PART_BYTES: Final = 2**20


class Cast(NamedTuple):
    """Appearances and bodies that one or more moments share; for the fields see `Still`."""

    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]


class Shot(NamedTuple):
    """Moment of a movie, like `Still`, but with indices into the reel.

    `scene` is an index into `Reel.scenes`, and `cast` an index into `Reel.casts`.
    """

    time: float
    scene: int
    cast: int
    poses: Array
    scans: tuple[Beams, ...]
    sonar: tuple[Beams, ...]


class Reel(NamedTuple):
    """Description of a movie to make.

    Attributes
    ----------
    suffix : str
        Format: one of `botyard.pictures.movies.SUFFIXES`, or ``.png`` for a picture of
        the last moment.
    fps : float
        Frame rate, 1/s.
    options : PictureOptions
        Contents of the frames.
    max_bytes : int
        Largest size of the file.
    scenes, casts, shots : list
        Maps; appearances and bodies; moments, which refer to both by index.
    frames : list of int
        Index of the moment that each frame shows, in order.
    """

    suffix: str
    fps: float
    options: PictureOptions
    max_bytes: int
    scenes: list[Scene]
    casts: list[Cast]
    shots: list[Shot]
    frames: list[int]

    def add(self, still: Still) -> int:
        """Append a moment for the next frames, and return the size of its arrays, bytes.

        Parameters
        ----------
        still : Still
            Moment of a world. Its arrays are not copied.
        """
        # Most moments share map and robots with the previous one.
        if not self.scenes or self.scenes[-1] is not still.scene:
            self.scenes.append(still.scene)

        cast = Cast(still.looks, still.figures)
        if not self.casts or self.casts[-1] != cast:
            self.casts.append(cast)

        # `Still` contains copies of the poses, so later steps do not change them.
        shot = Shot(
            still.time,
            len(self.scenes) - 1,
            len(self.casts) - 1,
            still.poses,
            still.scans,
            still.sonar,
        )
        self.shots.append(shot)
        return int(
            still.poses.nbytes
            + sum(beams.ranges.nbytes for beams in (*still.scans, *still.sonar))
        )

    def show(self) -> None:
        """Append a frame that shows the latest moment."""
        self.frames.append(len(self.shots) - 1)

    def still(self, number: int) -> Still:
        """Return a moment by its index.

        Parameters
        ----------
        number : int
            Index among `shots`.
        """
        shot = self.shots[number]
        cast = self.casts[shot.cast]
        return Still(
            shot.time,
            self.scenes[shot.scene],
            cast.looks,
            cast.figures,
            shot.poses,
            shot.scans,
            shot.sonar,
        )


def _frames(reel: Reel, painter: Painter) -> Iterator[Words]:
    """Yield the pixels of each frame of a movie. A repeated moment is drawn only once."""
    before, pixels = -1, None
    for number in reel.frames:
        if pixels is None or number != before:
            before, pixels = number, painter.paint(reel.still(number))
        yield pixels


def make(reel: Reel, folder: Path, send: Send) -> None:
    """Make the movie in an empty folder, and send it.

    An error is not raised, but sent as ``refused``.

    Parameters
    ----------
    reel : Reel
        Description of the movie, with at least one frame.
    folder : Path
        Empty folder, in which the file stays.
    send : callable
        Sends a message to the parent process: its kind, a key of `TYPES`, and its value.
    """
    path = folder / f"movie{reel.suffix}"
    try:
        painter = Painter(reel.options, check_frame)
        if reel.suffix in SUFFIXES:
            with writing_movie(path, reel.fps) as movie:
                for frame, pixels in enumerate(_frames(reel, painter)):
                    movie.add(pixels)
                    # Check after each frame, so that a movie that is too large does not
                    # fill the disk.
                    if (
                        sum(entry.stat().st_size for entry in os.scandir(folder))
                        > reel.max_bytes
                    ):
                        send(
                            "refused",
                            f"the movie is larger than {reel.max_bytes // 2**20} "
                            "MiB: choose a shorter part or a smaller width",
                        )
                        return

                    send("drawn", frame + 1)
        else:
            save_picture(painter.draw(reel.still(reel.frames[-1])), path)
    except (BotyardError, OSError) as error:
        send("refused", str(error))
        return

    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            send("part", part)


def _answer(reel: Reel, send: Send) -> None:
    # The process has its own folder for temporary files, which is removed after its
    # end.
    make(reel, Path(tempfile.mkdtemp()), send)


def main() -> None:
    """Make the movie that a request describes (main function of the child process)."""
    serve({"film": Reel}, TYPES, _answer)


__all__ = ["MODULE", "TYPES", "Reel", "main", "make"]
