"""No module of botyard imports, directly or indirectly, a module that imports it, even
in annotations or functions.

A reader of one module of such a circle has to know all of them, and a circle of
annotations means that two files are one idea. `make lint` checks the layers between the
rooms.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "botyard"
PACKAGE = "botyard"
Graph = Mapping[str, set[str]]


def imports(files: Mapping[str, str], packages: Iterable[str] = ()) -> Graph:
    """Return the modules that each module imports anywhere in it.

    `files` holds their texts by name. ``from package import name`` imports the module
    ``package.name`` if it exists, otherwise the package. The package's own execution
    before its modules does not count: Python does that for every import.
    """
    graph: dict[str, set[str]] = {}
    for module, text in files.items():
        package = module.split(".") if module in packages else module.split(".")[:-1]
        found: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join(
                    [*base, *((node.module or "").split(".") if node.module else [])]
                )
                names = [f"{origin}.{alias.name}" for alias in node.names]
                found |= {name if name in files else origin for name in names}

        graph[module] = found & files.keys() - {module}

    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of modules (Tarjan), sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        open_.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in open_:
                lowest[node] = min(lowest[node], order[other])

        if lowest[node] == order[node]:
            group = open_[open_.index(node) :]
            del open_[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in order:
            visit(node)

    return sorted(found)


def test_no_module_imports_itself_over_others() -> None:
    files, packages = {}, set()
    for path in SOURCE.rglob("*.py"):
        name = ".".join((PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts))
        if path.name == "__init__.py":
            name = name.removesuffix(".__init__")
            packages.add(name)

        files[name] = path.read_text("utf-8")

    graph = imports(files, packages)
    assert len(graph) > 300 and sum(map(len, graph.values())) > 1000, (
        "it looks at the real tree"
    )
    told = [
        ", ".join(
            f"{module} -> {' '.join(sorted(graph[module] & set(circle)))}"
            for module in circle
        )
        for circle in circles(graph)
    ]
    assert not told


def test_circles_are_found_wherever_the_import_stands() -> None:
    files = {
        "p": "from p.a import A",
        "p.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p "
        "import b\nimport os",
        "p.b": "def f():\n    from p.c import C",
        "p.c": "import p.a as a",
        "p.q": "from .r import R",
        "p.q.r": "from . import s",
        "p.q.s": "from ..q import R",
        "p.alone": "from p.a import A\nfrom p.b import f",
    }
    graph = imports(files, {"p", "p.q"})
    assert graph["p.a"] == {"p.b"}
    assert graph["p.q"] == {"p.q.r"}
    assert graph["p.q.r"] == {"p.q.s"}
    assert circles(graph) == [["p.a", "p.b", "p.c"], ["p.q", "p.q.r", "p.q.s"]]
    assert circles(imports({"p.a": "import p.a", "p.b": "import p.a"})) == []


def test_the_table_of_rooms_has_each_folder_in_the_order_of_imports() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    table = page.partition("| Room | Holds |")[2].partition("\n\n")[0]
    rooms = re.findall(r"^\| `([\w/]+)/` \|", table, re.MULTILINE)
    folders = {
        str(init.parent.relative_to(SOURCE))
        for pattern in ("*/__init__.py", "servers/*/__init__.py")
        for init in SOURCE.glob(pattern)
    } - {"maps"}
    assert set(rooms) == folders, "add a row to the table of rooms, or remove one"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {
        name: -number
        for number, layer in enumerate(layers)
        for name in re.findall(r"\w+", layer)
    }
    tops = [level[room] for room in rooms if "/" not in room]
    assert tops == sorted(tops), "the rooms stand in the order of imports"
