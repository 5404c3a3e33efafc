"""AMBF interface: the world and its bodies as AMBF objects.

Each object has State and Command topics. A client may step the world (lockstep).
"""

from botyard.interfaces.ambf.ambf import Ambf

__all__ = ["Ambf"]
