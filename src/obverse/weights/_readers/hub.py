"""What the name of a repository stands for now: its commit, and the one file of weights. Not for reading it.

With the commit and the file a name means the same for ever, in every process: that is what is
opened, and what results are called by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..._core import MAX_JSON, BadInput, listed
from .address import Address, is_commit, is_safe, parse_address
from .gguf import split_names
from .hub_errors import endpoint, library, refusals
from .remote import INDEX, fetched
from .safetensors import shard_names
from .stored import printable

_LISTED = 20  # files in a refusal
SAFETENSORS = (".safetensors", INDEX)


def pinned(source: str | Path, suffixes: Sequence[str]) -> Address:
    """The commit and the file that are meant; `suffixes` are the endings of files that can be read.

    A name that has both is taken as it is, and nobody is asked. Of a folder the one file of weights is
    meant, or the one in safetensors where there are others beside it; where several could be, none is taken.
    """
    address = parse_address(source)
    with refusals(address):
        library("utils").validate_repo_id(address.repository)
    if is_commit(address.revision) and _readable(address.path, suffixes):
        return address
    commit, names = _listing(address)
    asked, address = address, replace(address, revision=commit)
    if address.path in names:
        if not _readable(address.path, suffixes):
            got = printable(address.path)
            raise BadInput(f"a name that ends in {', '.join(suffixes)}", got=got, do="name another file")
        return address
    return replace(address, path=_chosen(asked, address, names, suffixes))


def _listing(address: Address) -> tuple[str, list[str]]:
    """The commit that a revision stands for now, and its files; offline, what the library has of it."""
    package, errors = library(), library("errors")
    with refusals(address):
        try:
            timeout = package.constants.HF_HUB_ETAG_TIMEOUT
            info = package.HfApi().model_info(
                address.repository, revision=address.revision or None, timeout=timeout
            )
        except errors.OfflineModeIsEnabled:
            return _kept(address)
        commit, names = str(info.sha), [str(one.rfilename) for one in info.siblings or ()]
    if not is_commit(commit):
        raise BadInput(
            f"the commit of {address.short} as 40 digits from {endpoint()}",
            got=printable(commit),
            do="check HF_ENDPOINT",
        )
    return commit, [name for name in names if is_safe(name)]


def _kept(address: Address) -> tuple[str, list[str]]:
    """Of which commit the library has files, and which."""
    find = library().snapshot_download
    revision = address.revision or None
    folder = Path(find(address.repository, revision=revision, local_files_only=True, allow_patterns=[]))
    return folder.name, [str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()]


def _chosen(asked: Address, address: Address, names: Iterable[str], suffixes: Sequence[str]) -> str:
    prefix = f"{address.path}/" if address.path else ""
    below = [name for name in sorted(names) if name.startswith(prefix)]
    here = [name for name in below if _readable(name, suffixes) and "/" not in name.removeprefix(prefix)]
    if address.path and not below:
        got = "neither a file nor a folder of that name"
        do = f"see its files at {endpoint()}/{address.repository}"
        raise BadInput(f"{printable(address.path)} in {replace(asked, path='')}", got=got, do=do)
    safe = [name for name in here if name.endswith(SAFETENSORS)]
    indices = [name for name in safe if name.endswith(INDEX)]
    shards = {
        prefix + shard
        for index in indices
        for shard in shard_names(fetched(replace(address, path=index), limit=MAX_JSON))
    }
    shards |= {prefix + other for name in here for other in split_names(Path(name))[1:]}
    found = [name for name in safe or here if name not in shards]
    if len(found) == 1:
        return found[0]
    others = found or [name for name in below if _readable(name, suffixes)]
    got = listed([printable(name) for name in others], _LISTED) if others else "none"
    raise BadInput(
        f"one file of weights in {asked}",
        got=got if found or not others else f"none but in its folders: {got}",
        do=f"name the file to audit: {replace(asked, path='')}/…",
    )


def _readable(name: str, suffixes: Sequence[str]) -> bool:
    return name.lower().endswith(tuple(suffixes))
