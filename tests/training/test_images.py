"""Images of shadows: the right triples, shown as the caption says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.present.png import displayed
from obverse.shadow import Shadow
from obverse.training import initial_net, load_trained, read_run
from obverse.training.charts._images import shadow_grid, shadow_pictures, triple_png


def test_triples_are_start_end_and_original(single: Path) -> None:
    pictures = shadow_pictures(single, per_class=2)
    data, settings = load("digits"), read_run(single).settings
    nets = initial_net(settings, data), load_trained(settings, data, single / "model.safetensors")
    assert [one.name for one in pictures] == list(data.classes)
    for label, one in enumerate(pictures):
        assert one.pixels.shape == (2, 3, 8, 8)
        images = displayed(data.test_x[data.test_y == label])
        for start, end, original in one.pixels:
            (place,) = np.flatnonzero((images == original).all(axis=(1, 2)))[:1]
            x = data.test_x[data.test_y == label][place : place + 1]
            for shown, net in zip((start, end), nets, strict=True):
                expected = displayed(Shadow(net).of(x, match_norm=settings.match_norm))[0]
                # one level of 255 for float sums in another order
                assert np.abs(shown.astype(int) - expected.astype(int)).max() <= 1


def test_comparison_shows_its_first_run_with_shadows(comparison: Path) -> None:
    ours = shadow_pictures(comparison, 1)
    theirs = shadow_pictures(comparison / "runs" / "shadow" / "seed-0", 1)
    assert all((one.pixels == other.pixels).all() for one, other in zip(ours, theirs, strict=True))


def test_seed_chooses_the_images(single: Path) -> None:
    first, again, other = (shadow_pictures(single, 1, seed=seed) for seed in (0, 0, 1))
    assert all((one.pixels == same.pixels).all() for one, same in zip(first, again, strict=True))
    assert any((one.pixels != unlike.pixels).any() for one, unlike in zip(first, other, strict=True))


def test_display_uses_the_whole_range_of_each_picture() -> None:
    images = torch.tensor([[0.0, 0.5, 2.0], [-1.0, 0.0, 1.0], [3.0, 3.0, 1.5], [0.0, 0.0, 0.0]])
    shown = displayed(images.reshape(4, 1, 1, 3)).reshape(4, 3)
    assert shown.tolist() == [[0, 64, 255], [0, 128, 255], [255, 255, 128], [0, 0, 0]]
    broken = displayed(torch.tensor([float("nan"), float("inf"), 0.0]).reshape(1, 1, 1, 3))
    assert broken.dtype == np.uint8


def test_grid_is_a_png_of_every_class(single: Path, tmp_path: Path) -> None:
    place = shadow_grid(single, tmp_path / "new" / "grid.png", per_class=2)
    with Image.open(place) as image:
        image.load()
        assert image.format == "PNG"
        assert image.height > 10 * 64
    first = place.read_bytes()
    assert shadow_grid(single, place, per_class=2).read_bytes() == first
    assert shadow_grid(single) == single / "images" / "shadows.png"
    (tmp_path / "linked").symlink_to(tmp_path / "new")
    assert shadow_grid(single, tmp_path / "linked" / "again.png", per_class=2).read_bytes() == first


def test_colour_images_large_images_and_odd_names(tmp_path: Path, train_on: Callable[..., Path]) -> None:
    random = np.random.default_rng(0)
    for name in ("$x^{ 猫\n<b>" + "long " * 20, "b"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(10):
            pixels = random.integers(0, 256, (70, 90, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{number}.png")
    run = train_on(tmp_path / "pets")
    pictures = shadow_pictures(run, 1)
    assert pictures[0].pixels.shape == (1, 3, 70, 90, 3)
    with Image.open(shadow_grid(run)) as image:
        assert image.width < 2000
    from io import BytesIO

    with Image.open(BytesIO(triple_png(pictures[0].pixels[0], 64))) as small:
        assert small.size == (3 * 64 + 2, 50)


def test_wrong_input_is_a_sentence(single: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="per_class"):
        shadow_pictures(single, 0)
    with pytest.raises(BadInput, match="No such file or folder: "):
        shadow_grid(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    config = json.loads((single / "config.json").read_text())
    config["settings"]["hidden"] = [7]
    (single / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="a difference in"):
        shadow_grid(single)
