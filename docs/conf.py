"""Configuration of the site; `make docs` builds it. See CONTRIBUTING.md."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from botyard.version import __version__  # noqa: E402

project = "botyard"
author = "The botyard developers"
project_copyright = "The botyard developers"
# "dev", or the version of a release: the folder that the site is published in.
release = version = os.environ.get("BOTYARD_DOCS_VERSION") or __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "tools.docsite",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_*"]
templates_path = ["_templates"]
default_role = "py:obj"
add_module_names = False
# Each name has a heading already.
toc_object_entries = False
# Folders whose pages are listed by "*" may be empty.
suppress_warnings = ["toc.empty_glob"]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

html_theme = "pydata_sphinx_theme"
html_title = f"botyard {release}"
html_short_title = "botyard"
html_static_path = ["_static", "../web/public/icon.svg"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = "../web/public/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "logo": {
        "text": "botyard",
        "image_light": "_static/icon.svg",
        "image_dark": "_static/icon.svg",
    },
    "navbar_start": ["navbar-logo", "versions"],
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "footer_start": [],
    "footer_end": [],
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
}

# Members stand in the order of the source, where related ones stand together.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_rtype = False
