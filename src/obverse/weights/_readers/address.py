"""Names of repositories on a hub: hf://org/name[@revision][/file]. Not for asking the hub anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from ..._core import BadInput, printable

SCHEME = "hf://"
FORM = "hf://org/name, hf://org/name@revision or hf://org/name@revision/file"
_OTHER_KINDS = ("datasets", "spaces", "buckets", "kernels")
_COMMIT = re.compile(r"[0-9a-f]{40}")
# A slash is written %2F in a revision, but for the references that every repository may have. An @ in what
# follows is part of a file's name.
_PARTS = re.compile(
    r"(?:models/)?(?P<repository>[^/@]+/[^/@]+)"
    r"(?:@(?P<revision>refs/(?:convert/[\w.-]+|pr/\d+)|[^/]+))?(?:/(?P<path>.*))?"
)
_SHOWN = 12  # digits of a commit, where it is only to be recognized
_COMMIT_IN = re.compile(rf"@([0-9a-f]{{{_SHOWN}}})[0-9a-f]{{{40 - _SHOWN}}}(?=/|$)")
_LONGEST = 200  # letters of a name that is refused


@dataclass(frozen=True)
class Address:
    """A repository, a branch, tag or commit of it, and a file or folder in it; empty where none is named."""

    repository: str
    revision: str = ""
    path: str = ""

    def __str__(self) -> str:
        revision = self.revision and f"@{quote(self.revision, safe='')}"
        return f"{SCHEME}{self.repository}{revision}{self.path and '/'}{self.path}"

    @property
    def short(self) -> str:
        """The same with as much of a commit as one reads."""
        revision = self.revision[:_SHOWN] if is_commit(self.revision) else self.revision
        return str(Address(self.repository, revision, self.path))


def is_address(source: object) -> bool:
    """Is it on a hub rather than a path? A Path leaves one slash of the two."""
    return isinstance(source, str | Path) and str(source).startswith("hf:/")


def spoken(name: str) -> str:
    """What a title calls this address, whatever is in it: no scheme, and only some digits of the commit."""
    return _COMMIT_IN.sub(r"@\1", name.removeprefix(SCHEME))


def is_commit(revision: str) -> bool:
    return _COMMIT.fullmatch(revision) is not None


def parse_address(source: str | Path) -> Address:
    """The parts of a name; whether there is such a repository is for the hub to say."""
    text = str(source)
    match = _PARTS.fullmatch(text.removeprefix("hf:").lstrip("/").rstrip("/"))
    path, revision = (match["path"] or "", unquote(match["revision"] or "")) if match else ("", "")
    if match is None or not is_safe(path, empty=True) or "\0" in revision:
        raise BadInput(FORM, got=printable(text[:_LONGEST]), do="check the name")
    if match["repository"].partition("/")[0] in _OTHER_KINDS:
        raise BadInput(
            f"a repository of a model, {FORM}",
            got=printable(text[:_LONGEST]),
            do="name a model: data sets, spaces and buckets hold no layers",
        )
    return Address(match["repository"], revision, path)


def is_safe(path: str, *, empty: bool = False) -> bool:
    """Is it a file or folder inside a repository, written the plain way?"""
    if not path:
        return empty
    plain = not set(path) & set("\\\0") and str(PurePosixPath(path)) == path
    return plain and not path.startswith("/") and ".." not in path.split("/") and path != "."
