"""Wander with sonar and laser: a client of the Pioneer protocol, for simulated and real
robots alike.

python examples/drive_pioneer.py [HOST:PORT] [SECONDS]
"""

import sys
import time

from botyard.cli.options import parse_address
from botyard.clients.pioneer import PioneerClient

address = parse_address(sys.argv[1] if len(sys.argv) > 1 else "", port=8101)
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0

with PioneerClient(*address) as robot:
    print(f"connected to {robot.name} {robot.subclass}")
    robot.enable()
    robot.start_laser(-90, 90, 1.0)
    end, turn, reports = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end and robot.update():
        front = [r for i, r in robot.sonar_mm.items() if 1 <= i <= 6] + robot.scan_mm[
            45:136
        ]
        room = min(front, default=5000)
        if robot.stalled:
            robot.vel(-150)
            robot.rvel(30)
        elif room < 600:
            turn = turn or (
                40 if sum(robot.scan_mm[91:]) > sum(robot.scan_mm[:90]) else -40
            )
            robot.vel(0)
            robot.rvel(turn)
        else:
            turn = 0
            robot.vel(min(400, (room - 400) // 2))
            robot.rvel(0)

        reports += 1
        if reports % 10 == 0:
            stall = "  STALLED" if robot.stalled else ""
            print(
                f"x {robot.x_mm:8.0f} mm  y {robot.y_mm:8.0f} mm  th "
                f"{robot.th_deg:6.1f}°  room {room:5.0f} mm{stall}"
            )
