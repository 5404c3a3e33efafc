"""Moments of a movie as plain data (`Reel`), and the child process that makes it.

Data that moments share, such as the map, is in a reel once. See
`botyard.processes.child_process`.
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

They report the number of drawn frames, bytes of the file in order, or a refusal.
"""
PART_BYTES: Final = 2**20


class Cast(NamedTuple):
    """Robots and boxes of one or more moments; for the fields see `Still`."""

    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]


class Shot(NamedTuple):
    """Moment of a movie, like `Still`, but with indices of its map and robots in the reel."""

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
        Maps, sets of robots, and moments.
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
        """Append a moment for the next frames. Returns the bytes of its arrays.

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

        # The poses are copies already, so the moment can wait to be drawn.
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
        """Append a frame with the latest moment."""
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

    Errors of the movie are sent as ``refused``, not raised.

    Parameters
    ----------
    reel : Reel
        Description of the movie, with at least one frame.
    folder : Path
        Empty folder, in which the file stays.
    send : callable
        Sends a kind of `TYPES` and its value to the parent.
    """
    path = folder / f"movie{reel.suffix}"
    try:
        painter = Painter(reel.options, check_frame)
        if reel.suffix in SUFFIXES:
            with writing_movie(path, reel.fps) as movie:
                for frame, pixels in enumerate(_frames(reel, painter)):
                    movie.add(pixels)
                    # Check during the work, so that a movie that is too large cannot
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
