from __future__ import annotations

import pytest

from obverse.data._sources import CIFAR100_CLASSES, KNOWN


@pytest.mark.parametrize("name", KNOWN)
def test_every_download_can_be_checked(name: str) -> None:
    for download in KNOWN[name].downloads:
        assert download.name.endswith(".gz")
        for file in download.files:
            assert (file.md5 or download.md5) is not None


def test_sizes_are_those_of_the_official_files() -> None:
    assert [file.size for file in KNOWN["mnist"].files] == [47_040_016, 60_008, 7_840_016, 10_008]
    assert {file.size for file in KNOWN["cifar10"].files} == {30_730_000}
    assert [file.size for file in KNOWN["cifar100"].files] == [153_700_000, 30_740_000]


def test_cifar100_has_a_hundred_names_in_order() -> None:
    assert len(set(CIFAR100_CLASSES)) == 100
    assert list(CIFAR100_CLASSES) == sorted(CIFAR100_CLASSES)
