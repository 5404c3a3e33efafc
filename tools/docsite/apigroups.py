"""Public names by group: each group is a page of ``docs/reference/api``."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

PACKAGES: Final = ("", "control", "recording", "calibration", "testing", "learning")
"""Packages whose `__all__` is public; "" is `botyard` itself."""

OF_BOTYARD: Final[dict[str, tuple[str, ...]]] = {
    "simulation": (
        "Simulation",
        "sim.fleet.Fleet",
        "sim.masses.Masses",
        "__version__",
    ),
    "robots": (
        "Robot",
        "sim.commands.Commands",
        "sim.trips.Trip",
        "Pose",
        "Twist",
        "RobotSpec",
        "CommandSpec",
        "MotionLimits",
        "Axes",
        "OdometryDrift",
        "DynamicsSpec",
        "load_robot",
        "robot_names",
    ),
    "sensors": (
        "LaserSpec",
        "SonarSpec",
        "LaserScan",
        "SonarReadings",
        "load_laser",
        "sim.readings.Laser",
        "sim.readings.Sonar",
        "model.devices.DeviceSpec",
        "model.devices.Device",
        "model.devices.Field",
        "model.devices.Mark",
        "model.devices.RosMessage",
        "model.devices.register",
        "devices.view.View",
    ),
    "maps": (
        "Scene",
        "MapBuilder",
        "BoxObject",
        "Returns",
        "Raster",
        "Budget",
        "load_scene",
        "model.floor.FloorZone",
        "model.mapgenerators.hall",
        "model.mapgenerators.maze",
        "model.mapgenerators.office",
        "model.mapgenerators.warehouse",
    ),
    "worlds": ("Worlds",),
    "serving": (
        "serve",
        "app.running.Running",
        "clients.pioneer.PioneerClient",
        "clients.ambf.Client",
        "interfaces.interface.Interface",
        "interfaces.interface.Option",
        "interfaces.interface.Carrier",
        "interfaces.interface.Door",
        "interfaces.interface.caller_of",
    ),
    "driving": (
        "controllers.base.Controller",
        "navigation.planning.Costmap",
        "navigation.planning.find_path",
        "navigation.planning.length",
        "navigation.planning.NoPathError",
    ),
    "traffic": tuple(
        f"traffic.{name}"
        for name in (
            "Traffic",
            "Supervisor",
            "find_supervisor",
            "Task",
            "Vehicle",
            "load_task",
            "parse_task",
            "generate_task",
            "Rules",
            "Outcome",
            "Ending",
            "SupervisorError",
            "TaskError",
        )
    ),
    "studies": (
        "learning.benchmark.run",
        "studies.plan.read_plan",
        "studies.study.Study",
    ),
    "errors": (
        "BotyardError",
        "ArgumentError",
        "BudgetError",
        "CommandError",
        "FormatError",
        "MapError",
        "ModelError",
        "PlacementWarning",
        "StateError",
        "UnknownNameError",
        "WorldError",
        "WorldFaultError",
    ),
}
"""Names below `botyard` in each group; other groups are the packages of `PACKAGES`."""


def groups() -> dict[str, list[str]]:
    """Return the full names of each group."""
    found = {
        group: [f"botyard.{name}" for name in names]
        for group, names in OF_BOTYARD.items()
    }
    for package in PACKAGES[1:]:
        names = import_module(f"botyard.{package}").__all__
        found[package] = [f"botyard.{package}.{name}" for name in names]
    return found


def public_names() -> set[str]:
    """Return the full names of all public objects."""
    names = set()
    for package in PACKAGES:
        module = f"botyard.{package}".rstrip(".")
        names |= {f"{module}.{name}" for name in import_module(module).__all__}
    return names


def find(name: str) -> Any:
    """Return the object of a full name."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)
