"""docs/zoo.md and docs/gallery.md say what the committed results say, and nothing by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.zoo import gallery, manifest, results_of, statements, tables, verdicts, words
from experiments.zoo.layers import judged

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "experiments" / "zoo" / "results"
LARGEST = 10**6  # bytes of a committed file


def test_the_page_is_what_the_results_say():
    assert (DOCS / "zoo.md").read_text(encoding="utf-8") == words.text(), "run make docs"
    assert verdicts.verdict_table() in (DOCS / "claims.md").read_text(encoding="utf-8"), "run make docs"


def test_pictures_of_the_gallery_are_small_and_lead_to_their_pages():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert text == gallery.text(), "run make docs"
    assert text.count("[![") == len(list((RESULTS / "gallery").glob("*/audit.json"))) == 10
    for name, picture in (gallery.NETS | gallery.GENERATORS).items():
        if (RESULTS / "gallery" / name).exists():
            assert (DOCS / "figures" / picture).stat().st_size < gallery.LARGEST_PICTURE
            assert f"](figures/{picture})](../experiments/zoo/results/gallery/{name}/audit.json)" in text


def test_results_are_small_and_of_at_least_twenty_families_of_nets():
    files = list(RESULTS.rglob("*.json"))
    assert all(file.stat().st_size < LARGEST for file in files)
    known = results_of.nets()
    assert len({net.cluster for net in known.values() if not net.copy_of}) >= 20
    for file in (RESULTS / "nets").glob("*.json"):
        assert file.stem in known
        assert json.loads(file.read_text())["settings"] == {"seed": 0, "samples": 32, "alpha": 0.001}


def test_counts_of_the_page_are_those_of_the_files_read_another_way():
    """Layers whose bulk follows the law, and the median random share, from the raw files."""
    yes, layers, shares = 0, 0, []
    for net in manifest.read():
        file = RESULTS / "nets" / f"{net.name}.json"
        if net.copy_of or not file.exists():
            continue
        rows = json.loads(file.read_text())["layers"]
        for row in rows:
            left_out = row["layer"].startswith("NetLinLayer_") or row["layer"] == "stft_conv"
            if row["verdict"] in ("not judged", "cannot tell") or left_out:
                continue
            layers += 1
            yes += row["distance"] <= 0.1
            shares.append(row["random_share"])
    assert f"| {yes} of {layers} |" in tables.statement_table()
    assert f"the median is {np.median([one for one in shares if one is not None]):.0%}".replace(
        "%", " %"
    ) in " ".join(words.opening().split())


def test_a_statement_says_nothing_where_a_layer_cannot():
    by_name = {one.name: one for one in statements.STATEMENTS}
    none = {"offsets_mean": None, "offsets_std": None, "offsets_ratio": None, "offsets_near_mean": None}
    zero = {"offsets_mean": 0.0, "offsets_std": 0.0, "offsets_ratio": 0.0, "offsets_near_mean": 1.0}
    even = {"offsets_mean": 0.5, "offsets_std": 0.0, "offsets_ratio": 1e9, "offsets_near_mean": 1.0}
    for name in ("biases constant", "biases near their mean"):
        assert [by_name[name].holds(row) for row in (none, zero, even)] == [None, None, True]
    assert by_name["values on the law"].holds({"raw_distance": None}) is None
    assert by_name["values on the law"].holds({"raw_distance": 0.11}) is False


def test_layers_are_in_the_order_of_the_net_and_those_that_are_none_are_out():
    nets = {net.name: net for net in manifest.read()}
    assert nets["resnet50-imagenet"].in_order(["conv1", "fc1000", "res2a"]) == [0, 2, 1]
    assert nets["soundnet"].in_order(["conv3", "conv1", "conv8_2", "conv8"]) == [1, 0, 2, 3]
    assert nets["alexnet-convolutions"].in_order(["AlexNet_0.Conv_0", "NetLinLayer_0.Conv_0"]) == [0]
    assert not nets["magika"].ordered
    for name, table in results_of.tables().items():
        assert list(judged(table))
        places = [row["place"] for row in table]
        assert places == sorted(places) if nets[name].ordered else set(places) == {None}


def test_verdicts_need_four_standard_errors_over_nets():
    far = {str(net): [1.0 + 0.01 * net] * 5 for net in range(6)}
    assert verdicts.mean_below("x", 0.5, far).verdict == "failed"
    assert verdicts.mean_below("x", 1.5, far).verdict == "held"
    assert verdicts.mean_below("x", 1.03, far).verdict == "inconclusive"
    assert verdicts.mean_below("x", 0.5, {"a": [1.0], "b": [1.0]}).verdict == "inconclusive"
    mixed = verdicts.mean_below("x", 1.0, {"a": [0.0, 2.0], "b": [4.0], "c": [0.5]})
    assert mixed.mean == pytest.approx(5.5 / 3)
    assert (mixed.layers, mixed.on_the_right_side, mixed.nets) == (4, 2, 3)
    often = verdicts.holds_in("x", 1.0, {str(net): [0.0] * 99 + [2.0] for net in range(5)})
    assert often.mean == pytest.approx(0.99)
    assert often.verdict == "held"
