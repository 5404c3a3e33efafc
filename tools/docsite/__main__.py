"""``python -m tools.docsite build | serve``: build the site, or show it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tools.docsite import versions

from botyard.version import __version__

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
CACHE = ROOT / ".docs-cache"


def sphinx_options(cache: Path, *, is_lax: bool) -> list[str]:
    """Return the options that `build` and `serve` share."""
    # Warnings are errors, except while an author writes.
    strict = [] if is_lax else ["--fail-on-warning", "--keep-going"]
    return [*strict, "-b", "html", "-d", str(cache), str(ROOT / "docs")]


def build(args: argparse.Namespace) -> int:
    """Build the site of this version into ``OUT/VERSION``."""
    os.environ["BOTYARD_DOCS_VERSION"] = args.version
    out = args.out / args.version
    command = [sys.executable, "-m", "sphinx", "--quiet", "-j", args.jobs]
    status = subprocess.call(
        [*command, *sphinx_options(args.cache, is_lax=False), str(out)]
    )
    if status == 0:
        versions.write_root(args.out)
        print(f"docs: {out / 'index.html'}")
    return status


def serve(args: argparse.Namespace) -> int:
    """Show the site on loopback; build it again when a page changes."""
    os.environ["BOTYARD_DOCS_VERSION"] = args.version
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(args.port),
        "--watch",
        str(ROOT / "src/botyard"),
        "--ignore",
        "*/__pycache__/*",
        "--ignore",
        str(ROOT / "src/botyard/ui/static/*"),
    ]
    command = [sys.executable, "-m", "sphinx_autobuild", "--quiet", *options]
    out = SITE / args.version
    return subprocess.call([*command, *sphinx_options(CACHE, is_lax=True), str(out)])


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    sub = commands.add_parser("build", help=build.__doc__)
    sub.add_argument("--version", default=__version__)
    sub.add_argument("--out", type=Path, default=SITE)
    sub.add_argument("--cache", type=Path, default=CACHE, help="folder of read pages")
    sub.add_argument("--jobs", default="auto", help="processes (default: auto)")
    sub.set_defaults(run=build)
    sub = commands.add_parser("serve", help=serve.__doc__)
    sub.add_argument("--version", default=__version__)
    sub.add_argument("--port", type=int, default=8008)
    sub.set_defaults(run=serve)
    args = parser.parse_args()
    status: int = args.run(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
