"""botyard: a fast, repeatable 2-D simulator of many mobile robots.

Real robot software connects to the simulated robots as if they were real. The names
below are the public API. They are imported on first use, so that ``import botyard`` is
quick and compiles nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from botyard.api.extensions import provide
from botyard.version import __version__

if TYPE_CHECKING:
    from botyard import recording as recording
    from botyard.app.serve import serve
    from botyard.errors import (
        ArgumentError,
        BotyardError,
        BudgetError,
        CommandError,
        FormatError,
        MapError,
        ModelError,
        PlacementWarning,
        StateError,
        UnknownNameError,
        WorldError,
        WorldFaultError,
    )
    from botyard.formats.budget import Budget
    from botyard.formats.models import load_robot
    from botyard.formats.registry import load_scene
    from botyard.geometry import Pose, Twist
    from botyard.model.dynamics import DynamicsSpec
    from botyard.model.kinematics import Axes, MotionLimits
    from botyard.model.library import load_laser, robot_names
    from botyard.model.mapbuilder import MapBuilder
    from botyard.model.obstacles import BoxObject, Returns
    from botyard.model.raster import Raster
    from botyard.model.readings import LaserScan, SonarReadings
    from botyard.model.robot import CommandSpec, OdometryDrift, RobotSpec
    from botyard.model.scene import Scene
    from botyard.model.sensors import LaserSpec, SonarSpec
    from botyard.sim.simulation import Robot, Simulation
    from botyard.worlds.worlds import Worlds

# Module that defines each public name; it is imported on the first use of the name.
_MODULE_OF = {
    "BoxObject": "model.obstacles",
    "DynamicsSpec": "model.dynamics",
    "Raster": "model.raster",
    "Returns": "model.obstacles",
    "CommandSpec": "model.robot",
    "MotionLimits": "model.kinematics",
    "OdometryDrift": "model.robot",
    "MapBuilder": "model.mapbuilder",
    "Axes": "model.kinematics",
    "ArgumentError": "errors",
    "BotyardError": "errors",
    "Budget": "formats.budget",
    "BudgetError": "errors",
    "CommandError": "errors",
    "PlacementWarning": "errors",
    "FormatError": "errors",
    "LaserScan": "model.readings",
    "LaserSpec": "model.sensors",
    "MapError": "errors",
    "ModelError": "errors",
    "Pose": "geometry",
    "Robot": "sim.simulation",
    "RobotSpec": "model.robot",
    "Scene": "model.scene",
    "Simulation": "sim.simulation",
    "SonarReadings": "model.readings",
    "SonarSpec": "model.sensors",
    "StateError": "errors",
    "Twist": "geometry",
    "UnknownNameError": "errors",
    "WorldError": "errors",
    "WorldFaultError": "errors",
    "Worlds": "worlds.worlds",
    "load_laser": "model.library",
    "load_robot": "formats.models",
    "load_scene": "formats.registry",
    "robot_names": "model.library",
    "serve": "app.serve",
}

# Module that implements each extension (`botyard.api.extensions`), imported when the
# extension is first called.
provide(
    {
        "employ": "botyard.controllers.assignment",
        "is_controller": "botyard.controllers.registry",
        "make_history": "botyard.recording.history",
        "png": "botyard.pictures.rendering",
        "program_of": "botyard.controllers.registry",
        "record": "botyard.recording.start",
        "render": "botyard.pictures.rendering",
        "robot_png": "botyard.pictures.rendering",
        "scene_png": "botyard.pictures.rendering",
        "show": "botyard.ui.show",
    }
)

__all__ = [
    "ArgumentError",
    "Axes",
    "BotyardError",
    "BoxObject",
    "Budget",
    "BudgetError",
    "CommandError",
    "CommandSpec",
    "DynamicsSpec",
    "FormatError",
    "LaserScan",
    "LaserSpec",
    "MapBuilder",
    "MapError",
    "ModelError",
    "MotionLimits",
    "OdometryDrift",
    "PlacementWarning",
    "Pose",
    "Raster",
    "Returns",
    "Robot",
    "RobotSpec",
    "Scene",
    "Simulation",
    "SonarReadings",
    "SonarSpec",
    "StateError",
    "Twist",
    "UnknownNameError",
    "WorldError",
    "WorldFaultError",
    "Worlds",
    "__version__",
    "load_laser",
    "load_robot",
    "load_scene",
    "robot_names",
    "serve",
]


# Hide `__getattr__` from type checkers, which would otherwise accept any attribute.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "recording":
            return importlib.import_module("botyard.recording")
        if name in _MODULE_OF:
            value = getattr(
                importlib.import_module(f"botyard.{_MODULE_OF[name]}"), name
            )
            globals()[name] = value
            return value

        if name == "DoubtWarning":
            return getattr(importlib.import_module("botyard.errors"), name)
        raise AttributeError(f"module 'botyard' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names of the public API."""
    return sorted(__all__)
