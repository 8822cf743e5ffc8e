"""Pictures of the explorer's tabs for docs/explore.md: the real command in a real Chromium.

Needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver).

python -m experiments.explorer.run
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from .._lab.places import FIGURES

WIDTH, HEIGHT = 1180, 1080
TABS = {"shadow": "#recovery", "bench": "#measured", "birthday": "#bound", "ladder": "#worst"}
COLOURS = 255  # of a picture: flat areas and text need no more


def run() -> None:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "obverse", "explore", "--no-browser"]
        process = subprocess.Popen(
            command, env=os.environ | {"XDG_CACHE_HOME": cache}, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            browser.set_window_size(WIDTH, HEIGHT)
            for tab, number in TABS.items():
                browser.get("about:blank")
                browser.get(f"{address}#{tab}")
                time.sleep(10)  # until the simulations have come to rest
                said = browser.execute_script(
                    "return document.querySelector(arguments[0]).textContent", number
                )
                picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
                path = FIGURES / f"explore-{tab}.png"
                picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
                print(f"{path.name}: {said.strip()}, {path.stat().st_size // 1024} kB")
        finally:
            browser.quit()
            process.terminate()
            process.wait()


if __name__ == "__main__":
    run()
