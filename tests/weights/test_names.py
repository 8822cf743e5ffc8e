"""Names of layers in tables and groups: those of well-known nets stay apart, and one kind alike."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

import pytest

from obverse.present.table import fit, shorten_all
from obverse.weights._blocks import place_of
from obverse.weights.command._tables import audit_columns, print_audit
from obverse.weights.results import Finding
from weights.layer_names import NAMES
from weights.made_audits import made_audit, made_layer

NETS = pytest.mark.parametrize("net", NAMES)


def kind(name: str) -> str:
    return re.sub(r"\d+", "#", name)


@NETS
@pytest.mark.parametrize("width", [60, 80])
def test_shown_names_differ_and_one_kind_is_shortened_alike(net, width):
    names = NAMES[net]
    layers = [made_layer(name, "mostly signal", rank=33, rows=4096, columns=14336) for name in names]
    columns = fit(audit_columns(made_audit(*layers)), width)
    shown = columns[0].cells
    assert len(set(shown)) == len(names)
    assert sum(column.width + 2 for column in columns) - 2 <= width  # two letters between columns: whole
    alike = defaultdict(set)
    for name, short in zip(names, shown, strict=True):
        assert re.findall(r"\d+", short) == re.findall(r"\d+", name)  # no number is lost
        alike[kind(name)].add(kind(short))
    assert all(len(found) == 1 for found in alike.values())


@NETS
@pytest.mark.parametrize("width", range(8, 40, 3))
def test_names_stay_apart_at_any_width(net, width):
    assert len(set(shorten_all(NAMES[net], width))) == len(NAMES[net])


def test_a_sign_that_stands_for_numbers_may_be_in_a_name():
    names = ["a\ue000b.layers.1.query", "ab.layers.12.query", "\ue000.\ue000", ""]
    for width in (1, 5, 10, 40):
        assert len(set(shorten_all(names, width))) == 4


@pytest.mark.parametrize(
    ("net", "blocks", "kinds"),
    [
        ("Llama", 32, 7),
        ("Mixtral", 32, 8),  # eight experts are three kinds
        ("BERT", 12, 6),
        ("MiniLM", 6, 6),
        ("ViT of Hugging Face", 12, 6),
        ("ViT of timm", 12, 6),
        ("ViT of torchvision", 12, 6),
        ("encoder of torch", 4, 6),
        ("Whisper", 12, 16),
        ("T5", 24, 20),  # with the biases of positions in two of the blocks
        ("ResNet", 16, 16),  # four stages, in each of which the first block has a layer more
        ("GGUF", 32, 7),
        ("Keras", 12, 6),
        ("experts in one tensor", 4, 2),
    ],
)
def test_blocks_and_kinds_are_read_from_the_names(net, blocks, kinds):
    places = [place for place in map(place_of, NAMES[net]) if place.number]
    assert len({place.block for place in places}) == blocks
    assert len({place.kind for place in places}) == kinds
    for place in places:
        assert place.block.startswith(place.stem)
        assert "*" in place.kind
        assert "*" not in place.block


@pytest.mark.parametrize(
    ("name", "block", "kind"),
    [
        ("conv2_block1_3_conv", "conv2_block1", "conv2_block*_3_conv"),
        ("block5_conv1", "block5", "block*_conv1"),
        ("block_13_expand", "block_13", "block_*_expand"),
        (
            "bert/encoder/layer_._7/output/dense",
            "bert/encoder/layer_._7",
            "bert/encoder/layer_._*/output/dense",
        ),
        (
            "Transformer/encoderblock_3/Mlp_0",
            "Transformer/encoderblock_3",
            "Transformer/encoderblock_*/Mlp_0",
        ),
        ("encoder_block.fc", "encoder_block.fc", "encoder_block.fc"),
        ("layer1.2.conv1", "layer1.2", "layer1.*.conv1"),
    ],
)
def test_numbers_inside_a_part_of_a_name(name, block, kind):
    place = place_of(name)
    assert (place.block, place.kind) == (block, kind)


def test_the_star_moves_to_the_verdict_where_its_column_has_no_room(capsys, monkeypatch):
    off = Finding("parts", False, "off", decides=True)
    layer = made_layer("fc", "structured otherwise", distance=0.3, findings=(off,))
    assert layer.parts is not None
    far = replace(layer.parts.distance, p=1e-9) if layer.parts.distance else None
    audit = made_audit(replace(layer, parts=replace(layer.parts, distance=far, rank=0, below=())))
    stars = {}
    for width in (60, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        print_audit(audit)
        text = capsys.readouterr().out
        row = next(line for line in text.splitlines() if line.startswith("fc "))
        stars[width] = re.findall(r"\S+\*", row)
        assert "*: more than noise shows" in " ".join(text.split())
    assert len(stars[120]) == 1
    assert re.fullmatch(r"[≈0-9.]+\*", stars[120][0])
    assert stars[60] == ["otherwise*"]
