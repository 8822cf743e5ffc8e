"""Settings that every test shares, and a real browser to open pages in."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

# Before torch and NumPy are loaded, and for the processes that tests start: tests run side by side, one per
# core, and threads that wait for a core spin. With two threads each a small training takes ten times as long.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

from obverse._core import seed_global  # noqa: E402
from obverse.app._explorer import Subject  # noqa: E402
from obverse.app.main import main  # noqa: E402
from obverse.data import load  # noqa: E402
from obverse.nets import relu_mlp  # noqa: E402
from training.helpers import tiny_npz  # noqa: E402

# Started in the background by a shell, tests would ignore Ctrl-C, and so would the commands they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
NO_BROWSER = "no Chromium and chromedriver on the PATH; `make browser` installs them"


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Tiny tensors gain nothing from threads, and bits are compared with processes that have one."""
    torch.set_num_threads(1)  # and again for the next test: `train --resume` sets the run's own number


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Nets draw their first weights from torch's own generator: the same ones in every run, in any order."""
    seed_global(0)


@pytest.fixture(scope="session")
def browser_paths() -> tuple[str, str]:
    """Chromium and its driver; nothing is installed here. CI must have them, a user's machine need not."""
    found = find_browser()
    if found is None:
        if os.environ.get("OBVERSE_REQUIRE_BROWSER") == "1":
            pytest.fail(
                "OBVERSE_REQUIRE_BROWSER=1: expected Chromium and chromedriver on the PATH; got neither or "
                "one of them; run `make browser`"
            )
        pytest.skip(NO_BROWSER)
    return found


def find_browser() -> tuple[str, str] | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver") or shutil.which(
        "chromedriver", path="/usr/lib/chromium-browser:/usr/lib/chromium"
    )
    return (browser, driver) if browser and driver else None


def left_out(skipped: Iterable[tuple[str, str]]) -> str:
    """One line about the browser tests among the skipped ones, given as (node id, reason); empty if none."""
    files = Counter(node.partition("::")[0] for node, reason in skipped if NO_BROWSER in reason)
    if not files:
        return ""
    which = ", ".join(f"{count} in {file}" for file, count in sorted(files.items()))
    noun = "test" if files.total() == 1 else "tests"
    return (
        f"left out for want of a browser: {files.total()} {noun} ({which}); "
        "run them with: make browser && make test"
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """After pytest's own last line, and in the process that prints (workers have no terminal)."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        line = left_out((report.nodeid, str(report.longrepr)) for report in terminal.stats.get("skipped", ()))
        if line:
            terminal.write_line(line)


@pytest.fixture(scope="session")
def driver(browser_paths: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium for all tests of a worker; tests ask for `browser`."""
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


@pytest.fixture
def browser(driver: Any) -> Any:
    """The browser as if it had just been started: one empty page, no overrides, nothing stored or logged."""
    first, *others = driver.window_handles
    for window in others:
        driver.switch_to.window(window)
        driver.close()
    driver.switch_to.window(first)
    driver.get("about:blank")
    for command, values in (
        ("Emulation.clearDeviceMetricsOverride", {}),
        ("Emulation.setEmulatedMedia", {"media": "", "features": []}),
        ("Emulation.setScriptExecutionDisabled", {"value": False}),
        ("Network.clearBrowserCookies", {}),
        ("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"}),
    ):
        driver.execute_cdp_cmd(command, values)
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    return driver


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
