from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.helpers import cifar_bytes
from obverse._core.errors import BadInput
from obverse.data._cifar import read_cifar


def test_reads_cifar10_batches_in_turn(tmp_path: Path) -> None:
    first, second = cifar_bytes([(3,), (9,)]), cifar_bytes([(0,)], seed=1)
    (tmp_path / "1.bin").write_bytes(first)
    (tmp_path / "2.bin").write_bytes(second)
    x, y = read_cifar([tmp_path / "1.bin", tmp_path / "2.bin"], label_bytes=1, classes=10)
    assert x.shape == (3, 3, 32, 32)
    assert y.tolist() == [3, 9, 0]
    # The planes are red, green, blue, each by rows: byte 1 + 1024·c + 32·row + column of a record.
    assert x[1, 2, 5, 7] == first[3073 + 1 + 2 * 1024 + 5 * 32 + 7]
    assert x[2, 0, 0, 0] == second[1]


def test_cifar100_uses_the_fine_label(tmp_path: Path) -> None:
    content = cifar_bytes([(19, 99), (4, 0)])
    (tmp_path / "train.bin").write_bytes(content)
    x, y = read_cifar([tmp_path / "train.bin"], label_bytes=2, classes=100)
    assert y.tolist() == [99, 0]
    assert np.array_equal(x[1].ravel(), np.frombuffer(content[3074 + 2 :], np.uint8))


@pytest.mark.parametrize("content", [b"", cifar_bytes([(1,)])[:-1], cifar_bytes([(1,)]) + b"x"])
def test_files_of_broken_length_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(BadInput, match=r"whole records of 3,073 bytes in .*a\.bin; got [\d,]+ bytes"):
        read_cifar([tmp_path / "a.bin"], label_bytes=1, classes=10)


def test_labels_out_of_range_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(cifar_bytes([(1,), (10,)]))
    with pytest.raises(BadInput, match=r"labels 0 to 9 in .*a\.bin; got 10"):
        read_cifar([tmp_path / "a.bin"], label_bytes=1, classes=10)
    with pytest.raises(BadInput, match=r"b\.bin"):
        read_cifar([tmp_path / "b.bin"], label_bytes=1, classes=10)
