"""AMBF interface: offers the world and its bodies as AMBF objects.

Each object has two topics, ``State`` and
``Command``. A client may step the world (lockstep).
"""

from botyard.interfaces.ambf.ambf import Ambf

__all__ = ["Ambf"]
