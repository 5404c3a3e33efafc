#!/bin/bash
# Tries the examples against an installed ROS 2: examples/ros2/try.sh [SETUP]   (default: the newest /opt/ros/*/setup.bash)
# Says what was found and which steps work; the status is 1 when one does not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
setup=${1:-$(ls -d /opt/ros/*/setup.bash 2>/dev/null | tail -1)}
[ -n "$setup" ] && [ -f "$setup" ] || { echo "no ROS 2 here (/opt/ros/*/setup.bash)"; exit 1; }
set +u; . "$setup"; set -u
echo "ROS 2 $ROS_DISTRO, ${RMW_IMPLEMENTATION:-its default middleware}"
botyard run -m office -r p3dx:ann --ros2 --noninteractive --no-gui & sim=$!
trap 'kill $sim; ros2 daemon stop >/dev/null' EXIT
sleep 8
failed=0
step() { local name=$1; shift; if timeout 30 "$@" >/tmp/botyard-step.log 2>&1; then echo "works: $name"; else echo "FAILS: $name"; tail -5 /tmp/botyard-step.log; failed=1; fi; }
step "node list" bash -c 'ros2 node list --no-daemon | grep -x /botyard'
step "topic list" bash -c 'ros2 topic list --no-daemon | grep -x /ann/odom'
step "echo odometry" ros2 topic echo --once /ann/odom
step "echo a scan" ros2 topic echo --once --qos-reliability best_effort /ann/base_scan
step "echo the map" ros2 topic echo --once --no-arr --qos-durability transient_local --qos-reliability reliable /map
step "drive" ros2 topic pub --times 20 -r 10 /ann/cmd_vel geometry_msgs/msg/Twist '{linear: {x: 0.2}}'
step "pause by a service" ros2 service call /botyard/pause std_srvs/srv/Trigger
step "resume" ros2 service call /botyard/resume std_srvs/srv/Trigger
timeout -s INT -k 5 10 python3 "$here/avoid.py"; [ $? = 124 ] && echo "works: avoid.py" || { echo "FAILS: avoid.py"; failed=1; }
if ros2 pkg prefix nav2_bringup >/dev/null 2>&1; then
  timeout 40 ros2 launch "$here/navigation.launch.py" >/tmp/botyard-nav2.log 2>&1
  grep -q "Managed nodes are active" /tmp/botyard-nav2.log && echo "works: Nav2 starts" || { echo "FAILS: Nav2"; tail -5 /tmp/botyard-nav2.log; failed=1; }
fi
exit $failed
