"""Every Python block of the documentation runs, file by file, in order, and shows what it prints."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from obverse.claims import _registry, claims

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Pages whose command lines are run too, in order, in an empty folder.
RUN = {"README.md": True, "tutorial.md": True}  # whether that is slow
NUMBER = re.compile(r"[−+-]?\d(?:[\d,]*\d)?(?:\.\d+)?")


def examples(page: Path, *languages: str) -> list[tuple[str, str | None]]:
    """The blocks in these languages, each with the block of text right below it, which is its output."""
    fences = r"^```(\w*)\n(.*?)^```\n(\n(?=```text\n))?"
    found = re.findall(fences, page.read_text(encoding="utf-8") + "\n", re.MULTILINE | re.DOTALL)
    return [
        (code, found[at + 1][1] if followed else None)
        for at, (language, code, followed) in enumerate(found)
        if language in languages
    ]


def blocks(page: Path) -> list[str]:
    return [code for code, _ in examples(page, "python")]


def said(text: str) -> str:
    """Words and numbers in their order, whatever the width; without the rules and stars of tables."""
    return " ".join(re.sub(r"[─━]+|\*", " ", text).split())


def assert_shows(shown: str, got: str) -> None:
    """The words are the same and numbers nearly so; a line that is … stands for any lines.

    Sums are rounded otherwise by other builds of torch and on other numbers of threads, and training enlarges
    that: shares of a few hundred inputs, in percent, may differ by three standard errors, all else by a tenth
    or by three in the last place that is shown. Of times and p-values only that there is one is looked at.
    """
    left = said(got)
    for part in re.split(r"^ *… *$", shown, flags=re.MULTILINE):
        pattern = NUMBER.pattern.join(map(re.escape, NUMBER.split(said(part))))
        match = re.search(pattern, left)
        assert match, f"expected\n{shown}\ngot\n{got}"
        timed = "seconds" in shown
        for one, other in zip(NUMBER.findall(said(part)), NUMBER.findall(match[0]), strict=True):
            assert timed or near(one, other), f"expected {one}; got {other} in\n{got}"
        left = left[match.end() :]


def near(one: str, other: str) -> bool:
    first, second = (float(text.replace(",", "").replace("−", "-")) for text in (one, other))
    places = len(one.partition(".")[2])
    least = 3 if places <= 1 else 3 * 10.0**-places  # of 500 inputs 95 % right: 3 standard errors
    return abs(first - second) <= max(0.1 * abs(first), least) * (1 + 1e-9)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_snippets_run_and_print_what_stands_below_them(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # what a block writes stays here
    module = ModuleType(f"docs_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # as in a file: functions are found by name
    claims()
    monkeypatch.setattr(_registry, "_CLAIMS", dict(_registry._CLAIMS))  # a page's own claims end with it
    for number, (block, output) in enumerate(examples(page, "python"), start=1):
        file = tmp_path / f"block_{number}.py"  # so that the source of its functions can be read
        file.write_text(block, encoding="utf-8")
        capsys.readouterr()
        exec(compile(block, str(file), "exec"), module.__dict__)
        if output is not None:
            assert_shows(output, capsys.readouterr().out)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * slow) for name, slow in RUN.items()]
)
def test_commands_run_and_print_what_stands_below_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obverse: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "96")  # as wide as the outputs of these pages
    page = next(page for page in PAGES if page.name == name)
    shown = 0
    for code, output in examples(page, "", "bash"):
        lines = [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines()]
        own = [words[1:] for words in lines if words[:1] == ["obverse"]]
        if output is None and not all(words and words[0] == "obverse" for words in lines if words):
            continue  # to install, to look around: not to be run here
        done = [obverse(*words) for words in own]
        assert all(one.code == 0 for one in done), done
        if output is not None:
            assert_shows(output, "".join(one.out for one in done))
            shown += 1
    assert shown >= 3


def test_an_output_that_is_not_what_is_printed_is_seen() -> None:
    assert_shows("accuracy 97.0 %\n…\n3 layers", "accuracy 97.2 %\nmore\nand more\n3 layers\nend")
    assert_shows("layer  signal\n─────\nh1     7 of 64", "layer        signal\nh1    7 of 64\n")
    for wrong in ("accuracy 87.0 %", "accuracy 97.2", "3 layers", "Accuracy 97.0 %"):
        with pytest.raises(AssertionError):
            assert_shows(f"{wrong}\nend", "accuracy 97.0 %\nend")


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
