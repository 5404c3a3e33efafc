"""HTML with which a notebook shows a live page, or a picture if there is no live page."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from html import escape
from typing import Final

from botyard.errors import ArgumentError

PORT: Final = "{port}"
"""Placeholder for the number of the port in an address."""
_BLANK: Final = (
    "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
)
"""Transparent picture of one pixel. Its `onload` handler runs `_PROGRAM`."""

# The browser finds the address that reaches the server, because only the browser knows
# whether it runs on the kernel's computer or behind a proxy of Jupyter. If no address
# answers, the notebook shows the picture, as a saved notebook does. A notebook from
# another computer does not try ports of the user's computer, because browsers would ask
# the user for permission.
_PROGRAM: Final = """((spot, {port, path, height, still, prefix, given}) => {
  spot.onload = null;
  // In a handler, the bare name URL is document.URL. The base URI of a marimo frame is its parent's address.
  const home = new window.URL(document.baseURI);
  const web = home.protocol.startsWith("http");
  const here = !web || ["localhost", "127.0.0.1", "[::1]"].includes(home.hostname);
  const lab = document.getElementById("jupyter-config-data");
  const base = (lab && JSON.parse(lab.textContent).baseUrl) || document.body.dataset.baseUrl || prefix;
  const places = [...given];
  if (!given.length && web) places.push(new window.URL(`${base}proxy/${port}/`, home).href);
  if (!given.length && here) places.push(`http://127.0.0.1:${port}/`);
  const attempt = (place) => {
    if (place === undefined) return;
    const probe = new Image();
    probe.onerror = () => attempt(places.shift());
    probe.onload = () => {
      const frame = document.createElement("iframe");
      frame.src = place + path;
      frame.title = "botyard";
      frame.allow = "fullscreen";
      frame.style.cssText = `display:block;width:100%;height:${height}px;border:0`;
      const style = document.createElement("style");
      // JupyterLab has a stronger rule for all pictures.
      style.textContent = `.${still}{display:none!important}`;
      spot.replaceWith(frame, style);
    };
    probe.src = `${place}${path.split("#")[0]}icon.svg?${Date.now()}`;
  };
  attempt(places.shift());
})"""


def checked_url(url: str) -> str:
    """Return a valid address of a server, with a slash at the end.

    Raises
    ------
    ArgumentError
        The address does not start with ``http://`` or ``https://``.
    """
    if not url.startswith(("http://", "https://")):
        raise ArgumentError(
            "url: expected an address that starts with http:// or https://, such as "
            f'"https://example.org/proxy/{PORT}/", found "{url}"'
        )
    return url if url.endswith("/") else f"{url}/"


def live_html(port: int, path: str, height: int, still: str, url: str | None) -> str:
    """Return the HTML that shows the page of a server in a frame, if it answers.

    Parameters
    ----------
    port : int
        Port of the server on the kernel's computer.
    path : str
        Path of the page, with its access tokens.
    height : int
        Height of the frame, pixels.
    still : str
        CSS class of the picture that the frame replaces.
    url : str or None
        Address at which the browser reaches the port. None: the program in the HTML finds
        the address.
    """
    # code-server and GitHub Codespaces set this variable to their proxy's address.
    forwarded = os.environ.get("VSCODE_PROXY_URI", "").replace("{{port}}", PORT)
    given = url or (checked_url(forwarded) if forwarded else "")
    choices = {
        "port": port,
        "path": path,
        "height": height,
        "still": still,
        "prefix": os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/"),
        "given": [given.replace(PORT, str(port))] if given else [],
    }
    program = f"{_PROGRAM}(this, {json.dumps(choices)})"
    return f'<img src="{_BLANK}" alt="" onload="{escape(program)}">'


def still_html(name: str, picture: bytes) -> str:
    """Return a PNG picture as HTML with a CSS class, by which `live_html` hides it."""
    return (
        f'<img class="{escape(name)}" style="max-width:100%" '
        f'src="data:image/png;base64,{b64encode(picture).decode()}">'
    )


__all__ = ["PORT", "checked_url", "live_html", "still_html"]
