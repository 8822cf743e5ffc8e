"""Nearest points between files: those of points in memory, whoever searches, however often stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from distributed import LocalCluster

from diversity.sample_diversity import generator
from obverse._core.errors import BadInput
from obverse.diversity import _files, nearest, nearest_in_files


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """With ties: some points are equal."""
    reference = torch.randn(300, 7, generator=generator())
    reference[200:210] = reference[:10]
    queries = torch.cat([torch.randn(40, 7, generator=generator(1)), reference[:5]])
    made = tmp_path / "queries.npy", tmp_path / "reference.npy"
    for path, x in zip(made, (queries, reference), strict=True):
        np.save(path, x.numpy())
    return made


def same(one: tuple[torch.Tensor, torch.Tensor], other: tuple[torch.Tensor, torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_files_give_what_points_in_memory_give(files):
    queries, reference = (torch.from_numpy(np.load(path)) for path in files)
    found = nearest_in_files(*files, 3, block=16)
    distance, _ = nearest(queries, reference, 3)
    assert torch.equal(found[0], distance)
    apart = (queries[:, None] - reference[found[1]]).double().norm(dim=2)  # by the points that are named
    assert torch.allclose(apart, distance, atol=1e-6)  # differences in float32


def test_several_processes_change_no_bit(files):
    assert same(nearest_in_files(*files, 2, block=20, jobs=2), nearest_in_files(*files, 2, block=20))


def test_a_cluster_changes_no_bit_either(files):
    with LocalCluster(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster:
        found = nearest_in_files(*files, 2, block=20, cluster=cluster.scheduler_address)
    assert same(found, nearest_in_files(*files, 2, block=20))


def test_an_interrupted_search_is_resumed(files, tmp_path, monkeypatch):
    folder, whole = tmp_path / "parts", nearest_in_files(*files, 2, block=10)
    search, searched = _files.search_block, []

    def stopped(task):
        searched.append(task.start)
        if len(searched) == 3:
            raise KeyboardInterrupt
        return search(task)

    monkeypatch.setattr(_files, "search_block", stopped)
    with pytest.raises(KeyboardInterrupt):
        nearest_in_files(*files, 2, block=10, folder=folder)
    assert same(nearest_in_files(*files, 2, block=10, folder=folder), whole)
    assert searched == [0, 10, 20, 20, 30, 40], "what was done is not done again"


def test_parts_of_another_search_are_refused(files, tmp_path):
    folder = tmp_path / "parts"
    nearest_in_files(*files, 2, block=10, folder=folder)
    with pytest.raises(BadInput, match="those of another"):
        nearest_in_files(*files, 1, block=10, folder=folder)
    np.save(files[0], np.load(files[0]) + 1)
    with pytest.raises(BadInput, match="those of another"):
        nearest_in_files(*files, 2, block=10, folder=folder)


@pytest.mark.parametrize("spoil", ["index", "distance", "shape", "cut"])
def test_broken_parts_are_refused_by_name(files, tmp_path, spoil):
    folder = tmp_path / "parts"
    nearest_in_files(*files, 2, block=10, folder=folder)
    path = folder / "nearest-000000000010.npy"
    part = np.load(path)
    if spoil == "index":
        part[1, 0, 0] = 300
    elif spoil == "distance":
        part[0, 0, 0] = np.nan
    elif spoil == "shape":
        part = part[:, :, :1]
    np.save(path, part)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(BadInput, match="nearest-000000000010"):
        nearest_in_files(*files, 2, block=10, folder=folder)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((3, 2)), "float32"),
        (np.zeros(5, np.float32), "n × d"),
        (np.asfortranarray(np.zeros((40, 7), np.float32)), "rows that lie together"),
        (np.full((40, 7), np.nan, np.float32), "NaN"),
    ],
)
def test_files_of_another_kind_are_refused(files, array, said):
    np.save(files[0], array)
    with pytest.raises(Exception, match=said):
        nearest_in_files(*files)


def test_a_file_is_never_written_to(files):
    before = [path.read_bytes() for path in files]
    nearest_in_files(*files, 2)
    _files.mapped(files[0])[:] = 7
    assert [path.read_bytes() for path in files] == before
