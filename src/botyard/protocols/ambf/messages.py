"""Messages of ``ambf_msgs`` in its three generations: State and Command.

Peers compare MD5 sums of definitions, so each program uses one generation. Type names
are the same in all generations. ``master`` (2019–2020) has only objects and the world,
``1.0`` adds a type for each kind of object, and ``2.0`` an identifier in every State.
Source: reference ambf-messages.md §1, §2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from botyard.errors import WorldError

PACKAGE: Final = "ambf_msgs"
GENERATIONS: Final = ("master", "1.0", "2.0")
FORCE, POSITION, VELOCITY = 0, 1, 2
"""Values of ``RigidBodyCmd.cartesian_cmd_type`` and of ``joint_cmds_types``."""

_HEADER: Final = "std_msgs/Header header"
_STEP: Final = "uint32 sim_step"
_IDENTIFIER: Final = "std_msgs/String identifier"
_NAME: Final = "std_msgs/String name"
_TIMES: Final = "float32 wall_time\nfloat32 sim_time"
_MASS: Final = "float32 mass\ngeometry_msgs/Point pInertia\ngeometry_msgs/Pose pose"
_TYPE_PARENT: Final = "std_msgs/String type\nstd_msgs/String parent_name"
_POSE: Final = "geometry_msgs/Pose pose"
_WRENCH: Final = "geometry_msgs/Wrench wrench"
_PUBLISH: Final = (
    "bool publish_children_names\nbool publish_joint_names\nbool "
    "publish_joint_positions"
)


def _lines(*parts: str) -> str:
    return "\n".join(p for p in parts if p)


def definitions(generation: str) -> Mapping[str, str]:
    """Return the definitions of all message types, by names such as ``ambf_msgs/ObjectState``.

    Parameters
    ----------
    generation : str
        One of `GENERATIONS`.

    Raises
    ------
    WorldError
        The generation is unknown.
    """
    if generation not in GENERATIONS:
        raise WorldError(
            f'AMBF: expected a generation of {", ".join(GENERATIONS)}, found "{generation}"'
        )

    new = generation == "2.0"
    identifier = _IDENTIFIER if new else ""

    identity = _lines(identifier, _NAME)

    object_state = _lines(
        _HEADER,
        _STEP,
        identity,
        _TIMES,
        _MASS,
        _WRENCH,
        "string userdata_description",
        "string[] children_names",
        "string[] joint_names",
        "float32[] userdata",
        "float32[] joint_positions",
    )

    object_command = _lines(
        _HEADER,
        "bool enable_position_controller",
        _POSE,
        _WRENCH,
        "float32[] joint_cmds",
        "bool[] position_controller_mask",
        _PUBLISH,
    )

    world_state = _lines(
        _HEADER,
        "uint64 graphics_loop_freq" if new else "",
        "uint64 dynamic_loop_freq",
        "uint8 n_devices",
        _STEP,
        _TIMES,
    )
    world_command = "bool enable_step_throttling\nbool step_clock\nuint8 n_skip_steps"

    found = {
        "ObjectState": object_state,
        "ObjectCmd": object_command,
        "WorldState": world_state,
        "WorldCmd": world_command,
    }

    # The first generation has no further types of objects.
    if generation == "master":
        return {f"{PACKAGE}/{name}": text for name, text in found.items()}

    placed = _lines(
        _HEADER, _STEP, "std_msgs/String parent_name", identity, _TIMES, _POSE
    )
    attached = _lines(_HEADER, _STEP, _TYPE_PARENT, identity, _TIMES, _POSE)
    pose_command = _lines(_HEADER, "bool enable_position_controller", _POSE)

    by_sensor = "bool use_sensor_data\nstd_msgs/String sensor_identifier" if new else ""

    found |= {
        "SoftBodyState": object_state,
        "SoftBodyCmd": object_command,
        "RigidBodyState": _lines(
            _HEADER,
            _STEP,
            identity,
            _TIMES,
            _MASS,
            "geometry_msgs/Twist twist",
            _WRENCH,
            "string[] children_names",
            "string[] joint_names",
            "float32[] joint_positions",
            "float32[] joint_velocities",
            "float32[] joint_efforts",
        ),
        "RigidBodyCmd": _lines(
            _HEADER,
            f"int8 TYPE_FORCE={FORCE}",
            f"int8 TYPE_POSITION={POSITION}",
            f"int8 TYPE_VELOCITY={VELOCITY}",
            "int8 cartesian_cmd_type",
            _POSE,
            _WRENCH,
            "geometry_msgs/Twist twist",
            "int8[] joint_cmds_types",
            "float32[] joint_cmds",
            _PUBLISH,
        ),
        "CameraState": placed,
        "CameraCmd": pose_command,
        "LightState": placed,
        "LightCmd": pose_command,
        "SensorState": _lines(
            attached,
            "uint32 count",
            "bool[] triggered",
            "float32[] range",
            "float32[] measurement",
            "std_msgs/String[] sensed_objects",
            "uint8[] sensed_objects_map",
        ),
        "SensorCmd": _lines(_HEADER, "bool[] actuate"),
        "ActuatorState": _lines(attached, "bool actuated"),
        "ActuatorCmd": _lines(
            _HEADER,
            "bool actuate",
            "std_msgs/String body_name",
            "bool use_offset",
            "geometry_msgs/Pose body_offset",
            by_sensor,
        ),
        "VehicleState": _lines(
            _HEADER,
            _STEP,
            identity,
            _TIMES,
            _MASS,
            "int8 wheel_count",
            "geometry_msgs/Pose[] wheel_offsets",
        ),
        "VehicleCmd": _lines(
            _HEADER,
            "geometry_msgs/Wrench chassis_wrench",
            "float32[] wheel_steering",
            "float32[] wheel_power",
            "float32[] wheel_brake",
            "bool brake",
        ),
    }
    return {f"{PACKAGE}/{name}": text for name, text in found.items()}


__all__ = ["GENERATIONS", "PACKAGE", "definitions"]
