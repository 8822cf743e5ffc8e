"""Where samples come from: pools without replacement, and every kind of bad input by its sentence."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from obverse._core.errors import BadInput
from obverse.diversity._sources import checked_samples, flat_points, open_source


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def save_pictures(folder, count: int, size=(4, 3), mode: str = "L") -> None:
    for number in range(count):
        Image.new(mode, size, number if mode == "L" else (number, 0, 0)).save(folder / f"p{number}.png")


def test_a_pool_hands_out_each_sample_once():
    source = open_source(torch.arange(100.0))
    generator = seeded()
    parts = [source.draw(count, generator) for count in (30, 30, 40)]
    assert sorted(torch.cat(parts).flatten().tolist()) == list(range(100))
    assert parts[0].flatten().tolist() != list(range(30))  # in an order that was drawn
    assert source.left == 0
    with pytest.raises(BadInput, match="not used yet"):
        source.draw(1, generator)


def test_the_order_of_a_pool_is_uniform():
    """Each of 5 samples is first in a fifth of 2,000 draws, within 4 standard errors."""
    firsts = [
        int(open_source(torch.arange(5.0)).draw(1, generator)[0, 0])
        for generator in (seeded(seed) for seed in range(2000))
    ]
    counts = np.bincount(firsts, minlength=5)
    assert abs(counts - 400).max() < 4 * (2000 * 0.2 * 0.8) ** 0.5


def test_a_pool_is_the_same_for_the_same_seed():
    one, two = (open_source(torch.arange(50.0)).draw(20, seeded(3)) for _ in range(2))
    other = open_source(torch.arange(50.0)).draw(20, seeded(4))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_a_function_gets_the_generator_and_no_gradient_is_kept():
    weight = torch.ones(3, requires_grad=True)
    source = open_source(lambda n, generator: weight * torch.rand(n, 3, generator=generator))
    state = torch.random.get_rng_state()
    drawn = source.draw(5, seeded(1))
    assert torch.equal(drawn, torch.rand(5, 3, generator=seeded(1)))
    assert not drawn.requires_grad
    assert source.left is None
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_source_stays_itself():
    source = open_source(torch.rand(4, 2))
    assert open_source(source) is source


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_kinds_of_numbers(dtype):
    drawn = open_source(torch.tensor([[0.5], [0.25]], dtype=dtype)).draw(2, seeded())
    assert drawn.dtype in (torch.float32, torch.float64)
    assert sorted(drawn.flatten().tolist()) == [0.25, 0.5]


def test_bytes_are_grey_levels():
    drawn = open_source(np.array([[0], [255]], dtype=np.uint8)).draw(2, seeded())
    assert sorted(drawn.flatten().tolist()) == [0.0, 1.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[::-1],
        lambda x: x.astype(">f4"),
        lambda x: x.astype(np.float16).astype(np.float64),
        lambda x: np.asfortranarray(x),
        lambda x: np.broadcast_to(x, x.shape),  # read-only
    ],
)
def test_odd_arrays(change):
    x = np.array([[0.5, 1.0], [0.25, 2.0]], dtype=np.float32)
    drawn = open_source(change(x)).draw(2, seeded())
    assert sorted(drawn.tolist()) == [[0.25, 2.0], [0.5, 1.0]]


def test_arrays_and_files(tmp_path):
    x = np.random.default_rng(0).random((6, 1, 2, 2), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "one.npz", anything=x)
    np.savez_compressed(tmp_path / "named.npz", x=x, y=np.arange(6))
    for source in (x, tmp_path / "x.npy", str(tmp_path / "one.npz"), tmp_path / "named.npz"):
        opened = open_source(source)
        drawn = opened.draw(6, seeded())
        assert sorted(map(tuple, drawn.flatten(1).tolist())) == sorted(map(tuple, x.reshape(6, 4).tolist()))


def test_a_folder_goes_on_without_its_broken_pictures(tmp_path):
    save_pictures(tmp_path, 5)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing more")
    (tmp_path / "deeper").mkdir()
    save_pictures(tmp_path / "deeper", 2)
    noise = np.random.default_rng(0).integers(256, size=(3, 4), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "cut.png")
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: whole.index(b"IDAT") + 10])  # a sound header, half the pixels
    source = open_source(tmp_path)
    assert source.broken == ("broken.png", "cut.png")
    assert source.left == 7
    assert source.draw(7, seeded()).shape == (7, 1, 3, 4)


def test_pixels_of_a_folder(tmp_path):
    Image.fromarray(np.array([[0, 255]], dtype=np.uint8)).save(tmp_path / "a.png")
    Image.fromarray(np.array([[51, 102]], dtype=np.uint8)).save(tmp_path / "b.png")
    drawn = open_source(tmp_path).draw(2, seeded()).flatten(1)
    # k/255 in float32
    assert sorted(drawn.tolist()) == [pytest.approx([0, 1]), pytest.approx([0.2, 0.4], rel=1e-6)]


def broken_folder(tmp_path):
    for name in ("a.png", "b.jpg"):
        (tmp_path / name).write_bytes(b"no picture")
    return tmp_path


def mixed_folder(tmp_path):
    save_pictures(tmp_path, 2)
    Image.new("L", (9, 9)).save(tmp_path / "z.png")
    return tmp_path


def pickled_npy(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    return tmp_path / "x.npy"


def pickle_as_npy(tmp_path):
    (tmp_path / "x.npy").write_bytes(pickle.dumps([1.0, 2.0]))
    return tmp_path / "x.npy"


def npy_header(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def huge_npy(tmp_path):
    (tmp_path / "x.npy").write_bytes(npy_header((10**9, 10**6)) + b"\0" * 64)
    return tmp_path / "x.npy"


def overflowing_npy(tmp_path):
    (tmp_path / "x.npy").write_bytes(npy_header((2**32, 2**32)))  # 0 values in 64 bits
    return tmp_path / "x.npy"


def huge_npz(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", npy_header((10**9, 10**6)) + b"\0" * 64)
    return tmp_path / "x.npz"


def pickled_npz(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.array([{"a": 1}, None], dtype=object))
    return tmp_path / "x.npz"


def cut_npy(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((10, 4), dtype=np.float32))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-8])
    return tmp_path / "x.npy"


def two_arrays(tmp_path):
    np.savez(tmp_path / "x.npz", first=np.ones((2, 2)), second=np.ones((2, 2)))
    return tmp_path / "x.npz"


def wrong_values(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[0.0], [np.nan]], dtype=np.float32))
    return tmp_path / "x.npy"


def one_sample(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 4), dtype=np.float32))
    return tmp_path / "x.npy"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path / "nothing", "No such file or folder: .*nothing"),
        (lambda path: path, "none"),
        (broken_folder, "only broken ones: a.png, b.jpg"),
        (mixed_folder, "9×9"),
        (pickled_npy, "pickled objects"),
        (pickle_as_npy, "a sound .npy"),
        (pickled_npz, "pickled objects"),
        (huge_npy, "size that fits"),
        (overflowing_npy, "size that fits"),
        (huge_npz, "size that fits"),
        (cut_npy, "size that fits"),
        (two_arrays, "first, second"),
        (wrong_values, "(?i)nan"),
        (one_sample, "at least two"),
    ],
)
def test_refused_files(tmp_path, make, said):
    with pytest.raises(BadInput, match=said):
        open_source(make(tmp_path))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (torch.rand(1, 3), "at least two"),
        (torch.tensor(1.0), "single number"),
        (torch.rand(3, 0), "with values"),
        (torch.tensor([[0.0], [float("nan")], [float("nan")]]), "2 of 3 samples, first in number 1"),
        (torch.tensor([[0.0], [float("inf")]]), "infinity"),
        (torch.arange(5), "floating"),
        (np.array(["a", "b"]), "."),
        (np.array([{}, {}], dtype=object), "."),
        ([torch.rand(2), torch.rand(3)], "list"),
        (3, "int"),
        (None, "NoneType"),
    ],
)
def test_refused_values(source, said):
    with pytest.raises(BadInput, match=said):
        open_source(source)


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        (lambda n, generator: torch.rand(n + 1, 2), "shape"),
        (lambda n, generator: torch.tensor(0.0), "shape"),
        (lambda n, generator: np.zeros((n, 2)), "ndarray"),
        (lambda n, generator: None, "NoneType"),
        (lambda n, generator: torch.full((n, 2), float("nan")), "NaN"),
        (lambda n, generator: torch.zeros(n, 2, dtype=torch.int32), "floating"),
    ],
)
def test_refused_samplers(sampler, said):
    with pytest.raises(BadInput, match=said):
        open_source(sampler).draw(4, seeded())


def test_a_sampler_that_changes_its_shape():
    shapes = iter([(2,), (2,), (3,)])
    source = open_source(lambda n, generator: torch.rand(n, *next(shapes), generator=generator))
    source.draw(4, seeded())
    source.draw(5, seeded())
    with pytest.raises(BadInput, match="one shape"):
        source.draw(4, seeded())


def test_points():
    assert flat_points(torch.rand(3, 2, 2)).shape == (3, 4)
    assert flat_points(torch.arange(3.0)).shape == (3, 1)
    with pytest.raises(BadInput, match="3 times the same"):
        flat_points(torch.ones(3, 2))
    assert flat_points(torch.ones(3, 2), constant=True).shape == (3, 2)
    with pytest.raises(BadInput, match="at least two"):
        flat_points(torch.ones(1, 2))


def test_samples_are_not_changed():
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8)
    assert checked_samples(x, "x").dtype == torch.float32
    assert x.dtype == torch.uint8
    assert x.tolist() == [[1, 2], [3, 4]]
