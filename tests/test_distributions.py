"""Files of a release: their check, their reproducibility, and what describes them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from tools import distcheck

ROOT = Path(__file__).resolve().parents[1]


def project() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(
        (ROOT / "pyproject.toml").read_text("utf-8")
    )["project"]
    return found


def wheel(
    folder: Path, *, name: str = "botyard-1-py3-none-any.whl", **files: str
) -> Path:
    """Write a wheel with the needed files, more files, and metadata."""
    path = folder / name
    metadata = (
        "Metadata-Version: 2.4\nName: botyard\nVersion: 1\nRequires-Dist: click\n"
    )
    with zipfile.ZipFile(path, "w") as archive:
        for needed in distcheck.NEEDED:
            archive.writestr(needed, "x")
        archive.writestr(
            "botyard-1.dist-info/METADATA", metadata + files.pop("more", "")
        )
        for file, text in files.items():
            archive.writestr(file.replace("__", "/"), text)
    return path


def test_a_good_wheel_has_no_faults(tmp_path: Path) -> None:
    assert not list(distcheck.wheel_problems(distcheck.read_wheel(wheel(tmp_path))))


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        ({"tests__a.py": ""}, "tests/a.py is not for users"),
        ({"botyard__ui__static__a.js.map": ""}, "a.js.map is not for users"),
        (
            {"name": "botyard-1-py3-none-manylinux_2_17_x86_64.whl"},
            "no library of kernels",
        ),
        ({"botyard__native__lib__kernels.so": ""}, "a library of kernels"),
        (
            {"more": "".join(f"Requires-Dist: a{k}\n" for k in range(20))},
            "dependencies: expected at most 13, found 21",
        ),
        ({"a.bin": "x" * 20_000_001}, "unpacked size: expected at most 20000000"),
    ],
)
def test_faults_of_a_wheel_are_said(
    tmp_path: Path, made: dict[str, str], fault: str
) -> None:
    found = list(
        distcheck.wheel_problems(distcheck.read_wheel(wheel(tmp_path, **made)))
    )
    assert any(fault in one for one in found), found


def test_extras_are_no_dependencies(tmp_path: Path) -> None:
    more = "Requires-Dist: ray; extra == 'ray'\n"
    assert distcheck.read_wheel(wheel(tmp_path, more=more)).requires == ("click",)


def test_a_folder_without_files_is_no_release(tmp_path: Path) -> None:
    assert distcheck.main([str(tmp_path)]) == 1


def test_wheels_are_reproducible(tmp_path: Path) -> None:
    """Two builds of one commit, in two folders and at two times, are equal to the byte."""
    if not (ROOT / "src/botyard/ui/static/index.html").is_file():
        pytest.skip("the page is not built (make web)")
    built = []
    for number in range(2):
        copy = tmp_path / str(number)
        names = (
            "src",
            "tools",
            "pyproject.toml",
            "hatch_build.py",
            "README.md",
            "LICENSE",
        )
        for name in names:
            source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__", "lib")
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        # The page is built already; a build of the page without Node would need a network.
        (copy / "tools/build_web.py").unlink()
        env = {**os.environ, "BOTYARD_TARGET": "any", "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
            cwd=copy,
            env=env,
            check=True,
            capture_output=True,
        )
        (path,) = (copy / "dist").glob("*.whl")
        assert not list(distcheck.wheel_problems(distcheck.read_wheel(path)))
        built.append(path.read_bytes())
    assert built[0] == built[1]


def test_the_conda_recipe_requires_what_the_wheel_does() -> None:
    text = (ROOT / "deploy/conda/recipe.yaml").read_text("utf-8")
    recipe = yaml.safe_load(text)
    wanted = {
        one.replace(">=", " >=", 1)
        for one in project()["dependencies"]
        if "platform_machine" not in one
    }
    requirements = recipe["requirements"]
    assert set(requirements["run"]) - {"python >=3.11"} == wanted
    assert wanted <= set(requirements["host"])


def test_pythons_of_the_check_are_the_classifiers() -> None:
    prefix = "Programming Language :: Python :: 3."
    named = [c for c in project()["classifiers"] if c.startswith(prefix)]
    assert [c.rpartition(" ")[2] for c in named] == list(distcheck.PYTHONS)
