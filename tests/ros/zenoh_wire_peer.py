"""A ROS 2 peer on zenoh's own Python binding: what rmw_zenoh reads besides payloads.

``zenoh_wire_peer.py`` prints ``RESULT JSON``: attachments of messages and of answers, and
liveliness tokens, before and after a robot is removed. Layouts stand in
github.com/ros2/rmw_zenoh, docs/design.md.
"""

import json
import os
import struct
import time

import zenoh
from rosbags.typesys import Stores, get_typestore
from zenoh_ros2_sdk.session import ZenohSession

STORE = get_typestore(Stores.ROS2_JAZZY)
ODOMETRY = "nav_msgs/msg/Odometry"
TRIGGER = "RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f"
# Sequence number, nanoseconds, length of the identifier, identifier.
ATTACHMENT = struct.Struct("<qqB16s")

session = ZenohSession.get_instance().session
odom_key = f"0/ann/odom/nav_msgs::msg::dds_::Odometry_/{STORE.hash_rihs01(ODOMETRY)}"
found = []


def take(sample):
    """Keep the attachment and the time stamp of a message."""
    odom = STORE.deserialize_cdr(sample.payload.to_bytes(), ODOMETRY)
    number, at, length, gid = ATTACHMENT.unpack(sample.attachment.to_bytes())
    found.append([number, at, length, gid.hex(), odom.header.stamp.sec])


def tokens():
    """Return the parts of all liveliness tokens of the domain."""
    replies = session.liveliness().get("@ros2_lv/0/**")
    return [str(r.ok.key_expr).split("/") for r in replies if r.ok is not None]


def until(holds, seconds=60.0):
    """Wait for a condition, and return its value."""
    end = time.monotonic() + seconds
    while not (value := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def call(name, kind, digest, payload, number):
    """Return answers of a service, each with its attachment and its payload."""
    key = f"0/botyard/{name}/{kind}_/{digest}"
    replies = session.get(
        key,
        payload=zenoh.ZBytes(payload),
        attachment=zenoh.ZBytes(
            ATTACHMENT.pack(number, time.time_ns(), 16, b"0123456789abcdef")
        ),
        target=zenoh.QueryTarget.ALL_COMPLETE,
    )
    return [
        [*ATTACHMENT.unpack(r.ok.attachment.to_bytes())[::3], r.ok.payload.to_bytes()]
        for r in replies
        if r.ok is not None
    ]


subscriber = session.declare_subscriber(odom_key, take)
until(lambda: len(found) >= 30)
before = until(lambda: [t for t in tokens() if "%ann%odom" in t]) and tokens()
gone, watched = [], []
watcher = session.liveliness().declare_subscriber(
    "@ros2_lv/0/**",
    lambda s: (gone if s.kind == zenoh.SampleKind.DELETE else watched).append(
        str(s.key_expr)
    ),
)
answers = call(
    "pause", "std_srvs::srv::dds_::Trigger", TRIGGER, b"\0\1\0\0\0\0\0\0", 77
)
remove = next(t for t in before if "%botyard%remove_robot" in t)
name = b"ann\0"
removed = call(
    "remove_robot",
    "botyard_msgs::srv::dds_::RemoveRobot",
    remove[remove.index("%botyard%remove_robot") + 2],
    b"\0\1\0\0" + struct.pack("<I", len(name)) + name,
    78,
)
until(lambda: not [t for t in tokens() if "%ann%odom" in t])
after = tokens()
until(lambda: any("%ann%odom" in key for key in gone))
print(
    "RESULT "
    + json.dumps(
        {
            "attachments": found[:30],
            "kinds": sorted({t[5] for t in before}),
            "odom": [t for t in before if "%ann%odom" in t],
            "map": [t for t in before if "%map" in t],
            "hash": STORE.hash_rihs01(ODOMETRY),
            "left": [t for t in after if any(p.startswith("%ann%") for p in t)],
            "gone": len([key for key in gone if "%ann%" in key]),
            "answers": [
                [number, gid.decode(), body[4]] for number, gid, body in answers
            ],
            "removed": [body[4] for _, _, body in removed],
        }
    ),
    flush=True,
)
# Exit at once: threads of the package would keep the process alive.
os._exit(0)
