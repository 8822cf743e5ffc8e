"""The pages of published claims: made of the committed results for the site, and where links to these lead.

In the repository a link leads to the results, `experiments/claims/results/NAME/claims.json`; on the site to
their page, `claims/NAME.html`, and to a place on it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from obverse.app import write_report

RESULTS = Path("experiments") / "claims" / "results"
LINK = re.compile(rf"\[([^\]]+)\]\((?:\.\./)+{RESULTS.as_posix()}/(\w+)/claims\.json(?:#([^)]+))?\)")
log = logging.getLogger(__name__)


def page_of(app: Sphinx, name: str) -> Path:
    return Path(app.outdir) / "claims" / f"{name}.html"


@cache
def places(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


def write(app: Sphinx) -> None:
    for results in sorted((Path(app.srcdir).parent / RESULTS).glob("*/claims.json")):
        page = page_of(app, results.parent.name)
        page.parent.mkdir(parents=True, exist_ok=True)
        write_report(results, page)


def relink(app: Sphinx, name: str, source: list[str]) -> None:
    """`[text](../experiments/claims/results/x/claims.json#place)` leads to `claims/x.html#place`."""

    def link(match: re.Match[str]) -> str:
        text, sweep, place = match.groups()
        page = page_of(app, sweep)
        if not page.is_file():
            log.warning("%s: no results of claims in %s", name, RESULTS / sweep)
        elif place and place not in places(page):
            log.warning("%s: no place %r on %s", name, place, page.name)
        address = "../" * name.count("/") + f"claims/{sweep}.html" + (f"#{place}" if place else "")
        return f'<a class="reference internal" href="{address}">{text}</a>'

    source[0] = LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("source-read", relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
