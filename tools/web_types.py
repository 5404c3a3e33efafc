"""Makes the page's TypeScript types from the Python messages: ``python
tools/web_types.py`` writes them, ``--check`` compares.

Constants of the binary frames come along, so that neither side can change a layout
alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from botyard.formats.archive import BUNDLE
from botyard.formats.registry import FORMATS
from botyard.protocols.webgui import frames, messages, pushes
from botyard.protocols.webgui.kernels.units import NO_READING
from botyard.recording.samples import USUAL
from botyard.servers.web.page import MAX_UPLOAD

TARGET = Path(__file__).parents[1] / "web/src/generated/messages.ts"
HEAD = """// Made by tools/web_types.py from protocols/webgui, recording/samples, formats/registry and servers/web; do not edit.
"""


def typescript(kind: Any) -> str:
    """Return the TypeScript type of a Python annotation."""
    origin, args = get_origin(kind), get_args(kind)
    if hasattr(kind, "__metadata__"):
        return typescript(args[0])
    if kind is type(None):
        return "null"
    if kind in (int, float):
        return "number"
    if kind is str:
        return "string"
    if kind is bool:
        return "boolean"
    if kind is Any:
        return "unknown"
    if origin is Literal:
        return " | ".join(f'"{a}"' for a in args)
    if origin in (Union, UnionType):
        return " | ".join(typescript(a) for a in args)
    if origin is list or (origin is tuple and args[-1] is Ellipsis):
        item = typescript(args[0])
        return f"({item})[]" if "|" in item else f"{item}[]"

    if origin is tuple:
        return f"[{', '.join(typescript(a) for a in args)}]"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind.__name__
    raise TypeError(f"no TypeScript type for {kind!r}")


def interface(struct: type[msgspec.Struct], outgoing: bool) -> str:
    """Return the interface of a struct. In requests, fields with a default may be left out."""
    lines = [
        f"/** {(struct.__doc__ or '').strip().splitlines()[0]} */",
        f"export interface {struct.__name__} {{",
    ]
    tag = struct.__struct_config__.tag
    if tag:
        lines.append(f'  type: "{tag}";')
    for field in msgspec.structs.fields(struct):
        optional = "?" if outgoing and not field.required else ""
        lines.append(f"  {field.encode_name}{optional}: {typescript(field.type)};")

    return "\n".join([*lines, "}"])


def everything() -> str:
    """Return the whole file of types."""
    structs = [
        s
        for s in (vars(messages) | vars(pushes)).values()
        if isinstance(s, type) and issubclass(s, msgspec.Struct)
    ]
    structs = [s for s in structs if s not in (msgspec.Struct, messages.Request)]
    incoming = {
        messages.View,
        messages.Placement,
        messages.StartRobot,
        messages.PlaceToAdd,
        messages.SectorPath,
    }
    parts = [HEAD]
    parts += [
        interface(s, issubclass(s, messages.Request) or s in incoming) for s in structs
    ]
    requests = [s.__name__ for s in get_args(messages.AnyRequest)]
    parts.append(f"export type AnyRequest = {' | '.join(requests)};")
    parts.append(
        f"export type Push = {' | '.join(s.__name__ for s in get_args(pushes.Push))};"
    )
    constants = {
        "VERSION": messages.VERSION,
        "FRAME_VERSION": frames.VERSION,
        "FRAME_MAGIC": int.from_bytes(frames.MAGIC, "little"),
        "MAP_MAGIC": int.from_bytes(frames.MAP_MAGIC, "little"),
        "HEADER_SIZE": frames.HEADER.size,
        "BLOCK_SIZE": frames.BLOCK.size,
        "NO_READING": NO_READING,
        "PAUSED": frames.PAUSED,
        "FASTEST": frames.FASTEST,
        "PAST": frames.PAST,
    }
    parts.append(
        "\n".join(
            f"export const {name} = {value};" for name, value in constants.items()
        )
    )
    usual = f"export const USUAL_TOPICS: readonly string[] = {json.dumps(USUAL)};"
    parts.append(
        f"/** Topics of a recording when nobody names any, beside scans. */\n{usual}"
    )
    suffixes = ",".join(
        dict.fromkeys([*(s for one in FORMATS for s in one.suffixes), BUNDLE])
    )
    world_files = f"export const WORLD_FILES = {json.dumps(suffixes)};"
    parts.append(
        f"/** Suffixes of the files of maps and worlds that botyard reads. */\n{world_files}"
    )
    parts.append(
        "/** The simulator takes no larger uploads, bytes. */\nexport const "
        f"MAX_UPLOAD = {MAX_UPLOAD};"
    )
    for enum in (frames.Block, frames.Bit):
        members = ", ".join(f"{m.name}: {m.value}" for m in enum)
        parts.append(f"export const {enum.__name__} = {{ {members} }} as const;")

    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = everything()
    if "--check" in sys.argv:
        if not TARGET.is_file() or TARGET.read_text("utf-8") != text:
            print(
                f"{TARGET} differs from the output of {Path(__file__).name}: run it "
                "and commit the result",
                file=sys.stderr,
            )
            return 1

        return 0

    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
