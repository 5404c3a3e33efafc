"""The program under test as a node of ROS 1 (rospy): drives ahead, and stops in front
of what its laser sees.

rosrun or python3 ros1_driver.py _robot:=bob
"""

import rospy
from geometry_msgs.msg import Twist
from sensor_msgs.msg import LaserScan


def main() -> None:
    """Answer each scan by a velocity."""
    rospy.init_node("driver")
    robot = rospy.get_param("~robot", "bob")
    command = rospy.Publisher(f"/{robot}/cmd_vel", Twist, queue_size=1)

    def answer(scan: LaserScan) -> None:
        middle = len(scan.ranges) // 2
        twist = Twist()
        twist.linear.x = (
            0.3 if min(scan.ranges[middle - 15 : middle + 15]) > 0.8 else 0.0
        )
        command.publish(twist)

    rospy.Subscriber(f"/{robot}/base_scan", LaserScan, answer, queue_size=1)
    rospy.spin()


if __name__ == "__main__":
    main()
