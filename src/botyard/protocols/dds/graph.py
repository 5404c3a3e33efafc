"""The ROS graph over DDS: nodes with their readers and writers (rmw_dds_common).

Commands such as ``ros2 node list`` show it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from botyard.protocols.dds.naming import GRAPH_TYPE, split_name
from botyard.protocols.ros_messages.types import Types

GID = 16
"""Size of a DDS identifier, bytes."""


class Graph:
    """Nodes and endpoints (readers and writers) of this process's only DDS participant.

    Parameters
    ----------
    types : Types
        Message types; they decide the length of identifiers, which are longer in
        Humble.
    participant : bytes
        Identifier of the participant, 16 bytes.
    """

    def __init__(self, types: Types, participant: bytes) -> None:
        self._types = types
        self._participant = participant
        self._gid = types.two("rmw_dds_common/Gid")
        # The length of the array in the type: 24 in Humble, 16 later.
        ((_, kind),) = types.fields("rmw_dds_common/Gid")
        self._length = int(kind[1][1])
        self._nodes: dict[str, tuple[dict[bytes, None], dict[bytes, None]]] = {}

    def add(
        self, node: str, *, reader: bytes | None = None, writer: bytes | None = None
    ) -> None:
        """Add an endpoint of a node.

        Parameters
        ----------
        node : str
            Absolute name of the node, which is added at its first endpoint.
        reader, writer : bytes, optional
            GUID of the endpoint, 16 bytes. Adding it again has no effect.
        """
        readers, writers = self._nodes.setdefault(node, ({}, {}))
        if reader is not None:
            readers[reader] = None
        if writer is not None:
            writers[writer] = None

    def remove(
        self, node: str, *, reader: bytes | None = None, writer: bytes | None = None
    ) -> None:
        """Remove an endpoint; a node without endpoints is also removed.

        Parameters
        ----------
        node : str
            Absolute name of the node.
        reader, writer : bytes, optional
            GUID of the endpoint, 16 bytes. An unknown GUID is ignored.
        """
        readers, writers = self._nodes.get(node, ({}, {}))
        if reader is not None:
            readers.pop(reader, None)
        if writer is not None:
            writers.pop(writer, None)
        # ROS tools would otherwise show a node without any endpoint.
        if not readers and not writers:
            self._nodes.pop(node, None)

    def _id(self, gid: bytes) -> Any:
        return self._gid(np.frombuffer(gid.ljust(self._length, b"\0"), np.uint8))

    def encode(self) -> bytes:
        """Return the CDR of rmw_dds_common/msg/ParticipantEntitiesInfo.

        The message lists all nodes, because it replaces the earlier message of the
        participant.

        Returns
        -------
        bytes
            Little-endian CDR with its 4 bytes of encapsulation.
        """
        t = self._types
        node = t.two("rmw_dds_common/NodeEntitiesInfo")
        nodes = [
            node(
                *split_name(name),
                [self._id(g) for g in readers],
                [self._id(g) for g in writers],
            )
            for name, (readers, writers) in self._nodes.items()
        ]
        message = t.two("rmw_dds_common/ParticipantEntitiesInfo")(
            self._id(self._participant), nodes
        )
        return t.encode_cdr(message, GRAPH_TYPE)
