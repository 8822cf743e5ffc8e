"""The published result pages in the site: links to them lead to a copy, and may name a place on it."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

RESULTS = Path("experiments") / "results"
LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)+experiments/results/([^)#]+\.html)(?:#([^)]+))?\)")
log = logging.getLogger(__name__)


@cache
def places(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


def relink(app: Sphinx, name: str, source: list[str]) -> None:
    """`[text](../experiments/results/x/y.html#place)` leads to `results/x/y.html#place` of the site."""

    def link(match: re.Match[str]) -> str:
        text, page, place = match.groups()
        file = Path(app.srcdir).parent / RESULTS / page
        if not file.is_file():
            log.warning("%s: no result page %s", name, page)
        elif place and place not in places(file):
            log.warning("%s: no place %r on %s", name, place, page)
        address = "../" * name.count("/") + f"results/{page}" + (f"#{place}" if place else "")
        return f'<a class="reference internal" href="{address}">{text}</a>'

    source[0] = LINK.sub(link, source[0])


def copy(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    results = Path(app.srcdir).parent / RESULTS
    for page in results.rglob("*.html"):
        place = Path(app.outdir) / "results" / page.relative_to(results)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, place)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", relink)
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
