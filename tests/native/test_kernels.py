"""Kernels:

accepted arguments, sources of their code, and equal results from each source.
"""

from __future__ import annotations

import copy
import ctypes
import importlib
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tools.kernel_sources import SOURCES, imported_by, sources_of

from botyard.errors import KernelsError
from botyard.native import kernels, shipped
from botyard.native.kernels import ENTRIES, Entry, entry_kernels
from botyard.native.kinds import (
    LastPack,
    Pack,
    address_of,
    encoder,
    format_of,
    kind_of,
    words_of,
)
from botyard.native.packages import CONVENTION, Package, digest_of, mode
from botyard.native.rows import RowsEntry, RowTable, rows_kernels
from botyard.native.shipped import Library

PACKAGE = Package("sums", [Path(__file__)])
ROOT = Path(__file__).resolve().parents[2]


class Pair(NamedTuple):
    """Two arrays and a number."""

    a: np.ndarray
    b: np.ndarray
    scale: float


class Outer(NamedTuple):
    """A pack within a pack."""

    pair: Pair
    on: bool


@PACKAGE.kernel
def _times(x: float, y: float) -> float:
    return x * y


def _weighted(
    outer: Outer, extra: np.ndarray, first: int, seed: np.uint64, more: float
) -> float:
    total = more
    if outer.on:
        for i in range(first, outer.pair.a.shape[0]):
            for j in range(outer.pair.b.shape[1]):
                total += _times(outer.pair.a[i], outer.pair.b[i, j]) * outer.pair.scale

    extra[0] = total
    return total + np.float64(seed >> np.uint64(60))


def _made() -> Entry[float]:
    return entry_kernels(PACKAGE)(_weighted)


def _accumulated(pair: Pair, sums: np.ndarray, more: np.ndarray, by: float) -> None:
    for i in range(pair.a.shape[0]):
        sums[0] += pair.a[i] * pair.b[i, 0] * pair.scale * by
    for i in range(more.shape[0]):
        sums[0] += more[i]


def _rows() -> RowsEntry:
    return rows_kernels(PACKAGE)(_accumulated)


@pytest.mark.parametrize("how", ["jit", "python"])
@pytest.mark.parametrize("split", [0, 1, 3, 6])
def test_a_kernel_is_called_for_the_chosen_rows(
    how: str, split: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays of rows have equal strides in two parts of memory; data shared by all rows
    is one array.
    """
    monkeypatch.setenv("BOTYARD_KERNELS", how)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    entry, rng = _rows(), np.random.default_rng(split)
    parts = [rng.random((split, 5)), rng.random((6 - split, 7))]
    sums, more = np.zeros((6, 1)), np.arange(4, dtype=np.float32)
    packed = Pack(Pair(np.array([1.0, 2.0]), np.ones((2, 2)), 0.5))

    def row(i: int) -> np.ndarray:
        return parts[0][i, 1:3] if i < split else parts[1][i - split, 4:6]

    def arguments(i: int) -> tuple[object, ...]:
        return Pair(row(i), packed.value.b, 0.5), sums[i], more, 3

    table = RowTable(entry, 6, arguments)
    table.fill(0, split)
    table.fill(split, 6)
    entry(table, np.array([4, 0, 4, 5]))
    for i, times in enumerate((1, 0, 0, 0, 2, 1)):
        assert sums[i, 0] == pytest.approx(times * (row(i).sum() * 1.5 + 6.0))
    with pytest.raises(
        TypeError, match=r"expected arguments .*_accumulated\(rows:Pair"
    ):
        RowTable(entry, 1, lambda i: (Pair(row(i), packed.value.b, 0.5), more, more, 3))

    assert [table.column(k) for k in range(4)] == [0, 6, 8, 10]


# -- arguments


@given(
    hnp.arrays(
        st.sampled_from(["f8", "i1", "i8", "u2", "?"]),
        hnp.array_shapes(max_dims=3, min_side=0),
    )
)
def test_words_of_an_array_are_its_address_and_shape(array: np.ndarray) -> None:
    address, *shape = words_of(array, kind_of(array))
    assert tuple(shape) == array.shape
    if array.size:
        assert address == array.ctypes.data
    array.flags.writeable = False
    assert address_of(array) == array.ctypes.data


@given(
    hnp.arrays("f8", hnp.array_shapes(min_dims=1, max_dims=1, min_side=0)),
    hnp.arrays("f8", hnp.array_shapes(min_dims=2, max_dims=2, min_side=0)),
    st.floats(allow_nan=False),
    st.booleans(),
    st.sampled_from([None, "a", "b"]),
)
def test_an_encoder_writes_the_words_of_each_argument(
    a: np.ndarray, b: np.ndarray, scale: float, on: bool, locked: str | None
) -> None:
    """Read-only arrays are encoded without the fast functions."""
    pair = Pair(a, b, scale)
    outer = Outer(Pack(pair), on)  # type: ignore[arg-type]
    if locked:
        getattr(pair, locked).flags.writeable = False
    args = pair, b, outer, 3
    kinds = [kind_of(arg) for arg in args]
    words = [
        word
        for arg, kind in zip(args, kinds, strict=True)
        for word in words_of(arg, kind)
    ]
    encoded = encoder(kinds, ["pair", "pair_b", "outer", "count"])(*args)
    assert encoded == struct.pack("<" + format_of(kinds), *words)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros(3, np.complex128), "do not accept arrays of complex128"),
        ((1, 2), "named tuples, found a tuple without names"),
        ("text", "not str"),
        (np.zeros(3, ">f8"), "do not accept arrays of"),
    ],
)
def test_what_kernels_do_not_take(value: object, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        kind_of(value)


def test_an_argument_of_another_kind_is_refused_by_name() -> None:
    pair = Pair(np.zeros(3), np.zeros((3, 2)), 1.0)
    Pack(pair)
    with pytest.raises(
        TypeError, match=r"Pair\.b: expected an array f8\[2\], found float64\[1\]"
    ):
        Pack(pair._replace(b=np.zeros(3)))

    with pytest.raises(
        TypeError, match=r"Pair\.a: expected an array f8\[1\], found int64\[1\]"
    ):
        Pack(pair._replace(a=np.zeros(3, np.int64)))

    with pytest.raises(TypeError, match=r"Pair\.a: an array must be contiguous"):
        Pack(pair._replace(a=np.zeros((3, 2))[:, 0]))


def test_a_pack_is_made_anew_for_another_tuple_only() -> None:
    packed: LastPack[Pair] = LastPack()
    pair = Pair(np.zeros(3), np.zeros((3, 2)), 1.0)
    one = packed(pair)
    assert packed(pair) is one and packed(pair._replace(scale=2.0)) is not one
    inner = Outer(one, True)  # type: ignore[arg-type]
    assert Pack(inner).value == Outer(pair, True)
    assert format_of([Pack(inner).kind]) == "Q?7x"


def test_a_copy_of_a_pack_tells_of_its_own_arrays() -> None:
    packed = Pack(Outer(Pack(Pair(np.ones(3), np.ones((3, 2)), 1.0)), True))  # type: ignore[arg-type]
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        inner = other.source.pair
        assert (
            words_of(other, kind_of(packed)) == (other.address,)
            and other.address != packed.address
        )
        assert ctypes.c_int64.from_address(other.address).value == inner.address
        assert (
            ctypes.c_int64.from_address(inner.address).value
            == inner.source.a.ctypes.data
        )


def _call(entry: Entry[float], *args: object) -> float:
    """Call an entry as if it were machine code; its arguments do not matter."""
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(lambda _words: 1.5)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    entry.kinds = entry.kinds or entry._kinds(args)
    return float(entry._as_machine_code(address)(*args))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {1: np.zeros((1, 1))},
            r"extra: expected an array f8\[1\], found float64\[2\]",
        ),
        ({1: [0.0]}, r"extra: expected an array f8\[1\], found list"),
        ({1: np.zeros((3, 2))[:, 0]}, "extra: an array must be contiguous"),
        ({2: 1.5}, r"first: expected a whole number of 64 bits, found 1\.5"),
        (
            {2: 2**63},
            "first: expected a whole number of 64 bits, found 9223372036854775808",
        ),
        ({3: -1}, "seed: expected a whole number of 64 bits from 0, found -1"),
        ({3: 2**64}, "seed: expected a whole number"),
        ({3: float("nan")}, "seed: expected a whole number"),
        ({4: "x"}, "more: expected a number, found 'x'"),
        ({4: 10**400}, "more: expected a number"),
        (
            {0: Pack(Pair(np.ones(1), np.ones((1, 1)), 1.0))},
            "outer: expected a pack of Outer",
        ),
        ({0: None}, "outer: expected a pack of Outer"),
    ],
)
def test_an_argument_that_cannot_be_handed_over_is_named(
    changes: dict[int, object], said: str
) -> None:
    entry = _made()
    good = [
        Pack(Outer(Pack(Pair(np.ones(1), np.ones((1, 1)), 1.0)), True)),
        np.zeros(1),
        0,
        np.uint64(2**64 - 1),
        1,
    ]  # type: ignore[arg-type]
    assert _call(entry, *good) == 1.5
    bad = [changes.get(k, value) for k, value in enumerate(good)]
    with pytest.raises(TypeError, match=re.escape(entry.name) + ": " + said):
        _call(entry, *bad)


def test_a_number_in_a_pack_that_cannot_be_handed_over_is_named() -> None:
    with pytest.raises(TypeError, match=r"Pair\.scale: expected a number, found None"):
        Pack(Pair(np.ones(1), np.ones((1, 1)), 1.0)._replace(scale=None))  # type: ignore[arg-type]


# -- sources of code


@pytest.mark.parametrize("chosen", ["python", "jit"])
def test_an_entry_gives_the_same_in_each_mode(
    chosen: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if mode() == "python":
        pytest.skip("the compiler is off")
    monkeypatch.setenv("BOTYARD_KERNELS", chosen)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    entry, rng = _made(), np.random.default_rng(1)
    pair = Pair(rng.random(5), rng.random((5, 2)), 0.5)
    extra = np.zeros(1)
    seed = np.uint64(7 << 60)
    # A float parameter accepts an int as well.
    for first in (0, 3):
        got = entry(Pack(Outer(Pack(pair), True)), extra, first, seed, 1)  # type: ignore[arg-type]
        assert got == _weighted(Outer(pair, True), np.zeros(1), first, seed, 1.0)
        assert extra[0] + 7.0 == got

    assert entry(Pack(Outer(Pack(pair), False)), extra, 0, 1, 1.5) == 1.5  # type: ignore[arg-type]
    assert entry.is_ready and entry.is_at_hand


def test_a_mode_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv("BOTYARD_KERNELS", "fast")
    with pytest.raises(
        KernelsError, match="expected auto, native, jit or python, found 'fast'"
    ):
        mode()


def test_native_alone_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BOTYARD_KERNELS", "native")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    empty = Library(tmp_path)
    monkeypatch.setattr(shipped, "library", lambda: empty)
    with pytest.raises(
        KernelsError,
        match="no compiled kernels, and BOTYARD_KERNELS=native allows compiled kernels only",
    ):
        _made()(Pack(Pair(np.zeros(1), np.zeros((1, 1)), 1.0)), np.zeros(1), 0, 0, 0.0)


def test_without_library_and_compiler_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOTYARD_KERNELS", "auto")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setitem(sys.modules, "botyard.native.compiler", None)
    monkeypatch.setattr(kernels, "_is_of_the_compiler", lambda _name: True)
    with pytest.raises(
        KernelsError, match=r'compiling them needs the extra "jit".*install "'
    ):
        _made()(
            Pack(Outer(Pack(Pair(np.zeros(1), np.zeros((1, 1)), 1.0)), True)),
            np.zeros(1),
            0,
            0,
            0.0,
        )  # type: ignore[arg-type]


# -- the library


def _library(folder: Path, **changes: object) -> Library:
    table = {
        "platform": shipped.this_platform(),
        "cpu": "generic",
        "file": "kernels.so",
        "convention": digest_of(CONVENTION),
        "sources": {},
        "library": digest_of([folder / "kernels.so"]),
        "whole": True,
        "entries": {},
        **changes,
    }
    (folder / shipped.TABLE).write_text(json.dumps(table))
    return Library(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"platform": "plan9-mips"}, "are for plan9-mips, and this platform is"),
        ({"convention": "0123456789abcdef"}, "belong to another version"),
        ({}, "cannot be loaded"),
    ],
)
def test_a_library_that_does_not_fit_is_left_alone(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    (tmp_path / "kernels.so").write_bytes(b"\x7fELF, or nearly")
    found = _library(tmp_path, **changes)
    assert (
        said in found.why_not
        and not found.fits(PACKAGE)
        and found.address(PACKAGE, "x()") is None
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"platform": 3}'])
def test_a_damaged_table_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / shipped.TABLE).write_text(text)
    assert "damaged" in Library(tmp_path).why_not


@pytest.mark.parametrize("text", ["[" * 100_000, "\udcff"])
def test_a_table_of_nonsense_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / shipped.TABLE).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert "damaged" in Library(tmp_path).why_not


def test_a_table_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / shipped.TABLE).mkdir()
    assert "damaged" in Library(tmp_path).why_not
    (tmp_path / "file").touch()
    assert "no compiled kernels" in Library(tmp_path / "file").why_not, (
        "as in a zip archive"
    )


def test_a_library_that_is_not_the_one_of_its_table_is_not_loaded(
    tmp_path: Path,
) -> None:
    """A truncated library would end the process (SIGBUS) when called, so it is not
    opened.
    """
    file = tmp_path / "kernels.so"
    shutil.copy(ctypes.__file__, file)
    assert (
        "damaged: kernels.so" in _library(tmp_path, library="0123456789abcdef").why_not
    )
    file.unlink()
    assert "cannot be loaded" in Library(tmp_path).why_not


def test_without_sources_no_library_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kernels.so").touch()
    _library(tmp_path)
    monkeypatch.setattr(shipped, "CONVENTION", [tmp_path / "gone.py"])
    assert "cannot be loaded" in Library(tmp_path).why_not


def test_no_library(tmp_path: Path) -> None:
    assert "no compiled kernels" in Library(tmp_path).why_not


MAKE = """
import sys
from pathlib import Path
import numpy as np
import tests.native.test_kernels as t
from botyard.native import build
from botyard.native.kinds import Pack
from botyard.native.shipped import this_platform

entry = t._made()
outer = Pack(t.Outer(Pack(t.Pair(np.ones(3), np.ones((3, 2)), 2.0)), True))
import os
os.environ["BOTYARD_KERNELS"] = "python"
entry(outer, np.zeros(1), 0, 0, 0.0)
target = build.TARGETS[this_platform()]
build.build([entry], [build.object_of(entry, target)], target, Path(sys.argv[1]), whole=False)
"""


def test_a_library_is_made_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole path:

    an entry is compiled into a library and called in a process without Numba.
    """
    if mode() == "python" or shipped.this_platform() != "linux-x86_64":
        pytest.skip("needs the compiler, and a linker for this platform")
    subprocess.run(
        [sys.executable, "-c", MAKE, str(tmp_path)], cwd=ROOT, check=True, timeout=300
    )
    code = (
        "import sys; from pathlib import Path; import numpy as np; import "
        "tests.native.test_kernels as t\n"
        "from botyard.native import shipped; from botyard.native.kinds import Pack\n"
        f"shipped.library = lambda found=shipped.Library(Path({str(tmp_path)!r})): found\n"
        "entry = t._made(); outer = Pack(t.Outer(Pack(t.Pair(np.ones(3), "
        "np.ones((3, 2)), 2.0)), True))\n"
        "print(entry(outer, np.zeros(1), 1, 0, 0.25), 'numba' in sys.modules)"
    )
    env = {
        "BOTYARD_KERNELS": "native",
        "PYTHONPATH": ":".join(["src", *sys.path]),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env=env,
    )
    assert done.stdout == "8.25 False\n", done.stderr
    made, entry = Library(tmp_path), _made()
    assert (
        made.holds(PACKAGE, entry.name)
        and not made.holds(PACKAGE, "tests.other")
        and not made.is_whole
    )
    monkeypatch.setattr(shipped, "library", lambda: made)
    monkeypatch.setenv("BOTYARD_KERNELS", "auto")
    assert shipped.is_shipped(PACKAGE, whole=False) and not shipped.is_shipped(
        PACKAGE
    ), "it has only those of a first run"
    assert entry.is_at_hand and not _rows().is_at_hand
    other = Package("sums", [Path(__file__), Path(shipped.__file__)])
    assert Library(tmp_path).fits(PACKAGE) and not Library(tmp_path).fits(other), (
        "other sources"
    )


def test_the_warm_up_calls_every_kernel() -> None:
    """``botyard warmup`` compiles the kernels that it calls, and the shipped library
    contains the kernels that were called.
    """
    code = r"""
import importlib, re, warnings
from pathlib import Path
import botyard
from botyard.cli.warmup import _other_packages, warm_up_rest
from botyard.native.kernels import ENTRIES
from botyard.protocols.warmup import warm_up as warm_up_protocols
from botyard.worlds.warmup import warm_up

warnings.simplefilter("ignore", RuntimeWarning)
root = Path(botyard.__file__).parent
for path in root.rglob("*.py"):
    if re.search(r"(?m)^@(entry|rows)_kernel$", path.read_text()):
        importlib.import_module(".".join(("botyard", *path.relative_to(root).with_suffix("").parts)))
warm_up()
warm_up_protocols()
warm_up_rest()
print(sorted(name for name, entry in ENTRIES.items() if not entry.is_ready))
print({entry.package for entry in ENTRIES.values()} - set(_other_packages()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BOTYARD_KERNELS": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    never, others = done.stdout.splitlines()
    # The first steps and frames need the kernels of three packages.
    assert never == "[]" and others.count("Package") == 3, done.stdout


def shipped_entries() -> dict[str, Entry[Any]]:
    """Return the entries of the library, without the entries of this module."""
    for module in ("cli.warmup", "worlds.warmup"):
        importlib.import_module(f"botyard.{module}")
    return {name: e for name, e in ENTRIES.items() if name.startswith("botyard.")}


def test_an_entry_has_the_hash_of_all_that_is_compiled_into_it() -> None:
    """A module of constants that no package names would leave old code valid."""
    # Use modules without constants, because constants are part of kernels.
    aside = {"api", "native", "processes"}
    for entry in shipped_entries().values():
        for path in imported_by(entry.function) - set(entry.package.sources):
            name = path.relative_to(SOURCES / "botyard")
            assert (
                len(name.parts) == 1
                or name.parts[0] in aside
                or name.as_posix() == "model/parameters.py"
            ), f"{entry.name} is made of {name}: name it in its package's sources"


def test_an_object_is_kept_until_one_of_its_sources_changes() -> None:
    names = {
        name: {path.name for path in sources_of(entry)}
        for name, entry in shipped_entries().items()
    }
    assert "layout.py" in names["botyard.engine.step.advance"]
    assert "rays.py" not in names["botyard.engine.kernels.masses.move_masses"]
    assert "batch.py" not in names["botyard.engine.step.advance"]
