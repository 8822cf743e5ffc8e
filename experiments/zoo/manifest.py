"""The nets of the zoo: which package of a registry has each, and what its files must be. Not for fetching.

manifest.json has of each net its package, version and archive, the files in it with sizes and checksums, the
licence that the package states, and to what it belongs: nets of one `family` are not independent of each
other and count as one cluster; a net with `copy_of` is another one in other numbers and counts nowhere.
Where the order of a file is not that of the net, it says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

FILE = Path(__file__).parent / "manifest.json"


@dataclass(frozen=True)
class File:
    path: str  # in the archive
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Net:
    name: str
    title: str
    kind: str  # images, language, sound, proteins, files, generators
    norm: str  # which its layers have, as its tensors say: batch, layer, RMS, none, other
    registry: Literal["pypi", "npm"]
    package: str
    version: str
    archive: str  # the name of a file of the registry
    archive_bytes: int
    licence: str
    model: str  # the file that is opened
    files: tuple[File, ...]
    family: str = ""
    copy_of: str = ""
    left_out: tuple[str, ...] = ()  # of layers that are no layers of this net, or were not learned
    last: tuple[str, ...] = ()  # of layers that stand earlier in the file than in the net
    by_number: bool = False  # whether the net's order is that of the numbers in the names
    ordered: bool = True  # whether the order of the layers in the net is known

    @property
    def cluster(self) -> str:
        return self.family or self.name

    def in_order(self, names: Sequence[str]) -> list[int]:
        """The places of its layers among all names of the file, from the first layer to the last."""
        own = [
            at for at, name in enumerate(names) if not any(re.search(form, name) for form in self.left_out)
        ]

        def key(at: int) -> tuple[int, int]:
            late = any(re.search(form, names[at]) for form in self.last)
            number = re.search(r"\d+", names[at]) if self.by_number else None
            return int(late), int(number[0]) if number else at

        return sorted(own, key=key)


def read(file: Path = FILE) -> tuple[Net, ...]:
    nets = json.loads(file.read_text(encoding="utf-8"))
    return tuple(
        Net(
            **net
            | {name: tuple(net.get(name, ())) for name in ("left_out", "last")}
            | {"files": tuple(File(**one) for one in net["files"])}
        )
        for net in nets
    )


def named(names: list[str]) -> tuple[Net, ...]:
    """These nets, or all where none is named."""
    known = {net.name: net for net in read()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"expected names out of {', '.join(known)}; got {unknown[0]!r}; correct it")
    return tuple(known[name] for name in names or known)
