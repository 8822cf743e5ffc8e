from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from data.helpers import IDX_NAMES, Site, cifar_bytes, idx_contents, tiny_cifar100, tiny_mnist
from obverse._core.errors import BadInput
from obverse.data import NAMES, load
from obverse.data._catalog import data_folder
from obverse.data._sources import KNOWN, Download, File, Known


def test_digits_are_whole_and_always_split_alike() -> None:
    from sklearn.datasets import load_digits

    data = load("digits")
    assert str(data) == "digits: 1,297 train + 500 test, 1×8×8, 10 classes"
    assert (data.train_x.dtype, data.train_y.dtype) == (torch.float32, torch.int64)
    assert (float(data.train_x.min()), float(data.train_x.max())) == (0, 1)
    # Label counts of the whole are scikit-learn's; the split is RandomState(0)'s.
    total = np.bincount(load_digits().target)
    assert (data.train_y.bincount() + data.test_y.bincount()).tolist() == total.tolist()
    assert torch.equal(load("digits").test_x, data.test_x)
    first = load_digits().images[np.random.RandomState(0).permutation(1797)[0]] / 16
    assert torch.equal(data.test_x[0, 0], torch.from_numpy(first).float())


def test_mnist_is_downloaded_into_root(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, site.files = tiny_mnist(site.base)
    monkeypatch.setitem(KNOWN, "mnist", known)
    data = load("mnist", root=tmp_path)
    assert str(data) == "mnist: 5 train + 3 test, 1×28×28, 10 classes"
    images, labels = idx_contents()[:2]
    expected = np.frombuffer(images[16:], np.uint8).reshape(5, 1, 28, 28).astype(np.float32) / 255
    assert np.array_equal(data.train_x.numpy(), expected)
    assert data.train_y.tolist() == list(labels[8:])
    assert (tmp_path / "mnist" / IDX_NAMES[0]).is_file()


def test_files_already_there_need_no_network_and_no_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, files = tiny_mnist("http://127.0.0.1:9/")
    monkeypatch.setitem(KNOWN, "fashion-mnist", known)
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    for index, (name, content) in enumerate(files.items()):  # two compressed, two not
        path = folder / name[1:]
        (path if index % 2 else path.with_suffix("")).write_bytes(
            content if index % 2 else gzip.decompress(content)
        )
    before = sorted(folder.iterdir())
    monkeypatch.setenv("OBVERSE_DATA", str(tmp_path))
    assert load("fashion-mnist").name == "fashion-mnist"
    assert sorted(folder.iterdir()) == before


def test_files_of_another_set_are_named(tmp_path: Path) -> None:
    _, files = tiny_mnist("")
    (tmp_path / "mnist").mkdir()
    for name, content in files.items():
        (tmp_path / "mnist" / name[1:]).write_bytes(content)
    with pytest.raises(BadInput, match=r"shape \(60000, 28, 28\).*train-images-idx3-ubyte\.gz; got \(5,"):
        load("mnist", root=tmp_path)


def test_labels_beyond_the_classes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, files = tiny_mnist("")
    monkeypatch.setitem(KNOWN, "mnist", known)
    (tmp_path / "mnist").mkdir()
    for name, content in files.items():
        (tmp_path / "mnist" / name[1:]).write_bytes(content)
    labels = gzip.decompress(files["/" + IDX_NAMES[3]])[:-1] + b"\x0a"
    (tmp_path / "mnist" / IDX_NAMES[3]).write_bytes(gzip.compress(labels))
    with pytest.raises(BadInput, match=r"labels 0 to 9 in .*t10k-labels-idx1-ubyte\.gz; got 10"):
        load("mnist", root=tmp_path)


def test_cifar100_is_downloaded_and_read(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, site.files = tiny_cifar100(site.base)
    monkeypatch.setitem(KNOWN, "cifar100", known)
    data = load("cifar100", root=tmp_path)
    assert str(data) == "cifar100: 3 train + 2 test, 3×32×32, 100 classes"
    assert data.train_y.tolist() == [7, 99, 0]
    assert data.test_y.tolist() == [42, 5]


def test_cifar10_needs_its_full_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    files = tuple(File(f"cifar-10-batches-bin/{name}.bin", 3073, None) for name in names)
    known = Known("cifar", tuple("0123456789"), 5, 1, (Download("http://127.0.0.1:9/x.tar.gz", files),))
    monkeypatch.setitem(KNOWN, "cifar10", known)
    (tmp_path / "cifar10" / "cifar-10-batches-bin").mkdir(parents=True)
    for label, file in enumerate(files):
        (tmp_path / "cifar10" / file.path).write_bytes(cifar_bytes([(label,)], seed=label))
    data = load("cifar10", root=tmp_path)
    assert data.train_y.tolist() == [0, 1, 2, 3, 4]
    assert data.test_y.tolist() == [5]
    (tmp_path / "cifar10" / files[-1].path).write_bytes(cifar_bytes([(1,), (2,)]))
    with pytest.raises(BadInput, match=r"1 images in .*test_batch\.bin; got 2"):
        load("cifar10", root=tmp_path)


def test_paths_are_folders_and_npz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((5, 2), np.float32), y=np.zeros(5, np.int64))
    assert load(tmp_path / "a.npz").name == "a"
    assert load(str(tmp_path / "a.npz")).input_shape == (2,)
    (tmp_path / "mnist" / "one").mkdir(parents=True)
    for index in range(2):
        Image.new("L", (2, 2)).save(tmp_path / "mnist" / "one" / f"{index}.png")
    monkeypatch.chdir(tmp_path)
    assert load("./mnist").classes == ("one",)  # a path, where "mnist" would be the data set
    assert load(Path("mnist")).classes == ("one",)


@pytest.mark.parametrize("given", ["nmist", "", "a\0b"])
def test_unknown_names_list_the_known_ones(given: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(given)
    for name in NAMES:
        assert name in str(caught.value)


@pytest.mark.parametrize("given", ["~nobody-here/x", "no/such.npz", "such.npz"])
def test_what_looks_like_a_path_is_no_such_file(given: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(given)
    assert str(caught.value) == f"No such file or folder: {given!r}"


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"")
    with pytest.raises(BadInput, match=r"numpy\.savez"):
        load(tmp_path / "a.pkl")


def test_root_is_argument_then_variable_then_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBVERSE_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder(None) == tmp_path / "variable"
    monkeypatch.delenv("OBVERSE_DATA")
    assert data_folder(None) == tmp_path / "cache" / "obverse"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data_folder(None) == tmp_path / "home" / ".cache" / "obverse"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder("~/here") == tmp_path / "home" / "here"


def test_importing_is_light() -> None:
    heavy = "{'sklearn', 'PIL', 'matplotlib', 'scipy', 'rich', 'typer'}"
    code = f"import sys, obverse.data; print(sorted({heavy} & {{n.split('.')[0] for n in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
