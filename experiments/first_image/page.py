"""The first image of the README, from the pixels in results: docs/figures/layers.jpg.

python -m experiments.first_image.page
"""

from __future__ import annotations

from .._lab.drawing import new_figure
from .._lab.places import FIGURES
from .run import RESULTS, SIDE

COLUMNS = ("photo", "layer 1", "layer 2", "layer 3", "layer 4", "layer 5")
ROWS = ("trained", "weights shuffled")


def page() -> None:
    import numpy as np
    from PIL import Image

    with Image.open(RESULTS / "layers.jpg") as image:
        pixels = np.asarray(image.convert("RGB"))
    figure = new_figure(10.2, 3.7)
    axes = figure.subplots(len(ROWS), len(COLUMNS))
    for down, name in enumerate(ROWS):
        for across, title in enumerate(COLUMNS):
            place = axes[down][across]
            top, left = SIDE * down, SIDE * across
            place.imshow(pixels[top : top + SIDE, left : left + SIDE])
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set_visible(False)
            if down == 0:
                place.set_title(title, fontsize=10)
            if across == 0:
                place.set_ylabel(name, fontsize=10)
    # JPEG: of photos, a tenth of the size of a PNG
    figure.savefig(FIGURES / "layers.jpg", dpi=110, pil_kwargs={"quality": 88, "optimize": True})


if __name__ == "__main__":
    page()
