"""Messages, services and actions of simulation_interfaces.

Names of fields, their order and the constants are taken from the package's definitions
(ros-simulation/simulation_interfaces). There are two lines of versions: 1.x in Humble,
Jazzy and Kilted, and 2.x in Lyrical and Rolling. The definitions are of 1.4, which
equal 1.5 and 1.6, and of 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

PACKAGE: Final = "simulation_interfaces"
SECOND_LINE: Final = frozenset(["lyrical", "rolling"])
"""Distributions of ROS 2 that have version 2.1; other distributions have 1.x."""

_MESSAGES: Final = {
    "Result": "uint8 result\nstring error_message",
    "Bounds": "uint8 type\ngeometry_msgs/Vector3[] points",
    "EntityCategory": "uint8 category",
    "TagsFilter": "string[] tags\nuint8 filter_mode",
    "EntityFilters": (
        "string filter\nsimulation_interfaces/EntityCategory[] "
        "categories\nsimulation_interfaces/TagsFilter tags\n"
        "simulation_interfaces/Bounds bounds"
    ),
    "EntityInfo": "simulation_interfaces/EntityCategory category\nstring "
    "description\nstring[] tags",
    "EntityState": (
        "std_msgs/Header header\ngeometry_msgs/Pose pose\ngeometry_msgs/Twist "
        "twist\ngeometry_msgs/Accel acceleration"
    ),
    "NamedPose": "string name\nstring description\nstring[] tags\ngeometry_msgs/Pose pose",
    "Resource": "string uri\nstring resource_string",
    "SimulationState": "uint8 state",
    "SimulatorFeatures": "uint16[] features\nstring[] spawn_formats\nstring custom_info",
    "SpawnEntity": (
        "string name\nbool allow_renaming\nsimulation_interfaces/Resource "
        "entity_resource\nstring entity_namespace\n"
        "geometry_msgs/PoseStamped initial_pose"
    ),
    "SpawnResult": "simulation_interfaces/Result result\nstring entity_name",
    "Spawnable": "string uri\nstring description\nsimulation_interfaces/Bounds spawn_bounds",
    "WorldResource": "string name\nsimulation_interfaces/Resource "
    "world_resource\nstring description\nstring[] tags",
}
_MESSAGES_2: Final = {
    "Spawnable": (
        "simulation_interfaces/Resource entity_resource\nstring "
        "description\nsimulation_interfaces/Bounds spawn_bounds"
    ),
}
_RESULT: Final = "simulation_interfaces/Result result"
_ASSETS: Final = (
    "bool fail_on_unsupported_element\nbool ignore_missing_or_unsupported_assets"
)
_SPAWNED: Final = "string entity_namespace\ngeometry_msgs/PoseStamped initial_pose"
_SERVICES: Final = {
    "DeleteEntity": ("string entity", _RESULT),
    "GetAvailableWorlds": (
        "string[] additional_sources\nsimulation_interfaces/TagsFilter "
        "filter\nbool offline_only\nbool continue_on_error",
        f"{_RESULT}\nsimulation_interfaces/WorldResource[] worlds",
    ),
    "GetCurrentWorld": ("", f"{_RESULT}\nsimulation_interfaces/WorldResource world"),
    "GetEntities": (
        "simulation_interfaces/EntityFilters filters",
        f"{_RESULT}\nstring[] entities",
    ),
    "GetEntitiesStates": (
        "simulation_interfaces/EntityFilters filters",
        f"{_RESULT}\nstring[] entities\nsimulation_interfaces/EntityState[] states",
    ),
    "GetEntityBounds": (
        "string entity",
        f"{_RESULT}\nsimulation_interfaces/Bounds bounds",
    ),
    "GetEntityInfo": (
        "string entity",
        f"{_RESULT}\nsimulation_interfaces/EntityInfo info",
    ),
    "GetEntityState": (
        "string entity",
        f"{_RESULT}\nsimulation_interfaces/EntityState state",
    ),
    "GetNamedPoseBounds": (
        "string name",
        f"{_RESULT}\nsimulation_interfaces/Bounds bounds",
    ),
    "GetNamedPoses": (
        "simulation_interfaces/TagsFilter tags",
        f"{_RESULT}\nsimulation_interfaces/NamedPose[] poses",
    ),
    "GetSimulationState": (
        "",
        f"simulation_interfaces/SimulationState state\n{_RESULT}",
    ),
    "GetSimulatorFeatures": ("", "simulation_interfaces/SimulatorFeatures features"),
    "GetSpawnables": (
        "string[] sources",
        f"{_RESULT}\nsimulation_interfaces/Spawnable[] spawnables",
    ),
    "LoadWorld": (
        f"string uri\nstring resource_string\n{_ASSETS}",
        f"{_RESULT}\nsimulation_interfaces/WorldResource world",
    ),
    "ResetSimulation": ("uint8 scope", _RESULT),
    "SetEntityInfo": ("string entity\nsimulation_interfaces/EntityInfo info", _RESULT),
    "SetEntityState": (
        "string entity\nsimulation_interfaces/EntityState state",
        _RESULT,
    ),
    "SetSimulationState": ("simulation_interfaces/SimulationState state", _RESULT),
    "SpawnEntities": (
        "simulation_interfaces/SpawnEntity[] spawn_requests",
        f"{_RESULT}\nsimulation_interfaces/SpawnResult[] results",
    ),
    "SpawnEntity": (
        f"string name\nbool allow_renaming\nstring uri\nstring resource_string\n{_SPAWNED}",
        f"{_RESULT}\nstring entity_name",
    ),
    "StepSimulation": ("uint64 steps", _RESULT),
    "UnloadWorld": ("", _RESULT),
}
_SERVICES_2: Final = {
    "LoadWorld": (
        f"simulation_interfaces/Resource world_resource\n{_ASSETS}",
        _SERVICES["LoadWorld"][1],
    ),
    "SetEntityState": (
        f"{_SERVICES['SetEntityState'][0]}\nbool set_pose\nbool set_twist\nbool set_acceleration",
        _RESULT,
    ),
    "SpawnEntity": (
        "string name\nbool allow_renaming\nsimulation_interfaces/Resource "
        f"entity_resource\n{_SPAWNED}",
        _SERVICES["SpawnEntity"][1],
    ),
}
ACTIONS: Final = {
    "SimulateSteps": (
        "uint64 steps",
        _RESULT,
        "uint64 completed_steps\nuint64 remaining_steps",
    ),
}
"""Goals, results and feedback of actions."""


def messages(distro: str) -> Mapping[str, str]:
    """Return the definitions of the messages in a distribution of ROS 2, by name.

    The definitions are in the order of dependency.

    Parameters
    ----------
    distro : str
        Distribution of ROS 2. One that is not in `SECOND_LINE` has version 1.x.
    """
    return _MESSAGES | _MESSAGES_2 if distro in SECOND_LINE else _MESSAGES


def services(distro: str) -> Mapping[str, tuple[str, str]]:
    """Return requests and responses of the services, by name.

    Parameters
    ----------
    distro : str
        Distribution of ROS 2.

    Returns
    -------
    mapping of str to (str, str)
        Definitions of request and response by the service's name without the package.
    """
    return _SERVICES | _SERVICES_2 if distro in SECOND_LINE else _SERVICES


class Code(IntEnum):
    """Result codes.

    Codes above 100 belong to single services, so that different services use the same
    number for different results.
    """

    FEATURE_UNSUPPORTED = 0
    OK = 1
    NOT_FOUND = 2
    INCORRECT_STATE = 3
    OPERATION_FAILED = 4
    # Results of SpawnEntity and SpawnEntities.
    NAME_NOT_UNIQUE = 101
    NAME_INVALID = 102
    UNSUPPORTED_FORMAT = 103
    NO_RESOURCE = 104
    NAMESPACE_INVALID = 105
    RESOURCE_PARSE_ERROR = 106
    INVALID_POSE = 109
    ENTITIES_SPAWN_FAILED = 150
    # Results of SetEntityState.
    STATE_INVALID_POSE = 101
    # Results of SetSimulationState.
    ALREADY_IN_TARGET_STATE = 101
    STATE_TRANSITION_ERROR = 102
    # Results of GetCurrentWorld and UnloadWorld.
    NO_WORLD_LOADED = 101
    # Results of GetAvailableWorlds.
    DEFAULT_SOURCES_FAILED = 101
    # Results of LoadWorld.
    WORLD_UNSUPPORTED_FORMAT = 101
    WORLD_NO_RESOURCE = 102
    WORLD_PARSE_ERROR = 103


class Refused(Exception):
    """Error of a request that the simulator refuses, with the code of the response.

    Parameters
    ----------
    code : Code
        Result code of the response.
    text : str
        Error message of the response.
    """

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


class Time(IntEnum):
    """States of the simulation."""

    STOPPED = 0
    PLAYING = 1
    PAUSED = 2
    QUITTING = 3
    NO_WORLD = 4
    LOADING_WORLD = 5


class Category(IntEnum):
    """Categories of entities."""

    OBJECT = 0
    ROBOT = 1
    HUMAN = 2
    DYNAMIC_OBJECT = 4
    STATIC_OBJECT = 5


class Shape(IntEnum):
    """Types of bounds.

    The points of the four types are: none; two opposite corners; the corners of a
    convex hull; a centre, and a point whose x is the radius.
    """

    EMPTY = 0
    BOX = 1
    CONVEX_HULL = 2
    SPHERE = 3


class Feature(IntEnum):
    """Features of the standard that this simulator has."""

    SPAWNING = 0
    DELETING = 1
    NAMED_POSES = 2
    POSE_BOUNDS = 3
    ENTITY_TAGS = 4
    ENTITY_BOUNDS = 5
    ENTITY_BOUNDS_BOX = 6
    ENTITY_BOUNDS_CONVEX = 7
    ENTITY_CATEGORIES = 8
    ENTITY_STATE_GETTING = 10
    ENTITY_STATE_SETTING = 11
    ENTITY_INFO_GETTING = 12
    ENTITY_INFO_SETTING = 13
    SPAWNABLES = 14
    SIMULATION_RESET = 20
    SIMULATION_RESET_STATE = 22
    SIMULATION_RESET_SPAWNED = 23
    SIMULATION_STATE_GETTING = 24
    SIMULATION_STATE_SETTING = 25
    SIMULATION_STATE_PAUSE = 26
    STEP_SIMULATION_SINGLE = 31
    STEP_SIMULATION_MULTIPLE = 32
    STEP_SIMULATION_ACTION = 33
    WORLD_LOADING = 40
    WORLD_RESOURCE_STRING = 41
    WORLD_TAGS = 42
    WORLD_UNLOADING = 43
    WORLD_INFO_GETTING = 44
    AVAILABLE_WORLDS = 45
    SPAWNING_ENTITIES = 50


CHANGING: Final = frozenset(
    [
        Feature.SPAWNING,
        Feature.DELETING,
        Feature.ENTITY_STATE_SETTING,
        Feature.ENTITY_INFO_SETTING,
        Feature.SIMULATION_RESET,
        Feature.SIMULATION_RESET_STATE,
        Feature.SIMULATION_RESET_SPAWNED,
        Feature.SIMULATION_STATE_SETTING,
        Feature.SIMULATION_STATE_PAUSE,
        Feature.STEP_SIMULATION_SINGLE,
        Feature.STEP_SIMULATION_MULTIPLE,
        Feature.STEP_SIMULATION_ACTION,
        Feature.WORLD_LOADING,
        Feature.WORLD_RESOURCE_STRING,
        Feature.WORLD_UNLOADING,
        Feature.SPAWNING_ENTITIES,
    ]
)
"""Features that change the world."""

SCOPE_TIME, SCOPE_STATE, SCOPE_SPAWNED, SCOPE_ALL = 1, 2, 4, 255
"""Scopes of a reset, as bits; 0 means `SCOPE_ALL`."""
ANY_TAG, ALL_TAGS = 0, 1
"""Modes of a filter of tags."""
