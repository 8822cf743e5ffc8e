"""docs/zoo.md and docs/gallery.md with their figures from the committed results: no hand-made numbers.

python -m experiments.zoo.page
"""

from __future__ import annotations

from obverse._core.files import write_text

from .._lab.places import DOCS
from .._lab.result_files import read
from . import figures, gallery, words
from .results_of import nets
from .results_of import tables as layers_of
from .run import RESULTS


def page() -> None:
    found = layers_of(copies=True)
    figures.heat_map({nets()[name].title: rows for name, rows in found.items()})
    four = read(RESULTS / "figure-4.json")
    figures.figure_four(four["settings"], four["entries"])
    write_text(DOCS / "zoo.md", words.text())
    write_text(DOCS / "gallery.md", gallery.text())


if __name__ == "__main__":
    page()
