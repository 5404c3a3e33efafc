"""Interface between the browser page and the simulator, without sockets."""
