"""Moves Sphinx's page of search results from search.html to find.html: search.md is a page of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain

PAGE = "find"


def move(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    builder: Any = app.builder
    write = builder.handle_page

    def handle_page(name: str, context: dict[str, Any], templatename: str = "page.html", **more: Any) -> None:
        own = name == "search" and templatename == "search.html"
        write(PAGE if own else name, context, templatename, **more)

    builder.handle_page = handle_page


def lead_there(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Templates ask for the path of "search" and mean the page of results; links in pages do not."""
    path: Callable[..., str] = context["pathto"]
    context["pathto"] = lambda to, *args, **more: path(PAGE if to == "search" else to, *args, **more)


def setup(app: Sphinx) -> dict[str, bool]:
    # in a table of contents "search" would stand for the page of results, whatever pages there are
    StandardDomain._virtual_doc_names.pop("search", None)
    app.connect("builder-inited", move)
    app.connect("html-page-context", lead_there)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
