"""Nav2 and RViz for ann.

    botyard run -m office -r p3dx:ann --ros2
    ros2 launch examples/ros2/navigation.launch.py

The map comes from the simulator, so there is no map_server. Written for Jazzy; not run
by our tests, which have rclpy, but neither launch nor Nav2.
"""

from pathlib import Path

from launch import LaunchDescription
from launch_ros.actions import Node

HERE = Path(__file__).parent
SERVERS = {
    "nav2_amcl": "amcl",
    "nav2_controller": "controller_server",
    "nav2_planner": "planner_server",
    "nav2_behaviors": "behavior_server",
    "nav2_bt_navigator": "bt_navigator",
}


def generate_launch_description() -> LaunchDescription:
    """Return all programs of the launch."""
    parameters = [str(HERE / "nav2.yaml")]
    nodes = [
        Node(
            package=package,
            executable=name,
            name=name,
            parameters=parameters,
            remappings=[("cmd_vel", "/ann/cmd_vel"), ("/cmd_vel", "/ann/cmd_vel")],
            output="screen",
        )
        for package, name in SERVERS.items()
    ]
    manager = Node(
        package="nav2_lifecycle_manager",
        executable="lifecycle_manager",
        name="lifecycle_manager_navigation",
        parameters=[
            {
                "use_sim_time": True,
                "autostart": True,
                "node_names": list(SERVERS.values()),
            }
        ],
        output="screen",
    )
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", str(HERE / "botyard.rviz")],
        parameters=[{"use_sim_time": True}],
    )
    return LaunchDescription([*nodes, manager, rviz])
