"""Tables that can be read on a phone: sentences get room, numbers stay in one line."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

SENTENCE = 40  # characters from which a cell is text rather than a number or a name
PARAGRAPH = 110
TALL = 30  # rows


def mark(app: Sphinx, doctree: nodes.document) -> None:
    for table in doctree.findall(nodes.table):
        rows = [len(list(row.findall(nodes.entry))) for row in table.findall(nodes.row)]
        table["classes"].append("many-columns" if max(rows, default=0) > 4 else "few-columns")
        if len(rows) > TALL:
            table["classes"].append("tall")
        for entry in table.findall(nodes.entry):
            length = len(entry.astext())
            kind = "paragraph" if length > PARAGRAPH else "sentence" if length > SENTENCE else "short"
            entry["classes"].append(kind)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
