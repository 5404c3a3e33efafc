"""Installs the files of this package where ROS 2 looks for them."""

from pathlib import Path
from xml.etree import ElementTree

from setuptools import setup

MANIFEST = ElementTree.parse("package.xml")
NAME = MANIFEST.findtext("name")
FOLDERS = ("config", "launch", "robots", "rviz")

setup(
    name=NAME,
    version=MANIFEST.findtext("version"),
    description=MANIFEST.findtext("description"),
    license=MANIFEST.findtext("license"),
    maintainer=MANIFEST.findtext("maintainer"),
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *(
            (f"share/{NAME}/{folder}", [str(p) for p in sorted(Path(folder).iterdir())])
            for folder in FOLDERS
        ),
    ],
    install_requires=["setuptools"],
)
