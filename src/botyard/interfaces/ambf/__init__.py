"""The world and what is in it as AMBF's objects: State and Command topics, and stepping of the world by a client."""

from botyard.interfaces.ambf.ambf import Ambf

__all__ = ["Ambf"]
