"""Ranks for `obverse.weights.compress`."""

from __future__ import annotations

import json

from ..._core import BadInput, counted
from .._compression.thin import pays
from ..results import Audit
from .candidates import (
    READ,
    Candidate,
    candidates,
    left_out_lines,
    read_by_attention,
    why_no_signal,
    why_not_pasted,
)
from .kinds import NAMES
from .results import Decision
from .words import begun, chance, more_directions

KINDS = ("linear", "convolution")


def for_compress(audit: Audit) -> Decision:
    """Every layer whose signal pays, unless its rest is structured; with the rank of the signal."""
    left_out: dict[str, list[str]] = {}
    chosen: list[Candidate] = []
    found = candidates(audit)
    read = read_by_attention(found)
    for one in found:
        if reason := _why_not(one, read):
            left_out.setdefault(reason, []).append(one.name)
        else:
            chosen.append(one)
    if not chosen:
        raise BadInput(
            "a layer whose signal takes less room than the layer",
            got=f"none in {counted(len(audit.layers), 'layer')}",
            do="there is nothing to choose: leave --decide out",
        )
    ranks = {one.name: one.rank or 0 for one in chosen}
    before = sum(one.rows * one.columns for one in chosen)
    after = sum(ranks[one.name] * (one.rows + one.columns) for one in chosen)
    notes = (
        begun(audit, "--decide compress"),
        f"Chosen: {counted(len(chosen), 'layer')} in which at least one direction stands out from noise"
        f"{chance(audit)}, judged “signal in a random bulk” or “mostly signal”, and whose signal of rank k "
        "has fewer weights: k (rows + columns) < rows · columns. The rank is the number of directions.",
        f"Weights of these layers: {before:,}, and {after:,} in their place.",
        *more_directions([one.name for one in chosen if one.at_least], "the rank"),
        *left_out_lines(left_out),
        "Not known: what it costs. obverse.weights.compress(net, x, y, ranks=…) measures it.",
    )
    text = json.dumps(ranks, indent=2, ensure_ascii=False) + "\n"
    return Decision("compress", "obverse", NAMES["obverse"], text, notes, tuple(ranks), ranks)


def _why_not(one: Candidate, read: set[str]) -> str:
    if one.kind not in KINDS or "(" in one.name:
        return "only linear layers and convolutions are replaced"
    if one.module in read:
        return READ
    if reason := why_no_signal(one) or why_not_pasted(one.name):
        return reason
    if one.verdict == "structured otherwise":
        return "what would be dropped is not like random numbers"
    if one.verdict == "cannot tell":
        return "cannot tell"
    if not pays(one.rank or 0, one.rows, one.columns):
        return "two thin layers would have as many weights, or more"
    return ""
