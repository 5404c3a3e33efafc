"""Interface between the Pioneer protocol and the simulator, without sockets."""
