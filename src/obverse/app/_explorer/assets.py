"""The files of the page, with the report's colours in them. Not for what they ask: see routes."""

from __future__ import annotations

from importlib.resources import files

from ...present import environment, palette
from .routes import TABS

FOLDER = "page"


def render() -> dict[str, str]:
    """Every file by its name; templates are filled in. Nothing of the net is in them."""
    from ... import __version__

    engine = environment()
    found = {}
    tabs = {tab.name: files("obverse").joinpath(tab.script) for tab in TABS}
    shared = {file.name: file for file in files(__package__).joinpath(FOLDER).iterdir()}
    for title, file in (shared | tabs).items():
        text = file.read_text(encoding="utf-8")
        if title.endswith(".j2"):
            text = engine.from_string(text).render(palette=palette, version=__version__)
        found[title.removesuffix(".j2")] = text
    return found
