"""Settings that every test shares, and a real browser to open pages in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import settings

from obverse.app._explorer import Subject
from obverse.app.main import main
from obverse.data import load
from obverse.nets import relu_mlp
from training.helpers import tiny_npz

# The same examples at every run, and no time limit for one: CI machines are slow now and then.
settings.register_profile("obverse", derandomize=True, deadline=None)
settings.load_profile("obverse")
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


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Tiny tensors gain nothing from threads, and bits are compared with processes that have one."""
    torch.set_num_threads(1)  # and again for the next test: `train --resume` sets the run's own number


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Nets draw their first weights from torch's own generator: the same ones in every run, in any order."""
    torch.manual_seed(0)


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


class Done(NamedTuple):
    code: int
    out: str
    err: str


Obverse = Callable[..., Done]


@pytest.fixture
def obverse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Obverse:
    """The command line in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["obverse", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tiny_npz(tmp_path / "tiny.npz")


@pytest.fixture
def small(data: Path, tmp_path: Path) -> list[str]:
    """Flags of a training that takes a moment, into tmp_path/run."""
    words = ["--data", str(data), "--hidden", "5,4", "--epochs", "2", "--batch-size", "20", "--no-report"]
    return [*words, "--out", str(tmp_path / "run")]


@pytest.fixture(scope="session")
def subject() -> Subject:
    """An untrained net on the embedded digits."""
    data = load("digits")
    torch.manual_seed(0)
    return Subject.of("a net", relu_mlp(data.input_shape, hidden=(64, 48), classes=10), data)
