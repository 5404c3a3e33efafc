"""Adapters between protocols and the simulator, without sockets: requests of peers
become operations of `botyard.control`.
"""
