"""Elements and attributes of URDF files, and the use of each.

Elements within ``<gazebo>`` are elements of SDF (`sdfkeys`).

Source: the URDF specification (http://wiki.ros.org/urdf/XML).
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, left_out, read, silent

_FLAT = "the world is flat"
_SIMPLE = "a robot model has no mechanics"
_DRAWING = "affects only the drawing"

KEYS: Final = Keys(
    {
        "robot": {
            "name": read("name of the model"),
            "link": read("bodies"),
            "joint": read("places of bodies; wheels and steered wheels"),
            "gazebo": read("plugins of drives, and sensors"),
            "ros2_control": read("joints that are commanded"),
            "transmission": read("joints that are commanded"),
            "sensor": read("lasers"),
            "version": left_out("any version is read", "1.0", "1.1"),
            "material": silent(_DRAWING),
        },
        "link": {
            "name": read("name that joints refer to"),
            "collision": read("shapes of the body"),
            "inertial": left_out("robots have no mass; see [dynamics] of robot files"),
            "visual": silent("shapes that nothing hits affect only the drawing"),
            "type": silent(_SIMPLE),
        },
        "collision": {
            "origin": read("pose in the link"),
            "geometry": read("shape"),
            **dict.fromkeys(
                ("name", "group", "verbose", "surface", "contact_coefficients"),
                silent("shapes have no names, groups and surfaces"),
            ),
        },
        "geometry": {
            "box": read("its part between the floor and the lidar, from above"),
            "cylinder": read("as a polygon"),
            "sphere": read("as a polygon"),
            "capsule": read("as a polygon"),
            "mesh": read("STL files next to the robot's; others are left out"),
        },
        "shape": {
            "size": read("sides of a box, m"),
            "radius": read("radius, m"),
            "length": read("length along z, m"),
            "filename": read("STL file of a mesh"),
            "scale": read("factors of a mesh"),
        },
        "origin": {
            "xyz": read("position, m"),
            "rpy": read("roll, pitch and yaw, rad"),
        },
        "joint": {
            "name": read("name that drives refer to"),
            "type": read("all but `fixed` stand at position 0"),
            "origin": read("pose of the child in the parent"),
            "parent": read("link that carries the other"),
            "child": read("link that is carried"),
            "axis": read(
                "wheels turn about level axes, steered wheels about upright ones"
            ),
            "limit": read("steering limit, and top speed of wheels"),
            "mimic": left_out("joints other than wheels do not move"),
            **dict.fromkeys(
                ("dynamics", "safety_controller", "calibration"), silent(_SIMPLE)
            ),
        },
        "limit": {
            "lower": read("steering limit to the right, rad"),
            "upper": read("steering limit to the left, rad"),
            "velocity": read("rate of the steering angle, or of a wheel, rad/s"),
            **dict.fromkeys(
                ("effort", "acceleration", "deceleration", "jerk"), silent(_SIMPLE)
            ),
        },
        "gazebo": {
            "reference": read("link of a sensor"),
            "plugin": read("drive, if it is one of botyard's kinds"),
            "sensor": read("lasers"),
            "robot_file": read("values that URDF has no place for; botyard writes it"),
            **dict.fromkeys(
                (
                    "mu1",
                    "mu2",
                    "mu",
                    "kp",
                    "kd",
                    "fdir1",
                    "minDepth",
                    "min_depth",
                    "maxVel",
                    "max_vel",
                    "maxContacts",
                    "max_contacts",
                    "dampingFactor",
                    "selfCollide",
                    "self_collide",
                    "provideFeedback",
                    "implicitSpringDamper",
                    "springReference",
                    "springStiffness",
                    "stopCfm",
                    "stopErp",
                    "laserRetro",
                    "disableFixedJointLumping",
                    "preserveFixedJoint",
                    "canonicalBody",
                    "collision",
                ),
                silent(_SIMPLE),
            ),
            **dict.fromkeys(
                ("static", "gravity", "turnGravityOff", "enable_wind", "pose"),
                left_out(_FLAT),
            ),
            **dict.fromkeys(("material", "visual", "light"), silent(_DRAWING)),
        },
        "ros2_control": {
            "joint": read("commanded, if it has a `command_interface`"),
            **dict.fromkeys(
                (
                    "name",
                    "type",
                    "hardware",
                    "sensor",
                    "gpio",
                    "transmission",
                    "rw_rate",
                    "is_async",
                    "async",
                ),
                silent("botyard drives the wheels itself"),
            ),
        },
        "transmission": {
            "joint": read("commanded"),
            **dict.fromkeys(
                ("name", "type", "actuator"),
                silent("botyard drives the wheels itself"),
            ),
        },
    }
)

__all__ = ["KEYS"]
