"""A Ray cluster with two nodes of one processor each on this computer; prints its
address.

A line of input ends the second node, the end of input both.

It is a separate process, so that Ray's processes end with it, and its changes to
signals and warnings do not reach the tests. Ray's ports listen on all addresses of the
computer, and a peer that reaches them can run code: callers therefore set `token_env`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile

STORE_BYTES = 80 * 2**20
ADDRESS = "127.0.0.2"
"""Ray replaces 127.0.0.1 by an address that others can reach. It says to whom nodes
speak, not on which addresses they listen.
"""
HEARTBEATS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 3,
}
"""A node that is lost is noticed within seconds."""


def token_env() -> dict[str, str]:
    """Environment variables of a cluster that requires a token, and of its users."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def main() -> None:
    assert os.environ.get("RAY_AUTH_MODE") == "token", "everybody could run code here"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Use a short path, because paths of sockets are limited to about 100 bytes.
    folder = tempfile.mkdtemp(prefix="ray-")
    # Ray writes the cluster's address to a folder of the computer that it expects to exist; a
    # separate folder keeps it apart from other clusters.
    os.environ["RAY_TMPDIR"] = folder
    os.mkdir(os.path.join(folder, "ray"))
    from ray.cluster_utils import Cluster

    node = {
        "num_cpus": int(sys.argv[1]),
        "object_store_memory": STORE_BYTES,
        "node_ip_address": ADDRESS,
    }
    head = {
        **node,
        "include_dashboard": False,
        "temp_dir": folder,
        "_system_config": HEARTBEATS,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        second = cluster.add_node(**node)
        print(f"address {cluster.address}", flush=True)
        for _ in sys.stdin:
            cluster.remove_node(second, allow_graceful=False)
            print("removed", flush=True)
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
