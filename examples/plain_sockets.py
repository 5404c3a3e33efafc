"""Drive a robot with nothing but a socket: python3 examples/plain_sockets.py [HOST
[PORT]]

Packets of the Pioneer protocol: FA FB, number of bytes that follow, command or type,
data, checksum.
"""

import socket
import sys


def packet(*content: int) -> bytes:
    """Frame a command or its number alone."""
    words = list(content) + [0] * (len(content) % 2)
    total = sum(a << 8 | b for a, b in zip(words[::2], words[1::2], strict=True))
    # The checksum adds pairs of bytes; the last byte of an odd number is combined by XOR.
    if len(content) % 2:
        total = (total - (content[-1] << 8)) ^ content[-1]
    return bytes(
        [0xFA, 0xFB, len(content) + 2, *content, total >> 8 & 0xFF, total & 0xFF]
    )


def command(number: int, value: int) -> bytes:
    """Frame a command with a signed number."""
    return packet(
        number, 0x3B if value >= 0 else 0x1B, abs(value) & 0xFF, abs(value) >> 8
    )


def read() -> bytes:
    """Wait for the next packet; return its type and data."""
    while reader.read(1) != b"\xfa" or reader.read(1) != b"\xfb":
        pass
    return reader.read(reader.read(1)[0])[:-2]


host, port = (
    (*sys.argv[1:], "127.0.0.1", "8101")[:2]
    if len(sys.argv) != 2
    else (sys.argv[1], "8101")
)
with socket.create_connection((host, int(port)), timeout=10) as robot:
    reader = robot.makefile("rb")
    for sync in range(3):
        robot.sendall(packet(sync))
        answer = read()

    print("connected to", answer[1:].split(b"\0")[:3])
    # Send OPEN, ENABLE, VEL in mm/s and RVEL in deg/s.
    robot.sendall(packet(1) + command(4, 1) + command(11, 200) + command(21, 20))
    for _ in range(50):
        sip = read()
        # In a motion report (SIP), x, y and heading follow the type.
        if sip[0] in (0x32, 0x33):
            x, y = (
                int.from_bytes(sip[i : i + 2], "little", signed=True) for i in (1, 3)
            )
            print(f"x {x} mm, y {y} mm")
            # PULSE shows the robot that the client still drives.
            robot.sendall(packet(0))

    # Send STOP and CLOSE.
    robot.sendall(packet(29) + packet(2))
