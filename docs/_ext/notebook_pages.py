"""The notebooks as pages of the site, with the outputs that they were kept with: nothing is run here.

`docs/notebooks/NAME.md` names a notebook by a link to it; on the site its cells stand in the page's place.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = "notebooks"
LINK = re.compile(r"\]\(\.\./\.\./notebooks/([\w-]+\.ipynb)\)")
FENCE = "``````"
CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def unfold(app: Sphinx, name: str, source: list[str]) -> None:
    if not name.startswith(f"{FOLDER}/"):
        return
    found = LINK.search(source[0])
    if not found:
        raise ValueError(f"docs/{name}.md: expected a link to a notebook")
    path = Path(app.srcdir).parent / FOLDER / found[1]
    app.env.note_dependency(str(path))
    app.env.note_dependency(__file__)
    source[0] = markdown(json.loads(path.read_text(encoding="utf-8")), path.name)


def markdown(notebook: dict[str, Any], name: str) -> str:
    """All cells, the notebook itself as a download below the title."""
    parts: list[str] = []
    for number, cell in enumerate(notebook["cells"]):
        text = text_of(cell["source"])
        if cell["cell_type"] == "markdown":
            if number == 0:
                title, _, rest = text.partition("\n")
                link = f"{{download}}`The notebook <../../{FOLDER}/{name}>`"
                text = f"{title}\n\n{link}, as it was last run.\n\n{rest}"
            parts.append(text)
        elif cell["cell_type"] == "code":
            parts.append(f"{FENCE}python\n{text}\n{FENCE}")
            parts += [shown(one) for one in joined(cell["outputs"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def text_of(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines that were printed one after the other as one text."""
    found: list[dict[str, Any]] = []
    for one in outputs:
        if one["output_type"] == "stream" and found and found[-1]["output_type"] == "stream":
            found[-1] = found[-1] | {"text": text_of(found[-1]["text"]) + text_of(one["text"])}
        else:
            found.append(one)
    return found


def shown(output: dict[str, Any]) -> str:
    """A figure, a result's own HTML, or text."""
    if output["output_type"] == "stream":
        return plain(text_of(output["text"]))
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(text_of(data["image/png"]).split())
        size = output.get("metadata", {}).get("image/png", {})
        width = f' width="{int(size["width"])}"' if "width" in size else ""
        image = f'<img alt="figure"{width} src="data:image/png;base64,{picture}">'
        return raw(f'<p class="cell-output">{image}</p>')
    if "text/html" in data:
        return raw(f'<div class="cell-output">{text_of(data["text/html"])}</div>')
    return plain(text_of(data.get("text/plain", "")))


def plain(text: str) -> str:
    text = CONTROL.sub("", text).rstrip()
    return f":::{{container}} cell-output\n{FENCE}text\n{text}\n{FENCE}\n:::" if text else ""


def raw(html: str) -> str:
    return f"{FENCE}{{raw}} html\n{html}\n{FENCE}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", unfold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
