"""``generate.py DEFINITIONS OUT``, run by the Python of an environment with ROS 2's
wheels: make interfaces for it that have no wheels.

DEFINITIONS is a folder of packages, as ``tf2_msgs/msg/TFMessage.msg``; OUT gets what is
to be copied over the environment. rosidl turns the texts into sources. One extension
module for each package holds all that rosidl's CMake macros would put into six
libraries, so that nothing but a compiler is needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy
from rosidl_adapter import convert_to_idl
from rosidl_generator_c import generate_c
from rosidl_generator_py.generate_py_impl import generate_py
from rosidl_generator_type_description import generate_type_hash
from rosidl_typesupport_c import generate_c as generate_dispatch
from rosidl_typesupport_fastrtps_c import generate_typesupport_fastrtps_c
from rosidl_typesupport_introspection_c import generate_c as generate_introspection

PREFIX: Final = Path(sys.prefix)
SHARE: Final = PREFIX / "share"
SITE: Final = Path(sysconfig.get_path("purelib")).relative_to(PREFIX)
HASHES: Final = "hashes"
DATA: Final = "rosidl_generator_c"
FAST: Final = "rosidl_typesupport_fastrtps_c"
INTROSPECTION: Final = "rosidl_typesupport_introspection_c"
PYTHON: Final = "rosidl_generator_py"
DISPATCH: Final = "rosidl_typesupport_c"
# rmw_fastrtps registers descriptions of types, which it gets by introspection.
TYPE_SUPPORTS: Final = [FAST, INTROSPECTION]
GENERATORS: Final[dict[str, Callable[[str], object]]] = {
    DATA: lambda arguments: generate_c(arguments, False),
    FAST: generate_typesupport_fastrtps_c,
    INTROSPECTION: generate_introspection,
    DISPATCH: lambda arguments: generate_dispatch(arguments, TYPE_SUPPORTS),
    PYTHON: lambda arguments: generate_py(arguments, [DISPATCH]),
}
# All sources of a kind are compiled as one file, because their headers take most of the time.
SUFFIXES: Final = {DATA: "c", PYTHON: "c", INTROSPECTION: "c", FAST: "cpp"}


class Package:
    """A package of interfaces, generated and compiled in a folder of its own."""

    def __init__(self, source: Path, work: Path) -> None:
        self.name = source.name
        self._source = source
        self._work = work
        files = sorted(p for p in source.rglob("*") if p.is_file())
        self._files = [p.relative_to(source) for p in files]
        text = "\n".join(p.read_text("utf-8") for p in files)
        named = {m[1] for m in re.finditer(r"\b([a-z]\w*)/(?:\w+/)?[A-Z]\w*", text)}
        # rosidl adds fields of these to services and actions.
        named |= {"builtin_interfaces", "service_msgs", "unique_identifier_msgs"}
        self._needs = sorted((named | {"action_msgs"}) - {self.name})

    def describe(self) -> None:
        """Write the definitions as IDL, and the hashes of the types."""
        for file in self._files:
            convert_to_idl(self._source, self.name, file, self._idl)
        paths = [f"{need}:{SHARE / need}" for need in self._needs]
        generate_type_hash(self._arguments(HASHES, include_paths=paths))

    def generate(self, generator: str) -> None:
        """Write the sources of a kind."""
        hashes = self._out(HASHES)
        described = [
            f"{f.with_suffix('.idl')}:{hashes / f.with_suffix('.json')}"
            for f in self._files
        ]
        needed = [
            f"{need}:{path}"
            for need in self._needs
            for path in sorted((SHARE / need).rglob("*.idl"))
        ]
        arguments = self._arguments(
            generator,
            ros_interface_dependencies=needed,
            type_description_tuples=described,
        )
        GENERATORS[generator](arguments)
        self._write_visibility(generator)

    def _arguments(self, generator: str, **more: list[str]) -> str:
        """A file of arguments, as rosidl's CMake macros write it."""
        out = self._out(generator)
        out.mkdir(parents=True)
        given = {
            "package_name": self.name,
            "idl_tuples": [f"{self._idl}:{f.with_suffix('.idl')}" for f in self._files],
            "output_dir": str(out),
            "template_dir": str(SHARE / generator / "resource"),
            "target_dependencies": [],
            "ros_interface_dependencies": [],
            **more,
        }
        path = self._work / f"{self.name}-{generator}.json"
        path.write_text(json.dumps(given))
        return str(path)

    @property
    def _idl(self) -> Path:
        return self._work / "idl" / self.name

    def _out(self, generator: str) -> Path:
        return self._work / generator / self.name

    def _write_visibility(self, generator: str) -> None:
        """Fill in the header that CMake makes from a template."""
        name = f"{generator}__visibility_control.h"
        template = SHARE / generator / "resource" / f"{name}.in"
        if template.exists():
            text = template.read_text().replace("@PROJECT_NAME@", self.name)
            text = text.replace("@PROJECT_NAME_UPPER@", self.name.upper())
            path = self._out(generator) / "msg" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def units(self) -> Iterator[Path]:
        """Return the files to compile."""
        for generator in GENERATORS:
            suffix = SUFFIXES.get(generator, "cpp")
            path = self._work / f"{self.name}-{generator}.{suffix}"
            sources = sorted(self._out(generator).rglob(f"*.{suffix}"))
            # Descriptions of types define the same names in each file, so they cannot be joined.
            alone = [s for s in sources if s.name.endswith("__description.c")]
            lines = [f'#include "{s}"\n' for s in sources if s not in alone]
            path.write_text("".join(lines))
            yield from (path, *alone)

    def compile(self, unit: Path) -> Path:
        """Return the object file of a unit."""
        places = [
            *(self._work / generator for generator in (DATA, *TYPE_SUPPORTS)),
            *sorted(p for p in (PREFIX / "include").iterdir() if p.is_dir()),
            PREFIX / "include",
            Path(sysconfig.get_path("include")),
            Path(numpy.get_include()),
        ]
        compiler = ["g++", "-std=c++17"] if unit.suffix == ".cpp" else ["gcc"]
        done = unit.with_suffix(".o")
        subprocess.run(
            [
                *(*compiler, "-O0", "-w", "-fPIC", "-c", str(unit)),
                *(f"-I{place}" for place in places),
                *("-o", str(done)),
            ],
            check=True,
        )
        return done

    def install(self, objects: list[Path], out: Path) -> None:
        """Link the module, and put it and the definitions where they belong."""
        site, generated = out / SITE / self.name, self._out(PYTHON)
        shutil.copytree(generated, site, ignore=shutil.ignore_patterns("*.c"))
        (site / "__init__.py").touch()
        kinds = (DATA, PYTHON, DISPATCH, *TYPE_SUPPORTS)
        found = (
            PREFIX / f"lib/lib{need}__{kind}.so"
            for need in self._needs
            for kind in kinds
        )
        common = "rosidl_runtime_c", DISPATCH, FAST, "rcutils", "fastcdr", "rmw"
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        module = site / f"{self.name}_s__{DISPATCH}{suffix}"
        subprocess.run(
            [
                *("g++", "-shared", *map(str, objects), "-o", str(module)),
                *(
                    f"-L{PREFIX / 'lib'}",
                    *(f"-l:{p.name}" for p in found if p.exists()),
                ),
                *(f"-l{name}" for name in (*common, f"{FAST}pp")),
            ],
            check=True,
        )
        # The dispatcher looks for a library of each kind of type support.
        for kind in TYPE_SUPPORTS:
            link = out / f"lib/lib{self.name}__{kind}.so"
            link.symlink_to(os.path.relpath(module, link.parent))
        for root in (self._source, self._idl, self._out(HASHES)):
            shutil.copytree(root, out / "share" / self.name, dirs_exist_ok=True)
        index = out / "share/ament_index/resource_index/packages" / self.name
        index.parent.mkdir(parents=True, exist_ok=True)
        index.touch()


def _results(futures: list[Future[None]]) -> None:
    for future in futures:
        future.result()


def main() -> None:
    """Run the command."""
    definitions, out = (Path(argument).absolute() for argument in sys.argv[1:])
    (out / "lib").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = sorted(p for p in definitions.iterdir() if p.is_dir())
        packages = [Package(source, Path(folder)) for source in sources]
        with ProcessPoolExecutor() as pool:
            _results([pool.submit(package.describe) for package in packages])
            _results(
                [
                    pool.submit(package.generate, generator)
                    for package in packages
                    for generator in GENERATORS
                ]
            )

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            jobs = [
                (p, [threads.submit(p.compile, unit) for unit in p.units()])
                for p in packages
            ]
            for package, objects in jobs:
                package.install([job.result() for job in objects], out)


if __name__ == "__main__":
    main()
