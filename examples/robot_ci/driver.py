"""The program under test: drives a Pioneer robot ahead, and stops in front of what its
sonar sees.

python driver.py --host 127.0.0.1 --port 8101
"""

import argparse

from botyard.clients.pioneer import PioneerClient


def main() -> None:
    """Drive until something is near."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8101)
    given = parser.parse_args()
    with PioneerClient(given.host, given.port) as robot:
        robot.enable()
        near = 5000
        while robot.update() and near > 700:
            near = min((robot.sonar_mm.get(i, 5000) for i in (3, 4)), default=5000)
            robot.vel(300)

        robot.stop()
        while robot.update():
            pass


if __name__ == "__main__":
    main()
