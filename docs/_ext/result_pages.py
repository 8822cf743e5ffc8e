"""The pages of published results: made of the committed files for the site, and where links to these lead.

In the repository a link leads to the results, `experiments/claims/results/NAME/claims.json` or
`experiments/zoo/results/gallery/NAME/audit.json`; on the site to their page, `claims/NAME.html` or
`zoo/NAME.html`, and to a place on it. What is linked may be an image.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from obverse.app import write_report

EXPERIMENTS = Path("experiments")
RESULTS = {"claims": EXPERIMENTS / "claims" / "results", "zoo": EXPERIMENTS / "zoo" / "results" / "gallery"}
FILE = r"\w+\.json"
LINK = re.compile(
    r"\[(!\[[^\]]*\]\([^)]*\)|[^\]]+)\]\((?:\.\./)+"
    rf"({'|'.join(folder.as_posix() for folder in RESULTS.values())})/([\w-]+)/{FILE}(?:#([^)]+))?\)"
)
log = logging.getLogger(__name__)


def page_of(app: Sphinx, kind: str, name: str) -> Path:
    return Path(app.outdir) / kind / f"{name}.html"


@cache
def places(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


def write(app: Sphinx) -> None:
    for kind, folder in RESULTS.items():
        for results in sorted((Path(app.srcdir).parent / folder).glob("*/*.json")):
            page = page_of(app, kind, results.parent.name)
            page.parent.mkdir(parents=True, exist_ok=True)
            write_report(results, page)


def relink(app: Sphinx, name: str, source: list[str]) -> None:
    """`[text](../experiments/claims/results/x/claims.json#place)` leads to `claims/x.html#place`."""

    def link(match: re.Match[str]) -> str:
        text, folder, result, place = match.groups()
        kind = next(kind for kind, one in RESULTS.items() if one.as_posix() == folder)
        page = page_of(app, kind, result)
        if not page.is_file():
            log.warning("%s: no results in %s/%s", name, folder, result)
        elif place and place not in places(page):
            log.warning("%s: no place %r on %s", name, place, page.name)
        address = "../" * name.count("/") + f"{kind}/{result}.html" + (f"#{place}" if place else "")
        return f'<a class="reference internal" href="{address}">{text}</a>'

    source[0] = LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("source-read", relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
