"""Writers of users' topics, which have no keys, and of built-in topics, which have keys."""

from __future__ import annotations

from botyard.protocols.rtps import wire
from botyard.protocols.rtps.history import (
    Directed,
    Fragmented,
    KeepInstances,
    KeepLast,
    Submessage,
)
from botyard.protocols.rtps.writer import Writer


class TopicWriter(Writer[KeepLast]):
    """Writer of a topic without keys.

    It keeps the last samples. With volatile durability it keeps a sample only until all
    readers have it.
    """

    __slots__ = ()

    def write(self, payload: bytes, now: float, inline: bytes = b"") -> None:
        """Send a sample to all readers; the call never waits.

        Without readers nothing is done, unless samples are kept for late readers.

        Parameters
        ----------
        payload : bytes
            Payload with its 4 bytes of encapsulation.
        now : float
            Time of the caller's clock, s.
        inline : bytes
            Inline QoS with its sentinel, or empty.
        """
        if not self._keeps and not self._proxies:
            return
        self.number += 1
        if inline or len(payload) > self._max_data:
            sample = self._sample(self._pair, payload, inline)
            self._history.add(self.number, sample, now)
            self._send(sample, now)
            return

        # Numbers in a history follow each other without gaps, so an existing history
        # must get every sample.
        if self._reliable or self._keeps or len(self._history):
            self._history.add(self.number, payload, now)

        # This is the most frequent path, so add the payload to the datagram without
        # another copy.
        body = payload if not len(payload) & 3 else payload + bytes(-len(payload) & 3)
        head = wire.data_head(self._pair, self.number, len(body))
        for destination in self._groups:
            destination.add(head, b"", body)
        self._sent(now)

    def _sample(
        self, pair: bytes, payload: bytes, inline: bytes
    ) -> Submessage | Fragmented:
        """Return a sample in the form in which it is sent: whole, or in fragments.

        Parameters
        ----------
        pair : bytes
            Entity ids of reader and writer, 8 bytes.
        payload : bytes
            Payload with its 4 bytes of encapsulation.
        inline : bytes
            Inline QoS with its sentinel, or empty.
        """
        if len(payload) <= self._max_data:
            return Submessage(wire.data(pair, self.number, payload, inline))
        return Fragmented(payload, inline)

    def write_to(
        self, guid: bytes, payload: bytes, now: float, inline: bytes = b""
    ) -> bool:
        """Send a sample to one reader; for all other readers its number is irrelevant (GAP).

        Return whether the reader is matched.

        Parameters
        ----------
        guid : bytes
            GUID of the reader, 16 bytes.
        payload : bytes
            Payload with its 4 bytes of encapsulation.
        now : float
            Time of the caller's clock, s.
        inline : bytes
            Inline QoS with its sentinel, or empty.
        """
        proxy = self._proxies.get(guid)
        if proxy is None:
            return False
        before = max(self._broadcast, proxy.wanted, proxy.start)
        self.number += 1
        sample = self._sample(proxy.entity + self.entity, payload, inline)
        self._history.add(self.number, Directed(sample, guid), now)
        # The samples since the reader's last one were for other readers.
        if before < self.number - 1:
            gap = wire.gap(proxy.entity, self.entity, before + 1, self.number)
            proxy.destination.add(gap, proxy.prefix)

        proxy.wanted = self.number
        if isinstance(sample, Fragmented):
            self._send_fragments(
                proxy.destination, proxy.prefix, proxy.entity, self.number, sample
            )
        else:
            proxy.destination.add(sample.data, proxy.prefix)
            if proxy.is_reliable:
                self._heartbeat(proxy)

        if proxy.is_reliable:
            self._wait(now)
        return True

    def _progress(self) -> None:
        if self._keeps:
            return
        history = self._history
        if not len(history):
            return
        acknowledged = self._lowest_acknowledged(self.number)
        while (first := history.first(self.number)) <= self.number and self._is_done(
            first, acknowledged
        ):
            history.drop_first()

    def _is_done(self, number: int, acknowledged: int) -> bool:
        """Return whether no reader needs a sample any more.

        Parameters
        ----------
        number : int
            Sequence number of the sample.
        acknowledged : int
            Number up to which all reliable readers have acknowledged.
        """
        kept = self._history.get(number)
        if isinstance(kept, Directed):
            proxy = self._proxies.get(kept.reader)
            is_done = proxy is None or not proxy.is_reliable or proxy.acked >= number
        else:
            is_done = number <= acknowledged

        return is_done and not any(
            number in numbers for numbers in self._sending.values()
        )


class InstanceWriter(Writer[KeepInstances]):
    """Writer that keeps the newest sample of each instance, for built-in topics."""

    __slots__ = ()

    def put(self, key: bytes, payload: bytes, now: float) -> None:
        """Send a new sample of an instance.

        Parameters
        ----------
        key : bytes
            Key of the instance: a GUID.
        payload : bytes
            Payload with its 4 bytes of encapsulation.
        now : float
            Time of the caller's clock, s.
        """
        self.number += 1
        sample = Submessage(wire.data(self._pair, self.number, payload))
        self._history.add(self.number, key, sample)
        self._send(sample, now)

    def dispose(self, key: bytes, inline: bytes, payload: bytes, now: float) -> None:
        """Send the disposal of an instance.

        Parameters
        ----------
        key : bytes
            Key of the instance: a GUID.
        inline : bytes
            Inline QoS of a disposal (`parameters.disposal`).
        payload : bytes
            Serialised key (`discoverydata.encode_key`).
        now : float
            Time of the caller's clock, s.
        """
        self.number += 1
        sample = Submessage(wire.data_key(self._pair, self.number, inline, payload))
        self._history.dispose(self.number, key, sample)
        self._send(sample, now)
        self._progress()

    def _progress(self) -> None:
        if self._history.has_disposals:
            # Keep disposals only for readers that answer. Each remote participant has
            # one reader of a built-in topic.
            spoken = (p.acked for p in self._reliable if not p.is_silent)
            self._history.forget(min(spoken, default=self.number))
