"""The page of a generator says what its run says, and nothing that a directory puts into its mouth."""

from __future__ import annotations

import base64
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from browsing import (
    DESK,
    PHONE,
    VIEWS,
    check_page,
    check_print,
    open_page,
    requests,
    save_screenshot,
)
from obverse._core.errors import BadInput
from obverse.app import write_report as build
from obverse.data import load
from obverse.generative._mixture import Mixture
from obverse.training._generators.charts import album, check_pictures, levels, sheet, stage_epochs
from obverse.training._generators.fit import load_generator
from obverse.training._generators.results import read_generator_results
from obverse.training._generators.words import number
from obverse.training._rundir import read_generator_run
from training.sample_generators import generator_run
from training.test_page import Reader, text_of

MODELS = ("vae", "wgan", "mixture")
ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Finished; not to be changed, see `copy`."""
    folder = tmp_path_factory.mktemp("generators")
    return {
        model: generator_run(folder / model, model, **({"components": 3} if model == "mixture" else {}))
        for model in MODELS
    }


@pytest.fixture(scope="module")
def pages(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {model: build(run, folder / f"{model}.html") for model, run in runs.items()}


@pytest.fixture
def copy(runs: dict[str, Path], tmp_path: Path) -> Any:
    return lambda model="vae": Path(shutil.copytree(runs[model], tmp_path / model))


def final(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    return found


def change(run: Path, **changes: Any) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | changes))


def pixels_of(uri: str) -> np.ndarray[Any, Any]:
    with Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/png;base64,")))) as image:
        return np.asarray(image)


def test_the_verdict_comes_first_and_has_the_last_numbers(runs, pages) -> None:
    last = final(runs["vae"])
    text = text_of(pages["vae"])
    verdict = (
        f"Test ELBO {number(last['test_elbo'])} nats per image: reconstruction "
        f"{number(last['test_reconstruction'])}, less KL {number(last['test_kl'])}."
    )
    assert f"A variational autoencoder trained on digits {verdict}" in text
    assert f"it is a bound of log p(x): {number(last['test_elbo_binarized'])} nats" in text
    for model, title in (("wgan", "A Wasserstein GAN"), ("mixture", "A mixture of generators")):
        last, text = final(runs[model]), text_of(pages[model])
        assert f"{title} trained on digits The critic’s gap is {number(last['test_gap'], 3)}:" in text
        assert f"Against training images it is {number(last['train_gap'], 3)}" in text
    weights = sorted(final(runs["mixture"])["weights"], reverse=True)
    shown = f"{weights[0]:.2f}, {weights[1]:.2f} and {weights[2]:.2f}"
    assert f"3 generators with weights {shown}" in text_of(pages["mixture"])


def test_numbers_have_a_real_minus_and_no_minus_zero() -> None:
    assert [number(value) for value in (-104.91, 0.0, -0.04, 1234.5)] == ["−104.9", "0.0", "0.0", "1,234.5"]


@pytest.mark.parametrize(("model", "count"), [("vae", 3), ("wgan", 3), ("mixture", 6)])
def test_there_is_a_curve_for_every_part_of_the_loss(pages, model: str, count: int) -> None:
    found = Reader(pages[model].read_text())
    assert found.tags.count("figure") == count
    for title in {
        "vae": ("The bound", "Reconstruction", "KL of the code"),
        "wgan": ("The critic’s gap", "In training", "Gradient penalty"),
        "mixture": ("Weights of the generators", "Weights of the critics", "Entropy of the weights"),
    }[model]:
        assert title in found.text


@pytest.mark.parametrize("model", MODELS)
def test_page_stands_alone_and_is_the_same_every_time(runs, pages, model: str, tmp_path: Path) -> None:
    page = pages[model]
    found = Reader(page.read_text())
    assert page.stat().st_size < 1_000_000
    assert "script" not in found.tags
    assert all(url.startswith(("data:", "#")) for url in found.urls)
    assert len(found.ids) == len(set(found.ids))
    assert found.references <= set(found.ids)
    assert build(runs[model], tmp_path / "again.html").read_bytes() == page.read_bytes()
    assert str(runs[model].parent).encode() not in page.read_bytes()


def test_default_place(copy) -> None:
    run = copy()
    assert build(run) == run / "report.html"


# Images


def test_pictures_are_what_the_generator_makes(runs) -> None:
    record = read_generator_run(runs["vae"])
    found = album(record)
    net = load_generator(runs["vae"])
    made = levels(net.sample(80, torch.Generator().manual_seed(0)))
    assert [pixels_of(uri).tolist() for uri in found.samples] == made.tolist()
    data = load("digits")
    with torch.no_grad():
        again = levels(net(data.test_x[:20]))
    for uri, picture, reconstruction in zip(found.pairs, levels(data.test_x[:20]), again, strict=True):
        pair = pixels_of(uri)
        assert (pair[:8] == picture).all()
        # one level of 255 for float sums in another order
        assert np.abs(pair[9:].astype(int) - reconstruction.astype(int)).max() <= 1
    assert [strip.label for strip in found.stages] == ["epoch 0", "epoch 1", "epoch 2", "epoch 3"]
    last = sheet(levels(net.sample(12, torch.Generator().manual_seed(0))), 12)
    assert (pixels_of(found.stages[-1].uri) == last).all()
    assert found.notes == ()


def test_the_components_of_a_mixture_come_heaviest_first(runs) -> None:
    net = load_generator(runs["mixture"])
    assert isinstance(net, Mixture)
    weights = sorted(net.weights()[0].tolist(), reverse=True)
    assert [strip.label for strip in album(read_generator_run(runs["mixture"])).components] == [
        f"{weight:.3f}" for weight in weights
    ]


def test_a_sheet_has_every_picture_in_its_place() -> None:
    pixels = np.arange(5, dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(3, 2)
    found = sheet(pixels, 3)
    assert found.shape == (5, 11)
    assert found[:2, :3].tolist() == [[0] * 3] * 2
    assert found[3:, 4:7].tolist() == [[4] * 3] * 2
    assert (found[2] == 64).all()
    assert (found[3:, 8:] == 64).all()
    with pytest.raises(BadInput, match="pixels in one image"):
        sheet(np.zeros((10_000, 64, 64), np.uint8), 100)


def test_levels_are_not_stretched() -> None:
    assert levels(torch.tensor([[[[0.0, 0.25, 1.0, 2.0, -1.0, float("nan")]]]])).tolist() == [
        [[0, 64, 255, 255, 0, 0]]
    ]
    assert levels(torch.zeros(2, 3, 4, 5)).shape == (2, 4, 5, 3)
    for shape in ((5,), (2, 4, 4)):
        with pytest.raises(BadInput, match="1 or 3 channels"):
            check_pictures(shape)


@pytest.mark.parametrize("epochs", [1, 2, 5, 20, 462, 10**6])
def test_few_epochs_are_kept_with_the_first_and_the_last(epochs: int) -> None:
    kept = stage_epochs(epochs)
    assert {0, epochs} <= kept <= set(range(epochs + 1))
    assert len(kept) <= 8


def test_pictures_of_another_size_or_kind_are_not_shown(copy, tmp_path: Path) -> None:
    run = copy()
    place = run / "images" / "epoch-000003.png"
    for content in (b"no image", None):
        if content:
            place.write_bytes(content)
        else:
            Image.new("RGB", (4000, 4000)).save(place)
        text = text_of(build(run))
        assert "No samples along training: expected" in text
        assert "Test ELBO" in text
    shutil.rmtree(run / "images")
    assert "along training" not in text_of(build(run)).lower()


def test_data_that_cannot_be_loaded_leave_the_samples(copy) -> None:
    run = copy()
    change(
        run,
        settings=json.loads((run / "config.json").read_text())["settings"] | {"data": "/nowhere/pets.npz"},
    )
    text = text_of(build(run))
    assert "A variational autoencoder trained on pets.npz" in text
    assert "Some images are missing: No such file or folder: " in text


# Runs under way, and untrusted ones


def test_an_unfinished_run_says_so(copy) -> None:
    run = copy()
    (run / "model.safetensors").unlink()
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join(lines[:3]) + "\n")
    text = text_of(build(run))
    assert "This run is not finished: it has reached epoch 2 of 3" in text
    assert "resume it with: obverse generate train --resume" in text


def test_a_run_that_has_only_begun_has_a_page_too(copy) -> None:
    run = copy("mixture")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text(lines[0] + "\n")
    assert "The critic’s gap is" in text_of(build(run))
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(BadInput, match="at least one evaluated epoch"):
        build(run)


@pytest.mark.parametrize(
    ("model", "record"),
    [
        ("vae", {"epoch": -1, "seconds": 0}),
        ("vae", {"epoch": 4, "seconds": "1"}),
        ("vae", {"epoch": 4, "seconds": 1, "test_elbo": 1.0}),
        ("vae", {"epoch": 4, "seconds": 1, "test_elbo": ATTACK, "test_reconstruction": 1, "test_kl": 1}),
        ("vae", {"epoch": 4, "seconds": 1, "test_elbo": None, "test_reconstruction": 1, "test_kl": 1}),
        ("wgan", {"epoch": 4, "seconds": 1, "test_gap": 1, "train_gap": True}),
        ("wgan", {"epoch": 4, "seconds": 1, "penalty": "low"}),
        ("mixture", {"epoch": 4, "seconds": 1, "test_gap": 1, "train_gap": 1}),
        ("mixture", {"epoch": 4, "seconds": 1, "weights": [0.5, 0.5]}),
        ("mixture", {"epoch": 4, "seconds": 1, "weights": [0.5, 0.5, "0"]}),
        ("mixture", {"epoch": 4, "seconds": 1, "critic_weights": 3}),
    ],
)
def test_metrics_that_are_none_are_refused(copy, model: str, record: dict[str, object]) -> None:
    run = copy(model)
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    with pytest.raises(BadInput, match=r"metrics\.jsonl; got .* in record 5"):
        read_generator_results(run)


def test_other_decoders_and_held_out_points_are_said(tmp_path: Path) -> None:
    run = generator_run(tmp_path / "gaussian", "vae", decoder="gaussian", validation=50, epochs=1)
    text = text_of(build(run))
    assert "Held-out ELBO" in text
    assert "only bounds with the same σ compare" in text
    assert "test" not in text.lower().replace("obverse diversity tests", "").replace("latest", "")
    run = generator_run(tmp_path / "binary", "vae", binarize=True, epochs=1)
    assert "Pixels are drawn as 0 or 1" in text_of(build(run))


def test_flat_samples_make_a_page_without_pictures(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "flat.npz", x=random.random((60, 5), dtype=np.float32), y=np.arange(60) % 3)
    run = generator_run(tmp_path / "run", "wgan", data=str(tmp_path / "flat.npz"), train_size=None)
    text = text_of(build(run))
    assert "A Wasserstein GAN trained on flat.npz" in text
    assert "No images: the samples are not images." in text


# In a real browser


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_page_is_whole_quiet_and_readable(
    browser: Any, pages: dict[str, Path], model: str, scheme: str, size: tuple[int, int]
) -> None:
    shown = check_page(browser, pages[model], (size, scheme), f"generator-{model}", texts=80)
    # samples, epochs, figures; reconstructions; components
    assert len(shown) == 80 + 4 + {"vae": 3 + 20, "wgan": 3, "mixture": 6 + 3}[model]
    for one in shown:
        assert min(one["width"], one["height"]) >= 20


def test_print_is_light_and_gives_pages(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["mixture"], DESK, "dark", media="print")
    save_screenshot(browser, "generator-print")
    check_print(browser)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_text_runs_nothing(browser: Any, copy, size: tuple[int, int]) -> None:
    run = copy()
    settings = json.loads((run / "config.json").read_text())["settings"]
    hostile = {"data": ATTACK + "x" * 500, "data_root": ATTACK}
    long = {ATTACK: ATTACK, "style": "</style></title>" + ATTACK, "y" * 5000: "z" * 5000}
    change(run, settings=settings | hostile, environment=long)
    page = build(run)
    open_page(browser, page, size, "light")
    assert browser.get_log("browser") == []
    assert requests(browser) == [page.as_uri()]
    assert "owned" not in browser.title.split("—")[-1]
    assert browser.execute_script("return document.querySelectorAll('script').length") == 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert "onerror" in browser.execute_script("return document.body.innerText")
