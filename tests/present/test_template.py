from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import ChoiceLoader, DictLoader, UndefinedError

from obverse import __version__
from obverse.present import markup
from obverse.present.template import environment, render_page

PAGES = sorted(
    str(path.relative_to(Path(str(files("obverse")))))
    for path in Path(str(files("obverse"))).rglob("page.html.j2")
)


@pytest.fixture
def page(monkeypatch):
    """Renders a template that is given as text."""

    def made(source: str, **values):
        engine = environment()
        assert engine.loader is not None
        engine.loader = ChoiceLoader([DictLoader({"own": source}), engine.loader])
        monkeypatch.setattr("obverse.present.template.environment", lambda: engine)
        return render_page("own", **values)

    return made


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_the_one_head(name):
    text = (Path(str(files("obverse"))) / name).read_text(encoding="utf-8")
    assert text.startswith('{% extends "present/base.html.j2" %}')
    assert not re.search(r"<head>|<meta|<footer|</body", text)


def test_there_are_thirteen_pages():
    assert len(PAGES) == 13


def test_text_is_escaped_and_what_was_drawn_is_not(page):
    own = '{% extends "present/base.html.j2" %}{% block main %}{{ text }}{{ svg }}{% endblock %}'
    found = page(own, title="<b>", text="<i>", svg=markup("<svg/>"))
    assert "<title>&lt;b&gt; — obverse</title>" in found
    assert "&lt;i&gt;<svg/>" in found
    assert f"Written by obverse {__version__}. This page needs no network and no scripts." in found
    assert "<script" not in found
    assert "script-src" not in found


def test_a_script_is_allowed_by_its_digest_alone(page):
    found = page('{% extends "present/base.html.j2" %}', title="", scripts=("present/list.js",))
    code = re.search(r"<script>(.*)</script>", found, re.S)
    assert code
    digest = base64.b64encode(hashlib.sha256(code[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; style-src" in found


def test_a_missing_value_is_an_error(page):
    with pytest.raises(UndefinedError):
        page('{% extends "present/base.html.j2" %}')
