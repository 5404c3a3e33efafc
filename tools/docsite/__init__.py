"""Extension of Sphinx that builds the site of ``docs/``.

Pages are Markdown. A comment ``<!-- made: NAME -->`` on a line of its own is replaced
by Markdown that `made.MAKERS` makes from the program. Links that leave ``docs/`` lead
to a page that shows the file of the checkout.
"""

from __future__ import annotations

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Connect the parts to the build."""
    # Imported here: `tools.docsite.versions` runs where Sphinx is not installed.
    from tools.docsite import api, made, moved, sourcefiles

    for part in (api, made, moved, sourcefiles):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
