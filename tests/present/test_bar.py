"""The bar for `progress=`: in a kernel with and without ipywidgets, on a terminal, in a file."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import obverse
from obverse import ProgressBar
from obverse._core import plain
from obverse.present import bar
from obverse.present.bar import CellView, SilentView, TerminalView, WidgetView, choose_view


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Handle:
    def __init__(self, shown: list[dict[str, str]]) -> None:
        self.shown = shown

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        self.shown.append(bundle)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """As if in a notebook without ipywidgets: what was displayed, in order."""
    shown: list[Any] = []

    def display(bundle: Any, raw: bool = False, display_id: bool = False) -> Handle:
        shown.append(bundle)
        return Handle(shown)

    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    inner: Any = ModuleType("IPython.display")
    inner.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    return shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds, changed by the test."""
    now = [0.0]
    monkeypatch.setattr(bar, "monotonic", lambda: now[0])
    return now


def test_a_file_gets_nothing(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    progress = ProgressBar("audit")
    for done in range(4):
        progress(done, 3, "fc")
    progress.close()
    assert capsys.readouterr() == ("", "")
    assert isinstance(choose_view(), SilentView)


def test_a_terminal_has_one_line_that_changes(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    progress = ProgressBar("audit")
    for seconds, done in ((0.2, 0), (2.2, 1), (2.25, 2), (8.2, 4)):  # the third comes too soon to be seen
        clock[0] = seconds
        progress(done, 4, "layer\x1b[2J")
    lines = screen.getvalue().split("\r")[1:]
    name = plain("layer\x1b[2J")
    assert [line.rstrip().partition(" ")[2] for line in lines] == [
        f"audit, 0 of 4, {name}",
        f"audit, 1 of 4, {name}, about 6.0 s left",
        f"audit, 4 of 4, {name}, 8.0 s",
    ]
    assert [line.count("━") for line in lines] == [0, 6, 24]
    assert "\x1b" not in screen.getvalue()
    assert screen.getvalue().endswith("\n")


def test_a_bar_that_is_closed_leaves_nothing(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with ProgressBar() as progress:
        clock[0] = 1.0
        progress(1, 5, "x")
    last = screen.getvalue().split("\r")
    assert last[-1] == ""
    assert last[-2].strip() == ""
    assert len(last[-2]) == len(last[-3])


def test_a_cell_has_html_that_is_escaped_and_is_updated(kernel, clock):
    assert isinstance(choose_view(), CellView)
    with ProgressBar("<b>") as progress:
        for seconds, done in ((1.0, 0), (3.0, 1), (5.0, 2)):
            clock[0] = seconds
            progress(done, 2, "<script>")
    assert len(kernel) == 4
    assert 'value="1" max="2"' in kernel[1]["text/html"]
    assert "&lt;script&gt;" in kernel[1]["text/html"]
    assert "<script>" not in kernel[1]["text/html"]
    assert kernel[1]["text/plain"] == "<b>, 1 of 2, <script>, about 2.0 s left"
    assert kernel[-1] == {"text/html": "", "text/plain": ""}


def test_ipywidgets_are_used_where_they_are(kernel, clock, monkeypatch):
    closed: list[str] = []

    class Widget:
        def __init__(self, *inner: Any, **settings: Any) -> None:
            self.inner = inner
            self.__dict__ |= settings

        def close(self) -> None:
            closed.append(type(self).__name__)

    widgets: Any = ModuleType("ipywidgets")
    for name in ("IntProgress", "Label", "HBox"):
        setattr(widgets, name, type(name, (Widget,), {}))
    widgets.Layout = dict
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    with ProgressBar("audit") as progress:
        clock[0] = 1.0
        progress(3, 3, "fc")
        assert isinstance(progress._view, WidgetView)
        [box] = kernel
        shown, label = box.inner[0]
        assert (shown.value, shown.max, shown.bar_style) == (3, 3, "success")
        assert label.value == "audit, 3 of 3, fc, 0.0 s"
    assert sorted(closed) == ["HBox", "IntProgress", "Label"]


def test_with_the_real_ipywidgets(monkeypatch):
    pytest.importorskip("ipywidgets")
    view = WidgetView.__new__(WidgetView)
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    view.__init__()  # type: ignore[misc]
    view.show(2, 4, "half")
    assert (view._bar.value, view._bar.max, view._label.value) == (2, 4, "half")
    assert len(shown) == 1
    view.close()


def test_ipython_on_a_terminal_is_a_terminal(kernel, monkeypatch):
    sys.modules["IPython"].get_ipython = lambda: SimpleNamespace(kernel=None)  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", Screen())
    assert isinstance(choose_view(), TerminalView)


def test_an_audit_tells_it_each_layer_and_several_parts_begin_anew(kernel, clock):
    net = torch.nn.Sequential(torch.nn.Linear(40, 40), torch.nn.ReLU(), torch.nn.Linear(40, 40))
    progress = ProgressBar("audit")
    obverse.audit(net, quick=True, progress=progress)
    assert kernel[-1]["text/plain"].startswith("audit, 2 of 2")
    clock[0] = 100.0
    progress(0, 7, "more")
    clock[0] = 101.0
    progress(1, 7, "more")
    assert kernel[-1]["text/plain"] == "audit, 1 of 7, more, about 6.0 s left"


@pytest.mark.slow  # starts a kernel
@pytest.mark.parametrize("widgets", [True, False])
def test_in_a_real_kernel(widgets, tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    without = "" if widgets else "import sys\nsys.modules['ipywidgets'] = None\n"
    code = f"{without}import obverse\nbar = obverse.ProgressBar('audit')\nbar(0, 2, 'a')\nbar(2, 2, 'b')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=resources, timeout=120).execute()
    [output] = notebook.cells[0].outputs
    if widgets:
        assert "application/vnd.jupyter.widget-view+json" in output.data
        states = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
        values = [one["state"].get("value") for one in states.values()]
        assert 2 in values
        assert any(str(value).startswith("audit, 2 of 2, b") for value in values)
    else:
        assert '<progress value="2" max="2"' in output.data["text/html"]
        assert output.data["text/plain"].startswith("audit, 2 of 2, b")
