"""A learning task: drive to a point in an empty room, and stop there.

python -c "import gymnasium, botyard.learning; print(gymnasium.make('botyard/Reach-v0'))"
"""

from __future__ import annotations

import numpy as np

from botyard.learning import Task


class Reach(Task):
    """The goal lies up to 4 m away; near it, slow robots get the most."""

    robots = ("p3dx",)
    max_steps = 200

    def observation_bounds(self, w):
        """Distance (m), cosine and sine of the bearing, speed (m/s), turn rate (rad/s)."""
        high = np.array([20.0, 1.0, 1.0, 2.0, 6.0], np.float32)
        return -high, high

    def action_bounds(self, w):
        """Speed and turn rate, as parts of 0.5 m/s and 1 rad/s."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w):
        self.goals = np.zeros((len(w), 2))

    def on_reset(self, w, mask, rng):
        distance, angle = rng.uniform(1.0, 4.0), rng.uniform(-np.pi, np.pi)
        self.goals[mask, 0] = w.pose[mask, 0, 0] + distance * np.cos(angle)
        self.goals[mask, 1] = w.pose[mask, 0, 1] + distance * np.sin(angle)

    def act(self, w, actions):
        w.command[:, 0, 0] = 0.5 * actions[:, 0]
        w.command[:, 0, 2] = actions[:, 1]

    def to_goal(self, w):
        """Return distance (m) and bearing (rad) of the goals, each (n,)."""
        dx, dy = (self.goals - w.pose[:, 0, :2]).T
        return np.sqrt(dx * dx + dy * dy), np.arctan2(dy, dx) - w.pose[:, 0, 2]

    def observe(self, w, out):
        distance, bearing = self.to_goal(w)
        out[:, 0], out[:, 1], out[:, 2] = distance, np.cos(bearing), np.sin(bearing)
        out[:, 3], out[:, 4] = w.vel[:, 0, 0], w.vel[:, 0, 2]

    def reward(self, w, out):
        out[:] = -0.01 * self.to_goal(w)[0]

    def done(self, w, terminated, truncated):
        near = self.to_goal(w)[0] < 0.2
        terminated[:] = near & (np.abs(w.vel[:, 0, 0]) < 0.1)
        truncated[:] = w.tick >= self.max_steps

    def marks(self, world):
        """Goals that pictures of a world show."""
        return self.goals[world : world + 1]
