"""rmw_zenoh's keys, tokens and attachments, without a session."""

from __future__ import annotations

import struct

from botyard.protocols.zenoh_keys import Tokens, attachment, data_key, kept_qos, mangled


def test_keys() -> None:
    """The expected keys are from the reference, ros.md §5."""
    assert data_key(3, "/ann/odom", "nav_msgs/msg/Odometry", "RIHS01_12") == (
        "3/ann/odom/nav_msgs::msg::dds_::Odometry_/RIHS01_12"
    )
    assert data_key(0, "/map", "nav_msgs/msg/OccupancyGrid", "").endswith(
        "/TypeHashNotSupported"
    ), "Humble has no hashes"
    assert mangled("/ann/odom") == "%ann%odom"
    assert mangled("") == "%"


def test_attachments() -> None:
    """An attachment holds number, time, length and identifier, little-endian."""
    data = attachment(7, 8, bytes(range(16)))
    assert struct.unpack("<qqB16s", data) == (7, 8, 16, bytes(range(16)))


def test_tokens() -> None:
    """Every node and endpoint has its own number; a node that returns gets another one."""
    tokens = Tokens(0, "abc")
    assert tokens.node("/a/base") == "@ros2_lv/0/abc/0/0/NN/%/%a/base"
    assert tokens.node("/a/base") is None
    assert tokens.node("/botyard") == "@ros2_lv/0/abc/1/1/NN/%/%/botyard"
    assert tokens.end(
        "/a/base", "MP", "/a/odom", "nav_msgs/msg/Odometry", "RIHS01_1"
    ) == (
        "@ros2_lv/0/abc/0/2/MP/%/%a/base/%a%odom/nav_msgs::msg::dds_::Odometry_/RIHS01_1/::,10:,:,:,,"
    )
    assert tokens.end(
        "/botyard", "SS", "/x", "std_srvs/srv/Empty", "RIHS01_2", kept_qos(1)
    ) == (
        "@ros2_lv/0/abc/1/3/SS/%/%/botyard/%x/std_srvs::srv::dds_::Empty_/RIHS01_2/:1:,1:,:,:,,"
    )
    tokens.forget("/a/base")
    assert tokens.node("/a/base") == "@ros2_lv/0/abc/4/4/NN/%/%a/base"
