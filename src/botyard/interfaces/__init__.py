"""How each interface sees the running simulator, without sockets: what its peers ask for becomes operations of `botyard.control`."""
