"""AMBF description files: planar content is read, the rest is reported."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from botyard.errors import FormatError
from botyard.formats.adf import parse_adf, read_adf
from botyard.formats.base import Options, Source
from botyard.model.dynamics import Gains
from botyard.model.objects import HIGH, Described, Offer
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

FILE = Path(__file__).parents[1] / "data" / "ambf.yaml"


def parse(text: str) -> tuple[Described, list[str]]:
    notes: list[str] = []
    return parse_adf(Source("x.yaml", text.encode()), Options(warn=notes.append)), notes


def one(body: str, more: str = "") -> tuple[Described, list[str]]:
    return parse(
        f"bodies: [BODY b]\n{more}\nBODY b:\n"
        + "\n".join(f"  {line}" for line in body.splitlines())
    )


def test_the_whole_file() -> None:
    notes: list[str] = []
    d = read_adf(FILE, Options(warn=notes.append))
    assert notes == []
    assert [b.name for b in d.bodies] == ["robot1", "box1", "kin", "chassis", "wall"]
    assert d.carried == ("wheel_l", "wheel_r")
    robot, box, kin = d.bodies[:3]
    assert robot.dynamics is not None
    assert (robot.dynamics.mass, robot.dynamics.inertia) == (2.0, 0.5)
    assert (robot.length, robot.width) == pytest.approx((0.6, 0.4))
    assert box.dynamics is None
    assert box.pose == (-5.0, 5.0, 0.0)
    assert kin.dynamics is not None
    assert kin.dynamics.controller.linear == Gains(40.0, 25.0)
    assert kin.dynamics.controller.force
    assert (
        kin.dynamics.friction,
        kin.dynamics.restitution,
        kin.dynamics.angular_damping,
    ) == (0.4, 0.5, 0.1)
    assert d.offers["wall"].passive
    assert d.offers["kin"].children
    left = d.joints[0]
    assert (left.name, left.parent, left.child, left.unlimited, left.planar) == (
        "left_wheel",
        "robot1",
        "wheel_l",
        True,
        False,
    )
    assert left.inertia == 0.02, "about the axis"
    assert d.sensors[0].range == 5.0
    assert d.sensors[0].rays[1] == pytest.approx((0.0, 0.25, math.pi / 2))
    assert d.sensors[0].offer.namespace == "/ambf/env/sensors/"
    rover = d.vehicles[0]
    assert [w.steers for w in rover.wheels] == [True, True, False, False]
    assert (rover.max_power, rover.max_brake, rover.steering) == (
        50.0,
        80.0,
        (-0.5, 0.5),
    )
    camera, light = d.views
    assert (camera.position, camera.is_light) == ((4.0, 0.0, 2.0), False)
    assert camera.orientation == pytest.approx((0.0, 0.0, 1.0, 0.0), abs=1e-12)
    assert camera.parameters == {"near_plane": 0.01, "far_plane": 10}
    assert light.is_light
    assert d.actuators[0].at == (0.3, 0.0, 0.0)


def test_shapes_from_above() -> None:
    d, notes = one(
        "mass: 1\nshape: Cylinder\ngeometry: {radius: 0.2, height: 1.0, axis: x}"
    )
    assert (d.bodies[0].length, d.bodies[0].width) == (1.0, 0.4)
    assert not notes
    d, notes = one(
        "compound collision shape:\n- {shape: Box, geometry: {x: 1, y: 0.2, z: "
        "1}, offset: {position: {x: 0.5, y: 0, z: 0}}}\n"
        "- {shape: Sphere, geometry: {radius: 0.1}}"
    )
    assert len(d.bodies[0].parts) == 2
    assert max(x for x, _ in d.bodies[0].parts[0]) == pytest.approx(1.0)
    d, notes = one("mesh: thing.STL")
    assert notes == [
        "x.yaml: BODY b: expected a shape other than a mesh, found none: the body becomes a box of 0.5 m"
    ]
    d, notes = one(
        "shape: Box\ngeometry: {x: 1, y: 1, z: 1}\nlocation: {orientation: {r: "
        "0.3, p: 0, y: 1}}\nkinematic chain: 4"
    )
    assert d.bodies[0].pose.th == pytest.approx(1.0)
    assert notes == [
        "x.yaml: BODY b: location: roll and pitch are ignored",
        'x.yaml: BODY b: the key "kinematic chain" is ignored',
    ]


def test_names_namespaces_and_rates() -> None:
    text = "namespace: /lab\nbodies: [BODY a, BODY b]\n"
    text += (
        "BODY a: {name: my box, shape: Sphere, geometry: {radius: 1}, "
        "publish frequency: {low: 10, high: 500}}\n"
    )
    text += "BODY b: {name: my box, shape: Sphere, geometry: {radius: 1}, namespace: /other/}\n"
    d, _ = parse(text)
    assert [b.name for b in d.bodies] == ["mybox", "mybox2"]
    assert d.offers["mybox"] == Offer(namespace="/lab/", low=10.0, high=500.0)
    assert d.offers["mybox2"].namespace == "/other/"


def test_what_a_file_leaves_out_has_its_default() -> None:
    text = (
        "bodies: [BODY big box, BODY b]\njoints: [JOINT left wheel]\ncameras: "
        "[CAMERA c]\nlights: [LIGHT l]\nvehicles: [VEHICLE v]\n"
    )
    text += (
        "BODY big box: {shape: Sphere, geometry: {radius: 1}, location: "
        "{position: {x: 1}, orientation: {y: 0.5}}}\n"
    )
    text += (
        "BODY b: {mass: 1, shape: Sphere, geometry: {radius: 1}, publish "
        "frequency: {low: 0.1}}\n"
    )
    text += "JOINT left wheel: {parent: BODY big box, child: BODY b}\n"
    text += "CAMERA c: {location: {x: 3, z: 1}}\nLIGHT l: {location: {z: 2}}\n"
    text += (
        "VEHICLE v: {chassis: BODY b, wheels: [{offset: {x: 1}}], max engine "
        "power: 0, max brake power: 0}\n"
    )
    d, notes = parse(text)
    assert notes == [], "no roll, no pitch"
    assert [(b.name, tuple(b.pose)) for b in d.bodies] == [("bigbox", (1.0, 0.0, 0.5))]
    assert d.carried == ("b",)
    assert (d.offers["b"].low, d.offers["b"].high) == (0.1, HIGH)
    (joint,) = d.joints
    assert (joint.name, joint.planar, joint.unlimited, joint.damping) == (
        "left wheel",
        True,
        True,
        0.0,
    )
    camera, light = d.views
    assert camera.orientation == pytest.approx((0.0, 0.0, 1.0, 0.0)), (
        "it looks at the origin"
    )
    assert light.orientation == (0.0, 0.0, 0.0, 1.0)
    (rover,) = d.vehicles
    assert [wheel.steers for wheel in rover.wheels] == [False]
    assert (rover.max_power, rover.max_brake, rover.steering) == (0.0, 0.0, (-0.6, 0.6))


def test_moments_about_axes_of_any_length() -> None:
    text = (
        "bodies: [BODY a, BODY b]\njoints: [JOINT j]\nBODY a: {shape: Sphere, "
        "geometry: {radius: 1}}\n"
    )
    text += (
        "BODY b: {mass: 1, inertia: {ix: 0.1, iy: 0.2, iz: 0.4}, shape: "
        "Sphere, geometry: {radius: 1}}\n"
    )
    for axis, inertia, planar in (
        ("z: 1", 0.4, True),
        ("z: 3", 0.4, True),
        ("z: -3", 0.4, True),
        ("y: 2, z: 0", 0.2, False),
    ):
        (joint,) = parse(
            text + f"JOINT j: {{parent: BODY a, child: BODY b, parent axis: "
            f"{{{axis}}}, controller: {{D: 2}}}}"
        )[0].joints
        assert joint.gains == Gains(10.0, 2.0)
        assert (joint.inertia, joint.planar) == (pytest.approx(inertia), planar)


def test_bodies_without_damping_have_none() -> None:
    d, notes = one("mass: 2\nshape: Sphere\ngeometry: {radius: 1}")
    body = d.bodies[0].dynamics
    assert notes == [] and body is not None
    assert (
        body.linear_damping,
        body.angular_damping,
        body.friction,
        body.restitution,
    ) == (0.0, 0.0, 0.5, 0.1)


def test_joints() -> None:
    text = (
        "bodies: [BODY a, BODY b]\njoints: [JOINT j]\nBODY a: {shape: Sphere, "
        "geometry: {radius: 1}}\n"
    )
    text += "BODY b: {mass: 2, shape: Sphere, geometry: {radius: 1}}\n"
    base = text + "JOINT j: {parent: BODY a, child: BODY b, "
    d, _ = parse(
        base + "type: prismatic, parent axis: {x: 0, y: 1, z: 0}, joint limits: {low: "
        "0, high: 0.4}, controller: {P: 5, D: 1}}"
    )
    (slide,) = d.joints
    assert (slide.slides, slide.planar, slide.low, slide.high, slide.unlimited) == (
        True,
        True,
        0.0,
        0.4,
        False,
    )
    assert slide.at.th == pytest.approx(math.pi / 2)
    assert (slide.inertia, slide.gains) == (2.0, Gains(5.0, 1.0))
    d, notes = parse(base + "type: spherical}")
    assert notes == [
        "x.yaml: JOINT j: joints of type spherical do not move in a plane: this one becomes a fixed joint"
    ]
    assert not d.joints[0].unlimited
    # Bullet supports these two kinds.
    for kind in ("revolute", "prismatic"):
        d, notes = parse(
            base + f"type: {kind}, joint limits: {{low: 0.25, high: -0.2}}}}"
        )
        assert (d.joints[0].unlimited, d.joints[0].low, d.joints[0].high) == (
            True,
            0.0,
            0.0,
        )
        assert notes == [
            "x.yaml: JOINT j: joint limits: 0.25 is above -0.2, so the joint has no limits"
        ]

    with pytest.raises(FormatError, match="expected revolute"):
        parse(base + "type: magic}")


def test_parametric_sensors() -> None:
    text = "bodies: [BODY a]\nsensors: [SENSOR s]\nBODY a: {shape: Sphere, geometry: {radius: 1}}\n"
    d, _ = parse(
        text + "SENSOR s: {parent: BODY a, range: 2, parametric: {resolution: 5, "
        "horizontal angle: 2.0, start offset: 0.5}}"
    )
    rays = d.sensors[0].rays
    assert [r.th for r in rays] == pytest.approx([-1.0, -0.5, 0.0, 0.5, 1.0])
    assert rays[2] == pytest.approx((0.5, 0.0, 0.0))
    with pytest.raises(FormatError, match="expected rays"):
        parse(text + "SENSOR s: {parent: BODY a}")
    up = "{direction: {x: 0, y: 0, z: 1}}"
    d, notes = parse(
        text + f"SENSOR s: {{parent: BODY a, array: [{up}, {{direction: {{x: 1}}}}]}}"
    )
    assert len(d.sensors[0].rays) == 1
    assert notes == ["x.yaml: SENSOR s: 1 vertical rays are ignored"]
    assert parse(text + f"SENSOR s: {{parent: BODY a, array: [{up}]}}")[0].sensors == ()
    d, notes = parse(text + "SENSOR s: {parent: BODY a, type: Contact}")
    assert d.sensors == ()
    assert "sensors of type contact are ignored" in notes[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected an AMBF description"),
        ("robots: []", "expected an AMBF description"),
        ("[1, 2]", "expected keys and values"),
        ("bodies: 3", "expected a list of names"),
        ("bodies: [BODY a]", '"BODY a" is listed, but not described'),
        ("bodies: [b]\nb: 4", "expected keys and values, found 4"),
        (
            "bodies: [b]\nb: {mass: heavy, shape: Sphere, geometry: {radius: 1}}",
            'expected a number, found "heavy"',
        ),
        (
            "bodies: [b]\nb: {mass: -1, shape: Sphere, geometry: {radius: 1}}",
            "expected a number from 0 to 1e",
        ),
        (
            "bodies: [b]\nb: {shape: Torus, geometry: {radius: 1}}",
            "expected a shape of",
        ),
        ("bodies: [b]\nb: {shape: Box}", "expected a geometry"),
        ("bodies: [b]\nb: {shape: Box, geometry: {x: 1}}", "expected y, a length"),
        (
            "bodies: [b]\nb: {passive: perhaps, shape: Sphere, geometry: {radius: 1}}",
            "expected true or false",
        ),
        ("bodies: [", "not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as error:
        parse(text)
    assert str(error.value).startswith("x.yaml")


def test_older_sensors_have_one_ray_from_where_they_are() -> None:
    text = (
        "bodies: [BODY a]\nsensors: [S]\nactuators: [A]\nBODY a: {shape: "
        "Sphere, geometry: {radius: 1}}\n"
    )
    text += (
        "S: {type: Proximity, parent: BODY a, range: 0.3, location: {x: "
        "-0.4, y: 0.1, z: 0}, direction: {x: 0, y: -1, z: 0}}\n"
    )
    d, notes = parse(text + "A: {parent: BODY a, location: {x: 0.2, y: 0.1, z: 0}}\n")
    assert notes == []
    assert d.sensors[0].rays == (pytest.approx((-0.4, 0.1, -math.pi / 2)),)
    assert d.actuators[0].at == (0.2, 0.1, 0.0)


BALL = "{mass: 1, shape: Sphere, geometry: {radius: 1}}"


@pytest.mark.parametrize("parent", ["BODY a", "/ambf/env/BODY a", "env/BODY a", "a"])
def test_parents_are_found_as_in_ambf(parent: str) -> None:
    text = (
        "bodies: [BODY a]\nsensors: [S]\nactuators: [A]\ncameras: "
        f"[C]\nlights: [L]\nvehicles: [V]\nBODY a: {BALL}\n"
    )
    text += (
        f"S: {{parent: {parent}, array: [{{direction: {{x: 1}}}}]}}\nA: "
        f"{{parent: {parent}}}\nC: {{parent: {parent}}}\n"
    )
    d, notes = parse(
        f"{text}L: {{parent: {parent}}}\nV: {{chassis: {parent}, wheels: [{{offset: {{x: 1}}}}]}}\n"
    )
    assert notes == []
    assert (d.sensors[0].parent, d.actuators[0].parent, d.vehicles[0].chassis) == (
        "a",
        "a",
        "a",
    )
    assert [view.parent for view in d.views] == ["a", "a"]


def test_what_names_a_body_that_is_not_there_is_left_out() -> None:
    text = (
        "bodies: [BODY a, BODY b]\nsensors: [S, T]\nactuators: [A]\ncameras: "
        f"[C]\njoints: [J]\nvehicles: [V]\nBODY a: {BALL}\n"
    )
    text += (
        f"BODY b: {BALL}\nS: {{parent: /other/BODY x, array: [{{direction: "
        f"{{x: 1}}}}]}}\nA: {{parent: x}}\nC: {{parent: x}}\n"
    )
    text += (
        "T: {array: [{direction: {x: 1}}]}\nJ: {parent: BODY x, child: BODY "
        "b}\nV: {chassis: x, wheels: [{offset: {x: 1}}]}\n"
    )
    d, notes = parse(text)
    assert [b.name for b in d.bodies] == ["a", "b"], "no joint carries the second one"
    assert (d.sensors, d.actuators, d.joints, d.vehicles, d.views, d.carried) == (
        (),
        (),
        (),
        (),
        (),
        (),
    )
    assert notes == [
        'x.yaml: J: parent: there is no body "BODY x": the object is left out',
        'x.yaml: S: parent: there is no body "/other/BODY x": the object is left out',
        'x.yaml: T: expected a body as its "parent", found none: the object is left out',
        'x.yaml: C: parent: there is no body "x": the object is left out',
        'x.yaml: V: chassis: there is no body "x": the object is left out',
        'x.yaml: A: parent: there is no body "x": the object is left out',
    ]


def test_what_a_joint_moves_carries_no_sensors() -> None:
    text = f"bodies: [BODY a, BODY b]\njoints: [J]\nsensors: [S]\nBODY a: {BALL}\nBODY b: {BALL}\n"
    text += (
        "J: {parent: BODY a, child: BODY b}\nS: {parent: BODY b, array: "
        "[{direction: {x: 1}}]}\n"
    )
    d, notes = parse(text)
    assert d.carried == ("b",) and d.sensors == ()
    assert notes == [
        'x.yaml: S: parent: botyard cannot mount objects on "b", which a joint moves: the object is left out'
    ]
    sim = Simulation(Scene(boxes=d.bodies))
    sim.core.describe(d)
    assert list(sim.core.descriptions.joints) == ["a"]


def test_an_endless_plane_is_left_out() -> None:
    floor = (
        "{collision shape: PLANE, collision geometry: {normal: {x: 0, y: 0, "
        "z: 1}, offset: 0.0}, location: {position: {z: -0.5}}}"
    )
    d, notes = parse(
        f"bodies: [BODY Floor, BODY a]\nBODY Floor: {floor}\nBODY a: {BALL}\n"
    )
    assert [b.name for b in d.bodies] == ["a"]
    assert notes == ["x.yaml: BODY Floor: an infinite plane is ignored"]
    d, notes = one(
        "compound collision shape:\n- {shape: Plane, geometry: {normal: {z: "
        "1}}}\n- {shape: Sphere, geometry: {radius: 0.1}}"
    )
    assert len(d.bodies[0].parts) == 1
    assert len(one("shape: Plane\ngeometry: {x: 2, y: 1}")[0].bodies[0].parts) == 1, (
        "a plane with lengths is a plate"
    )


def test_objects_may_refer_to_bodies_of_other_files() -> None:
    others: dict[str, str] = {}
    parse_adf(
        Source("a.yaml", f"bodies: [BODY a]\nBODY a: {BALL}\n".encode()),
        Options(),
        others,
    )
    text = (
        b"sensors: [S]\nS: {parent: /ambf/env/BODY a, array: [{direction: {x: 1}}]}\n"
    )
    assert parse_adf(Source("b.yaml", text), Options(), others).sensors[0].parent == "a"


def test_two_files_together() -> None:
    a, _ = one("shape: Sphere\ngeometry: {radius: 1}")
    both = a | read_adf(FILE)
    assert len(both.bodies) == 6
    assert both.joints == read_adf(FILE).joints
