"""A wheel contains the page:

installed in a clean environment without Node, it serves the built assets.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from botyard.app.page import STATIC
from tests.page.conftest import missing
from tests.ports import free_port
from tests.waiting import PATIENCE

pytestmark = pytest.mark.peer

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty virtual environment, as users have it."""
    folder = tmp_path_factory.mktemp("home") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def pip(home: Path) -> list[str]:
    """The pip of that environment, without the developers' packages."""
    return [
        str(home / "bin/python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
    ]


@pytest.fixture(scope="module")
def wheel(pip: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout."""
    if not (STATIC / "index.html").is_file():
        missing("the built page (make web)")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)],
        check=True,
        timeout=300,
    )
    (path,) = folder.glob("botyard-*.whl")
    return path


def test_the_wheel_holds_the_page_and_no_sources_of_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        index = archive.read("botyard/ui/static/index.html").decode()

    assets = re.findall(r'"\./(assets/[^"]+)"', index)
    assert len(assets) >= 2
    assert all(f"botyard/ui/static/{asset}" in names for asset in assets)
    assert not any("node_modules" in n or n.endswith((".ts", ".svelte")) for n in names)
    assert (
        sum(
            i.file_size
            for i in zipfile.ZipFile(wheel).filelist
            if "/static/" in i.filename
        )
        < 1_000_000
    )


def test_it_serves_the_page_without_node(
    wheel: Path, home: Path, pip: list[str], tmp_path: Path
) -> None:
    subprocess.run([*pip, "install", str(wheel)], check=True, timeout=500)
    path = str(home / "bin")
    assert shutil.which("node", path=path) is None
    port = free_port(10)
    process = subprocess.Popen(
        [
            str(home / "bin/botyard"),
            "--nomap",
            "-r",
            "p3dx",
            "-p",
            str(port),
            "--gui-port",
            str(port + 9),
            "--no-browser",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={
            **{
                k: v
                for k, v in os.environ.items()
                if k not in ("PYTHONPATH", "VIRTUAL_ENV")
            },
            "PATH": path,
        },
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "page: http" in line:
                break
        else:
            pytest.fail(said)

        base = f"http://127.0.0.1:{port + 9}"
        with urllib.request.urlopen(f"{base}/", timeout=PATIENCE) as answer:
            index = answer.read().decode()
        # The page names its assets by hashes, so equal pages have equal assets.
        assert index == (STATIC / "index.html").read_text("utf-8")
        for asset in re.findall(r'"\./(assets/[^"]+)"', index):
            with urllib.request.urlopen(f"{base}/{asset}", timeout=PATIENCE) as answer:
                assert answer.read() == (STATIC / asset).read_bytes()
                assert "immutable" in answer.headers["cache-control"]
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
