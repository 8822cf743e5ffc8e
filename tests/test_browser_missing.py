"""A machine without a browser: `make test` passes, and its last line says what was left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import NO_BROWSER, left_out

ROOT = Path(__file__).parent.parent
BROWSER_TEST = "tests/ladder/test_ladder_browser.py"


def pytest_without_browser(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """One browser test, with two workers, where the PATH has no browser."""
    environment = {**os.environ, "PATH": str(folder), **settings}
    words = ["-q", "-n", "2", "-p", "no:cacheprovider", "-k", "print_is_light", BROWSER_TEST]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_line_counts_browser_tests_by_file_and_says_how_to_get_them() -> None:
    skipped = [
        ("tests/b/test_b.py::test_one[light]", f"Skipped: {NO_BROWSER}"),
        ("tests/b/test_b.py::test_two", f"Skipped: {NO_BROWSER}"),
        ("tests/a/test_a.py::test_one", f"Skipped: {NO_BROWSER}"),
        ("tests/a/test_a.py::test_other", "Skipped: no GPU"),
    ]
    assert left_out(skipped) == (
        "left out for want of a browser: 3 tests (1 in tests/a/test_a.py, 2 in tests/b/test_b.py); "
        "run them with: make browser && make test"
    )


def test_no_line_where_nothing_was_left_out() -> None:
    assert left_out([("tests/a/test_a.py::test_other", "Skipped: no GPU")]) == ""


@pytest.mark.slow  # each of the two runs starts pytest and torch three times
def test_a_user_without_a_browser_passes_and_ci_fails(tmp_path: Path) -> None:
    user = pytest_without_browser(tmp_path, OBVERSE_REQUIRE_BROWSER="")
    assert user.returncode == 0, user.stdout
    assert user.stdout.splitlines()[-1] == left_out([(BROWSER_TEST, NO_BROWSER)])
    required = pytest_without_browser(tmp_path, OBVERSE_REQUIRE_BROWSER="1")
    assert required.returncode == 1
    assert "run `make browser`" in required.stdout


def test_tests_install_nothing() -> None:
    """No conftest and no test starts a package manager; `make browser` does, on request."""
    managers = re.compile(r"""["'](apt|apt-get|brew|dnf|yum|pacman|snap)["']""")
    files = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    assert [file.name for file in files if managers.search(file.read_text(encoding="utf-8"))] == []
