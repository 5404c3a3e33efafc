"""Single keys from a terminal, without Return, on POSIX and Windows."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_WINDOWS_ARROWS = {"H": "up", "P": "down", "M": "right", "K": "left"}

if sys.platform == "win32":  # pragma: no cover - not run on the development machines
    import msvcrt

    class Keyboard:
        """Keys pressed in the console (Windows)."""

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            tb: TracebackType | None,
        ) -> None:
            return None

        def read(self) -> list[str]:
            """Keys pressed since the last call: characters, or up, down, left, right."""
            keys = []
            while msvcrt.kbhit():
                ch = msvcrt.getwch()
                keys.append(
                    _WINDOWS_ARROWS.get(msvcrt.getwch(), "") if ch in "\x00\xe0" else ch
                )

            return [k for k in keys if k]

else:
    import os
    import select
    import termios
    import tty

    class Keyboard:
        """Keys from the terminal; its settings are restored on exit."""

        def __enter__(self) -> Self:
            self._fd = sys.stdin.fileno()
            self._saved = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
            return self

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            tb: TracebackType | None,
        ) -> None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)

        def read(self) -> list[str]:
            """Keys pressed since the last call: characters, or up, down, left, right."""
            data = ""
            while select.select([self._fd], [], [], 0)[0]:
                chunk = os.read(self._fd, 256)
                if not chunk:
                    # At the end of file, the terminal is closed: end as if the user had
                    # quit.
                    return ["q"]
                data += chunk.decode("latin-1")

            return split_keys(data)


def split_keys(data: str) -> list[str]:
    """Split terminal input into keys; escape sequences of arrow keys become words.

    Terminals send arrow keys as CSI or SS3 sequences, depending on their mode.

    Parameters
    ----------
    data : str
        Characters of one read. A sequence that the read has cut is split into its
        characters.

    Returns
    -------
    list of str
        Characters, and ``up``, ``down``, ``left`` or ``right``.
    """
    keys, i = [], 0
    while i < len(data):
        if (
            data[i] == "\x1b"
            and data[i + 1 : i + 2] in ("[", "O")
            and data[i + 2 : i + 3] in _ARROWS
        ):
            keys.append(_ARROWS[data[i + 2]])
            i += 3
        else:
            keys.append(data[i])
            i += 1

    return keys
