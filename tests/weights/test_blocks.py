"""Blocks and kinds by name: every layer lands in exactly one group, the map shows the layers' own numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from obverse import BadInput
from obverse.weights._blocks import by_block, by_kind, map_of, place_of
from obverse.weights.command._tables import group_columns
from obverse.weights.page import render_audit, with_cards
from obverse.weights.results import Audit, Interval, LayerAudit, read_audit, write_audit
from weights.made_audits import made_audit, made_layer

KINDS = ("self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj")


@pytest.mark.parametrize(
    ("name", "block", "kind"),
    [
        ("model.layers.31.self_attn.q_proj", "model.layers.31", "model.layers.*.self_attn.q_proj"),
        ("layer1.0.conv1", "layer1.0", "layer1.*.conv1"),
        ("features.3.conv.0.0", "features.3", "features.*.conv.0.0"),
        ("encoder.block.0.layer.1.Dense.wi", "encoder.block.0", "encoder.block.*.layer.1.Dense.wi"),
        ("layers.2.blocks.11.attn.qkv (key)", "layers.2.blocks.11", "layers.*.blocks.*.attn.qkv (key)"),
        ("model.layers.3.mlp.experts.12.w1", "model.layers.3", "model.layers.*.mlp.experts.*.w1"),
        ("vision.0.layers.5.fc", "vision.0.layers.5", "vision.0.layers.*.fc"),
        ("rnn.weight_ih_l1 (input gate)", "rnn (layer 1)", "rnn.weight_ih_l* (input gate)"),
        ("lm_head", "lm_head", "lm_head"),
        ("0", "0", "0"),
        ("a.99999999999", "a.99999999999", "a.99999999999"),  # no place in a list: a name
        ("", "", ""),
    ],
)  # fmt: skip
def test_a_name_says_which_block_and_which_kind(name: str, block: str, kind: str):
    assert (place_of(name).block, place_of(name).kind) == (block, kind)


def shared(layer: LayerAudit, share: float, *, bound: bool = False) -> LayerAudit:
    assert layer.parts is not None
    interval = Interval.at_most(share) if bound else Interval(share, share - 0.01, share + 0.01)
    return replace(layer, parts=replace(layer.parts, random_share=interval))


def transformer(blocks: int = 5) -> Audit:
    """The share of block b and kind k is (10 b + k) %; of the last one only a bound is known."""
    layers = [
        shared(
            made_layer(f"model.layers.{block}.{kind}"),
            (10 * block + at) / 100,
            bound=(block, at) == (blocks - 1, 2),
        )
        for block in range(blocks)
        for at, kind in enumerate(KINDS)
    ]
    return made_audit(made_layer("model.embed_tokens"), *layers, made_layer("lm_head"))


@pytest.mark.parametrize("groups", [by_block, by_kind])
def test_every_layer_is_in_one_group(groups):
    audit = transformer()
    found = [layer.name for group in groups(audit) for layer in group.layers]
    assert sorted(found) == sorted(layer.name for layer in audit.layers)


def test_a_group_shows_the_median_of_what_is_known():
    blocks = by_block(transformer())
    assert [group.name for group in blocks] == [
        "model.embed_tokens", *(f"model.layers.{at}" for at in range(5)), "lm_head"
    ]  # fmt: skip
    assert blocks[1].shares == (0.0, 0.01, 0.02)
    assert blocks[5].shares == (0.4, 0.41)  # the bound is none of them
    columns = {column.title: column.cells for column in group_columns(blocks, "block")}
    assert columns["random"][1:6] == ("1%", "11%", "21%", "31%", "40%")
    assert columns["known"][5] == "2"
    assert columns["from–to"][2] == "10–12%"
    assert columns["layers"][1:6] == ("3",) * 5


def test_the_map_has_a_square_for_each_layer_of_the_blocks():
    audit = transformer()
    found = map_of(audit)
    assert found is not None
    assert found.kinds == KINDS
    assert found.blocks == ("0", "1", "2", "3", "4")
    for at, row in enumerate(found.squares):
        for block, square in enumerate(row):
            assert square is not None
            (place,) = square.layers
            assert audit.layers[place].name == f"model.layers.{block}.{KINDS[at]}"
            assert square.share == pytest.approx((10 * block + at) / 100)
            assert square.is_bound == ((block, at) == (4, 2))


def test_experts_share_a_square_which_shows_their_median():
    layers = [
        shared(made_layer(f"layers.{block}.experts.{expert}.{kind}"), share)
        for block in range(4)
        for kind in ("w1", "w2")
        for expert, share in enumerate((0.1, 0.2, 0.9))
    ]
    found = map_of(made_audit(*layers))
    assert found is not None
    assert found.kinds == ("experts.*.w1", "experts.*.w2")
    assert all(square is not None and square.share == 0.2 for row in found.squares for square in row)


@pytest.mark.parametrize(
    "names",
    [
        ["fc1", "fc2", "fc3", "fc4", "fc5"],
        [f"features.{at}" for at in range(13)],  # one kind: a column of the table says the same
        [f"layers.{block}.{kind}" for block in range(3) for kind in KINDS],  # too few
        [f"layers.{block}.{kind}" for block in range(4) for kind in KINDS] + [f"x{at}" for at in range(20)],
    ],
)
def test_a_net_without_like_blocks_has_no_map(names: list[str]):
    assert map_of(made_audit(*map(made_layer, names))) is None


def test_the_page_shows_the_map_and_each_square_leads_to_its_card():
    audit = transformer()
    page = render_audit(audit)
    table = page.partition('<table class="map">')[2].partition("</table>")[0]
    squares = re.findall(r'class="step-(\d+)"><a href="#(layer-\d+)" title="([^"]*)">([^<]*)<', table)
    assert len(squares) == 15
    for step, anchor, title, text in squares:
        name = title.partition(":")[0]
        share = next(layer.random_share for layer in audit.layers if layer.name == name)
        assert share is not None
        assert text == f"{'≤' if share.is_bound else ''}{100 * share.value:.0f}"
        assert abs(int(step) - 10 * share.value) <= 0.5 + 1e-9
        heading = re.search(rf'id="{anchor}">([^<]*)<', page)
        assert heading is not None
        assert heading[1] == name
    assert 'class="map"' not in render_audit(made_audit(made_layer("fc1"), made_layer("fc2")))


def test_names_of_a_file_cannot_leave_the_map():
    layers = [made_layer(f"<b>.layers.{block}.{kind}") for block in range(4) for kind in ('"onx', "<i>")]
    page = render_audit(made_audit(*layers))
    assert 'class="map"' in page
    assert "<b>" not in page
    assert "<i>" not in page


@pytest.mark.parametrize(("by", "lines"), [("block", 7), ("type", 5)])
def test_the_command_prints_one_line_a_group(by: str, lines: int, tmp_path, obverse, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    write_audit(transformer(), tmp_path / "audit.json")
    result = obverse("audit", tmp_path / "audit.json", "--by", by)
    assert result.code == 0
    table = result.out.partition("\n\n")[0].splitlines()
    assert all(len(line) <= 80 for line in table)
    below = table[1 + next(at for at, line in enumerate(table) if set(line) == {"─"}) :]
    assert len([line for line in below if not line.startswith(" ")]) == lines


@pytest.mark.parametrize("more", [("--by", "layers"), ("--by", "type", "--against", "OTHER")])
def test_by_says_what_it_takes(more, tmp_path, obverse):
    write_audit(transformer(), tmp_path / "audit.json")
    result = obverse("audit", tmp_path / "audit.json", *more)
    assert result.code == 2
    assert "--by" in result.err


def test_of_very_many_layers_the_page_shows_those_with_least_randomness(monkeypatch):
    """Experts of a mixture: in each square one card, and the map links to no card that is not there."""
    monkeypatch.setattr("obverse.weights.page.MOST_CARDS", 30)
    layers = [
        shared(made_layer(f"model.layers.{block}.experts.{expert}.{kind}"), (10 * expert + at + block) / 100)
        for block in range(5)
        for expert in range(4)
        for at, kind in enumerate(KINDS)
    ]
    audit = made_audit(*layers)
    chosen = with_cards(audit)
    assert len(chosen) == 30
    squares = {(at // 12, at % 3) for at in chosen}
    assert len(squares) == 15  # of five blocks and three kinds
    firsts = {at for at in range(60) if at % 12 < 3}  # expert 0 has the least of its square
    assert firsts <= chosen
    page = render_audit(audit)
    anchors, links = (set(re.findall(pattern, page)) for pattern in (r'id="layer-(\d+)"', r"#layer-(\d+)"))
    assert {int(one) - 1 for one in anchors} == chosen
    assert links == {str(at + 1) for at in firsts}
    assert "30 layers more have no card here" in page
    assert "layers more have no card" not in render_audit(transformer())


def test_a_long_audit_is_read_layer_by_layer(tmp_path, monkeypatch):
    audit = transformer()
    write_audit(audit, tmp_path / "audit.json")
    monkeypatch.setattr("obverse._core.records.MAX_JSON", 1000)
    monkeypatch.setattr("obverse._core.long_json.CHUNK", 5000)
    assert read_audit(tmp_path) == audit
    text = (tmp_path / "audit.json").read_text()
    for old, new, said in (
        ('"rows": 64', '"rows": -1', "layer of an audit|the audit"),
        ('"layers": [{', '"layers": [3, {', "objects as layers of an audit"),
        ('"format": 2', '"format": 9', "an audit of format 2"),
    ):
        assert old in text
        (tmp_path / "audit.json").write_text(text.replace(old, new, 1))
        with pytest.raises(BadInput, match=said):
            read_audit(tmp_path)
