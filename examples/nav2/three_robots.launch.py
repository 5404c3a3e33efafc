"""Nav2's own bring-up (nav2_bringup, unchanged) for three robots of botyard, each in
its namespace.

    botyard convert office office.yaml
    botyard run -m office -r p3dx:ann -r p3dx:bob -r p3dx:cid --ros2 --ros-names nav2
    ros2 launch examples/nav2/three_robots.launch.py map:=$PWD/office.yaml

Each robot has its map_server and AMCL, so botyard sends neither the map nor map ->
odom. Tell each AMCL where its robot is by RViz's "2D Pose Estimate" (topic
/<robot>/initialpose). Written for Jazzy; not run by our tests, which have no ROS 2.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

HERE = Path(__file__).parent
ROBOTS = ("ann", "bob", "cid")


def generate_launch_description() -> LaunchDescription:
    """The bring-up, once for each robot."""
    bringup = (
        Path(get_package_share_directory("nav2_bringup"))
        / "launch"
        / "bringup_launch.py"
    )
    each = [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(bringup)),
            launch_arguments={
                "namespace": robot,
                "use_namespace": "true",
                "map": LaunchConfiguration("map"),
                "params_file": str(HERE / "nav2_params.yaml"),
                "use_sim_time": "true",
                "autostart": "true",
                "slam": LaunchConfiguration("slam"),
            }.items(),
        )
        for robot in ROBOTS
    ]
    arguments = [
        DeclareLaunchArgument("map", description="the map as a ROS map (YAML)"),
        DeclareLaunchArgument(
            "slam",
            default_value="False",
            description="True: slam_toolbox instead of map_server and AMCL",
        ),
    ]
    return LaunchDescription([*arguments, *each])
