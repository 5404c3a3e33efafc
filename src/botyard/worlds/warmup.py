"""Warm-up of all kernels: compile them, or load them from the cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from botyard.devices.devicereader import warm_up as warm_up_views
from botyard.devices.ranging import warm_up as warm_up_ranging
from botyard.engine.kernels.masses import move_masses
from botyard.engine.sharedstep import SharedStep
from botyard.engine.wallgrid import build_grid
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.processes.parallel import Workers
from botyard.sim.contacts import nearest
from botyard.sim.neighbours import nearby
from botyard.sim.simulation import Simulation
from botyard.worlds.sharedworld import SharedWorld
from botyard.worlds.worlds import Worlds


def warm_up(
    before_sensors: Callable[[], object] = lambda: None, *, masses: bool = True
) -> None:
    """Compile all kernels, or load them from the cache, by running a small world.

    Parameters
    ----------
    before_sensors : callable
        Called before range sensors are used. If another process compiles their kernels
        at the same time, the function can wait for it.
    masses : bool
        Whether to include the kernels of bodies with mass.
    """
    sim = Simulation(odometry_error="random_init")
    robot = sim.add_robot("p3dx", pose=Pose(2.0, 2.0, 0.0))
    sim.add_robot("box", pose=Pose(3.0, 1.0, 0.0))
    sim.step()
    sim.core.places.one_near(robot.spec, Pose(1.0, 1.0, 0.0))
    if masses:
        warm_up_masses()
    before_sensors()
    robot.laser.read()
    warm_up_views()

    # Building a grid with walls compiles the kernels of maps.
    sim.replace_scene(
        Scene(segments=np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 0.0, 4.0, 4.0]]))
    )


def warm_up_sensors_and_maps() -> None:
    """Run the part of `warm_up` that another process can do at the same time."""
    warm_up_ranging()
    warm_up_views()
    build_grid(Scene(segments=np.array([[0.0, 0.0, 4.0, 0.0]])))


def warm_up_masses() -> None:
    """Run the part of `warm_up` for bodies with mass."""
    sim = Simulation()
    sim.add_robot("box", "box", pose=Pose(3.0, 1.0, 0.0))
    sim.masses.set_dynamics("box", DynamicsSpec(mass=9.0))
    sim.step()


def warm_up_worlds() -> None:
    """Compile or load the kernels of `Worlds`, which no simulation needs."""
    scene = Scene(segments=np.array([[0.0, 0.0, 2.0, 0.0], [2.0, 0.0, 2.0, 2.0]]))
    # Two maps, because the choice of a map is a kernel that one map does not need.
    worlds = Worlds([scene, scene], "p3dx", 1)
    worlds.step()
    worlds.cast([[[1.0, 1.0]]], [[0.0]], range_max=1.0)
    worlds.sample_free()
    worlds.near_walls(reach=1.0)

    # One robot alone has no neighbours.
    nearby(np.zeros((1, 2, 3)), np.zeros((1, 2, 3)), 1)
    world = worlds.world(0)
    world.fleet.within(1.0)
    world.fleet.range_and_bearing(1.0)
    nearest(world.core, 0, 1.0)
    _warm_up_threads(world, worlds)
    crate = BoxObject(
        name="box",
        pose=Pose(1.0, 1.0),
        length=0.4,
        width=0.4,
        dynamics=DynamicsSpec(mass=1.0),
    )
    # Worlds with mass have a kernel of their own.
    Worlds(Scene(), "p3dx", 1, boxes=[crate], step=0.01).step()


def _warm_up_threads(sim: Simulation, worlds: Worlds) -> None:
    """Compile or load the kernels of steps of several threads, which large worlds need."""
    workers, engine = Workers(1, "kernels"), sim.core.engine
    now = engine.packed, engine.clock.dt, engine.seed_word, engine.clock.tick
    SharedStep(workers).advance(*now, 1)
    SharedWorld(workers, worlds._batch.arguments(0)).step(1)
    workers.close()


def has_mass_kernels() -> bool:
    """Return whether the kernels of bodies with mass are loaded.

    If they are, the first step with such a body takes no longer than other steps.
    """
    return move_masses.is_at_hand


__all__ = [
    "has_mass_kernels",
    "warm_up",
    "warm_up_masses",
    "warm_up_sensors_and_maps",
    "warm_up_worlds",
]
