"""The messages and services of simulation_interfaces 1.0, ROS 2's standard for simulators, as far as they are supported.

Names of fields, their order and the codes are those of the package's definitions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

PACKAGE: Final = "simulation_interfaces"

MESSAGES: Final = {
    "Result": "uint8 result\nstring error_message",
    "Bounds": "uint8 type\ngeometry_msgs/Vector3[] points",
    "EntityCategory": "uint8 category",
    "TagsFilter": "string[] tags\nuint8 filter_mode",
    "EntityFilters": (
        "string filter\nsimulation_interfaces/EntityCategory[] categories\nsimulation_interfaces/TagsFilter tags\n"
        "simulation_interfaces/Bounds bounds"
    ),
    "EntityInfo": "simulation_interfaces/EntityCategory category\nstring description\nstring[] tags",
    "EntityState": (
        "std_msgs/Header header\ngeometry_msgs/Pose pose\ngeometry_msgs/Twist twist\ngeometry_msgs/Accel acceleration"
    ),
    "NamedPose": "string name\nstring description\nstring[] tags\ngeometry_msgs/Pose pose",
    "SimulationState": "uint8 state",
    "SimulatorFeatures": "uint16[] features\nstring[] spawn_formats\nstring custom_info",
    "Spawnable": "string uri\nstring description\nsimulation_interfaces/Bounds spawn_bounds",
}
_RESULT: Final = "simulation_interfaces/Result result"
SERVICES: Final = {
    "DeleteEntity": ("string entity", _RESULT),
    "GetEntities": ("simulation_interfaces/EntityFilters filters", f"{_RESULT}\nstring[] entities"),
    "GetEntitiesStates": (
        "simulation_interfaces/EntityFilters filters",
        f"{_RESULT}\nstring[] entities\nsimulation_interfaces/EntityState[] states",
    ),
    "GetEntityBounds": ("string entity", f"{_RESULT}\nsimulation_interfaces/Bounds bounds"),
    "GetEntityInfo": ("string entity", f"{_RESULT}\nsimulation_interfaces/EntityInfo info"),
    "GetEntityState": ("string entity", f"{_RESULT}\nsimulation_interfaces/EntityState state"),
    "GetNamedPoses": ("simulation_interfaces/TagsFilter tags", f"{_RESULT}\nsimulation_interfaces/NamedPose[] poses"),
    "GetSimulationState": ("", f"simulation_interfaces/SimulationState state\n{_RESULT}"),
    "GetSimulatorFeatures": ("", "simulation_interfaces/SimulatorFeatures features"),
    "GetSpawnables": ("string[] sources", f"{_RESULT}\nsimulation_interfaces/Spawnable[] spawnables"),
    "ResetSimulation": ("uint8 scope", _RESULT),
    "SetEntityState": ("string entity\nsimulation_interfaces/EntityState state", _RESULT),
    "SetSimulationState": ("simulation_interfaces/SimulationState state", _RESULT),
    "SpawnEntity": (
        "string name\nbool allow_renaming\nstring uri\nstring resource_string\nstring entity_namespace\n"
        "geometry_msgs/PoseStamped initial_pose",
        f"{_RESULT}\nstring entity_name",
    ),
    "StepSimulation": ("uint64 steps", _RESULT),
}


class Code(IntEnum):
    """Result codes."""

    FEATURE_UNSUPPORTED = 0
    OK = 1
    NOT_FOUND = 2
    INCORRECT_STATE = 3
    OPERATION_FAILED = 4
    ALREADY_IN_TARGET_STATE = 101  # of SetSimulationState
    NAME_NOT_UNIQUE = 101  # of SpawnEntity, as are those that follow
    NAME_INVALID = 102
    NO_RESOURCE = 104
    NAMESPACE_INVALID = 105
    INVALID_POSE = 109


class Time(IntEnum):
    """States of the simulation."""

    STOPPED = 0
    PLAYING = 1
    PAUSED = 2
    QUITTING = 3


class Feature(IntEnum):
    """Features of a simulator."""

    SPAWNING = 0
    DELETING = 1
    NAMED_POSES = 2
    ENTITY_TAGS = 4
    ENTITY_BOUNDS = 5
    ENTITY_BOUNDS_BOX = 6
    ENTITY_CATEGORIES = 8
    ENTITY_STATE_GETTING = 10
    ENTITY_STATE_SETTING = 11
    ENTITY_INFO_GETTING = 12
    SPAWNABLES = 14
    SIMULATION_RESET = 20
    SIMULATION_RESET_STATE = 22
    SIMULATION_RESET_SPAWNED = 23
    SIMULATION_STATE_GETTING = 24
    SIMULATION_STATE_SETTING = 25
    SIMULATION_STATE_PAUSE = 26
    STEP_SIMULATION_SINGLE = 31
    STEP_SIMULATION_MULTIPLE = 32


CHANGING: Final = frozenset(
    [
        Feature.SPAWNING, Feature.DELETING, Feature.ENTITY_STATE_SETTING, Feature.SIMULATION_RESET, Feature.SIMULATION_RESET_STATE,
        Feature.SIMULATION_RESET_SPAWNED, Feature.SIMULATION_STATE_SETTING, Feature.SIMULATION_STATE_PAUSE,
        Feature.STEP_SIMULATION_SINGLE, Feature.STEP_SIMULATION_MULTIPLE,
    ]
)  # fmt: skip
"""Features that change the world."""

ALL_BOUNDS, BOX = 0, 1
"""Types of bounds: none, and a box given by two opposite corners."""
OBJECT, ROBOT = 0, 1
"""Categories of entities."""
SCOPE_TIME, SCOPE_STATE, SCOPE_SPAWNED = 1, 2, 4
"""Scopes of a reset, as bits; 0: everything."""
ANY_TAG, ALL_TAGS = 0, 1
"""How tags are filtered."""
