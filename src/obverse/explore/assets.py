"""The files of the page, with the report's colours in them. Not for what they ask: see routes."""

from __future__ import annotations

from importlib.resources import files

from ..report import palette
from ..report.template import environment

FOLDER = "page"


def render() -> dict[str, str]:
    """Every file by its name; templates are filled in. Nothing of the net is in them."""
    from .. import __version__

    engine = environment()
    found = {}
    for file in files(__package__).joinpath(FOLDER).iterdir():
        text = file.read_text(encoding="utf-8")
        if file.name.endswith(".j2"):
            text = engine.from_string(text).render(palette=palette, version=__version__)
        found[file.name.removesuffix(".j2")] = text
    return found
