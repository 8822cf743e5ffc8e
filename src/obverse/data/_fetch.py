"""Sees to it that the files of a known data set are in their folder. Not for reading them."""

from __future__ import annotations

import time
from pathlib import Path

from .._core import BadInput
from ._download import Trouble, WrongContent, download
from ._install import install
from ._sources import Download, File, Known

# Long enough for a hiccup of the network, short enough that being offline is told at once.
_PAUSES = (0.0, 0.5, 2.0)


def ensure(name: str, known: Known, folder: Path) -> None:
    """Download what is missing; one process at a time, the others wait and find it there."""
    if not absent(known.files, folder):
        return
    from filelock import FileLock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder: in it, a failed download could not take the folder away again.
        with FileLock(folder.parent / f".{folder.name}.download.lock"):
            made = not folder.exists()
            folder.mkdir(exist_ok=True)
            try:
                for source in known.downloads:
                    if absent(source.files, folder):
                        _fetch(name, known, source, folder)
            finally:
                if made:
                    _remove_empty(folder)
    except OSError as error:  # the disk: trouble with the network has its own sentence
        raise BadInput(
            f"a folder to write {name} to at {folder}",
            got=error,
            do="make room or give another place with root=… or OBVERSE_DATA",
        ) from error


def locate(folder: Path, file: File) -> Path:
    """Where the file is: as it was downloaded, or beside it, uncompressed by hand."""
    path = folder / file.path
    return path.with_suffix("") if path.suffix == ".gz" and not path.exists() else path


def absent(files: tuple[File, ...], folder: Path) -> list[File]:
    """Those that are not in the folder."""
    return [file for file in files if not locate(folder, file).exists()]


def _remove_empty(folder: Path) -> None:
    """Remove a folder that holds folders at most: empty, it would look like data."""
    found = sorted(folder.rglob("*"), reverse=True)  # what is in a folder before the folder
    if all(path.is_dir() and not path.is_symlink() for path in found):
        for path in [*found, folder]:
            path.rmdir()


def _fetch(name: str, known: Known, source: Download, folder: Path) -> None:
    part = folder / (source.name + ".part")
    for pause in _PAUSES:
        time.sleep(pause)
        resumed = part.exists()
        try:
            download(source.url, part, source.limit)
            install(part, source, folder)
            return
        except WrongContent as error:
            part.unlink(missing_ok=True)
            trouble: Exception = error
            if not resumed:
                break  # a second copy of the same would be as wrong; a stale beginning deserves a fresh try
        except Trouble as error:
            trouble = error
            if not error.again:
                break
    missing = [folder / file.path for file in absent(known.files, folder)]
    origin = source.url.removesuffix(source.name) if len(known.downloads) > 1 else source.url
    raise BadInput(
        f"{name} in {folder} or from {source.url}",
        got=trouble,
        do=f"load again when online, or put {', '.join(path.name for path in missing)} "
        f"(from {origin}) into {missing[0].parent}",
    ) from trouble
