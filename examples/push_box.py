"""A robot pushes a crate with mass across a room; friction stops it.

Run: python examples/push_box.py
"""

import botyard
from botyard.model.dynamics import DynamicsSpec

sim = botyard.Simulation(seed=1, odometry_error="none")
sim.add_wall((-1.0, -2.0), (6.0, -2.0), (6.0, 2.0), (-1.0, 2.0), (-1.0, -2.0))
sim.add_box(
    botyard.BoxObject(
        name="crate",
        pose=botyard.Pose(1.5, 0.1, 0.0),
        length=0.6,
        width=0.6,
        dynamics=DynamicsSpec(mass=8.0, floor_friction=0.4),
    )
)
robot = sim.add_robot("p3dx", "pusher", pose=(0.0, 0.0, 0.0))


def crate() -> tuple[float, ...]:
    """Return the pose of the crate: m, m, rad."""
    return tuple(sim.snapshot.state.pose[sim.snapshot.rows["crate"]].tolist())


robot.command(v=0.4)
while sim.time < 8.0:
    sim.run(1.0)
    x, y, th = crate()
    print(
        f"{sim.time:.0f} s: robot x = {robot.truth.x:.2f} m, crate ({x:.2f}, {y:.2f}), {th:.2f} rad"
    )
robot.command.stop()
sim.run(2.0)
print("at rest:", crate())
