"""Compilation of kernels with Numba: just in time, or for `botyard.native.build`.

`_nrt=False` turns off reference counting of arrays. Kernels allocate nothing, and
callers keep their arguments alive. The atomic operations of reference counting, at each
inlined call and each array taken out of a tuple, took half the time of a step.
`error_model="numpy"` turns off division checks. There is no `fastmath`, because results
must be the same everywhere and every time. No kernel is parallel: kernels run without
the GIL, so callers use threads.

Compiled code is cached per user, in a folder named after a hash of all kernel sources
of a package. Numba's own cache checks only the source file of a function. It would keep
a caller with an inlined kernel after the source of that kernel changed.

Importing this module imports Numba. Only `botyard.native.kernels` and builds import it,
when there is code to compile.
"""

from __future__ import annotations

import importlib
import types as python_types
from collections.abc import Sequence
from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic
from numba.np import arrayobj

from botyard.native.cache import cache_of
from botyard.native.hints import prefetch
from botyard.native.kinds import ArrayKind, Kind, PackKind, ScalarKind
from botyard.native.packages import Function, as_kernel
from botyard.processes.compiling import Watch, watch

# Numba and llvmlite have no types: `Any` keeps the checker from complaining at each
# use.
_numba: Any = numba
_types: Any = types
_ir: Any = ir
_arrayobj: Any = arrayobj
_cgutils: Any = cgutils

_SCALARS: Final = {
    "q": _types.int64,
    "Q": _types.uint64,
    "d": _types.float64,
    "?": _types.boolean,
}
_INT32: Final = _ir.IntType(32)
_INT64: Final = _ir.IntType(64)
_BYTES: Final = _ir.IntType(8).as_pointer()


class Listener(event.Listener):
    """Listener that reports Numba's compilations of botyard's functions to a `Watch`.

    Parameters
    ----------
    reporter : Watch
        Receiver of starts and ends of compilations.
    """

    def __init__(self, reporter: Watch) -> None:
        self.reporter = reporter

    def on_start(self, found: Any) -> None:
        """Report that Numba starts to compile a function.

        Compilations can be nested.

        Parameters
        ----------
        found : Event
            Event of Numba, with the dispatcher and the argument types.
        """
        if _is_ours(found):
            self.reporter.begin()

    def on_end(self, found: Any) -> None:
        """Report that a compilation has ended, successfully or with an error.

        Parameters
        ----------
        found : Event
            Event of Numba, with the dispatcher and the argument types.
        """
        if _is_ours(found):
            self.reporter.end(
                tuple(found.data["args"]) in found.data["dispatcher"].overloads
            )


def _is_ours(found: Any) -> bool:
    # Check the module, because other packages of the process may use Numba as well.
    function = getattr(found.data.get("dispatcher"), "py_func", None)
    return str(getattr(function, "__module__", "")).partition(".")[0] == "botyard"


LISTENER: Final = Listener(watch)
"""Listener to Numba's compilations in this process."""
# Registered once, because Numba offers no look at present listeners.
event.register("numba:compile", LISTENER)  # type: ignore[no-untyped-call]


@intrinsic
def _prefetch(_: Any, array: Any, row: Any) -> Any:
    """Define LLVM's instruction `prefetch` for Numba (Language Reference, llvm.prefetch).

    The constants are: a read, into all caches, of data.
    """

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        where = context.make_array(signature.args[0])(context, builder, given[0])
        # The stride of the first axis leads from row to row.
        distance = _cgutils.unpack_tuple(builder, where.strides)[0]
        begin = builder.bitcast(where.data, _BYTES)
        number = context.cast(builder, given[1], signature.args[1], _types.int64)
        takes = _ir.FunctionType(_ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", (_BYTES,), takes)
        builder.call(
            hint,
            [
                builder.gep(begin, [builder.mul(number, distance)]),
                _INT32(0),
                # Arguments in the order of the intrinsic: read, highest locality, data
                # cache.
                _INT32(3),
                _INT32(1),
            ],
        )

        return context.get_dummy_value()

    return _types.void(array, row), code


# -- dispatchers

is_building = False
"""Whether code is compiled for a library: then it is neither optimised nor cached."""
_DISPATCHERS: Final[dict[Function, Any]] = {}
_GLOBALS: Final[dict[str, dict[str, Any]]] = {}


def dispatcher_of(function: Function) -> Any:
    """Return the Numba dispatcher of a kernel.

    The dispatcher has the kernel's code, but its globals contain the dispatchers of other kernels
    instead of their Python functions.

    Parameters
    ----------
    function : callable
        Kernel, as `as_kernel` knows it.

    Returns
    -------
    Dispatcher
        The same one in each call, so that a kernel is compiled once for each set of
        types.
    """
    names = _globals_of(function.__module__)
    # The kernels of a module may call each other in a circle, which this table breaks.
    if function not in _DISPATCHERS:
        _DISPATCHERS[function] = _dispatcher(function, names)
    return _DISPATCHERS[function]


def _globals_of(module: str) -> dict[str, Any]:
    """Return the globals of a module's kernels, with dispatchers for kernels.

    Parameters
    ----------
    module : str
        Name of an importable module.
    """
    names = _GLOBALS.get(module)
    if names is None:
        # Store the names before the loop, which may come back to this module through a
        # circle of imports.
        names = _GLOBALS[module] = dict(vars(importlib.import_module(module)))
        for name, value in list(names.items()):
            if value is prefetch:
                names[name] = _prefetch
                continue

            # An entry wraps its function.
            function = getattr(value, "function", value)
            if as_kernel(function) is None:
                continue
            if function.__module__ == module:
                _DISPATCHERS[function] = _dispatcher(function, names)
            names[name] = dispatcher_of(function)

    return names


def _dispatcher(function: Any, names: dict[str, Any]) -> Any:
    """Return a new Numba dispatcher of a kernel.

    Parameters
    ----------
    function : callable
        Kernel.
    names : dict
        Globals in which the compiled code of the kernel looks up names.
    """
    how = as_kernel(function)
    assert how is not None
    # Numba looks names up in the function's globals, so a copy of the function gets
    # other globals. The original stays a plain Python function.
    twin = python_types.FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__

    # Kernels are called by address, so Numba's wrappers for Python and C would only
    # cost time.
    options: dict[str, Any] = {
        "_nrt": False,
        "error_model": "numpy",
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }

    if how.inline == "machine" or (how.inline == "rows" and is_building):
        options["forceinline"] = True
    elif how.inline == "source":
        options["inline"] = "always"

    # Objects are made for another processor: the cache of this one must not get them.
    if is_building:
        return _numba.njit(**options)(twin)
    cache = cache_of(how.package)
    before = _numba.config.CACHE_DIR
    # Numba reads the setting only while decorating. It is restored for other users of
    # Numba.
    _numba.config.CACHE_DIR = str(cache.folder)
    try:
        return _numba.njit(cache=cache.is_used, **options)(twin)
    finally:
        _numba.config.CACHE_DIR = before


# -- entries


def type_of(kind: Kind) -> Any:
    """Return the Numba type that corresponds to the type of an argument.

    Parameters
    ----------
    kind : Kind
        Type of an argument. Arrays are in C order.
    """
    if isinstance(kind, ArrayKind):
        return _types.Array(_numba.from_dtype(np.dtype(kind.dtype)), kind.ndim, "C")
    if isinstance(kind, ScalarKind):
        return _SCALARS[kind.code]
    if isinstance(kind, PackKind):
        return type_of(kind.of)
    return _types.NamedTuple([type_of(field) for field in kind.fields], kind.cls)


def compile_kernel(function: Function, kinds: Sequence[Kind]) -> Any:
    """Compile a kernel for these argument types, or load it from the cache.

    Parameters
    ----------
    function : callable
        Kernel.
    kinds : sequence of Kind
        Types of its arguments.

    Returns
    -------
    CompileResult
        Numba's result.
    """
    dispatcher = dispatcher_of(function)
    signature = tuple(map(type_of, kinds))
    dispatcher.compile(signature)
    return dispatcher.overloads[signature]


def add_wrapper(
    compiled: Any, kinds: Sequence[Kind], result: str, module: Any, symbol: str
) -> None:
    """Add a function to an LLVM module that unpacks a row of words and calls a kernel.

    See `add_rows_wrapper` for many rows.

    Parameters
    ----------
    compiled : CompileResult
        Result of `compile_kernel`.
    kinds : sequence of Kind
        Types of the kernel's arguments.
    result : str
        Code of the return type, as in `ScalarKind`; "" for none.
    module : llvmlite.ir.Module
        The module.
    symbol : str
        Name of the wrapper.
    """
    # C has no one-bit type: bool is returned as a byte.
    kind = {"": _ir.VoidType(), "?": _ir.IntType(8), "d": _ir.DoubleType()}.get(
        result, _INT64
    )
    function = _ir.Function(
        module, _ir.FunctionType(kind, [_INT64.as_pointer()]), name=symbol
    )
    builder = _ir.IRBuilder(function.append_basic_block())
    value = _call(compiled, kinds, module, builder, function.args[0])

    if result == "":
        builder.ret_void()
    elif result == "?":
        builder.ret(builder.zext(value, _ir.IntType(8)))
    else:
        builder.ret(value)


def add_rows_wrapper(
    compiled: Any, kinds: Sequence[Kind], module: Any, symbol: str
) -> None:
    """Add a function to an LLVM module that calls a kernel for many rows of words.

    The kernel has no result. The function takes a row of four words: the address of the
    rows, their length in words, the address of the int64 numbers of the rows to use,
    and the count of these numbers. The other parameters are as for `add_wrapper`.

    Parameters
    ----------
    compiled, kinds, module, symbol
        See `add_wrapper`.
    """
    function = _ir.Function(
        module, _ir.FunctionType(_ir.VoidType(), [_INT64.as_pointer()]), name=symbol
    )
    builder = _ir.IRBuilder(function.append_basic_block())
    table, length, numbers, count = (
        builder.load(builder.gep(function.args[0], [_INT64(k)])) for k in range(4)
    )
    table, numbers = (
        builder.inttoptr(word, _INT64.as_pointer()) for word in (table, numbers)
    )

    # The loop is in machine code, so that a call from Python serves many rows.
    with cgutils.for_range(builder, count) as loop:
        number = builder.load(builder.gep(numbers, [loop.index]))
        _call(
            compiled,
            kinds,
            module,
            builder,
            builder.gep(table, [builder.mul(number, length)]),
        )

    builder.ret_void()


def _call(
    compiled: Any, kinds: Sequence[Kind], module: Any, builder: Any, words: Any
) -> Any:
    """Generate LLVM code that calls a kernel with the arguments in a row of words.

    Parameters
    ----------
    compiled : CompileResult
        Compiled kernel.
    kinds : sequence of Kind
        Types of its arguments.
    module, builder : llvmlite.ir.Module, IRBuilder
        Module, and the place in it.
    words : llvmlite.ir.Value
        Pointer to the row of words.
    """
    context = compiled.target_context
    arguments, at = [], 0
    for taken in kinds:
        arguments.append(_value(context, builder, words, at, taken))
        at += taken.words

    callee = context.declare_function(module, compiled.fndesc)
    _, value = context.call_conv.call_function(
        builder,
        callee,
        compiled.signature.return_type,
        compiled.signature.args,
        arguments,
    )
    return value


def _value(context: Any, builder: Any, words: Any, at: int, kind: Kind) -> Any:
    """Generate LLVM code that loads a value from a row of words.

    Parameters
    ----------
    context, builder
        Numba's target context, and the place in the LLVM module.
    words : llvmlite.ir.Value
        Pointer to the row.
    at : int
        Index of the first word of the value.
    kind : Kind
        Type of the value.
    """

    def word(k: int) -> Any:
        return builder.load(builder.gep(words, [_INT64(k)]))

    if isinstance(kind, ScalarKind):
        if kind.code == "?":
            # Only the lowest bit of the word is significant.
            return builder.trunc(word(at), _ir.IntType(1))
        return (
            builder.bitcast(word(at), _ir.DoubleType())
            if kind.code == "d"
            else word(at)
        )

    if isinstance(kind, PackKind):
        # A pack is the address of another row of words.
        inside = builder.inttoptr(word(at), _INT64.as_pointer())
        return _value(context, builder, inside, 0, kind.of)

    if isinstance(kind, ArrayKind):
        return _array(context, builder, [word(at + k) for k in range(kind.words)], kind)
    values = []
    for field in kind.fields:
        values.append(_value(context, builder, words, at, field))
        at += field.words

    return context.make_tuple(builder, type_of(kind), values)


def _array(context: Any, builder: Any, words: list[Any], kind: ArrayKind) -> Any:
    """Generate LLVM code that makes Numba's array structure from the words of address and shape.

    Parameters
    ----------
    context, builder
        Numba's target context, and the place in the LLVM module.
    words : list of llvmlite.ir.Value
        Address, and length of each axis.
    kind : ArrayKind
        Type of the array.
    """
    array = context.make_array(type_of(kind))(context, builder)
    size = np.dtype(kind.dtype).itemsize
    shape = words[1:]
    # In C order, the last axis is contiguous.
    strides = [_INT64(size)]

    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    _arrayobj.populate_array(
        array,
        data=builder.inttoptr(words[0], array.data.type),
        shape=shape,
        strides=strides,
        itemsize=_INT64(size),
        # References are not counted: the caller keeps the array alive.
        meminfo=None,
    )

    return array._getvalue()


WRAPPER: Final = "botyard_entry"
"""Symbol name of the wrappers that this process compiles."""
_LIBRARIES: Final[list[Any]] = []
"""Libraries that this process has compiled, kept alive for their machine code."""


def address_of_compiled(
    function: Function, kinds: Sequence[Kind], result: str, *, rows: bool
) -> int:
    """Return the address of the wrapper of a kernel, which is compiled or loaded from the cache.

    The wrapper is `add_wrapper`, or `add_rows_wrapper` with `rows`.

    Parameters
    ----------
    function : callable
        Kernel.
    kinds : sequence of Kind
        Types of its arguments.
    result : str
        Code of the return type, as in `ScalarKind`; "" for none.
    rows : bool
        Whether the wrapper takes many rows of arguments.
    """
    # Take the lock, because Numba's compiler has global state.
    with global_compiler_lock:
        library = with_wrapper(function, kinds, result, WRAPPER, rows=rows)
        # Without a reference LLVM would free the code.
        _LIBRARIES.append(library)
        return int(library.get_pointer_to_function(WRAPPER))


def with_wrapper(
    function: Function, kinds: Sequence[Kind], result: str, symbol: str, *, rows: bool
) -> Any:
    """Return Numba's code library that contains a kernel and its wrapper.

    The caller holds Numba's lock.

    Parameters
    ----------
    function, kinds, result, rows
        See `address_of_compiled`.
    symbol : str
        Name of the wrapper.
    """
    # The wrapper is a library of its own, which links the kernel's compiled code.
    compiled = compile_kernel(function, kinds)
    library = compiled.target_context.codegen().create_library(
        f"{function.__module__}.{function.__qualname__}"
    )
    module = library.create_ir_module(symbol)
    if rows:
        add_rows_wrapper(compiled, kinds, module, symbol)
    else:
        add_wrapper(compiled, kinds, result, module, symbol)

    library.add_ir_module(module)
    library.add_linking_library(compiled.library)
    library.finalize()
    return library


__all__ = [
    "LISTENER",
    "Listener",
    "address_of_compiled",
    "dispatcher_of",
    "type_of",
    "with_wrapper",
]
