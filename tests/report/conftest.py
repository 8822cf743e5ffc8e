"""A tiny real comparison to make pages from, and a real browser to open them in."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from obverse.report import build
from obverse.training import ClassifierTask, Settings, compare, create_run, fit

VARIANTS = ("backprop", "dropout", "shadow")
FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests run as root in containers
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three variants with three seeds, finished; not to be changed, see `copied`."""
    path = tmp_path_factory.mktemp("report") / "comparison"
    compare(Settings(hidden=(24, 24), epochs=2, train_size=300, batch=50), VARIANTS, (0, 1, 2), path)
    return path


@pytest.fixture(scope="session")
def page(comparison: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole comparison."""
    return build(comparison, tmp_path_factory.mktemp("page") / "comparison.html")


@pytest.fixture
def copied(comparison: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(comparison, tmp_path / "copy"))


@pytest.fixture
def single(comparison: Path, tmp_path: Path) -> Path:
    """One finished run."""
    return Path(shutil.copytree(comparison / "runs" / "shadow" / "seed-1", tmp_path / "single"))


@pytest.fixture
def train_on(tmp_path: Path) -> Callable[..., Path]:
    """Trains one small net on a data set of the test's own."""

    def train(data: Path, **changes: Any) -> Path:
        settings = Settings(data=str(data), hidden=(8,), epochs=1, batch=10, weight=1.0, **changes)
        create_run(tmp_path / "run", settings)
        fit(ClassifierTask(settings), settings.epochs, run=tmp_path / "run")
        return tmp_path / "run"

    return train


@pytest.fixture(scope="session")
def browser_paths() -> tuple[str, str]:
    """Chromium and its driver, installed if need be; never skipped unless the environment says so."""
    if os.environ.get("OBVERSE_NO_BROWSER") == "1":
        pytest.skip("OBVERSE_NO_BROWSER=1")
    found = _find()
    if found is None and shutil.which("apt-get"):
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "chromium", "chromium-driver"]):
            if root and shutil.which("sudo") is None:
                break
            subprocess.run([*root, *command], check=False, capture_output=True, timeout=600)
        found = _find()
    if found is None:
        pytest.fail(
            "expected Chromium and chromedriver; got neither on the PATH and could not install them; "
            "install them (Debian: apt-get install chromium chromium-driver), or leave these tests out "
            "with OBVERSE_NO_BROWSER=1"
        )
    return found


def _find() -> tuple[str, str] | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver") or shutil.which(
        "chromedriver", path="/usr/lib/chromium-browser:/usr/lib/chromium"
    )
    return (browser, driver) if browser and driver else None


@pytest.fixture(scope="module")
def browser(browser_paths: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser_paths[0]
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(browser_paths[1]), options=options)
    try:
        yield driver
    finally:
        driver.quit()
