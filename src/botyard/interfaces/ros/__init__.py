"""The ROS interface of the simulator, common to ROS 1 and ROS 2."""
