"""`Reel`: the moments of a movie as plain data, and the child process that draws them
and makes the movie (see `botyard.processes.child_process`).

What moments have in common, such as the map, is in a reel once.
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
"""Messages that the child process sends: how many frames are drawn, bytes of the file
in their order, or why there is none.
"""
PART_BYTES: Final = 2**20


class Cast(NamedTuple):
    """Robots and boxes of a moment, see `Still`."""

    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]


class Shot(NamedTuple):
    """A moment; map and robots are numbers in the reel's lists. Else see `Still`."""

    time: float
    scene: int
    cast: int
    poses: Array
    scans: tuple[Beams, ...]
    sonar: tuple[Beams, ...]


class Reel(NamedTuple):
    """A movie that is to be made.

    Attributes
    ----------
    suffix : str
        Its format: one of `botyard.pictures.movies.SUFFIXES`, or ``.png`` for a picture
        of the last moment.
    fps : float
        Frames a second.
    options : PictureOptions
        What is seen.
    max_bytes : int
        Largest file.
    scenes, casts, shots : list
        What there is, and the moments.
    frames : list of int
        Number of the moment that each frame shows, in order.
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
        """Append a moment, which the next frames show. Returns the bytes of its
        numbers.
        """
        if not self.scenes or self.scenes[-1] is not still.scene:
            self.scenes.append(still.scene)
        cast = Cast(still.looks, still.figures)
        if not self.casts or self.casts[-1] != cast:
            self.casts.append(cast)
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
        """Append a frame, of the latest moment."""
        self.frames.append(len(self.shots) - 1)

    def still(self, number: int) -> Still:
        """A moment."""
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
    """The frames."""
    before, pixels = -1, None
    for number in reel.frames:
        if pixels is None or number != before:
            before, pixels = number, painter.paint(reel.still(number))
        yield pixels


def make(reel: Reel, folder: Path, send: Send) -> None:
    """Make the movie in a folder in which nothing else is, and send it."""
    path = folder / f"movie{reel.suffix}"
    try:
        painter = Painter(reel.options, check_frame)
        if reel.suffix in SUFFIXES:
            with writing_movie(path, reel.fps) as movie:
                for frame, pixels in enumerate(_frames(reel, painter)):
                    movie.add(pixels)
                    if (
                        sum(entry.stat().st_size for entry in os.scandir(folder))
                        > reel.max_bytes
                    ):
                        send(
                            "refused",
                            f"it has more than {reel.max_bytes // 2**20} MiB: "
                            "choose a shorter part or a smaller width",
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
    # the process has a folder for temporary files of its own, which is removed after it
    make(reel, Path(tempfile.mkdtemp()), send)


def main() -> None:
    """The child process."""
    serve({"film": Reel}, _answer)


__all__ = ["MODULE", "TYPES", "Reel", "main", "make"]
