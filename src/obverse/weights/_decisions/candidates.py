"""What there is to choose from: the layers of an audit, and the modules that hold them. Not for choosing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..._core import listed, printable
from .._difference.results import Change, Difference, LayerDifference
from ..results import GRADES, Audit, Interval, LayerAudit

MOST_NAMED = 6  # layers in one note
_PART = re.compile(r" \((?P<part>[^()]*)\)$")
_PROJECTIONS = ("query", "key", "value")
_LONGEST = 200  # of a name: the audit cuts longer ones
_ATTENTION = re.compile(r"(?P<module>(.*\.)?)(in|q)_proj(_weight)?")
READ = "nn.MultiheadAttention reads its weight without calling it"
TAKEN_APART: tuple[Change, ...] = ("directions", "dense", "scattered", "changed")
NOT_LINEAR = {
    "embedding": "an embedding",
    "convolution": "a convolution",
    "recurrent": "a gate of a recurrent layer",
    "matrix": "a matrix that is not called a weight",
}


@dataclass(frozen=True)
class Candidate:
    """One matrix, with the number of its directions; None where it was not judged."""

    name: str
    tensor: str  # where it is stored
    kind: str
    rows: int
    columns: int
    verdict: str  # or what became of it, from base to tuned
    rank: int | None
    at_least: bool  # there may be more directions
    has_mean: bool  # one of them is the mean of all entries
    share: Interval | None = None  # of the energy, like random numbers

    @property
    def module(self) -> str:
        """The module whose weight it is, or a part of; empty where it is no weight of a module."""
        part = _PART.search(self.name)
        if part and part["part"] not in _PROJECTIONS:
            return ""
        if self.tensor:
            return self.tensor.removesuffix(".weight") if self.tensor.endswith(".weight") else ""
        base = _PART.sub("", self.name)
        return "" if part and base.endswith("in_proj") else base  # as audits of older versions have it

    @property
    def parameter(self) -> str:
        """The name of the parameter that it is, or a part of."""
        if self.tensor:
            return self.tensor
        base = _PART.sub("", self.name)
        return f"{base}.weight" if self.module and self.kind not in ("recurrent", "matrix") else base


@dataclass(frozen=True)
class Module:
    """A linear layer, with the largest rank of the matrices in it: query, key and value may be one."""

    name: str
    rank: int
    at_least: bool
    matrices: tuple[Candidate, ...]

    @property
    def size(self) -> int:
        return sum(one.rows * one.columns for one in self.matrices)

    @property
    def sides(self) -> int:
        """Outputs and inputs: what one direction of an update has."""
        return sum(one.rows for one in self.matrices) + self.matrices[0].columns


def candidates(found: Audit | Difference) -> tuple[Candidate, ...]:
    if isinstance(found, Difference):
        return tuple(map(of_change, found.layers))
    return tuple(map(candidate, found.layers))


def of_change(layer: LayerDifference) -> Candidate:
    """The directions of what changed."""
    rank = None if layer.rank is None else max(0, min(layer.rank, layer.rows, layer.columns))
    size = (layer.kind, layer.rows, layer.columns)
    return Candidate(printable(layer.name), "", *size, layer.change, rank, layer.rank_is_bound, False)


def candidate(layer: LayerAudit) -> Candidate:
    parts = None if layer.verdict == "not judged" else layer.parts
    mean = layer.mean_share > 0
    return Candidate(
        printable(layer.name),
        layer.tensor,
        layer.kind,
        layer.rows,
        layer.columns,
        layer.verdict,
        # what a file says of itself is not more than there can be
        rank=None if parts is None else max(0, min(parts.rank + mean, layer.rows, layer.columns)),
        at_least=parts is not None and parts.rank_is_bound,
        has_mean=mean,
        share=layer.random_share,
    )


def why_no_signal(one: Candidate) -> str:
    """Why there is nothing to choose in this matrix; empty where there is."""
    if one.rank:
        return ""
    if one.rank is None or one.verdict not in (*GRADES, *TAKEN_APART):
        return one.verdict
    return "cannot tell" if one.verdict == "cannot tell" else "no direction stands out from noise"


def why_not_pasted(name: str) -> str:
    """Why a name cannot be written into a file; empty where it can."""
    if not name.isprintable() or "\\" in name or len(name) >= _LONGEST:
        return "its name has characters that no module has, or is too long"
    return ""


def linear_modules(found: Sequence[Candidate]) -> tuple[tuple[Module, ...], dict[str, list[str]]]:
    """The linear layers with a signal, in the order of the net; what is left out, by reason."""
    left_out: dict[str, list[str]] = {}
    members: dict[str, list[Candidate]] = {}
    read = read_by_attention(found)
    for one in found:
        if reason := why_not_linear(one, read):
            left_out.setdefault(reason, []).append(one.name)
        else:
            members.setdefault(one.module, []).append(one)
    modules = []
    for name, matrices in members.items():
        known = [one for one in matrices if not why_no_signal(one)]
        for one in matrices:
            if not known:
                left_out.setdefault(why_no_signal(one), []).append(one.name)
        if known:
            rank = max(one.rank or 0 for one in known)
            modules.append(Module(name, rank, any(one.at_least for one in known), tuple(matrices)))
    return tuple(modules), left_out


def read_by_attention(found: Sequence[Candidate]) -> set[str]:
    """The output layers of nn.MultiheadAttention: their weights are read without calling them."""
    return {f"{part['module']}out_proj" for one in found if (part := _ATTENTION.fullmatch(one.parameter))}


def why_not_linear(one: Candidate, read: set[str]) -> str:
    if one.kind in NOT_LINEAR:
        return f"{NOT_LINEAR[one.kind]}, no linear layer"
    if not one.module:
        return "a part of a parameter, which is no module of its own"
    if one.module in read:
        return READ
    return why_not_pasted(one.module)


def left_out_lines(left_out: dict[str, list[str]]) -> list[str]:
    return [f"Left out: {listed(names, MOST_NAMED)}: {reason}." for reason, names in left_out.items()]
