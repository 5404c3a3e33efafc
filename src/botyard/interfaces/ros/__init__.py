"""The simulator as ROS programs see it."""
