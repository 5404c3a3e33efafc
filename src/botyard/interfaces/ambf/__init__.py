"""AMBF interface: the world and its bodies as AMBF objects with State and Command
topics, and stepping by a client (lockstep).
"""

from botyard.interfaces.ambf.ambf import Ambf

__all__ = ["Ambf"]
