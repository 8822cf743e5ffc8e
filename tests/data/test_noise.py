from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.helpers import peak_memory
from obverse._core.errors import BadInput
from obverse.data._noise import MAX_BYTES, _Array, _Type, flip_labels, read_labels

OFFICIAL = ("clean_label", "aggre_label", "worse_label", "random_label1", "random_label2", "random_label3")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 1.0])
def test_exactly_the_share_is_flipped_and_to_another_class(share: float) -> None:
    y = torch.randint(0, 10, (995,), generator=generator())
    before = y.clone()
    flipped = flip_labels(y, share, 10, generator(1))
    assert int((flipped != y).sum()) == round(share * 995)
    assert torch.equal(y, before)
    assert 0 <= int(flipped.min()) <= int(flipped.max()) <= 9


def test_every_other_class_is_as_likely_and_every_point() -> None:
    from scipy.stats import chisquare

    y = torch.arange(4).repeat(3000)
    flipped = flip_labels(y, 0.5, 4, generator(2))
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (y.numpy(), flipped.numpy()), 1)
    # One fixed draw: p below 0.001 would come up once in a thousand seeds, and this is not such a one.
    assert chisquare(pairs[~np.eye(4, dtype=bool)]).pvalue > 0.001
    assert chisquare(((flipped != y).reshape(12, 1000).sum(1)).numpy()).pvalue > 0.001


def test_the_generator_decides() -> None:
    y = torch.zeros(50, dtype=torch.int64)
    assert torch.equal(flip_labels(y, 0.4, 10, generator(3)), flip_labels(y, 0.4, 10, generator(3)))
    assert not torch.equal(flip_labels(y, 0.4, 10, generator(3)), flip_labels(y, 0.4, 10, generator(4)))


def test_what_cannot_be_flipped_is_refused() -> None:
    y = torch.tensor([0, 1, 2])
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(BadInput, match=r"a share in \[0, 1\]"):
            flip_labels(y, share, 3, generator())
    with pytest.raises(BadInput, match="at least 2 classes"):
        flip_labels(torch.zeros(3, dtype=torch.int64), 0.5, 1, generator())
    with pytest.raises(BadInput, match="labels 0 to 1; got 0 to 2"):
        flip_labels(y, 0.5, 2, generator())
    with pytest.raises(BadInput, match="int64"):
        flip_labels(y.float(), 0.5, 3, generator())
    with pytest.raises(BadInput, match="a row"):
        flip_labels(y[:, None], 0.5, 3, generator())


def official(path: Path, count: int = 60, dtype: str = "int64", **save: Any) -> dict[str, Any]:
    """A small file of the form of CIFAR-10_human.pt."""
    numbers = np.random.default_rng(0)
    labels = {name: numbers.integers(0, 10, count).astype(dtype) for name in OFFICIAL}
    torch.save(labels, path, **save)
    return labels


@pytest.mark.parametrize("dtype", ["int64", ">i4", "uint8"])
@pytest.mark.parametrize("in_zip", [True, False])
def test_reads_the_official_form(tmp_path: Path, dtype: str, in_zip: bool) -> None:
    path = tmp_path / "CIFAR-10_human.pt"
    labels = official(path, dtype=dtype, _use_new_zipfile_serialization=in_zip)
    for name in OFFICIAL:
        found = read_labels(path, name, count=60)
        assert found.dtype == torch.int64
        assert found.tolist() == labels[name].tolist()


def test_names_that_older_numpy_writes_are_known(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    labels = official(path, _use_new_zipfile_serialization=False)
    content = path.read_bytes()
    assert b"numpy._core.multiarray" in content
    path.write_bytes(content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert read_labels(path, "worse_label", count=60).tolist() == labels["worse_label"].tolist()


@pytest.mark.parametrize("dtype", ["int64", ">u2", "int8"])
def test_reads_an_array(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "y.npy", np.array([3, 0, 9], dtype))
    assert read_labels(tmp_path / "y.npy", count=3).tolist() == [3, 0, 9]


def test_the_default_is_cifar10(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.zeros(50_000, np.uint8))
    assert read_labels(tmp_path / "y.npy").shape == (50_000,)
    np.save(tmp_path / "y.npy", np.zeros(49_999, np.uint8))
    with pytest.raises(BadInput, match=r"50,000 whole numbers .* got uint8 of shape \(49999,\)"):
        read_labels(tmp_path / "y.npy")


@pytest.mark.parametrize("wrong", [np.zeros(4), np.zeros((4, 1), np.int64), np.zeros(3, np.int64)])
def test_arrays_of_other_types_and_shapes_are_refused(tmp_path: Path, wrong: Any) -> None:
    np.save(tmp_path / "y.npy", wrong)
    torch.save({"y": wrong}, tmp_path / "y.pt")
    for path, key in ((tmp_path / "y.npy", None), (tmp_path / "y.pt", "y")):
        with pytest.raises(BadInput, match="whole numbers in a row"):
            read_labels(path, key, count=4)


@pytest.mark.parametrize("wrong", [[0, 10], [-1, 0]])
def test_labels_out_of_range_are_refused(tmp_path: Path, wrong: list[int]) -> None:
    np.save(tmp_path / "y.npy", np.array(wrong))
    with pytest.raises(BadInput, match=r"labels 0 to 9 in .*; got -?\d+ to \d+"):
        read_labels(tmp_path / "y.npy", count=2)


def test_keys_are_named(tmp_path: Path) -> None:
    official(tmp_path / "a.pt")
    for key in (None, "noisy_label"):
        with pytest.raises(BadInput, match="a key out of aggre_label, clean_label"):
            read_labels(tmp_path / "a.pt", key, count=60)
    np.save(tmp_path / "y.npy", np.array([0]))
    with pytest.raises(BadInput, match="leave the key out"):
        read_labels(tmp_path / "y.npy", "clean_label", count=1)


@pytest.mark.parametrize(
    "value", [[1, 2], {"a": torch.zeros(2)}, {"a": np.array(["x", None], object)}, {"a": 1}]
)
def test_other_contents_are_refused(tmp_path: Path, value: Any) -> None:
    torch.save(value, tmp_path / "a.pt")
    with pytest.raises(BadInput):
        read_labels(tmp_path / "a.pt", "a", count=2)


@pytest.mark.parametrize("shape", [None, 3, ("3",), "deep"])
def test_a_shape_that_is_none_is_refused(shape: Any) -> None:
    record = _Array()
    if shape == "deep":
        shape = ()
        for _ in range(100_000):  # nobody can print it
            shape = (shape,)
    kind = _Type("i8")
    record.__setstate__((1, shape, kind, False, b"\0" * 24))
    with pytest.raises(ValueError, match="without a shape"):
        record.found()


class Command:
    """What a hostile pickle would do when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_nothing_in_the_file_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    torch.save({"a": Command(mark)}, tmp_path / "a.pt")
    np.save(tmp_path / "a.npy", np.array([Command(mark)], object), allow_pickle=True)
    for path, key in ((tmp_path / "a.pt", "a"), (tmp_path / "a.npy", None)):
        with pytest.raises(BadInput):
            read_labels(path, key, count=1)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Command(mark)))  # noqa: S301  the trap itself works
    assert mark.exists()


class Huge:
    """An array that asks for a terabyte and brings nothing."""

    def __reduce__(self) -> Any:
        return np._core.multiarray._reconstruct, (np.ndarray, (2**40,), b"b")  # type: ignore[attr-defined]


def test_sizes_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"a": Huge()}, path)
    with pytest.raises(BadInput, match="without type or content"):
        read_labels(path, "a")
    official(path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content + bytes(30_000_000 if name.endswith(".pkl") else 0))

    def read() -> None:
        with pytest.raises(BadInput, match="packed into"):
            read_labels(path, "clean_label", count=60)

    assert peak_memory(read) < 10_000_000  # a third of what the member claims
    with (tmp_path / "large.npy").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(BadInput, match="at most"):
        read_labels(tmp_path / "large.npy")


def test_missing_files_are_named(tmp_path: Path) -> None:
    for name in ("a.pt", "a.npy"):
        with pytest.raises(BadInput, match=name.replace(".", r"\.")):
            read_labels(tmp_path / name)


@pytest.mark.parametrize("suffix", [".pt", ".npy"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_broken_files_get_a_sentence(tmp_path: Path, suffix: str, data: st.DataObject) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".pt":
        official(path, count=5, _use_new_zipfile_serialization=data.draw(st.booleans()))
    else:
        np.save(path, np.arange(5))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        found = read_labels(path, "clean_label" if suffix == ".pt" else None, count=5)
    except BadInput:
        return
    assert found.shape == (5,)
    assert 0 <= int(found.min()) <= int(found.max()) < 10
