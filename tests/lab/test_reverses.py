"""The fitted map of a layer beside its transpose: read off right, compared right, told right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Peer
from torch import Tensor, nn

from experiments.reverses import page
from experiments.reverses.run import STATES, compared, cosine, fitted_matrix, initial
from obverse.shadow import Shadow


def fitted(net: nn.Module, x: Tensor) -> Shadow:
    shadow = Shadow(net, reverse="fitted")
    shadow.calibrate(x)
    return shadow


def test_of_a_linear_layer_it_is_scikit_learns_coefficients() -> None:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(12, 8), nn.ReLU()).double(), torch.rand(60, 12, dtype=torch.float64)
    shadow = fitted(net, x)
    with torch.no_grad():
        peer = Peer(alpha=shadow.fitted("0").steps[0].strength).fit(net(x).numpy(), x.numpy())
    found, inside = fitted_matrix(shadow, "0")
    np.testing.assert_allclose(found.numpy(), peer.coef_.T, atol=1e-6)  # pulses are float32
    assert inside == 1.0


@pytest.mark.parametrize("tap", [(0, 0), (1, 2), (2, 1)])
def test_of_a_convolution_that_shifts_it_is_the_shift_back(tap: tuple[int, int]) -> None:
    """Nothing is lost in it, so that the map has one entry for each channel, where the weight has it."""
    net = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, bias=False))
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].weight[0, 1, tap[0], tap[1]] = net[0].weight[1, 0, tap[0], tap[1]] = 1.0
    x = torch.rand(40, 2, 9, 9, generator=torch.Generator().manual_seed(1))
    found, inside = fitted_matrix(fitted(net, x), "0")
    # at a border what was shifted out is lost, and these cells (a fifth) take part in the fit: 0.018 was seen
    torch.testing.assert_close(found, net[0].weight.detach().flatten(1), atol=0.05, rtol=0)
    assert inside > 0.98


def test_a_matrix_beside_itself_and_beside_another() -> None:
    draw = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 60, 80, generator=draw)
    same = compared(one, 3 * one)
    assert same["rank"] == same["fitted_rank"] == 0
    assert [same[part] for part in ("whole", "profile_off", "bulk")] == pytest.approx([1, 1, 1])
    assert same["signal"] is None
    apart = compared(one, other)
    for part in ("whole", "profile_off", "bulk"):  # independent entries: 0 ± 1/√(their number)
        assert abs(apart[part]) < 4 / one.numel() ** 0.5
    scaled = compared(one, torch.linspace(0.2, 5, 60)[:, None] * one)
    assert scaled["whole"] < 0.9 < 0.999 < scaled["profile_off"]
    # a direction 20 times the noise's norm, in both: all that the wholes share
    spike = 20 * torch.outer(torch.randn(60, generator=draw), torch.randn(80, generator=draw)) / 4800**0.5 * 9
    together = compared(one + spike, other + spike)
    assert together["rank"] >= 1
    assert together["signal"] > 0.95 < together["whole"] + 0.3
    assert abs(together["bulk"]) < 0.2 < together["whole"]
    assert cosine(one, torch.zeros_like(one)) is None


def test_the_nets_begin_the_same_for_a_seed_and_differ_between_seeds() -> None:
    one, again, other = (initial("CNN", seed)[0].weight for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_the_page_comes_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(value: float) -> dict[str, Any]:
        parts = {"whole": value, "profile_off": value, "bulk": value / 2, "signal": None}
        layer = {"inside": 0.8, "entries": 100, "rank": 0, "fitted_rank": 0} | parts
        return {"test_error": 0.1, "layers": [{"layer": "0"} | layer, {"layer": "2"} | layer]}

    entries = {f"CNN|{state}|{seed}": entry(0.2 + 0.1 * seed) for state in STATES for seed in (0, 1, 2)}
    file, place = tmp_path / "reverses.json", tmp_path / "reverses.md"
    file.write_text(json.dumps({"settings": {}, "entries": entries}))
    place.write_text("Before.\n<!-- results -->\n<!-- end of results -->\nAfter.\n")
    monkeypatch.setattr(page, "FILE", file)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    page.page()
    text = place.read_text()
    # 0.2, 0.3, 0.4: standard deviation 0.1, over √3
    assert "| 2 (2) | 0.30 ± 0.06 | 0.30 ± 0.06 | 0.30 ± 0.06 |" in text
    assert "| bulk with bulk | 0.15 to 0.15 | 0.15 to 0.15 | 0.15 to 0.15 |" in text
    assert "| signal with signal | – | – | – |" in text
    assert "0 ± 0.10" in text
    assert "80 % or more" in text
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
