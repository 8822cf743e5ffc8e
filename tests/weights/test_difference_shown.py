"""What changed between two checkpoints, as it is printed, written and drawn."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from obverse.weights._difference.page import render_difference
from obverse.weights._difference.results import read_difference
from obverse.weights.page import render_audit
from obverse.weights.results import read_audit
from training.helpers import files_below

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """base, and tuned: an update of rank 2, rows added, a layer as it was, one of another name."""
    own = torch.Generator().manual_seed(0)
    folder = tmp_path_factory.mktemp("checkpoints")

    def made(*shape):
        return 0.05 * torch.randn(shape, generator=own)

    base = {"block.up.weight": made(64, 40), "block.down.weight": made(40, 64), "tokens.weight": made(80, 40)}
    tuned = dict(base)
    tuned["block.up.weight"] = base["block.up.weight"] + 3 * made(64, 2) @ made(2, 40)
    tuned["tokens.weight"] = torch.cat([base["tokens.weight"], made(2, 40)])
    save_file(base | {"old.weight": made(33, 34)}, folder / "base.safetensors")
    save_file(tuned | {f"{HOSTILE}.weight": made(33, 34)}, folder / "tuned.safetensors")
    return folder


@pytest.fixture
def written(folder, obverse, tmp_path):
    out = tmp_path / "out"
    words = ("--against", folder / "base.safetensors", "--samples", "2", "--out", out)
    return obverse("audit", folder / "tuned.safetensors", *words), out


def test_the_summary_of_what_changed_comes_first(written, folder):
    done, _ = written
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"from {folder / 'base.safetensors'} to {folder / 'tuned.safetensors'}"
    assert lines[1] == "from base to tuned: 1 of 3 layers changed (1 by at most 8 directions); 2 identical"
    assert lines[2].startswith("of one lineage: matching hidden units are alike")
    assert any(line.startswith("block.up: 2 directions (strength") for line in lines)
    row = next(line.split() for line in lines if line.startswith("block.up ") and "64×40" in line)
    assert row[-3:] == ["2", "100%", "directions"]
    assert not any(line.startswith("block.down ") and "identical" in line for line in lines), (
        "only what changed"
    )


def test_the_difference_is_written_beside_the_audit(written):
    _, out = written
    names = {"audit.json", "audit.csv", "audit.html", "against.json", "difference.json", "difference.csv"}
    assert files_below(out) == names
    found = read_difference(out)
    assert found.ranks == {"block.up": 2}
    assert [layer.change for layer in found] == ["identical", "directions", "identical"]
    table = list(csv.DictReader((out / "difference.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["layer"], row["rank"]) for row in table] == [
        ("block.down", ""),
        ("block.up", "2"),
        ("tokens", ""),
    ]
    assert table[2]["added_rows"] == "2"


def test_a_difference_that_is_no_longer_true_is_removed(folder, obverse, tmp_path):
    words = ("--samples", "2", "--out", tmp_path / "out")
    model, base = folder / "tuned.safetensors", folder / "base.safetensors"
    assert obverse("audit", model, "--against", base, *words).code == 0
    assert (tmp_path / "out" / "difference.json").exists()
    audit = tmp_path / "base"
    assert obverse("audit", base, "--samples", "2", "--out", audit).code == 0
    assert obverse("audit", model, "--against", audit, *words).code == 0, "an audit has no weights"
    assert files_below(tmp_path / "out") == {"audit.json", "audit.csv", "audit.html", "against.json"}


def test_json_has_the_comparison_and_the_difference(folder, obverse):
    words = ("--samples", "2", "--layers", "block*", "--json")
    done = obverse("audit", folder / "tuned.safetensors", "--against", folder / "base.safetensors", *words)
    found = json.loads(done.out)
    assert [layer["name"] for layer in found["layers"]] == ["block.down", "block.up"]
    assert [layer["name"] for layer in found["difference"]["layers"]] == ["block.down", "block.up"]
    assert found["difference"]["only_base"] == found["difference"]["only_tuned"] == []


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits(folder, obverse, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = obverse(
        "audit", folder / "tuned.safetensors", "--against", folder / "base.safetensors", "--samples", "2"
    )
    lines = done.out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("layer "))
    assert all(len(line) <= width for line in lines[start : start + 3])
    assert lines[start].endswith("from base to tuned")


def test_the_page_has_base_tuned_and_difference_side_by_side(written):
    _, out = written
    page = (out / "audit.html").read_text(encoding="utf-8")
    assert "What changed in the weights" in page
    head = page[page.index('<table class="cards difference"') :]
    columns = (
        "layer",
        "from base to tuned",
        "directions",
        "share",
        "size",
        "moved",
        "shape",
        "base",
        "tuned",
    )
    places = [head.index(f">{one}</th>") for one in columns]
    assert places == sorted(places)
    at = [layer.name for layer in read_audit(out).layers].index("block.up") + 1
    assert f'<a href="#layer-{at}">block.up</a>' in head
    assert "the first 80: identical: every number is the same" in head
    assert HOSTILE not in page


def test_a_difference_has_a_page_of_its_own(written, obverse, tmp_path):
    _, out = written
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "difference.json").write_bytes((out / "difference.json").read_bytes())
    done = obverse("report", alone)
    assert (done.code, done.err) == (0, "")
    page = (alone / "difference.html").read_text(encoding="utf-8")
    assert "What changed from base.safetensors to tuned.safetensors?" in page
    assert "From base to tuned: 1 of 3 layers changed" in page
    assert "Only in base: old." in page
    assert HOSTILE not in page


def test_a_page_without_a_difference_has_no_word_of_it(written):
    _, out = written
    audit, other = read_audit(out), read_audit(out / "against.json")
    assert "What changed in the weights" not in render_audit(audit, other)


def test_a_difference_of_nothing_has_a_page(written):
    _, out = written
    found = read_difference(out)
    assert "No layer is in both." in render_difference(replace(found, layers=()))


def test_a_run_against_its_own_beginning_is_a_difference_too(obverse, tmp_path):
    words = ("--hidden", "40,36", "--epochs", "1", "--train-size", "200", "--out", tmp_path / "run")
    assert obverse("train", *words).code == 0
    done = obverse("audit", tmp_path / "run", "--against", "initial", "--samples", "2", "--json")
    found = json.loads(done.out)["difference"]
    assert {layer["change"] for layer in found["layers"]} <= {
        "dense",
        "directions",
        "changed",
        "in a few columns",
    }
    assert found["lineage"]["p"] <= 0.001
