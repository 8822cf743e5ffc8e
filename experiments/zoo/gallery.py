"""Pictures of result pages for docs/gallery.md, in a real Chromium; each links to its page.

    python -m experiments.zoo.gallery

The pages are made of results/gallery/NAME/audit.json, which this copies from what `run` left. Needs chromium
and chromedriver (Debian: apt-get install chromium chromium-driver).
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from obverse._core import BadInput, write_text
from obverse.app import write_report
from obverse.weights.results import read_audit

from .._lab.places import FIGURES
from .manifest import named
from .run import PLACE, RESULTS

FOLDER = RESULTS / "gallery"
NETS = {  # and the picture of its page
    "alexnet-convolutions": "gallery-alexnet.png",
    "vgg16-convolutions": "gallery-vgg16.png",
    "mobilenet-v2": "gallery-mobilenet.png",
    "stories15m": "gallery-stories15m.png",
    "albert-tiny-chinese": "gallery-albert.png",
    "crepe": "gallery-crepe.png",
    "resemblyzer": "gallery-resemblyzer.png",
    "magika": "gallery-magika.png",
}
GENERATORS = {"dcgan-eyes": "gallery-dcgan.png", "wavegan-ecg": "gallery-wavegan.png"}
WIDTH, HEIGHT, COLOURS = 1080, 1250, 200
LAYERS = "[...document.querySelectorAll('h2')].find(h => h.textContent == 'Layers').scrollIntoView()"
SHOWN = 720  # pixels across
LARGEST, LARGEST_PICTURE = 10**6, 200_000  # bytes


def published(name: str) -> Path:
    """Its audit, among the results."""
    folder = FOLDER / name
    target = folder / "audit.json"
    if not target.exists():
        text = (PLACE / name / "audit.json").read_text(encoding="utf-8")
        if len(text.encode()) > LARGEST:
            raise BadInput(
                f"an audit of at most {LARGEST:,} bytes", got=f"{name}: {len(text):,}", do="take another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
    return target


def summary(name: str) -> str:
    return read_audit(FOLDER / name / "audit.json").summary


def run() -> None:
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        browser.set_window_size(WIDTH, HEIGHT)
        with tempfile.TemporaryDirectory() as folder:
            for name, picture in (NETS | GENERATORS).items():
                if not (PLACE / name / "audit.json").exists():
                    print(f"{name}: not audited yet")
                    continue
                page = write_report(published(name), Path(folder) / f"{name}.html")
                browser.get(page.as_uri())
                browser.execute_script(LAYERS)
                taken = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
                kept(taken, FIGURES / picture)
    finally:
        browser.quit()


def kept(taken: Any, path: Path) -> None:
    from PIL import Image

    taken = taken.resize((SHOWN, SHOWN * taken.height // taken.width), Image.Resampling.LANCZOS)
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    if size > LARGEST_PICTURE:
        raise BadInput(
            f"a picture of at most {LARGEST_PICTURE:,} bytes", got=f"{path.name}: {size:,}", do="crop it"
        )
    print(f"{path.name}: {size // 1024} kB", flush=True)


def text() -> str:
    """docs/gallery.md."""
    titles = {net.name: net.title for net in named([*NETS, *GENERATORS])}
    parts = [
        "# Gallery",
        (
            "What a result page looks like, of nets that people use: audits of [the zoo](zoo.md). Each "
            "picture leads to its page, with every layer, its sentence and charts. Type, for one of yours:"
        ),
        "```\nobverse audit model.safetensors --out audits/first\n```",
    ]
    for heading, pictures in (("Nets", NETS), ("Generators", GENERATORS)):
        there = [name for name in pictures if (FOLDER / name / "audit.json").exists()]
        parts += [f"## {heading}"] if there else []
        for name in there:
            link = f"../experiments/zoo/results/gallery/{name}/audit.json"
            words = f"The first layers on the page of the audit of {titles[name]}"
            parts.append(f"### {titles[name]}\n\n{summary(name)}.")
            parts.append(f"[![{words}](figures/{pictures[name]})]({link})")
    parts.append("Made by `python -m experiments.zoo.gallery` from what `make zoo` measures.")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    run()
