"""``python -m tools.docsite.versions BUILT PAGES``: add a built version to a site.

A site has a folder for each version. ``versions.js`` lists them for the switcher of each
page; ``index.html`` leads to the newest release, or to ``dev`` before the first.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

RELEASE: Final = re.compile(r"\d+(?:\.\d+)+$")
ROOT_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>botyard</title>
<meta http-equiv="refresh" content="0; url={to}/index.html">
</head>
<body><a href="{to}/index.html">botyard {to}</a></body>
</html>
"""


def versions_in(folder: Path) -> list[str]:
    """Return the versions in the folder of a site: ``dev``, then the newest release."""
    names = [p.parent.name for p in folder.glob("*/searchindex.js")]
    releases = [n for n in names if RELEASE.match(n)]
    releases.sort(key=lambda n: tuple(map(int, n.split("."))), reverse=True)
    return sorted(set(names) - set(releases)) + releases


def write_root(folder: Path) -> None:
    """Write the list of versions and the first page of a site.

    Parameters
    ----------
    folder : Path
        Folder that holds a folder of each version.

    Raises
    ------
    ValueError
        If the folder holds no built version.
    """
    names = versions_in(folder)
    if not names:
        raise ValueError(f"{folder}: expected a built version, found none")
    newest = next((n for n in names if RELEASE.match(n)), names[0])
    rows = [
        {"version": name, "name": f"{name} (newest)" if name == newest else name}
        for name in names
    ]
    script = f"window.botyardVersions = {json.dumps(rows)};\n"
    (folder / "versions.js").write_text(script, "utf-8")
    (folder / "index.html").write_text(ROOT_PAGE.format(to=newest), "utf-8")


def place(built: Path, pages: Path) -> None:
    """Copy a built version into a site, and write the site's list of versions anew.

    Parameters
    ----------
    built : Path
        Folder of the built version; its name is the version.
    pages : Path
        Folder of the site. Other versions in it stay as they are.
    """
    shutil.rmtree(pages / built.name, ignore_errors=True)
    shutil.copytree(built, pages / built.name)
    # Otherwise GitHub Pages leaves out the folders that start with an underscore.
    (pages / ".nojekyll").touch()
    write_root(pages)


if __name__ == "__main__":
    place(*map(Path, sys.argv[1:3]))
