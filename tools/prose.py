"""``python -m tools.prose [--write] [FILE…]``: count house dialect and dense lines.

It reads Python code and the pages of ``docs/``. Each number stands for one folder in
``tools/prose.toml``. A number may only fall: ``make lint`` fails when a count rises.
``--write`` stores lower counts; with files, their lines are shown. CONTRIBUTING.md has
the style guide.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools/prose.toml"
PROSE_COLUMNS, CODE_COLUMNS = 100, 110

# Patterns of docstrings and comments. Other projects of the field use each of them at
# most a few times in 10,000 words.
PATTERNS = {
    "what-who": r"(?:^|[.!?:]\s+|\n\s*)(?:What|Who|Whoever|Whatever)\b(?![^.?!]{0,80}\?)",
    "that-of": r"\b(?:that|those) of\b",
    "nobody": r"\b(?:some|no|any|every)body\b",
    "beside": r"\bbeside\b",
    "too": r", too\b",
    "begin": r"\bbeg[iu]ns?\b|\bbeginning\b|\bbegan\b",
    "tell": r"\btold\b|\btells?\b",
}
LAYOUT = ("fmt-skip", "wide-prose", "wide-code")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,}|:{3,})\s*(.*)$")
_COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose_of(source: str) -> tuple[list[str], set[int]]:
    """Return the docstrings and comments of a file, and the lines that hold them."""
    texts: list[str] = []
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            texts.append(text)
        # Strings below an assignment document it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            texts.append(token.string.lstrip("# "))
            if token.line.lstrip().startswith("#"):
                lines.add(token.start[0])
    return texts, lines


def counts_of(source: str) -> Counter[str]:
    """Count the patterns, suppressions of the formatter and wide lines of a file."""
    texts, prose = prose_of(source)
    found = Counter(
        {
            name: sum(len(pattern.findall(text)) for text in texts)
            for name, pattern in _COMPILED.items()
        }
    )
    found["fmt-skip"] = sum("fmt: " + "skip" in text for text in texts)
    for number, line in enumerate(source.splitlines(), 1):
        if number in prose:
            found["wide-prose"] += len(line) > PROSE_COLUMNS
        else:
            found["wide-code"] += len(line) > CODE_COLUMNS
    return found


def page_prose(text: str) -> list[tuple[int, str]]:
    """Return the numbered lines of a page that are prose or a table, but no code."""
    lines: list[tuple[int, str]] = []
    # Markers of the blocks that are open: of code, and of MyST, whose blocks hold prose.
    code, blocks = "", list[str]()
    is_after_blank = True
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if code:
            if fence and fence[1].startswith(code) and not fence[2]:
                code = ""
        elif fence and fence[2].startswith("{"):
            blocks.append(fence[1])
        elif fence and not fence[2] and fence[1] in blocks:
            del blocks[blocks.index(fence[1]) :]
        elif fence:
            code = fence[1]
        elif not (line.startswith("    ") and is_after_blank):
            lines.append((number, line))
        # An indented block goes on until a line that is not indented.
        is_after_blank = not line or (is_after_blank and line.startswith("    "))
    return lines


def page_findings(text: str) -> list[tuple[int, str]]:
    """Return the line number and the name of each finding in a page."""
    lines = page_prose(text)
    found = [
        (number, "wide-prose")
        for number, line in lines
        # Rows of tables cannot wrap, nor can a line that is one link.
        if len(line) > PROSE_COLUMNS
        and not line.startswith("|")
        and " " in line.strip()
    ]
    # Names in `code` may look like a pattern.
    joined = "\n".join(re.sub(r"`[^`]*`", "`x`", line) for _, line in lines)
    for name, pattern in _COMPILED.items():
        for match in pattern.finditer(joined):
            index = joined.count("\n", 0, match.end())
            found.append((lines[index][0], name))
    return sorted(found)


def folder_of(path: Path) -> str:
    """Return the row of a file: its package below src/botyard, or its top folder."""
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("src", "botyard"):
        return f"src/botyard/{parts[2]}" if len(parts) > 3 else "src/botyard"
    if path.suffix == ".md":
        return "/".join(("docs", *parts[1:-1])) if parts[0] == "docs" else "pages"
    return parts[0] if len(parts) > 1 else "."


def files() -> Iterable[Path]:
    """Files of the checkout that people write."""
    yield ROOT / "hatch_build.py"
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    yield from sorted((ROOT / "docs").rglob("*.md"))
    for top in ("src", "tests", "bench", "examples", "tools"):
        yield from sorted((ROOT / top).rglob("*.py"))


def counted() -> dict[str, Counter[str]]:
    """Return the counts of each folder."""
    table: dict[str, Counter[str]] = {}
    for path in files():
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            counts = Counter(name for _, name in page_findings(text))
        else:
            counts = counts_of(text)
        table.setdefault(folder_of(path), Counter()).update(counts)
    return table


def risen(
    table: dict[str, Counter[str]], limits: dict[str, dict[str, int]]
) -> list[str]:
    """Return a line for each count above its limit; a new folder has limits of 0."""
    return [
        f"{folder}: {name} {count}, at most {limit}"
        for folder, counts in sorted(table.items())
        for name, count in counts.items()
        if count > (limit := limits.get(folder, {}).get(name, 0))
    ]


def write(
    table: dict[str, Counter[str]], limits: dict[str, dict[str, int]], *, anew: bool
) -> None:
    """Write the lower of count and limit for each folder; zeros are left out."""
    lines = ["# Limits of `python -m tools.prose`: a number may only fall."]
    for folder, counts in sorted(table.items()):
        kept = {}
        for name in (*PATTERNS, *LAYOUT):
            limit = counts[name] if anew else limits.get(folder, {}).get(name, 0)
            if value := min(counts[name], limit):
                kept[name] = value
        if kept:
            lines += ["", f'["{folder}"]']
            lines += [f"{name} = {value}" for name, value in kept.items()]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Run; return status 1 if a count has risen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--write",
        action="store_true",
        help="store counts that have fallen as the new limits",
    )
    parser.add_argument("pages", nargs="*", type=Path, help="pages to show lines of")
    args = parser.parse_args()
    for page in args.pages:
        for number, name in page_findings(page.read_text("utf-8")):
            print(f"{page}:{number}: {name}")
    if args.pages:
        return 0
    is_new = not TABLE.exists()
    limits = {} if is_new else tomllib.loads(TABLE.read_text("utf-8"))
    table = counted()
    if args.write:
        write(table, limits, anew=is_new)
        limits = tomllib.loads(TABLE.read_text("utf-8"))
    above = risen(table, limits)
    for line in above:
        print(line)
    if above:
        print("see the style guide in CONTRIBUTING.md; these counts may only fall")
    total = sum(table.values(), Counter())
    print("prose:", ", ".join(f"{name} {total[name]}" for name in (*PATTERNS, *LAYOUT)))
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
