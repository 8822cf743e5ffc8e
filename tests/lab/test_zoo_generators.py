"""Public generators are rebuilt from tensors: on small ones of the same kind, by their definition."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from experiments.zoo_generators import nets, run


def state() -> dict[str, Tensor]:
    """Of a small DCGAN, with a gap in the numbers where a layer had no tensors."""
    source = torch.Generator().manual_seed(0)
    net = nn.Sequential(
        nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(),
        nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False),
    )
    for name, x in net.state_dict().items():
        if x.is_floating_point():
            x.copy_(torch.rand(x.shape, generator=source) + ("var" in name))
    return {f"main.{name}": x for name, x in net.state_dict().items()}


def test_a_dcgan_does_what_its_layers_do():
    told, seeds = state(), torch.randn(3, 6, generator=torch.Generator().manual_seed(1))
    x = torch.nn.functional.conv_transpose2d(seeds[:, :, None, None], told["main.0.weight"])
    x = x - told["main.1.running_mean"][:, None, None]
    x = x / (told["main.1.running_var"][:, None, None] + 1e-5).sqrt()
    x = torch.relu(x * told["main.1.weight"][:, None, None] + told["main.1.bias"][:, None, None])
    x = torch.nn.functional.conv_transpose2d(x, told["main.4.weight"], stride=2, padding=1).tanh()
    assert torch.allclose(nets.DCGAN(told)(seeds), (x + 1) / 2, atol=1e-5)  # float32, 128 products


def graph(folder: Path) -> dict[str, np.ndarray]:
    """The weights of a progressive GAN of 4 to 128 pixels with few channels, as its files have them."""
    random = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}
    widths = [4, *[3] * 12]
    for number in range(13):
        end = f"_{number}" if number else ""
        side = 4 if number == 0 else 1 if number == 12 else 3
        out = widths[number + 1] if number < 12 else 3
        prefix = "module_apply_default/"
        weights[f"{prefix}Conv2D{end}/merged_input"] = random.normal(size=(side, side, widths[number], out))
        weights[f"{prefix}add_{2 * number + 1}/y"] = np.array(1e-8)
        if number < 12:
            weights[f"{prefix}LeakyRelu{end}/alpha"] = np.array(0.2)
            weights[f"module/g_model/res_{number // 2}/conv{number % 2}/bias"] = random.normal(size=out)
    weights |= {
        f"{prefix}add_26": random.normal(size=(1, 1, 1, 3)),
        f"{prefix}clip_by_value_1/y": np.array(-1.0),
        f"{prefix}clip_by_value_1/Minimum/y": np.array(1.0),
    }
    told = [{"name": name, "shape": list(x.shape), "dtype": "float32"} for name, x in weights.items()]
    manifest = [{"paths": ["one.bin", "two.bin"], "weights": told}]
    (folder / "model.json").write_text(json.dumps({"weightsManifest": manifest}))
    whole = b"".join(x.astype("<f4").tobytes() for x in weights.values())
    (folder / "one.bin").write_bytes(whole[:1000])
    (folder / "two.bin").write_bytes(whole[1000:])
    return weights


def test_a_progressive_gan_does_what_its_graph_says(tmp_path):
    """The graph in numpy, point by point: channels last, convolutions as sums over shifted images."""
    weights = {name.removeprefix("module_apply_default/"): x for name, x in graph(tmp_path).items()}
    seeds = torch.randn(2, 4, generator=torch.Generator().manual_seed(2))
    x = seeds.double().numpy()[:, None, None, :]
    for number in range(13):
        end = f"_{number}" if number else ""
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-8)
        if number in (2, 4, 6, 8, 10):
            x = x.repeat(2, 1).repeat(2, 2)
        kernel = weights[f"Conv2D{end}/merged_input"]
        side = len(kernel)
        edge = 3 if number == 0 else side // 2
        wide = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        size = wide.shape[1] - side + 1
        x = sum(wide[:, i : i + size, j : j + size] @ kernel[i, j] for i in range(side) for j in range(side))
        if number < 12:
            x = x + weights[f"module/g_model/res_{number // 2}/conv{number % 2}/bias"]
            x = np.maximum(x, 0.2 * x)
    expected = (np.clip(x + weights["add_26"], -1, 1) + 1) / 2
    found = nets.ProgressiveGAN(tmp_path)(seeds).permute(0, 2, 3, 1).numpy()
    assert found.shape == (2, 128, 128, 3)
    np.testing.assert_allclose(found, expected, atol=1e-3)  # float32, normalized anew 13 times


def test_shards_of_another_size_are_refused(tmp_path):
    graph(tmp_path)
    (tmp_path / "two.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="not of the size"):
        nets.tensors(tmp_path)


def test_a_sampler_draws_with_its_generator_and_makes_images_small():
    sampler = run.sampler_of(nets.DCGAN(state()), side=4)
    draws = [sampler(3, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert draws[0].shape == (3, 3, 4, 4)
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
