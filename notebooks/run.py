"""Run notebooks from empty and keep what they show.

    python notebooks/run.py                    all of them
    python notebooks/run.py 4-a-theorem-executed.ipynb

Each is run in a fresh kernel and an empty folder. What is kept is small and says nothing of the machine: no
times, no paths, figures with 256 colours, and a digest of the code, by which a test sees that the outputs
belong to it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parent
SECONDS = 600  # of one cell, on a slow machine
KEPT = ("text/html", "text/plain", "image/png")  # of what a cell shows
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def digest(notebook: Any) -> str:
    """Of the code alone: words around it may change without a new run."""
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\n\n".join(code).encode()).hexdigest()


def execute(path: Path) -> Any:
    """The notebook with new outputs. An error in a cell is an error here."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = dict(METADATA)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            record_timing=False,
            store_widget_state=False,
        )
        client.execute(env=os.environ | {"PYTHONWARNINGS": "error::UserWarning:obverse"})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [tidy(one) for one in joined(cell.outputs)]
    notebook.metadata = METADATA | {"obverse": {"code": digest(notebook)}}
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """What a cell printed to one stream, in one piece: in how many it comes is a matter of time."""
    kept: list[Any] = []
    for one in outputs:
        if kept and "text" in one and "text" in kept[-1] and kept[-1]["name"] == one["name"]:
            kept[-1]["text"] += one["text"]
        else:
            kept.append(one)
    return kept


def tidy(output: Any) -> Any:
    """Without what only a running notebook can show, and with small figures."""
    if "data" in output:
        sizes = output.metadata.get("image/png")
        output.metadata = {} if sizes is None else {"image/png": dict(sizes)}
        output.data = {kind: value for kind, value in output.data.items() if kind in KEPT}
        if "image/png" in output.data:
            output.data = {"image/png": smaller(output.data["image/png"]), "text/plain": "a figure"}
    return output


def smaller(png: str) -> str:
    """The same picture with a palette of 256 colours."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    buffer = io.BytesIO()
    picture.quantize(256, method=Image.Quantize.MEDIANCUT).save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def main() -> None:
    names = sys.argv[1:] or [path.name for path in sorted(FOLDER.glob("*.ipynb"))]
    for name in names:
        path = FOLDER / name
        nbformat.write(execute(path), path)
        print(f"{name}: {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
