"""The documentation site: it builds without a warning, asks no other host, and says what the code does.

Most tests look at the pages as Sphinx has read and linked them; to write them as HTML, where the slow tests
look again, takes twice as long.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import docutils_namespace
from typer.main import get_command

import obverse
from experiments.claims import papers
from obverse.app.main import app
from obverse.claims import claims

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
TEXTS = [ROOT / "README.md", *PAGES, *sorted((ROOT / "experiments").rglob("README.md"))]
INSTRUMENTS = (
    "shadow",
    "training",
    "audit",
    "claims",
    "diversity",
    "generators",
    "identity",
    "ladder",
)
HEADINGS = [
    "What question it answers",
    "How to read the answer",
    "When not to trust it",
    "The equation behind it",
    "Reproduce the figures",
]


class Links(HTMLParser):
    """What a page loads, where its links lead, and the places that links can lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            value = value or ""
            if name == "id":
                self.places.add(value)
            elif name == "href" and tag == "a":
                self.links.append(value)
            elif name in ("src", "srcset", "action", "data", "poster", "href"):
                self.loaded.append(value)
            elif name == "style":
                self.loaded += re.findall(r"url\(\s*['\"]?([^)'\"]+)", value)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuildEnvironment]:
    """The pages read and linked, without a warning; nothing is written but the pages of claims."""
    folder, said, path = tmp_path_factory.mktemp("read"), StringIO(), list(sys.path)
    with warnings.catch_warnings(), docutils_namespace():
        warnings.simplefilter("ignore")  # of extensions about each other; `said` has those of the pages
        app = Sphinx(DOCS, DOCS, folder / "out", folder / "doctrees", "dummy", status=None, warning=said)
        app.build()
        assert said.getvalue() == ""
        yield app.env
    sys.path[:] = path  # docs/conf.py adds to it


def text_of(read: BuildEnvironment, page: str) -> str:
    return read.get_doctree(page).astext()


def places_of(read: BuildEnvironment, page: str) -> set[str]:
    return {place for node in read.get_doctree(page).findall(nodes.Element) for place in node["ids"]}


def test_every_page_is_read_and_in_the_table_of_contents(read: BuildEnvironment) -> None:
    names = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}
    assert set(read.found_docs) == names
    listed = {name for inner in read.toctree_includes.values() for name in inner}
    assert listed | {read.config.root_doc} == names


def test_every_example_is_read(read: BuildEnvironment) -> None:
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert scripts
    text, places = text_of(read, "examples"), places_of(read, "examples")
    for script in scripts:
        assert script.stem.replace("_", "-") in places
        last = script.read_text(encoding="utf-8").rstrip().splitlines()[-1]
        assert last.strip() in text, script.name


@pytest.mark.slow
def test_every_formula_can_be_drawn(read: BuildEnvironment) -> None:
    mathml = import_module("offline_math").mathml
    for name in read.found_docs:
        page = read.get_doctree(name)
        blocks = list(page.findall(nodes.math_block))
        assert blocks or name not in INSTRUMENTS, name
        for node in (*blocks, *page.findall(nodes.math)):
            assert "merror" not in mathml(node, as_block=isinstance(node, nodes.math_block)), node.astext()


def packages() -> list[str]:
    rooms = [name for name in obverse.__all__ if isinstance(getattr(obverse, name), ModuleType)]
    return ["obverse", *(f"obverse.{name}" for name in rooms)]


@pytest.mark.parametrize("package", packages())
def test_every_public_name_is_read(package: str, read: BuildEnvironment) -> None:
    page, module = f"api/{package.rpartition('.')[2]}", import_module(package)
    assert module.__all__
    described = {node.astext() for node in read.get_doctree(page).findall(addnodes.desc_name)}
    assert set(module.__all__) <= described
    places, text = places_of(read, page), text_of(read, page)
    assert "The same as" not in text
    for name in module.__all__:
        assert f"{package}.{name}" in places, f"{package}.{name}"


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def assert_commands_are_described(text: str, places: set[str]) -> None:
    for path, command in commands(get_command(app)):
        place = "-".join(("obverse", *path))
        assert place in places, place
        for parameter in command.params:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                hidden = getattr(parameter, "hidden", False) or parameter.param_type_name == "argument"
                assert hidden or flag in text, f"{place} {flag}"


def test_every_command_and_flag_is_read(read: BuildEnvironment) -> None:
    assert_commands_are_described(text_of(read, "cli"), places_of(read, "cli"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "doctrees")]
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", *build, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert made.returncode == 0, made.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in sorted(site.rglob("*.html"))}


@pytest.mark.slow
def test_every_page_is_built_and_in_the_table_of_contents(site: Path, pages: dict[Path, Links]) -> None:
    contents = {urlsplit(link).path for link in pages[site / "api.html"].links}  # its sidebar lists all
    for page in PAGES:
        built = page.relative_to(DOCS).with_suffix(".html")
        assert (site / built).is_file(), built
        assert built.name == "api.html" or built.as_posix() in contents, f"{page.name} is in no toctree"


@pytest.mark.slow
def test_no_page_asks_another_host(site: Path, pages: dict[Path, Links]) -> None:
    assert len(pages) > len(PAGES)  # the result pages too
    for page, found in pages.items():
        for address in found.loaded:
            assert not re.match(r"(\w+:)?//", address.strip()), f"{page.name} loads {address}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(url\(\s*['\"]?|@import\s+['\"])(\w+:)?//", text), sheet.name


@pytest.mark.slow
def test_every_example_is_on_its_page(site: Path, pages: dict[Path, Links]) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "examples.html").read_text(encoding="utf-8"))
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert scripts
    for script in scripts:
        assert script.stem.replace("_", "-") in pages[site / "examples.html"].places
        last = script.read_text(encoding="utf-8").rstrip().splitlines()[-1]
        assert last.strip() in unescape(text), script.name


@pytest.mark.slow
def test_formulas_need_no_script(site: Path, pages: dict[Path, Links]) -> None:
    for name in INSTRUMENTS:
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in text, name
        loaded = pages[site / f"{name}.html"].loaded
        assert not any(re.search("mathjax|katex", address, re.IGNORECASE) for address in loaded), name
        assert "merror" not in text, name


@pytest.mark.slow
def test_links_lead_to_a_page_and_a_place_on_it(site: Path, pages: dict[Path, Links]) -> None:
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.relative_to(site)}: {link}"
            place = unquote(parts.fragment)
            if place and target.suffix == ".html" and place != "top":
                assert place in pages[target].places, f"{page.relative_to(site)}: {link}"


@pytest.mark.slow
@pytest.mark.parametrize("package", packages())
def test_every_public_name_is_described(package: str, site: Path) -> None:
    text = (site / "api" / f"{package.rpartition('.')[2]}.html").read_text(encoding="utf-8")
    module = import_module(package)
    assert module.__all__
    described = set(re.findall(r'<span class="sig-name descname"><span class="pre">([^<]+)</span>', text))
    for name in module.__all__:
        assert name in described, f"{package}.{name}"
        assert f'id="{package}.{name}"' in text, f"{package}.{name}"


@pytest.mark.slow
def test_every_command_and_flag_is_on_the_page(site: Path, pages: dict[Path, Links]) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "cli.html").read_text(encoding="utf-8"))
    assert_commands_are_described(text, pages[site / "cli.html"].places)
    for code in ("0", "1", "2", "3", "130"):
        assert re.search(rf"^{code}[a-z]", text, re.MULTILINE), f"exit code {code}"


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_an_instrument_has_its_headings(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert found[0] == HEADINGS[0]
    assert [heading for heading in found if heading in HEADINGS] == HEADINGS  # others may stand between
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))
    assert all(len(parts[heading].split()) > 30 for heading in HEADINGS)
    assert re.search(r"^\$\$\n.+?\n\$\$$", parts["The equation behind it"], re.MULTILINE | re.DOTALL)
    rows = [row for row in parts["Reproduce the figures"].splitlines() if row.startswith("| ")][2:]
    assert rows
    assert all(re.search(r"`(python|make|obverse) ", row) for row in rows), rows


def images(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8"))


def test_every_figure_exists_and_says_what_it_shows() -> None:
    shown = {(page.parent / file).resolve() for page in TEXTS for _, file in images(page)}
    for page in TEXTS:
        for words, file in images(page):
            assert len(words) > 4, f"{page.name}: {file} without a text in its place"
            assert (page.parent / file).is_file(), f"{page.name}: {file}"
    assert {figure.resolve() for figure in (DOCS / "figures").iterdir()} <= shown


def test_every_figure_is_drawn_by_a_script_or_by_a_command_on_its_page() -> None:
    folders = {page.parent for page in (ROOT / "experiments").glob("*/page.py")}  # what `make docs` calls
    assert len(folders) > 10
    folders.add(ROOT / "experiments" / "gan_equilibrium")  # drawn by the page of the generators
    source = "".join(file.read_text(encoding="utf-8") for folder in folders for file in folder.glob("*.py"))
    for page in PAGES:
        for _, file in images(page):
            stem, name = Path(file).stem, Path(file).name
            if name == "shadows.png":  # of a trained net, which is not kept
                assert "`obverse sample runs/first`" in (DOCS / "shadow.md").read_text(encoding="utf-8")
            elif stem.startswith("explore-"):  # of the real page in a browser, which `make docs` does without
                taken = (ROOT / "experiments" / "explorer" / "run.py").read_text(encoding="utf-8")
                assert f'"{stem.removeprefix("explore-")}": ' in taken
                assert "`python -m experiments.explorer.run`" in page.read_text(encoding="utf-8")
            else:
                drawn = any(f'"{one}"' in source for one in (name, stem, stem.removeprefix("paper-")))
                assert drawn, f"{page.name}: {file}"


def shell_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Command lines of blocks without a language or of a shell; and those inside a sentence, marked False."""
    for block in re.findall(r"^```(?:bash|console|sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.removeprefix("$ "), True
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        yield " ".join(code.split()), False


def check_command(words: list[str], whole: bool) -> None:
    """Of `obverse WORDS`: the command exists, and so does every flag.

    `whole`: its required arguments are there too. A path stands for any path, … for anything.
    """
    command: Any = get_command(app)
    context = command.context_class(command, info_name="obverse")
    path = "obverse"
    while hasattr(command, "commands"):
        options, rest, _ = command.make_parser(context).parse_args(list(words))
        if not rest or rest[0] == "…":
            assert not whole or options, f"{path}: expected a command"
            return
        assert rest[0] in command.commands, f"{path}: no command {rest[0]!r}"
        command, words, path = command.commands[rest[0]], rest[1:], f"{path} {rest[0]}"
        context = command.context_class(command, info_name=path)
    options, left, _ = command.make_parser(context).parse_args(list(words))
    assert not set(left) - {"…"}, f"{path}: what is {left}?"
    for parameter in command.params:
        given = options.get(parameter.name)
        if parameter.required and whole and "--resume" not in words:
            assert given, f"{path}: {parameter.name} is missing"


def command_words(line: str) -> list[str] | None:
    """What follows `obverse` on a line, or None if the line is something else."""
    found = re.match(r"(?:torchrun .*?-m |python -m )?obverse(?: (.*))?$", line.strip())
    if not found:
        return None
    return shlex.split(found[1] or "", comments=True)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_line_is_one_of_the_program(page: Path) -> None:
    for line, whole in shell_lines(page.read_text(encoding="utf-8")):
        words = command_words(line)
        if words is not None:
            try:
                check_command(words, whole)
            except Exception as error:
                raise AssertionError(f"{page.name}: {line}: {error!r}") from error


def test_the_check_of_command_lines_sees_mistakes() -> None:
    check_command(["train", "--data", "mnist"], True)
    check_command(["claims", "run", "alm.*", "--quick"], True)
    for wrong in (["trian"], ["train", "--no-such-flag"], ["claims", "runs"], ["report"]):
        with pytest.raises(Exception):  # noqa: B017
            check_command(wrong, True)
    assert command_words("obverse train --data x  # why") == ["train", "--data", "x"]
    assert command_words("torchrun --nproc-per-node 2 -m obverse train") == ["train"]
    assert command_words("make demo") is None


def test_scripts_and_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in TEXTS:
        for line, _ in shell_lines(page.read_text(encoding="utf-8")):
            for name in re.findall(r"\b(?:experiments|benchmarks|examples)/[\w/.-]+\.(?:py|toml)\b", line):
                assert (ROOT / name).is_file(), f"{page.name}: {name}"
            for name in re.findall(r"\bpython -m (experiments(?:\.\w+)+)", line):
                assert (ROOT / f"{name.replace('.', '/')}.py").is_file(), f"{page.name}: {name}"
            target = re.match(r"make ([\w-]+)", line)
            assert target is None or target[1] in targets, f"{page.name}: {line}"


def test_every_claim_stands_in_the_table_once_and_as_the_results_have_it() -> None:
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    table = page.partition("<!-- results -->\n")[2].partition("<!-- end of results -->")[0]
    assert table == papers.text(), "run make docs"
    ids = Counter(
        id for row in table.splitlines() for id in re.findall(r"`([^`]+)`", row.partition(" | ")[0])
    )
    assert ids == Counter(list(claims()))


def test_docstrings_become_markdown_that_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    markdown = import_module("public_names").markdown
    text = "Title of x_i * y.\n\n    code = 1\n\nArgs:\n    name: what\n        it is\n"
    assert markdown(text) == [
        *("Title of x\\_i \\* y.", ""),
        *("````python", "code = 1", "````", ""),
        *("**Args**", "", "- `name`: what", "  it is", ""),
    ]
