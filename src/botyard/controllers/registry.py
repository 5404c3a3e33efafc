"""Registry of controllers by name: built-in, packaged and the user's own.

Packages add controllers by the entry-point group ``botyard.controllers``. A user adds a
class or a function with `register`. A name of the form ``module:name`` in a file, a
saved state or a recording is valid only if the user has registered that code in this
process: files are data and never run code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary, ref

from botyard.api import arguments
from botyard.api.plugins import Group
from botyard.controllers.base import (
    CRASHES,
    Controller,
    ControllerFactory,
    FunctionController,
    YieldToClients,
    called_by,
)
from botyard.controllers.crowd import Orca, SocialForce
from botyard.controllers.follow import Follow
from botyard.controllers.gotocar import go_to
from botyard.controllers.localplanners import DynamicWindow, FieldHistogram
from botyard.controllers.purepursuit import PurePursuit
from botyard.controllers.walk import Walk
from botyard.controllers.wander import Wander
from botyard.controllers.waypoints import Waypoints
from botyard.errors import (
    ArgumentError,
    BotyardError,
    CommandLineError,
    WorldError,
    did_you_mean,
)
from botyard.model.world import Program
from botyard.processes import codeload
from botyard.sim import programs
from botyard.sim.simulation import Robot

_BUILTIN: dict[str, ControllerFactory] = {
    "dwa": DynamicWindow,
    "follow": Follow,
    "go_to": go_to,
    "orca": Orca,
    "purepursuit": PurePursuit,
    "socialforce": SocialForce,
    "vfh": FieldHistogram,
    "walk": Walk,
    "wander": Wander,
    "waypoints": Waypoints,
}

_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
SEED: Final = "seed"
"""Parameter of a user's class or function that receives the seed of the world.

A user's option of this name has precedence over the world's seed.
"""
_REGISTERED: Final[WeakValueDictionary[str, Callable[..., Any]]] = WeakValueDictionary()
"""The user's classes and functions by ``module:name``.

References are weak, so that a class or function that nothing else refers to is freed.
"""


PACKAGED: Final[Group[ControllerFactory]] = Group(
    name="botyard.controllers",
    noun="controller",
    expected="a class or a function",
    fits=lambda _name, found: callable(found),
    error=CommandLineError,
    own=lambda: _BUILTIN,
)
"""Controllers of installed packages.

Each is a class, or a function that makes a controller from a robot, a seed and options.
"""


def controller_names() -> list[str]:
    """Return the names of all controllers, sorted."""
    return sorted([*_BUILTIN, *PACKAGED.names()])


@programs.is_controller.implementation
def is_controller(name: str, allow_code: bool = False) -> bool:
    """Return whether a controller of this name exists or was registered by the user.

    Parameters
    ----------
    name : str
        Name of the controller.
    allow_code : bool
        Whether names of the form ``module:name`` also count, and are imported. Set it
        only for files that the user trusts.

    Raises
    ------
    CommandLineError
        The import fails.
    """
    if name in _REGISTERED or name in controller_names():
        return True
    return allow_code and codeload.is_code(name) and bool(register(name))


def given_names() -> list[str]:
    """Return the names of the controllers that users have registered in this process."""
    return sorted(_REGISTERED)


def register(controller: str | Callable[..., Any]) -> str:
    """Register a class or a function of the user as a controller in this process.

    Parameters
    ----------
    controller : str, class or function
        Name of the form ``module:name`` or ``file.py:name``, which is imported; a class
        of controllers (see `botyard.controllers.base.Controller`), made with ``(robot,
        options…)``; or a function ``(robot, options…)`` that is called before every
        step. A parameter named `seed` gets the seed of the world, unless an option of
        that name is given.

    Returns
    -------
    str
        Name of the controller. A second function of the same name gets a number:
        ``module:name (2)``.

    Raises
    ------
    CommandLineError
        The import fails, or the object is not a suitable class or function.
    """
    if isinstance(controller, str):
        try:
            code = codeload.load_named(controller)
        except CRASHES as error:
            raise CommandLineError(
                f"controller {controller}: {codeload.said_of(error)}"
            ) from error

        name = controller
    else:
        code = controller
        where = getattr(code, "__module__", None) or type(code).__module__
        # A callable object gets the name of its class with parentheses. Such a name
        # cannot be imported, so it does not stand for the class itself.
        name = (
            f"{where}:{getattr(code, '__qualname__', type(code).__qualname__ + '()')}"
        )

    if not callable(code):
        raise CommandLineError(
            f"controller {name}: expected a class or a function, found {arguments.found(code)}"
        )

    _check_function(code, name)
    # Different functions may share a name, for example functions made in a loop.
    number, wanted = 2, name
    while (other := _REGISTERED.get(name)) is not None and other is not code:
        name, number = f"{wanted} ({number})", number + 1

    _REGISTERED[name] = code
    return name


def _check_function(code: Callable[..., Any], name: str) -> None:
    """Raise an error for a function that cannot be registered, or whose call runs no code.

    Calling a coroutine or generator function only makes an object.

    Parameters
    ----------
    code : callable
        The function, method or class.
    name : str
        Its name, for the message.

    Raises
    ------
    CommandLineError
        The function is a coroutine function or a generator function, has no signature
        or accepts no weak reference.
    """
    where = f"controller {name}: expected a class or a function"
    if any(
        is_one(code)
        for is_one in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        )
    ):
        raise CommandLineError(
            f"{where} that returns at every step, found one with async or yield"
        )

    try:
        inspect.signature(code)
        ref(code)
    except (TypeError, ValueError) as error:
        raise CommandLineError(
            f"{where} that has a signature and accepts weak references, such as one "
            f"written with def or class, found {arguments.found(code)}: {error}"
        ) from None


@programs.program_of.implementation
def program_of(controller: object, options: dict[str, Any]) -> Program:
    """Return the `Program` (name and options) for a controller given in any form.

    Parameters
    ----------
    controller : str, class, function or Program
        Controller: a name, class, function or `Program`. A `Program` is returned unchanged.
    options : dict
        Options of the controller, by name; they are checked when the controller is
        made.

    Raises
    ------
    ArgumentError
        The argument is of another type.
    CommandLineError
        The name is unknown, or the user's code cannot be imported or registered.
    """
    if isinstance(controller, Program):
        return controller
    # `find_controller` raises an error for an unknown plain name. Below, a name with a
    # colon is imported.
    if isinstance(controller, str) and (
        is_controller(controller) or not codeload.is_code(controller)
    ):
        find_controller(controller)
        return Program(name=controller, options=options)

    if isinstance(controller, str) or callable(controller):
        return Program(name=register(controller), options=options)
    hint = 'a name such as "wander", module:name, a class or a function'
    raise ArgumentError(
        f"controller: expected {hint}, found {arguments.found(controller)}"
    )


def find_controller(name: str) -> ControllerFactory:
    """Return the factory of a controller by its name.

    Parameters
    ----------
    name : str
        Name of a built-in or packaged controller, or of registered code.

    Raises
    ------
    CommandLineError
        The name is unknown, or names code that was not registered.
    """
    # Look up built-in names first, so that neither a package nor a user can replace
    # them.
    if name in _BUILTIN:
        return _BUILTIN[name]
    given = _REGISTERED.get(name)
    if given is not None:
        return _factory_of(given)
    if codeload.is_code(name):
        raise CommandLineError(
            f'controller "{name}" is code that is not allowed here: use --controller or --allow-code, or in Python '
            "set_controller or allow_code=True"
        )

    factory = PACKAGED.find(name)
    if factory is not None:
        return factory
    known = controller_names()
    raise CommandLineError(
        f'no controller "{name}"{did_you_mean(name, known)} (known: {", ".join(known)})'
    )


def _factory_of(code: Callable[..., Any]) -> ControllerFactory:
    """Return a factory for a user's class or function.

    Parameters
    ----------
    code : callable
        The class or function. Its first parameter is the robot, and all others are
        options.

    Returns
    -------
    callable
        Factory ``(robot, seed, *, options…)``. It raises TypeError for a class without
        a method ``act``.
    """
    is_class = inspect.isclass(code)
    parameters = list(inspect.signature(code).parameters.values())[1:]
    takes_seed = any(p.name == SEED and p.kind not in _VARIADIC for p in parameters)
    by_place = [
        p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY
    ]

    def factory(robot: Robot, seed: int, /, **options: Any) -> Controller:
        if takes_seed:
            options = {SEED: seed, **options}
        if not is_class:
            return FunctionController(code, robot, options)
        # Positional-only parameters, before a ``/``, cannot be passed by name.
        placed = [options.pop(name) for name in by_place if name in options]
        made = code(robot, *placed, **options)
        if not callable(getattr(made, "act", None)):
            raise TypeError(
                f"expected a class with a method act(), found {code.__name__} without one"
            )

        # An `act` with ``async`` would return a coroutine and command nothing.
        _check_function(made.act, f"{code.__name__}.act")
        return made  # type: ignore[no-any-return]

    # The signature shows options by keyword only, so that `checked_factory` treats the
    # user's code like a built-in controller.
    options = [
        p.replace(
            kind=inspect.Parameter.KEYWORD_ONLY if p.kind in _POSITIONAL else p.kind,
            default=None if p.name == SEED and takes_seed else p.default,
        )
        for p in parameters
        if p.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    factory.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return factory


def checked_factory(robot: Robot, program: Program) -> ControllerFactory:
    """Return the factory of a program's controller after a check of its options.

    Parameters
    ----------
    robot : Robot
        The robot, for messages.
    program : Program
        Name and options of the controller. The values of options are checked when the
        controller is made.

    Raises
    ------
    CommandLineError
        The name is unknown.
    WorldError
        An option is unknown or missing.
    """
    factory = find_controller(program.name)
    where = _location(robot, program)
    parameters = inspect.signature(factory).parameters
    options = {
        n: p for n, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY
    }
    # A factory with ``**options`` checks its options itself.
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        for name in program.options:
            if name not in options:
                known = ", ".join(options) or "it has none"
                raise WorldError(
                    f'{where}: no option "{name}"{did_you_mean(name, options)} (options: {known})'
                )

    for name, parameter in options.items():
        if parameter.default is inspect.Parameter.empty and name not in program.options:
            hint = (
                ""
                if SEED in options or program.name not in _REGISTERED
                else f'; only a parameter named "{SEED}" gets the seed'
            )
            raise WorldError(f'{where}: expected the option "{name}", found none{hint}')

    return factory


def make(
    robot: Robot, program: Program, factory: ControllerFactory, seed: int
) -> YieldToClients:
    """Make a controller that yields to clients.

    Parameters
    ----------
    robot : Robot
        The robot that it drives.
    program : Program
        Name and options of the controller.
    factory : callable
        Factory from `checked_factory`.
    seed : int
        Seed of the world.

    Raises
    ------
    WorldError
        The constructor raised an exception.
    """
    try:
        return YieldToClients(robot, factory(robot, seed, **program.options))
    except CRASHES as error:
        # The user's own code gets a traceback; built-in controllers explain a wrong
        # option.
        is_own = program.name in _REGISTERED
        said = codeload.said_of(error) if is_own else _message_of(error)
        raise WorldError(f"{_location(robot, program)}: {said}") from (
            error if is_own else None
        )


# Like `act`, the constructor of a user's controller may not return, so `call_in` must
# know its caller.
called_by(make, lambda frame: str(frame.f_locals["robot"].name))


def make_controller(robot: Robot, program: Program, seed: int) -> YieldToClients:
    """Make the controller that a program names, for a robot; it yields to clients.

    Parameters
    ----------
    robot : Robot
        The robot that it drives.
    program : Program
        Name and options of the controller.
    seed : int
        Seed of the world.

    Raises
    ------
    CommandLineError
        The name is unknown.
    WorldError
        An option is unknown, missing or not valid.
    """
    return make(robot, program, checked_factory(robot, program), seed)


def _location(robot: Robot, program: Program) -> str:
    return f"robot {robot.name}: controller {program.name}"


def _message_of(error: BaseException) -> str:
    """Return an error's message, with its type before it for unexpected types of errors."""
    return (
        f"{error}"
        if isinstance(error, (BotyardError, TypeError, ValueError))
        else f"{type(error).__name__}: {error}"
    )
