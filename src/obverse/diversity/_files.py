"""Nearest points of files larger than memory: mapped, block by block, resumable, in several processes.

Every block of queries is searched by itself on one thread, so that neither the number of processes nor an
interruption changes a bit. Not for points in memory: see neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from .. import __version__
from .._core import (
    BadInput,
    ObverseError,
    Progress,
    Record,
    explained,
    in_processes,
    on_cluster,
    one_thread,
    read_header,
    read_record,
    record_text,
    replace_atomically,
    write_text,
)
from ._distances import BLOCK
from ._neighbours import nearest

NAME, FORMAT = "nearest.json", 1
ENDS = 2**16  # bytes at either end of a file by which it is known again
_DO = "write it with numpy.save(path, x), x of float32 and n × d"


@dataclass(frozen=True)
class Points(Record):
    """A .npy file of n × d points, as it is known again elsewhere or later."""

    name: str
    rows: int
    columns: int
    ends: int  # a checksum of its first and last bytes


@dataclass(frozen=True)
class Search(Record):
    """What parts in a folder belong to: with other points, or another size, they say something else."""

    queries: Points
    reference: Points
    k: int
    block: int
    version: str


@dataclass(frozen=True)
class Block:
    """Some of the queries, as they are sent to a worker."""

    search: Search
    queries: str
    reference: str
    start: int


@dataclass(frozen=True)
class Refused:
    """A sentence in place of a result: exceptions of ours do not survive the way back."""

    sentence: str


Part = np.ndarray[Any, np.dtype[np.float64]]  # 2 × n × k: distances, and indices as whole numbers


def nearest_in_files(
    queries: str | Path,
    reference: str | Path,
    k: int = 1,
    *,
    folder: str | Path | None = None,
    block: int = BLOCK,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor]:
    """(distance, index), n × k, as `nearest` has them, of .npy files that are mapped and never read whole.

    `folder` keeps every block as it is done: the same call resumes an interrupted one. `jobs` processes, or
    the workers of a Dask `cluster`, which see the files at the same path. What is mapped counts as memory of
    a process until the system wants it back.
    """
    if jobs < 1 or block < 1:
        raise BadInput("at least one job, and one query a block", got=f"{jobs}, {block}", do="correct them")
    paths = [Path(one).expanduser().absolute() for one in (queries, reference)]
    points = [points_of(path) for path in paths]
    if points[0].columns != points[1].columns:
        raise BadInput(
            f"queries of {points[1].columns} values, as the reference", got=points[0].columns, do="check them"
        )
    if not 1 <= k <= points[1].rows:
        raise BadInput(f"k from 1 to {points[1].rows:,}", got=k, do="use more points, or a smaller k")
    search = Search(points[0], points[1], k, block, __version__)
    kept = None if folder is None else _opened(Path(folder), search)
    starts = range(0, points[0].rows, block)
    before = {start: _read(kept, search, start) for start in starts}
    parts = {start: part for start, part in before.items() if part is not None}
    todo = [Block(search, str(paths[0]), str(paths[1]), start) for start in starts if start not in parts]
    for task, found in _found(todo, jobs, cluster):
        if isinstance(found, Refused):
            raise ObverseError(found.sentence)
        parts[task.start] = found
        if kept is not None:
            _write(kept, task.start, found)
        if progress:
            progress(len(parts), len(starts), "nearest neighbours")
    whole = np.concatenate([parts[start] for start in starts], axis=1)
    return torch.from_numpy(whole[0].copy()), torch.from_numpy(whole[1].astype(np.int64))


def _found(todo: list[Block], jobs: int, cluster: str | None) -> Iterator[tuple[Block, Part | Refused]]:
    if cluster is None and jobs == 1:
        for task in todo:
            with one_thread():
                yield task, search_block(task)
        return
    found = (
        on_cluster(todo, cluster, search_block, _died, _failed)
        if cluster
        else in_processes(todo, jobs, search_block, _died)
    )
    for at, part in found:
        yield todo[at], part


def search_block(task: Block) -> Part | Refused:
    """The neighbours of one block, wherever this runs."""
    try:
        for path, expected in ((task.queries, task.search.queries), (task.reference, task.search.reference)):
            if points_of(Path(path)) != expected:
                raise BadInput(f"{path} as it was at the start", got="another file", do="begin again")
        with one_thread():
            rows = mapped(Path(task.queries))[task.start : task.start + task.search.block]
            distance, index = nearest(rows, mapped(Path(task.reference)), task.search.k)
        return np.stack([distance.numpy(), index.double().numpy()])
    except ObverseError as error:
        return Refused(str(error))


def _died(task: Block) -> NoReturn:
    raise ObverseError(
        f"expected the process that searches from query {task.start:,} to live; got: it died, killed or out "
        "of memory; use fewer processes, or smaller blocks"
    )


def _failed(task: Block, error: Exception) -> NoReturn:
    raise ObverseError(
        f"expected the block from query {task.start:,} to be searched on the cluster; got: {error!r}; "
        "try again"
    )


def points_of(path: Path) -> Points:
    """What a file holds, by its header and its ends."""
    with explained(path), path.open("rb") as file:
        header = read_header(file, path.stat().st_size, str(path), _DO)
        if len(header.shape) != 2 or min(header.shape) < 1 or header.dtype != np.dtype("<f4"):
            got = f"shape {header.shape} of {header.dtype}"
            raise BadInput(f"n × d numbers of float32 in {path}", got=got, do=_DO)
        file.seek(0)
        ends = crc32(file.read(ENDS))
        file.seek(max(0, path.stat().st_size - ENDS))
        return Points(path.name, header.shape[0], header.shape[1], crc32(file.read(ENDS), ends))


def mapped(path: Path) -> Tensor:
    """The points of a file, of which the system reads what is looked at. Nothing is ever written to it."""
    array = np.lib.format.open_memmap(path, mode="c")
    if not array.flags.c_contiguous:
        raise BadInput(f"rows that lie together in {path}", got="columns", do=_DO)
    return torch.from_numpy(array)


def _opened(folder: Path, search: Search) -> Path:
    """The folder, for this search alone."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if (folder / NAME).is_file():
        if read_record(folder / NAME, Search, "search of files", FORMAT) != search:
            raise BadInput(
                f"the parts of this search in {folder}", got="those of another", do="use another folder"
            )
    else:
        write_text(folder / NAME, record_text(search, FORMAT))
    return folder


def _place(folder: Path, start: int) -> Path:
    return folder / f"nearest-{start:012d}.npy"


def _write(folder: Path, start: int, part: Part) -> None:
    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.lib.format.write_array(file, part, allow_pickle=False)

    replace_atomically(_place(folder, start), write)


def _read(folder: Path | None, search: Search, start: int) -> Part | None:
    """A block that was kept; None if there is none. One that cannot be is refused."""
    if folder is None or not _place(folder, start).is_file():
        return None
    path = _place(folder, start)
    shape = (2, min(search.block, search.queries.rows - start), search.k)
    with explained(path), path.open("rb") as file:
        header = read_header(file, path.stat().st_size, str(path), "remove it")
        if header.shape != shape or header.dtype != np.dtype("<f8"):
            got = f"shape {header.shape} of {header.dtype}"
            raise BadInput(f"a block of shape {shape} in {path}", got=got, do="remove it")
        file.seek(0)
        part: Part = np.lib.format.read_array(file, allow_pickle=False)
    index = part[1]
    whole = (index == np.floor(index)) & (index >= 0) & (index < search.reference.rows)
    if not whole.all() or not (part[0] >= 0).all() or not np.isfinite(part[0]).all():
        raise BadInput(f"distances and numbers of rows in {path}", got="others", do="remove it")
    return part
