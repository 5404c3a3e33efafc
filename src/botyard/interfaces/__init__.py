"""Adapters between protocols and the simulator, without sockets.

They turn requests of clients into operations of `botyard.control`.
"""
