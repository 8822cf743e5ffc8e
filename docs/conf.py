"""The documentation site: Sphinx with Markdown (MyST), built and read without a network by `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

import obverse

sys.path.insert(0, str(Path(__file__).parent / "_ext"))


project = "obverse"
author = "the authors of obverse"
project_copyright = "the authors of obverse, MIT license"
release = obverse.__version__
language = "en"

extensions = [
    "myst_parser",
    "command_line",
    "example_scripts",
    "notebook_pages",
    "offline_math",
    "public_names",
    "result_pages",
    "search_page",
    "tables",
]
exclude_patterns = ["_build", "_ext", "_static"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
smartquotes = False  # "--data" is a flag, not a dash
nitpicky = False  # annotations name types of other projects, which are not fetched

# Links to a public name that two packages export lead to the first of these; it is described whole in both.
public_packages = [
    "obverse.shadow",
    "obverse.training",
    "obverse.weights",
    "obverse.diversity",
    "obverse.generative",
    "obverse.identity",
    "obverse.integrations",
    "obverse.ladder",
    "obverse.claims",
    "obverse.data",
    "obverse.nets",
    "obverse.present",
    "obverse",
]
maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "obverse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
html_math_renderer = "offline"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = True
html_theme_options = {
    "sidebar_hide_name": False,
    # no fonts from elsewhere: those that the reader's machine has
    "light_css_variables": {
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    },
}
pygments_style = "default"
pygments_dark_style = "github-dark"
highlight_language = "bash"  # of blocks that name no language: they are commands
