"""Pictures without labels: which files are read, and as what; for what is refused see diversity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from obverse._core.errors import BadInput
from obverse.data._unlabelled import load_unlabelled

LEVELS = np.arange(5 * 3 * 4, dtype=np.uint8).reshape(5, 3, 4)


def picture(file: Path, levels: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(levels).save(file)


def test_a_folder_is_read_in_the_order_of_names_with_its_sub_folders(tmp_path: Path) -> None:
    for number, levels in enumerate(LEVELS):
        picture(tmp_path / ("b" if number % 2 else "a") / f"{number}.png", levels)
    picture(tmp_path / ".hidden" / "9.png", LEVELS[0])
    picture(tmp_path / ".9.png", LEVELS[0])
    (tmp_path / "notes.txt").write_text("no picture")
    found = load_unlabelled(tmp_path)
    assert found.broken == ()
    assert found.x.shape == (5, 1, 3, 4)
    assert torch.equal(found.x[:, 0] * 255, torch.from_numpy(LEVELS[[0, 2, 4, 1, 3]]).float())


def test_one_colour_picture_makes_all_of_them_colour(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", LEVELS[0])
    picture(tmp_path / "b.png", np.stack([LEVELS[1], LEVELS[2], LEVELS[3]], -1))
    x = load_unlabelled(tmp_path).x * 255
    assert torch.equal(x[0], torch.from_numpy(LEVELS[0]).float().expand(3, 3, 4))
    assert torch.equal(x[1], torch.from_numpy(LEVELS[1:4]).float())


def test_a_picture_with_a_sound_header_may_be_broken_inside(tmp_path: Path) -> None:
    for number, levels in enumerate(LEVELS):
        picture(tmp_path / f"{number}.bmp", levels)
    whole = (tmp_path / "1.bmp").read_bytes()
    (tmp_path / "1.bmp").write_bytes(whole[:-8])
    (tmp_path / "3.bmp").write_bytes(b"nothing of the kind")
    found = load_unlabelled(tmp_path)
    assert found.broken == ("1.bmp", "3.bmp")
    assert torch.equal(found.x[:, 0] * 255, torch.from_numpy(LEVELS[[0, 2, 4]]).float())


def test_only_broken_pictures_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"nothing of the kind")
    with pytest.raises(BadInput, match=r"only broken ones: a\.png"):
        load_unlabelled(tmp_path)
    picture(tmp_path / "b.bmp", LEVELS[0])
    (tmp_path / "b.bmp").write_bytes((tmp_path / "b.bmp").read_bytes()[:-8])
    with pytest.raises(BadInput, match=r"only broken ones: a\.png, b\.bmp"):
        load_unlabelled(tmp_path)


def test_sizes_must_agree(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", LEVELS[0])
    picture(tmp_path / "b.png", LEVELS[0].T.copy())
    with pytest.raises(BadInput, match=r"one size, 4×3 as .*a\.png; got 3×4 in .*b\.png"):
        load_unlabelled(tmp_path)


@pytest.mark.parametrize("name", ["x", "samples", "anything"])
def test_the_array_of_an_npz(tmp_path: Path, name: str) -> None:
    values = np.random.default_rng(0).normal(size=(6, 2))
    np.savez(tmp_path / "a.npz", **{name: values})
    assert torch.equal(load_unlabelled(tmp_path / "a.npz").x, torch.from_numpy(values).float())


def test_of_several_arrays_the_one_with_a_known_name(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(6, 2))
    np.savez(tmp_path / "a.npz", y=np.arange(6), samples=values)
    assert torch.equal(load_unlabelled(tmp_path / "a.npz").x, torch.from_numpy(values).float())
    np.savez(tmp_path / "b.npz", y=np.arange(6), z=values)
    with pytest.raises(BadInput, match="one that is called x or samples; got y, z"):
        load_unlabelled(tmp_path / "b.npz")


def test_numbers_alone_are_points_of_one_dimension(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(4.0))
    assert load_unlabelled(tmp_path / "a.npy").x.tolist() == [[0.0], [1.0], [2.0], [3.0]]
