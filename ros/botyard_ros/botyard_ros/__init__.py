"""Files that start Nav2 with the simulator; see docs/howto/nav2.md."""
