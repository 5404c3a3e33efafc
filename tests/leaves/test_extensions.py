"""Functions that a lower room declares and an upper room implements."""

import subprocess
import sys
from importlib import import_module

import pytest

from botyard.api import extensions
from botyard.sim import programs


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_DECLARED", dict(extensions._DECLARED))
    monkeypatch.setattr(extensions, "_MODULES", dict(extensions._MODULES))


def test_all_that_are_declared_are_carried_out_by_the_module_of_the_table() -> None:
    # The modules that declare the other extensions.
    for module in ("botyard.sim.simulation", "botyard.model.scene"):
        import_module(module)

    assert programs.employ.name in extensions.declared()
    assert extensions.declared().keys() == extensions.provided().keys()
    for name, one in extensions.declared().items():
        code = one._code or one._find()
        assert code.__module__ == extensions.provided()[name]
        assert one.__doc__ and code.__doc__


def test_the_code_is_found_when_it_is_called_first_and_once() -> None:
    @extensions.extension("test: double")
    def double(n: int) -> int:
        """Return the double."""
        raise NotImplementedError

    with pytest.raises(
        RuntimeError, match="test: double: expected a registered module, found none"
    ):
        double(1)

    # The module exists, but has no such function.
    extensions.provide({"test: double": "botyard.units"})
    with pytest.raises(
        RuntimeError, match=r"expected its implementation in botyard\.units, found none"
    ):
        double(1)

    @double.implementation
    def code(n: int) -> int:
        return 2 * n

    assert double(4) == 8
    assert double.__doc__ == "Return the double."
    assert code(3) == 6
    with pytest.raises(RuntimeError, match="already implements it"):
        double.implementation(code)
    with pytest.raises(RuntimeError, match="already declared"):
        extensions.extension("test: double")


def test_nothing_is_imported_that_nobody_calls() -> None:
    program = (
        "import sys, botyard; assert not any(m.startswith('botyard.sim') for m in sys.modules)\n"
        "import botyard.sim.simulation\n"
        "assert not any(m.startswith(('botyard.pictures', "
        "'botyard.controllers')) for m in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


def test_modules_of_the_table_can_be_imported() -> None:
    for module in extensions.provided().values():
        assert import_module(module)
