"""Interface between ROS 1 or ROS 2 and the simulator, without sockets."""
