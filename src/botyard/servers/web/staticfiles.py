"""The built page as HTTP answers, kept in memory and compressed once.

Peers without a token also request these files, so an answer has to be cheap. Only files
found by the scan of the folder are served, under their names in the folder. No request
is ever turned into a path.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

INDEX: Final = "index.html"
MIN_COMPRESSED: Final = 2000
"""Minimum size of a file to compress, bytes."""


@dataclass(frozen=True, slots=True)
class _CachedFile:
    """File in memory, ready to be sent.

    Attributes
    ----------
    plain, packed : bytes
        Contents; and contents compressed by gzip, empty if compression saves nothing.
    kind, tag, lasting : str
        Media type, ETag and Cache-Control.
    """

    plain: bytes
    packed: bytes
    kind: str
    tag: str
    lasting: str


class StaticFiles:
    """HTTP handler for the files of a folder.

    Parameters
    ----------
    folder : Path
        The built page. The folder is scanned again when its index changes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[int, int] | None = None
        self._paths: dict[str, Path] = {}
        self._kept: dict[str, _CachedFile] = {}

    async def answer(self, request: Request) -> Response:
        """Answer a request: with the file, "not modified", or "not found".

        Parameters
        ----------
        request : starlette Request
            Request of any peer. Its path is looked up in the scanned files; the empty
            path is the index.
        """
        self._look()
        name = request.path_params.get("path", "") or INDEX
        kept = self._find(name)
        if kept is None:
            return PlainTextResponse("there is no such file", 404)
        headers = {
            "etag": kept.tag,
            "cache-control": kept.lasting,
            "vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == kept.tag:
            return Response(status_code=304, headers=headers)
        body = kept.plain
        if kept.packed and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["content-encoding"] = kept.packed, "gzip"
        return Response(body, media_type=kept.kind, headers=headers)

    def _look(self) -> None:
        """Scan the folder if the page has changed."""
        try:
            about = (self._folder / INDEX).stat()
        except OSError:
            # A build is in progress; the previous page stays in memory.
            return

        now = (about.st_mtime_ns, about.st_size)
        if now != self._seen:
            self._seen = now
            self._kept.clear()
            self._paths = {
                p.relative_to(self._folder).as_posix(): p
                for p in self._folder.rglob("*")
                if p.is_file()
            }

    def _find(self, name: str) -> _CachedFile | None:
        if name not in self._kept and name in self._paths:
            try:
                data = self._paths[name].read_bytes()
            except OSError:
                return None

            packed = gzip.compress(data, 6) if len(data) >= MIN_COMPRESSED else b""
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'

            # Names under assets/ contain a hash of their content, so they never change.
            # Other files are validated with their ETag each time.
            lasting = (
                "public, max-age=31536000, immutable"
                if name.startswith("assets/")
                else "no-cache"
            )
            self._kept[name] = _CachedFile(
                data, packed if len(packed) < len(data) else b"", kind, tag, lasting
            )

        return self._kept.get(name)


__all__ = ["StaticFiles"]
