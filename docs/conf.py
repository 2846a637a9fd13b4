"""The book: `sphinx-build -W -j auto docs docs/_build/html` makes the site, which loads nothing from elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lmgauge import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE)]

project = "lmgauge"
author = "The lmgauge founders"
copyright = "The lmgauge founders, Apache-2.0"
version = release = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "mathml",
    "measured",
    "navigation",
    "notebooks",
    "quickstart",
    "reference",
    "terminal",
    "typography",
]
exclude_patterns = ["_build", "data/README.md", "**/.ipynb_checkpoints"]
nitpicky = False

# Pages
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

# Tutorials run when the book is built; an error in one is an error of the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
suppress_warnings = ["mystnb.unknown_mime_type"]  # charts are Vega-Lite too, for notebooks
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
os.environ |= {  # commands in cells print what they print in a terminal of 100 columns
    "COLUMNS": "100", "NO_COLOR": "1", "TERM": "xterm", "TTY_COMPATIBLE": "1",
    "PYTHONPATH": os.pathsep.join([str(HERE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
}  # fmt: skip

# Reference
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
autodoc_class_signature = "mixed"
autoclass_content = "both"
_ALIASES = (
    "ArrayLike Document Events Floats GivenReferences JointCounts Model ModelOrScorer Models Path PathLike Paths "
    "PercentilesOrPath Progress Runs SmoothingKind Statistics Text"
)
autodoc_type_aliases = {name: name for name in _ALIASES.split()}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
default_role = "py:obj"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = False
napoleon_attr_annotations = False  # several attributes may share one description, and then have no one type

# The site
html_theme = "furo"
html_title = f"lmgauge {__version__}"
html_static_path = ["_static"]
html_css_files = ["lmgauge.css", "book.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
