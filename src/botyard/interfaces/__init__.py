"""Adapters between protocols and the simulator, without sockets.

Interfaces turn requests of clients into operations of `botyard.control`.
"""
