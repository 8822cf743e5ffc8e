"""LoRA adapters: the product formed whole is the oracle for its numbers, simulated factors for the null."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy import stats
from torch import Tensor, nn

from obverse import BadInput, open_weights
from obverse.weights import AdapterAudit, audit_adapter, decompose
from obverse.weights._adapters.config import read_config
from obverse.weights._adapters.page import RESULT, render_adapter
from obverse.weights._adapters.product import (
    directions_for,
    effective_rank,
    initial_p,
    largest_ratios,
    singular_values,
    standing,
)
from obverse.weights._adapters.results import read_adapter

Q = "model.layers.0.self_attn.q_proj"
BEFORE = "base_model.model."


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def kaiming(rank: int, inputs: int, seed: int = 0) -> Tensor:
    """lora_A as PEFT begins it."""
    factor = torch.empty(rank, inputs)
    nn.init.kaiming_uniform_(factor, math.sqrt(5), generator=torch.Generator().manual_seed(seed))
    return factor


def lora(first: Tensor, second: Tensor, module: str = Q) -> dict[str, Tensor]:
    return {f"{BEFORE}{module}.lora_A.weight": first, f"{BEFORE}{module}.lora_B.weight": second}


def written(folder: Path, tensors: dict[str, Tensor] | None, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    if tensors is not None:
        save_file(
            {name: one.contiguous() for name, one in tensors.items()}, folder / "adapter_model.safetensors"
        )
    content = {"peft_type": "LORA", "r": 8, "lora_alpha": 16} | config
    (folder / "adapter_config.json").write_text(json.dumps(content))
    return folder


def spectrum(product: Tensor, rank: int) -> np.ndarray:
    return torch.linalg.svdvals(product.double()).numpy()[:rank]


# --- the numbers ---


@pytest.mark.parametrize(("rows", "columns", "rank"), [(60, 90, 8), (90, 60, 8), (6, 90, 8), (5, 5, 1)])
def test_the_values_are_those_of_the_formed_product(rows, columns, rank):
    left, right = normal(rows, rank).double(), normal(rank, columns, seed=1).double()
    found = singular_values(left, right, -2.5)
    # float64 in both; 10⁻¹² of the largest value is a few thousand roundings
    assert np.allclose(found, spectrum(-2.5 * left @ right, len(found)), atol=1e-12 * found[0])


def test_shares_and_the_effective_rank():
    values = np.array([3.0, 1.0, 1.0, 1.0])  # energies 9, 1, 1, 1
    assert [directions_for(values, share) for share in (0.5, 0.75, 0.76, 0.9, 0.99, 1.0)] == [
        1,
        1,
        2,
        3,
        4,
        4,
    ]
    shares = np.array([9, 1, 1, 1]) / 12
    assert effective_rank(values) == pytest.approx(math.exp(stats.entropy(shares)))
    assert effective_rank(np.ones(7)) == pytest.approx(7)


@pytest.mark.parametrize(
    ("config", "scaling"),
    [
        ({}, 2.0),
        ({"use_rslora": True}, 16 / math.sqrt(8)),
        ({"alpha_pattern": {"q_proj": 4}}, 0.5),
        ({"alpha_pattern": {"proj": 4}}, 2.0),  # the end of a name after a dot, not any end
        ({"alpha_pattern": {"^q_proj": 4}}, 2.0),
        ({"alpha_pattern": {"^model.layers.0.self_attn.q_proj": 4}}, 0.5),
        ({"alpha_pattern": {r"layers\.\d+\.self_attn\.(q|v)_proj": 4, "q_proj": 8}}, 0.5),
        ({"r": 4, "rank_pattern": {"self_attn.q_proj": 8}}, 2.0),
        (
            {"r": 4, "rank_pattern": {".*q_proj": 8}, "alpha_pattern": {"q_proj": 24}, "use_rslora": True},
            24 / 8**0.5,
        ),
    ],
)
def test_the_scaling_of_a_layer(tmp_path, config, scaling):
    first, second = normal(8, 48), normal(32, 8, seed=1)
    (layer,) = audit_adapter(written(tmp_path, lora(first, second), **config)).layers
    product = scaling * second.double() @ first.double()
    assert layer.scaling == pytest.approx(scaling)
    assert (layer.name, layer.rows, layer.columns, layer.rank) == (Q, 32, 48, 8)
    assert np.allclose(layer.values, spectrum(product, 8), rtol=1e-12)
    assert layer.norm == pytest.approx(float(product.norm()), rel=1e-12)


def test_embeddings_convolutions_and_names_with_the_adapter_in_them(tmp_path):
    words, width = normal(4, 100), normal(24, 4, seed=1)
    kernel, mix = normal(4, 6, 3, 3, seed=2), normal(20, 4, 1, 1, seed=3)
    tensors = {
        "base_model.model.wte.lora_embedding_A": words,
        "base_model.model.wte.lora_embedding_B": width,
        "base_model.model.conv.lora_A.default.weight": kernel,
        "base_model.model.conv.lora_B.default.weight": mix,
        "base_model.model.conv.lora_B.default.bias": torch.ones(20),
        "base_model.model.head.weight": normal(10, 24),
    }
    found = audit_adapter(written(tmp_path, tensors, r=4))
    conv, wte = sorted(found.layers, key=lambda layer: layer.name)
    assert (conv.kind, conv.rows, conv.columns) == ("convolution", 20, 54)
    # what the two convolutions do one after the other, as one kernel
    both = torch.einsum("or,rikl->oikl", mix[:, :, 0, 0].double(), kernel.double()).flatten(1)
    assert np.allclose(conv.values, spectrum(4 * both, 4), rtol=1e-12)
    assert (wte.kind, wte.rows, wte.columns) == ("embedding", 100, 24)
    assert np.allclose(wte.values, spectrum(4 * (width.double() @ words.double()).T, 4), rtol=1e-12)
    assert any("1 weight stored whole" in note and "head.weight" in note for note in found.notes)
    assert any("1 bias of lora_B" in note for note in found.notes)


def test_a_bin_file_is_read_without_running_it(tmp_path):
    first, second = normal(8, 48), normal(32, 8, seed=1)
    written(tmp_path, None)
    torch.save(lora(first, second), tmp_path / "adapter_model.bin")
    (layer,) = audit_adapter(tmp_path / "adapter_model.bin").layers
    assert np.allclose(layer.values, spectrum(2.0 * second @ first, 8), rtol=1e-5)  # the oracle is float32


# --- what is said ---


def test_an_adapter_that_was_not_trained_is_called_so(tmp_path):
    found = audit_adapter(written(tmp_path, lora(kaiming(8, 400), torch.zeros(300, 8))))
    assert found.layers[0].sentence == "the update is 0: lora_B is 0, as in an adapter that was not trained"
    assert found.summary == "1 adapted layer: its update is 0"
    assert found.layers[0].initial_p > 0.01
    silent = audit_adapter(written(tmp_path, lora(kaiming(8, 400), normal(300, 8)), lora_alpha=0))
    assert silent.layers[0].sentence == "the update is 0: its scaling is 0"


def test_a_planted_direction_stands_out_and_equal_ones_do_not(tmp_path):
    first, second = kaiming(8, 400), 0.01 * normal(300, 8)
    (flat,) = audit_adapter(written(tmp_path, lora(first, second))).layers
    assert flat.standing == 0
    assert "no direction exceeds the median one" in flat.sentence
    assert "lora_A is still like the uniform random numbers" in flat.sentence
    second = second + torch.outer(normal(300, seed=3), normal(8, seed=4)) * 0.03
    (one,) = audit_adapter(written(tmp_path, lora(1.2 * first, second))).layers
    assert one.standing == 1
    assert one.standing_p == pytest.approx(1 / 1000)
    assert "rank at most 8 by construction" in one.sentence
    assert "1 direction exceeds the median one" in one.sentence
    assert one.initial_p is None
    assert "uniform" not in one.sentence


def test_simulated_cores_are_distributed_as_whole_products():
    """The largest ratio of 400 products that are formed, against the 999 that are not: Kolmogorov–Smirnov."""
    rows, columns, rank = 70, 150, 6
    null = largest_ratios(rows, columns, rank)
    generator = torch.Generator().manual_seed(5)
    left = torch.randn(400, rows, rank, generator=generator, dtype=torch.float64)
    right = torch.randn(400, rank, columns, generator=generator, dtype=torch.float64)
    values = torch.linalg.svdvals(left @ right)[:, :rank].numpy()
    ratios = values[:, 0] / np.median(values, axis=1)
    assert stats.ks_2samp(ratios, null).pvalue > 1e-3  # one of a thousand seeds would fail
    assert not stats.ks_2samp(1.05 * ratios, null).pvalue > 1e-3


def test_random_factors_as_peft_begins_them_have_uniform_p():
    """A uniform, B any normal numbers: the null is of normal factors, of which A is near enough."""
    generator = torch.Generator().manual_seed(6)
    found = []
    for _ in range(300):
        left = torch.randn(96, 8, generator=generator, dtype=torch.float64)
        right = torch.rand(8, 128, generator=generator, dtype=torch.float64) * 2 - 1
        one = standing(singular_values(left, right), 96, 128)
        assert one is not None
        found.append(one.p)
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    assert min(found) >= 1 / 1000


def test_too_few_and_too_many_directions_are_not_compared():
    assert standing(np.ones(3), 500, 500) is None
    assert standing(np.ones(257), 500, 500) is None
    assert standing(np.ones(8), 6, 500) is None
    large = standing(np.ones(65), 500, 500)
    assert large is not None
    assert (large.count, large.draws, large.p) == (0, 99, 1.0)


def test_initial_values_have_uniform_p_and_trained_ones_none():
    found = [initial_p(kaiming(4, 64, seed).double(), 64) for seed in range(200)]
    assert stats.kstest([p for p in found if p is not None], "uniform").pvalue > 1e-3
    assert None not in found
    assert initial_p(kaiming(4, 64).double() + 0.01 * normal(4, 64).double(), 64) is None
    shrunk = initial_p(0.8 * kaiming(8, 256).double(), 256)
    assert shrunk is not None
    assert shrunk < 1e-6


@pytest.mark.parametrize(
    ("config", "more", "words"),
    [
        (
            {"use_dora": True},
            {f"{BEFORE}{Q}.lora_magnitude_vector": torch.ones(32)},
            "DoRA: 1 magnitude vector",
        ),
        ({"init_lora_weights": "pissa_niter_16"}, {}, "the factors began with pissa_niter_16"),
        ({"init_lora_weights": False}, {}, "the factors began with random factors"),
    ],
)
def test_what_the_product_does_not_show_is_said(tmp_path, config, more, words):
    tensors = lora(normal(8, 48), normal(32, 8, seed=1)) | more
    found = audit_adapter(written(tmp_path, tensors, **config))
    assert len(found.notes) == 1
    assert found.notes[0].startswith(words)
    assert "uniform" not in found.layers[0].sentence


# --- on the base ---


def on_base(folder: Path, strength: float, **base: Tensor) -> AdapterAudit:
    """An update of one direction, so many times the threshold of the base's noise."""
    sigma, rows, columns = 0.02, 200, 300
    u, v = normal(rows, seed=1), normal(columns, seed=2)
    threshold = sigma * (rows * columns) ** 0.25
    second = torch.zeros(rows, 8)
    first = kaiming(8, columns)
    second[:, 0] = strength * threshold * u / u.norm() / 2
    first[0] = v / v.norm()
    weight = sigma * normal(rows, columns, seed=3)
    save_file(base or {f"{Q}.weight": weight}, folder / "base.safetensors")
    return audit_adapter(written(folder / "a", lora(first, second)), base=folder / "base.safetensors")


@pytest.mark.parametrize(("strength", "above", "after"), [(0.3, 0, 0), (3.0, 1, 1)])
def test_an_update_shows_in_the_bulk_of_its_base_or_not(tmp_path, strength, above, after):
    (layer,) = on_base(tmp_path, strength).layers
    found = layer.on_base
    assert found is not None
    assert (found.above, found.before, found.after) == (above, 0, after)
    (weight,) = open_weights(tmp_path / "base.safetensors")
    whole = weight.load()
    assert found.relative == pytest.approx(layer.norm / float(whole.norm()), rel=1e-5)  # float32
    # 1/√(2 · 60,000) = 0.003 is the error of the scale, and the profile is estimated: 2 %
    assert layer.norm / found.threshold * _typical(whole) == pytest.approx(strength, rel=0.02)
    assert f"{above or 'no'}{' of 8' if above else ''} direction is strong enough" in layer.sentence


def _typical(whole: Tensor) -> float:
    """What the profile divides by: the threshold is without it."""
    parts = decompose(whole)
    scales = torch.outer(parts.row_scales, parts.column_scales)
    return float(1 / scales.square().mean().sqrt())


def test_a_profile_of_the_base_is_taken_off_both(tmp_path):
    """Rows of 1/10 and 10: the same update is nothing in the loud rows and clear in the quiet ones."""
    sigma, rows, columns = 0.02, 200, 300
    loud = torch.where(torch.arange(rows) < 100, 10.0, 0.1)[:, None]
    weight = loud * sigma * normal(rows, columns, seed=3)
    threshold = sigma * (rows * columns) ** 0.25
    v = normal(columns, seed=2)
    seen = []
    for quiet in (False, True):
        u = normal(rows, seed=1) * (torch.arange(rows) >= 100 if quiet else torch.arange(rows) < 100)
        second, first = torch.zeros(rows, 8), kaiming(8, columns)
        second[:, 0], first[0] = threshold * u / u.norm() / 2, v / v.norm()
        save_file({f"{Q}.weight": weight}, tmp_path / "base.safetensors")
        found = audit_adapter(
            written(tmp_path / "a", lora(first, second)), base=tmp_path / "base.safetensors"
        )
        one = found.layers[0].on_base
        assert one is not None
        seen.append((one.above, one.after))
    assert seen == [(0, 0), (1, 1)]


def test_a_base_of_which_nothing_can_be_told_is_not_called_structured(tmp_path):
    first, second = normal(8, 24), normal(20, 8, seed=1)
    folder = written(tmp_path / "a", lora(first, second))
    (layer,) = audit_adapter(folder, base={f"{Q}.weight": normal(20, 24, seed=2)}).layers
    assert layer.on_base is not None
    assert layer.on_base.above is None
    assert layer.sentence.endswith("what in the base layer is random cannot be told")
    even = torch.linalg.qr(normal(160, 100, seed=3))[0].T  # all singular values are 1
    first, second = normal(8, 160), normal(100, 8, seed=1)
    found = audit_adapter(written(tmp_path / "b", lora(first, second)), base={f"{Q}.weight": even})
    other = found.layers[0]
    assert other.on_base is not None
    assert other.on_base.grade_before == "structured otherwise"
    assert "no bulk like random numbers to stand out of" in other.sentence


@pytest.mark.parametrize(
    ("strength", "words"), [(0.3, "none of 1 layer on the base have"), (3.0, "1 of 1 layer")]
)
def test_the_summary_says_what_shows_in_the_base(tmp_path, strength, words):
    summary = on_base(tmp_path, strength).summary
    assert words in summary
    assert "90\N{NO-BREAK SPACE}% of the energy in 1 direction; effective rank" in summary


def test_a_fused_base_and_other_prefixes_are_found(tmp_path):
    first, second = normal(8, 64), 0.1 * normal(192, 8, seed=1)
    folder = written(tmp_path / "a", lora(first, second, "transformer.h.0.attn.c_attn"), fan_in_fan_out=True)
    whole = normal(192, 64, seed=2)
    save_file(
        {"h.0.attn.c_attn.weight": whole.T.contiguous(), "h.0.attn.c_attn.bias": torch.ones(192)},
        tmp_path / "gpt2.safetensors",
    )
    (layer,) = audit_adapter(folder, base=tmp_path / "gpt2.safetensors").layers
    assert layer.on_base is not None
    product = 2 * second.double() @ first.double()
    assert layer.on_base.relative == pytest.approx(float(product.norm() / whole.double().norm()), rel=1e-6)
    assert layer.on_base.after == decompose((whole + product).float()).rank


def test_a_base_that_is_another_model_names_the_layers(tmp_path):
    with pytest.raises(BadInput, match=rf"the layers that the adapter changes .*; got no {Q}; name the base"):
        on_base(tmp_path, 1.0, **{"other.weight": normal(40, 50)})
    with pytest.raises(BadInput, match=r"q_proj \(40×50 in place of 200×300\)"):
        on_base(tmp_path, 1.0, **{f"{Q}.weight": normal(40, 50)})
    two = {f"{side}.{Q}.weight": normal(200, 300) for side in ("encoder", "decoder")}
    with pytest.raises(BadInput, match=f"got no {Q}"):  # which of them is not known
        on_base(tmp_path, 1.0, **two)


# --- what is refused ---


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"peft_type": "LOHA"}, "a LoRA adapter in .*; got LOHA; merge it"),
        ({"peft_type": "IA3"}, "got IA3"),
        ({"peft_type": "PREFIX_TUNING"}, "got PREFIX_TUNING; there is nothing to audit"),
        ({"peft_type": None}, "got no peft_type"),
        ({"use_qalora": True}, "got one with use_qalora"),
        ({"target_parameters": ["mlp.experts"]}, "got one with target_parameters"),
        ({"r": 0}, "a rank from 1 to 65,536 as r"),
        ({"r": 2**40}, "a rank from 1"),
        ({"r": True}, "a rank from 1"),
        ({"r": "8"}, "a rank from 1"),
        ({"r": 4}, "rank 4 for .*, as adapter_config.json has it; got lora_A of shape 8×48"),
        ({"lora_alpha": 1e300}, "a number of at most 1e\\+09 as lora_alpha"),
        ({"use_rslora": "yes"}, "true or false as use_rslora"),
        ({"rank_pattern": [1]}, "names of layers and their values as rank_pattern"),
        ({"rank_pattern": {"(a+)+b": 8}}, "two wildcards or choices at most, one repeating; got"),
        ({"rank_pattern": {"(a|a)(b|b)(c|c)": 8}}, "two wildcards or choices at most"),
        ({"alpha_pattern": {".*.*.*x": 8}}, "two wildcards or choices at most"),
        ({"alpha_pattern": {"[z-a]": 8}}, "two wildcards or choices at most"),
        ({"alpha_pattern": {f"{at}.*": 8 for at in range(65)}}, "at most 64 names with wildcards .*got 65"),
        ({"alpha_pattern": {"x(?=y)": 8}}, "two wildcards or choices at most"),
        ({"alpha_pattern": {"q_proj": None}}, "as q_proj in"),
    ],
)
def test_configurations_that_are_not_understood_are_refused(tmp_path, config, words):
    folder = written(tmp_path, lora(normal(8, 48), normal(32, 8)), **config)
    with pytest.raises(BadInput, match=words):
        audit_adapter(folder)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"base_model.model.a.lora_A.weight": normal(8, 48)}, "lora_B of a in .*; got none"),
        (lora(normal(8, 48), normal(32, 6)), "as many columns as lora_A has rows"),
        (lora(normal(8, 48), torch.zeros(0)), "a matrix of floating-point numbers as lora_B .*ZeRO-3"),
        (lora(normal(8, 48), torch.ones(32, 8, dtype=torch.int8)), "as lora_B of .*int8|i8"),
        (lora(normal(8, 48) / 0, normal(32, 8)), "finite float32 values"),
        ({"a.hada_w1_a": normal(8, 48)}, "lora_A and lora_B in .*; got a.hada_w1_a"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, tensors, words):
    with pytest.raises(BadInput, match=words):
        audit_adapter(written(tmp_path, tensors))


def test_a_missing_file_is_named(tmp_path):
    written(tmp_path, lora(normal(8, 48), normal(32, 8)))
    (tmp_path / "adapter_config.json").rename(tmp_path / "c")
    with pytest.raises(BadInput, match=r"adapter_config\.json in .*the scaling is not known"):
        audit_adapter(tmp_path)
    (tmp_path / "c").rename(tmp_path / "adapter_config.json")
    (tmp_path / "adapter_model.safetensors").unlink()
    with pytest.raises(BadInput, match=r"adapter_model\.safetensors in .*the configuration has no weights"):
        audit_adapter(tmp_path)


def test_the_factors_are_never_taken_for_weights(tmp_path):
    written(tmp_path, lora(normal(8, 48), normal(32, 8)))
    for path in (tmp_path, tmp_path / "adapter_model.safetensors"):
        with pytest.raises(BadInput, match="got a PEFT adapter"):
            open_weights(path)


def test_patterns_take_bounded_time(tmp_path):
    """Wildcards that are let through, on a name that nearly fits."""
    import time

    name = "a" * 900 + "b"
    tensors = {f"{name}.lora_A.weight": normal(8, 48), f"{name}.lora_B.weight": normal(32, 8)}
    patterns = {f"{'a' * at}.*{'a' * 100}c": 4 for at in range(60)}
    folder = written(tmp_path, tensors, alpha_pattern=patterns)
    config = read_config(folder / "adapter_config.json")
    began = time.process_time()
    assert config.alpha_of(name) == 16
    assert time.process_time() - began < 2


# --- the command and the page ---


def test_the_command_prints_writes_and_reads_again(tmp_path, obverse):
    on_base(tmp_path, 3.0)
    words = [
        "audit",
        str(tmp_path / "a"),
        "--base",
        str(tmp_path / "base.safetensors"),
        "--out",
        str(tmp_path / "o"),
    ]
    result = obverse(*words)
    assert result.code == 0, result.err
    assert "rank at most 8 by construction" in result.out
    assert "0 → 1" in result.out
    found = read_adapter(tmp_path / "o")
    assert found.layers[0].on_base is not None
    page = (tmp_path / "o" / "adapter.html").read_text()
    assert page == render_adapter(found) == RESULT.page(tmp_path / "o")
    assert "Where the energy of each update is" in page
    as_json = obverse("audit", str(tmp_path / "a"), "--layers", "*q_proj", "--json")
    assert json.loads(as_json.out)["layers"][0]["on_base"] is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--against", "x"], "name the base with --base"),
        (["--quick", "--by", "block"], "got --quick, --by"),
        (["--fail-on", "signal", "--keep", "0.5"], "got --fail-on, --keep"),
    ],
)
def test_flags_that_an_adapter_has_no_use_for_are_refused(tmp_path, obverse, words, expected):
    written(tmp_path, lora(normal(8, 48), normal(32, 8)))
    result = obverse("audit", str(tmp_path), *words)
    assert result.code == 2
    assert expected in result.err


def test_a_base_needs_an_adapter(tmp_path, obverse):
    save_file({"a.weight": normal(40, 50)}, tmp_path / "m.safetensors")
    model = str(tmp_path / "m.safetensors")
    result = obverse("audit", model, "--base", model)
    assert result.code == 2
    assert "the folder of a PEFT adapter for --base" in result.err


def test_names_on_the_page_are_text(tmp_path):
    evil = "<script>alert(1)</script>"
    tensors = lora(normal(8, 48), normal(32, 8), evil)
    page = render_adapter(audit_adapter(written(tmp_path, tensors, init_lora_weights=evil)))
    assert evil not in page
    assert "&lt;script&gt;alert" in page
