"""Pages of the Python API: for each public name its docstring, and tables of members.

Sphinx's autodoc formats signatures and docstrings. The table of attributes comes from
properties and from the sections "Attributes" of docstrings.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from docutils import nodes
from sphinx import addnodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxRole
from tools.docsite.apigroups import find, groups

SECTION: Final = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
FOREIGN: Final = (object, dict, tuple, BaseException, enum.Enum, str, int)
"""Classes whose members readers know from Python."""


def sections(docstring: str) -> dict[str, str]:
    """Return the text of each section of a numpydoc docstring; "" is its head."""
    parts = SECTION.split(docstring)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def fields(section: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and text of each entry of a section such as "Attributes"."""
    for block in re.split(r"\n(?=\S)", section.strip("\n")):
        if not block:
            continue
        head, _, body = block.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(","):
            yield name.strip(" *"), kind.strip(), textwrap.dedent(body).strip()


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _kind_of(annotation: Any) -> str:
    if annotation in (inspect.Signature.empty, None):
        return ""
    if isinstance(annotation, type):
        return annotation.__name__
    return re.sub(r"\b(?:typing|botyard|numpy)\.(?:[\w]+\.)*", "", str(annotation))


def attributes(kind: type) -> list[tuple[str, str, str]]:
    """Return name, type and description of each public attribute of a class."""
    rows: dict[str, tuple[str, str, str]] = {}
    for owner in reversed(kind.__mro__):
        if owner in FOREIGN:
            continue
        text = sections(inspect.cleandoc(owner.__doc__ or ""))
        own = {row[0]: row for row in fields(text.get("Attributes", ""))}
        if dataclasses.is_dataclass(owner):
            # A dataclass may describe its fields as parameters.
            given = {row[0]: row for row in fields(text.get("Parameters", ""))}
            names = {f.name for f in dataclasses.fields(owner)}
            own |= {name: row for name, row in given.items() if name in names}
        rows |= own | _documented(owner)
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or name in rows:
            continue
        if isinstance(kind, enum.EnumType) and name in kind.__members__:
            rows[name] = (name, "", f"``{kind[name].value!r}``")
        getter = getattr(member, "fget", None) or (
            getattr(member, "func", None) if not callable(member) else None
        )
        if getter is not None:
            doc = sections(inspect.getdoc(getter) or "")[""]
            annotation = getattr(getter, "__annotations__", {}).get("return")
            rows[name] = (name, _kind_of(annotation), doc.strip())
    public = [row for name, row in rows.items() if not name.startswith("_")]
    return sorted(public) if not dataclasses.is_dataclass(kind) else public


def _documented(owner: type) -> dict[str, tuple[str, str, str]]:
    """Return the attributes of a class that a string below their assignment documents."""
    if not owner.__module__.startswith("botyard"):
        return {}
    analyzer = ModuleAnalyzer.for_module(owner.__module__)
    docs = analyzer.find_attr_docs()
    return {
        name: (
            name,
            analyzer.annotations.get((owner.__qualname__, name), ""),
            "\n".join(lines).strip(),
        )
        for (of, name), lines in docs.items()
        if of == owner.__qualname__
    }


def methods(kind: type) -> list[str]:
    """Return the names of the public methods of a class, in alphabetical order.

    Methods of a base class that is public itself are left out: they are described there.
    """
    public = {id(find(name)) for names in groups().values() for name in names}
    bases = [base for base in kind.__mro__[1:] if id(base) in public]
    described = {name for base in bases for name in dir(base)}
    found = []
    for name in dir(kind):
        if name in described or (name.startswith("_") and name != "__call__"):
            continue
        member = inspect.getattr_static(kind, name)
        owner = next((c for c in kind.__mro__ if name in vars(c)), object)
        if not owner.__module__.startswith("botyard"):
            continue
        if isinstance(member, staticmethod | classmethod) or inspect.isfunction(member):
            found.append(name)
    return found


def _indented(text: str, columns: int) -> str:
    return textwrap.indent(text, " " * columns)


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [f".. rubric:: {title}", "", ".. list-table::", "   :widths: 20 20 60", ""]
    for name, kind, text in rows:
        lines += [
            f"   * - {name}",
            f"     - {kind}".rstrip(),
            "     - " + _indented(text or "\\ ", 7).lstrip(),
        ]
    return "\n".join(lines) + "\n\n"


def _escaped(text: str) -> str:
    return re.sub(r"([*|_\\])", r"\\\1", text)


def _class(name: str, kind: type) -> str:
    out = [f".. autoclass:: {name}\n\n"]
    rows = [
        (f":member:`{name}.{attribute}`", _escaped(of), text)
        for attribute, of, text in attributes(kind)
    ]
    if rows:
        out.append(_indented(_table("Attributes", rows), 3))
    names = methods(kind)
    if names:
        listed = [
            (
                f":py:meth:`~{name}.{method}`",
                "",
                _first_paragraph(
                    sections(inspect.getdoc(getattr(kind, method)) or "")[""]
                ),
            )
            for method in names
        ]
        table = _table("Methods", listed).replace(
            ":widths: 20 20 60", ":widths: 30 1 69"
        )
        out.append(_indented(re.sub(r"\n +-(?=\n)", "", table), 3))
        out[-1] = out[-1].replace(":widths: 30 1 69", ":widths: 30 70")
        out += [f"   .. automethod:: {name}.{method}\n\n" for method in names]
    return "".join(out)


def _text_of_data(name: str) -> str:
    """Return the string below the assignment of a constant, in any module of a package."""
    package, _, last = name.rpartition(".")
    for module in sorted(sys.modules):
        if module.startswith(package) and sys.modules[module].__dict__.get(last):
            docs = ModuleAnalyzer.for_module(module).find_attr_docs()
            if ("", last) in docs:
                return "\n".join(docs["", last])
    return ""


def page(group: str) -> str:
    """Return the part of a group's page that is made: a section for each name."""
    out = []
    for name in groups()[group]:
        found = find(name)
        out.append(f"## {name.rpartition('.')[2]}\n\n")
        if inspect.isclass(found):
            text = _class(name, found)
        elif callable(found):
            text = f".. autofunction:: {name}\n"
        else:
            text = f".. py:data:: {name}\n\n" + _indented(_text_of_data(name), 3) + "\n"
        out.append(f"````{{eval-rst}}\n{text}````\n\n")
    return "".join(out)


class Member(SphinxRole):
    """Role ``:member:`botyard.Robot.odom```: name of an attribute, and its anchor."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the nodes of the role."""
        name = self.text
        node = nodes.literal("", name.rpartition(".")[2], ids=[name], names=[name])
        domain = self.env.get_domain("py")
        domain.note_object(name, "attribute", name, location=node)  # type: ignore[attr-defined]
        return [node], []


def _without_attributes(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Drop the section "Attributes" of a class: the table of its page has it."""
    if what != "class":
        return
    text = "\n".join(lines)
    parts = sections(text)
    if "Attributes" in parts:
        del parts["Attributes"]
        head = parts.pop("")
        lines[:] = head.split("\n")
        for title, body in parts.items():
            lines += [title, "-" * len(title), *body.split("\n")]


def _unlinked(app: Any, doctree: nodes.document) -> None:
    """Drop the links of words in types, such as x in "sequence of (x, y)".

    Sphinx takes each for a class, and would link any attribute of that name.
    """
    for node in list(doctree.findall(addnodes.pending_xref)):
        word = node.get("reftarget", "")
        is_type = node.get("refdomain") == "py" and node.hasattr("refspecific")
        if is_type and word[:1].islower() and "." not in word:
            node.replace_self(node.children)


def setup(app: Any) -> None:
    """Connect to the build."""
    app.add_role("member", Member())
    app.connect("doctree-read", _unlinked)
    # Before napoleon, which formats the sections.
    app.connect("autodoc-process-docstring", _without_attributes, priority=100)
