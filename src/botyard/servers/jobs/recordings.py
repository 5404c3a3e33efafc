"""Recordings of a run, one at a time.

The program's options, clients or the page start a recording. Recordings of clients get
unused file names.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botyard.control.later import promise, resolve
from botyard.control.mediaparts import Recorded
from botyard.control.parts import Host
from botyard.errors import KeptFileError, WorldError
from botyard.interfaces.pioneer.taps import PacketTaps
from botyard.names import file_stem
from botyard.sim.simulation import Simulation

if TYPE_CHECKING:
    from botyard.control.recording import StartRecording
    from botyard.recording.recorder import Choices, Recorder

# Clients must not be able to fill a folder with files.
MAX_RECORDINGS: Final = 1000
"""Maximum number of recordings and saved files for clients in a run."""


class Recordings:
    """Starts and stops recordings (`botyard.control.mediaparts.Recordings`).

    Parameters
    ----------
    sim : Simulation
        The world.
    host : Host
        Runs slow work in threads.
    folder : Path
        Folder of the files that clients request.
    taps : PacketTaps
        Registry of callbacks (taps) that receive each packet of Pioneer sessions.
    patient : bool
        Whether steps wait for a slow disk. This suits a simulator that runs as fast as
        it can, without clients in real time.

    Attributes
    ----------
    has_packets : bool
        Whether to record the bytes of Pioneer sessions even if their topic is not
        selected.
    """

    def __init__(
        self,
        sim: Simulation,
        host: Host,
        folder: Path,
        taps: PacketTaps,
        *,
        patient: bool,
    ) -> None:
        self._sim, self._host, self._folder, self._taps, self._patient = (
            sim,
            host,
            folder,
            taps,
            patient,
        )
        self.has_packets = False
        self._untap: Callable[[], None] = lambda: None
        self._recorder: Recorder | None = None
        self._path = Path()
        self._asked = 0

    @property
    def present(self) -> Recorded | None:
        """State of the recording, see `botyard.control.mediaparts.Recordings.present`."""
        if self._recorder is None or self._recorder.has_ended:
            return None
        return Recorded(self._path, self._recorder.last)

    def begin(self, path: Path, choices: Choices) -> None:
        """Start to record to a file.

        Parameters
        ----------
        path : Path
            First file of the recording.
        choices : Choices
            Topics, robots, rates and limits.

        Raises
        ------
        WorldError
            Another recording is in progress.
        OSError, KeptFileError
            The file cannot be written.
        """
        # Most runs do not need the recorder and its codecs.
        from botyard.recording.own_channels import PACKETS
        from botyard.recording.recorder import Recorder

        self._check_idle()
        # A recording that has ended by an error may still receive packets; unregister it.
        self._untap()
        self._recorder, self._path = Recorder(self._sim, path, choices), path
        if self.has_packets or choices.selection.names(PACKETS):
            self._untap = self._taps.add(self._recorder.packet)

    def start(self, wish: StartRecording) -> Path:
        """Start a recording for a client, see `botyard.control.mediaparts.Recordings.start`.

        Raises
        ------
        WorldError
            A recording is in progress, or its file cannot be written.
        """
        from botyard.recording.start import choose

        self._check_idle()
        choices = choose(
            topics=wish.topics or None,
            robots=wish.robots or ("*",),
            rate=wish.rate,
            last=wish.last or None,
            on_stall=wish.on_stall,
            patient=self._patient,
            # Recordings of clients never overwrite a file.
            keep_files=True,
        )
        path = self._free(wish.recording)

        try:
            self.begin(path, choices)
        except (OSError, KeptFileError) as error:
            raise WorldError(
                f"the recording {path} cannot be written: "
                f"{getattr(error, 'strerror', None) or error}"
            ) from None

        return path

    def stop(self) -> Future[Path]:
        """Stop the recording, see `botyard.control.mediaparts.Recordings.stop`.

        Raises
        ------
        WorldError
            No recording is in progress. The future fails if it had ended early.
        """
        recorder, done, path = self._present(), promise(), self._path
        self._untap()
        # Stop the recorder after it is unregistered from packets, so that no packet follows the
        # end.
        recorder.stop()

        def over(_: None, error: Exception | None) -> None:
            problem = recorder.error or ("" if error is None else repr(error))
            resolve(
                done,
                path,
                WorldError(f"the recording {path} has ended early: {problem}")
                if problem
                else None,
            )

        self._host.run_in_background(recorder.wait, over)
        return done

    def save(self, name: str) -> Future[Path]:
        """Save the data kept in memory, see `botyard.control.mediaparts.Recordings.save`.

        Raises
        ------
        WorldError
            No recording is in progress, or it is written continuously.
        """
        recorder = self._present()
        if not recorder.last:
            raise WorldError(
                f"{self._path.name} is written continuously; only a recording that "
                "keeps the last seconds can be saved"
            )

        saving = recorder.save(self._free(name or self._path.stem))
        done = promise()

        def over(path: Path | None, error: Exception | None) -> None:
            resolve(
                done,
                path,
                None
                if error is None
                else WorldError(f"the recording cannot be saved: {error}"),
            )

        # The host calls `over` between two steps.
        self._host.run_in_background(saving.result, over)
        return done

    def close(self) -> None:
        """Write the rest of the recording at the end of the run."""
        self._untap()
        if self._recorder is not None:
            self._recorder.close()

    def _check_idle(self) -> None:
        if self.present is not None:
            raise WorldError(
                f"no second recording: {self._path.name} is already being recorded"
            )

    def _present(self) -> Recorder:
        if self._recorder is None or self._recorder.has_ended:
            raise WorldError("nothing is being recorded")
        return self._recorder

    def _free(self, name: str) -> Path:
        """Return an unused path in the folder; `name` may give its stem."""
        if self._asked >= MAX_RECORDINGS:
            raise WorldError(
                f"at most {MAX_RECORDINGS} recordings can be written in a run"
            )

        # Count the recording before its file exists, so that failed requests count as
        # well.
        self._asked += 1
        stem = file_stem(name)
        paths = (
            # `file_stem` removes separators, so that a name cannot lead out of the
            # folder.
            self._folder.resolve() / f"{stem}{f'-{n}' if n > 1 else ''}.mcap"
            for n in count(1)
        )

        # A robot that stalls may have triggered a save whose file does not exist yet.
        soon = self._recorder.saved if self._recorder is not None else ()
        return next(
            path
            for path in paths
            if path not in soon and not path.exists() and not path.is_symlink()
        )


__all__ = ["MAX_RECORDINGS", "Recordings"]
