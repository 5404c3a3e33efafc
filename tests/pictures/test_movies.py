"""Movies contain the given frames with their durations:

Pillow and FFmpeg's decoder read them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageSequence

from botyard.errors import ArgumentError, KeptFileError, WorldError
from botyard.pictures import movies
from botyard.pictures.frame import words_of
from botyard.pictures.movies import (
    FPS_LIMITS,
    MAX_SIDE,
    MIN_FPS,
    check_movie,
    writing_movie,
)
from botyard.processes.safefile import is_ours


def write(path: Path, images: Sequence[Image.Image], fps: float, **more: Any) -> None:
    with writing_movie(path, fps, **more) as movie:
        for image in images:
            movie.add(words_of(image))


def read(path: Path) -> list[tuple[Image.Image, int]]:
    """Return frames and their durations, ms."""
    with Image.open(path) as movie:
        return [
            (frame.convert("RGB"), frame.info["duration"])
            for frame in ImageSequence.Iterator(movie)
        ]


def shown_at(found: list[tuple[Image.Image, int]], ms: float) -> Image.Image:
    end = 0
    for image, duration in found:
        end += duration
        if ms < end:
            return image

    raise AssertionError(f"it ends at {end} ms")


def pictures(
    size: tuple[int, int], boxes: list[tuple[int, int, int, int, int]]
) -> list[Image.Image]:
    """Return frames, each with a rectangle painted over the previous one.

    A frame without an extent changes nothing.
    """
    colors = [(255, 255, 255), (200, 30, 30), (0, 114, 178), (36, 39, 44)]
    image, found = Image.new("RGB", size, colors[0]), []
    for x, y, wide, high, color in boxes:
        image = image.copy()
        if wide and high:
            image.paste(colors[color], (x, y, x + wide, y + high))
        found.append(image)

    return found


BOXES = st.lists(
    st.tuples(*[st.integers(0, 20)] * 4, st.integers(0, 3)), min_size=2, max_size=12
)


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
@given(
    size=st.tuples(st.integers(1, 19), st.integers(1, 19)),
    boxes=BOXES,
    fps=st.sampled_from([0.5, 3.0, 7.3, 10.0, 25.0, 50.0]),
)
@settings(max_examples=60)
def test_each_frame_is_there_at_its_time(
    tmp_path_factory: pytest.TempPathFactory,
    suffix: str,
    size: tuple[int, int],
    boxes: Any,
    fps: float,
) -> None:
    images = pictures(size, boxes)
    path = tmp_path_factory.mktemp("m") / f"a{suffix}"
    write(path, images, fps)
    found = read(path) if len({i.tobytes() for i in images}) > 1 else []
    unit = 10 if suffix == ".gif" else 1
    if found:
        assert abs(sum(d for _, d in found) - 1000 * len(images) / fps) <= unit
        for k, image in enumerate(images):
            assert (
                shown_at(found, 1000 * (k + 0.5) / fps).tobytes() == image.tobytes()
            ), f"frame {k}"

    with Image.open(path) as movie:
        assert movie.size == size
    assert is_ours(path)


def test_what_does_not_change_takes_no_room(tmp_path: Path) -> None:
    one, two = pictures((300, 200), [(0, 0, 30, 30, 1), (40, 40, 7, 9, 2)])
    for suffix in (".gif", ".webp"):
        path = tmp_path / f"a{suffix}"
        write(path, [one] * 500 + [two] * 500, 20.0)
        assert [d for _, d in read(path)] == [25_000, 25_000]
        assert path.stat().st_size < 3000


def test_a_pause_of_a_gif_that_is_longer_than_its_field(tmp_path: Path) -> None:
    one, two = pictures((30, 20), [(0, 0, 30, 30, 1), (4, 4, 7, 9, 2)])
    path = tmp_path / "a.gif"
    write(path, [one] * 1500 + [two], 1.0)
    found = read(path)
    assert sum(d for _, d in found) == 1_501_000
    assert shown_at(found, 1_499_500).tobytes() == one.tobytes()
    assert shown_at(found, 1_500_500).tobytes() == two.tobytes()


@pytest.mark.parametrize("suffix", FPS_LIMITS)
@pytest.mark.parametrize("size", [(1, 1), (MAX_SIDE, 1), (1, MAX_SIDE)])
def test_the_slowest_movie_and_the_longest_sides(
    tmp_path: Path, suffix: str, size: tuple[int, int]
) -> None:
    if suffix == ".mp4":
        pytest.importorskip("av")
    path = tmp_path / f"a{suffix}"
    one = Image.new("RGB", size, "red")
    write(path, [one, one], MIN_FPS)
    assert path.stat().st_size
    with pytest.raises(WorldError, match=f"at most {MAX_SIDE} pixels"):
        write(
            path,
            [Image.new("RGB", (MAX_SIDE + 1, 1) if size[0] > 1 else (1, MAX_SIDE + 1))],
            1.0,
        )


@pytest.mark.parametrize("size", [(64, 48), (65, 47)])
@pytest.mark.parametrize("fps", [10.0, 25.0, 29.97])
def test_mp4_is_read_back_by_a_decoder(
    tmp_path: Path, size: tuple[int, int], fps: float
) -> None:
    av: Any = pytest.importorskip("av")
    path = tmp_path / "a.mp4"
    images = pictures(
        size, [(0, 0, 64, 48, 1), *((2 * k, k, 20, 20, k % 4) for k in range(20))]
    )
    write(path, images, fps)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [
            (float(f.pts * f.time_base), f.to_image())
            for f in container.decode(video=0)
        ]
        rate = Fraction(fps).limit_denominator(1000)
        assert stream.average_rate == rate
        assert float(stream.duration * stream.time_base) == pytest.approx(
            len(images) / rate
        )

    assert len(frames) == len(images)
    assert frames[0][1].size == (size[0] + size[0] % 2, size[1] + size[1] % 2), (
        "sides are even"
    )
    for k, (image, (at, frame)) in enumerate(zip(images, frames, strict=True)):
        assert at == pytest.approx(k / rate)
        difference = np.abs(
            np.asarray(image, np.int16)
            - np.asarray(frame.crop((0, 0, *size)), np.int16)
        )
        assert difference.mean() < 12.0, k

    assert is_ours(path)


def test_bad_movies_are_refused_and_leave_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArgumentError, match=r'suffix of movies .*found ".avi"'):
        check_movie("a.avi", 10.0)
    for suffix, most in FPS_LIMITS.items():
        with pytest.raises(
            ArgumentError, match=f"at most {most:g} with {suffix}, found"
        ):
            check_movie(f"a{suffix}", most + 1.0)

        with pytest.raises(ArgumentError, match=r"fps: expected at least 0\.001"):
            check_movie(f"a{suffix}", 1e-4)

    monkeypatch.setattr(movies, "is_installed", lambda extra: False)
    with pytest.raises(WorldError, match=r'needs the extra "movie"'):
        check_movie("a.mp4", 10.0)
    path = tmp_path / "a.gif"
    one, two = pictures((30, 20), [(0, 0, 30, 30, 1), (4, 4, 7, 9, 2)])
    write(path, [one, two], 10.0)
    before = path.read_bytes()
    monkeypatch.setattr(movies, "MAX_FRAMES", 3)
    monkeypatch.setattr(movies, "MAX_FRAME_PIXELS", 700)
    for images, said in (
        ([one] * 4, "at most 3 frames"),
        ([one, one.crop((0, 0, 20, 20))], "the size of the first frame"),
        ([one.resize((30, 24))], "at most 700 pixels in a movie frame, found 30 × 24"),
        ([], "at least one frame of the movie"),
    ):
        with pytest.raises(WorldError, match=said):
            write(path, images, 10.0)
        assert path.read_bytes() == before

    assert [p.name for p in tmp_path.iterdir()] == ["a.gif"], "nothing is left over"
    path.write_bytes(b"mine")
    with pytest.raises(KeptFileError):
        write(path, [one, two], 10.0)
    write(path, [one, two], 10.0, force=True)
