"""Table of the documentation pages that explain errors, and its lookup.

The command line prints the page below an error, and the log behind a warning. Code that
raises errors does not refer to pages.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from botyard.errors import escaped


class Row(NamedTuple):
    """Rule: errors of a class with certain words in the message, and the page for them.

    Attributes
    ----------
    kind : str
        Name of the class of the error, or of one of its base classes; ``log`` for warnings
        of the log.
    words : str
        Text that the message contains; empty: any message.
    page : str
        Page, relative to ``docs/``, with the section that explains the error.
    """

    kind: str
    words: str
    page: str


PAGES: Final = (
    # the installation
    Row("BotyardError", " not installed; to install", "howto/command-line.md#extras"),
    Row(
        "KernelsError",
        "",
        "howto/troubleshooting.md#there-are-no-compiled-kernels-or-no-compiler",
    ),
    Row("ModelsMissingError", "", "howto/from-amrisim.md"),
    # the command line
    Row("BadParameter", "--max-read", "reference/limits.md#reading-of-files"),
    Row("NoSuchOption", "botyard run", "reference/options.md"),
    Row("CommandLineError", "expected a map (-m FILE)", "howto/service.md"),
    Row("CommandLineError", "--config: ", "howto/service.md#options-from-a-file"),
    Row("CommandLineError", "--record", "howto/record.md"),
    Row("CommandLineError", "--gui-token", "howto/page.md#security"),
    Row("CommandLineError", "no controller ", "howto/controllers.md"),
    Row("CommandLineError", "to find the topic", "howto/ros.md"),
    Row(
        "CommandLineError",
        "do not fit on the ports",
        "howto/command-line.md#a-hundred-robots",
    ),
    Row("CommandLineError", "--ray", "howto/study.md#on-a-cluster"),
    Row("CommandLineError", "already holds", "howto/study.md#results"),
    Row("PlanError", "", "howto/study.md"),
    # processes and ports
    Row("TempFileError", "", "howto/service.md#crashes-and-restarts"),
    Row("PortError", "cannot serve the page", "howto/page.md#open-it"),
    Row("PortError", "--metrics-port", "howto/service.md#metrics"),
    Row("PortError", "", "howto/troubleshooting.md#the-simulator-does-not-start"),
    Row("RosMasterError", "", "howto/ros.md#ros-1"),
    Row("BotyardError", "interface ", "reference/interfaces.md"),
    Row("PeerError", "MQTT", "howto/traffic.md#a-master-control-of-vda-5050"),
    Row("PeerError", "no robot at", "howto/troubleshooting.md#clients-cannot-connect"),
    # names in files and on the command line
    Row("BotyardError", "no robot model ", "reference/catalogue.md"),
    Row("BotyardError", "no laser model ", "howto/sensors.md#lidars-by-data-sheet"),
    Row("BotyardError", "no device ", "reference/accessories.md"),
    Row("BotyardError", "--allow-code", "explanation/security.md#files"),
    # files
    Row("BudgetError", "", "reference/limits.md#reading-of-files"),
    Row("MapError", "did you mean the command", "reference/commands.md"),
    Row("MapError", "no such map file", "howto/shipped-worlds.md"),
    Row("UnknownFormatError", "", "formats/README.md#formats"),
    Row(
        "CommandLineError", "expected one of the suffixes", "formats/README.md#convert"
    ),
    Row("RecordingError", " wrote it", "reference/versions.md"),
    Row("RecordingError", "expected a recording", "howto/record.md"),
    Row("RecordingError", "", "howto/replay.md#does-the-run-come-out-again"),
    Row("TaskError", "", "howto/traffic.md#tasks"),
    Row("FormatError", ".argos", "formats/argos.md"),
    Row("FormatError", ".dxf", "formats/dxf.md"),
    Row("FormatError", ".geojson", "formats/geojson.md"),
    Row("FormatError", ".sdf", "formats/sdf.md"),
    Row("FormatError", ".svg", "formats/svg.md"),
    Row("FormatError", ".urdf", "formats/urdf.md"),
    Row("FormatError", ".xacro", "formats/urdf.md"),
    # Worlds of Gazebo and of Stage have the same suffix; only Gazebo's are XML.
    Row("WorldFileError", "not XML", "formats/sdf.md"),
    Row("FormatError", ".world", "formats/stage.md"),
    Row("FormatError", "ArMap", "formats/armap.md"),
    Row("FormatError", "the map's image", "formats/rosmap.md"),
    Row("FormatError", "the picture", "formats/bitmap.md"),
    Row("ModelFileError", "", "howto/own-robots.md"),
    Row("WorldFileError", ".yaml", "formats/scenario.md"),
    Row("WorldFileError", ".yml", "formats/scenario.md"),
    # tools
    Row("WorldError", "names must be unique", "howto/command-line.md"),
    Row("SupervisorError", "", "howto/traffic.md#supervisors"),
    Row("CalibrationError", "true poses", "howto/calibrate.md#truth"),
    Row("CalibrationError", "", "howto/calibrate.md#logs"),
    # warnings of the log
    Row(
        "log",
        "has a client already",
        "howto/troubleshooting.md#clients-cannot-connect",
    ),
    Row(
        "log",
        "no address for UDP over IPv4",
        "howto/troubleshooting.md#ros-shows-nothing",
    ),
    Row(
        "log",
        "request refused: ",
        "howto/troubleshooting.md#the-page-is-empty-or-refuses-to-open",
    ),
    Row("log", "motors are off", "howto/troubleshooting.md#the-robot-does-not-move"),
    Row("log", "behind schedule", "howto/troubleshooting.md#it-is-slow"),
    Row("log", "clients may load from", "howto/service.md#access"),
    Row("log", "it is left out", "howto/adding.md"),
    Row("log", "no ROS master", "howto/ros.md#ros-1"),
)
"""Rules in the order of the search: the first that fits an error is used."""


def with_page(error: BaseException, message: str) -> str:
    """Return the text that a user reads: the message, and the page that explains it.

    Parameters
    ----------
    error : BaseException
        The error; its class decides the page, together with the message.
    message : str
        Message of the error. Unprintable characters are escaped.

    Returns
    -------
    str
        The message, with a second line ``See: docs/…`` if there is a page for it.
    """
    page = page_of(error, message)
    return escaped(message) + (f"\nSee: {page}" if page else "")


def page_of(error: BaseException, message: str) -> str:
    """Return the page that explains an error, as a path in the repository; "": no page.

    Parameters
    ----------
    error, message
        See `with_page`.
    """
    return _page({kind.__name__ for kind in type(error).__mro__}, message)


def page_of_warning(record: logging.LogRecord) -> str:
    """Return the page that explains a warning of the log; "": no page.

    Parameters
    ----------
    record : logging.LogRecord
        Record of the log. A warning that reports an error has the page of the error.
    """
    if record.levelno < logging.WARNING:
        return ""
    message = record.getMessage()
    page = _page({"log"}, message)
    for part in record.args if isinstance(record.args, tuple) else ():
        if not page and isinstance(part, Exception):
            page = page_of(part, message)
    return page


def _page(kinds: set[str], message: str) -> str:
    for row in PAGES:
        if row.kind in kinds and row.words in message:
            return f"docs/{row.page}"
    return ""


__all__ = ["PAGES", "Row", "page_of", "page_of_warning", "with_page"]
