"""Ranks of updates as PEFT's `LoraConfig` takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..._core import BadInput, counted, listed
from .._difference.results import Change, Difference
from ..results import Audit
from .candidates import MOST_NAMED, Module, candidates, left_out_lines, linear_modules
from .kinds import NAMES
from .results import Decision
from .words import begun, more_directions, stands_out, unproven

MORE: tuple[Change, ...] = ("dense", "scattered", "changed", "in a few rows", "in a few columns")


def for_peft(audit: Audit | Difference, *, max_rank: int | None = None) -> Decision:
    """Every linear layer with a signal, with the number of its directions as rank."""
    found = candidates(audit)
    modules, left_out = linear_modules(found)
    if not modules:
        raise nothing_stands_out(audit)
    ranks = {one.name: min(one.rank, max_rank or one.rank) for one in modules}
    others = {one.module for one in found if one.module}
    notes = [
        begun(audit, "--decide lora --format peft" + (f" --max-rank {max_rank}" if max_rank else "")),
        f"Chosen: {counted(len(modules), 'linear layer')} in which at least one direction "
        f"{stands_out(audit)}. r is the number of these directions, and alpha = r: every update enters with "
        "factor 1.",
        *_remarks(modules, ranks, max_rank),
        *left_out_lines(left_out),
        "Names are those of the audited file. PEFT looks for them at the end of the names in the net. Of "
        "tied weights only the first name is listed.",
        unproven(audit),
    ]
    return Decision(
        kind="lora",
        format="peft",
        file=NAMES["peft"],
        text=json.dumps(config(ranks, others), indent=2, ensure_ascii=False) + "\n",
        notes=tuple(notes),
        chosen=tuple(ranks),
        ranks=ranks,
    )


def nothing_stands_out(audit: Audit | Difference) -> BadInput:
    if isinstance(audit, Difference):
        return BadInput(
            "a linear layer in which a direction stands out of the change",
            got=f"none in {counted(len(audit.layers), 'layer')}: {audit.summary}",
            do="there is nothing to choose: leave --decide out",
        )
    judged = sum(layer.verdict != "not judged" for layer in audit.layers)
    return BadInput(
        "a linear layer in which a direction stands out from noise",
        got=f"none among {counted(judged, 'judged layer')} of {counted(len(audit.layers), 'layer')}",
        do="there is nothing to choose: leave --decide out",
    )


def config(ranks: dict[str, int], others: set[str]) -> dict[str, Any]:
    """Fields of `LoraConfig`; `others` are the names of all modules that are known.

    PEFT looks for the names in a list at the end of a module's name. Where one module ends as another is
    called, the list is one regular expression instead.
    """
    largest = max(ranks.values())
    patterns = {pattern(name, others): rank for name, rank in ranks.items()}
    alike = any("(?<!" in one for one in patterns)
    return {
        # every module has its own rank below; reserving memory by r alone reserves enough
        "r": largest,
        "lora_alpha": largest,
        "target_modules": rf"(?:.*\.)?(?:{'|'.join(patterns)})" if alike else list(ranks),
        "rank_pattern": patterns,
        "alpha_pattern": patterns,
    }


def pattern(name: str, others: set[str]) -> str:
    """A regular expression for this module and no other: PEFT matches it at the end of a module's name.

    What begins another name that ends like this one must not stand before it.
    """
    longer = sorted(one.removesuffix(name) for one in others if one.endswith(f".{name}"))
    return "".join(f"(?<!{re.escape(before)})" for before in longer) + re.escape(name)


def _remarks(modules: Sequence[Module], ranks: dict[str, int], max_rank: int | None) -> list[str]:
    lines = more_directions([one.name for one in modules if one.at_least], "r")
    if more := [one.name for one in modules if any(part.verdict in MORE for part in one.matrices)]:
        lines.append(
            f"More than these directions changed in {listed(more, MOST_NAMED)}: an update of rank r does not "
            "carry all of it."
        )
    if means := [one.name for one in modules if any(part.has_mean for part in one.matrices)]:
        lines.append(f"The mean of all entries counts as a direction in {listed(means, MOST_NAMED)}.")
    if fused := [one.name for one in modules if len(one.matrices) > 1]:
        lines.append(
            f"Query, key and value are one layer in {listed(fused, MOST_NAMED)}: r is the largest of the "
            "three; an update that carries the signal of all three may need their sum."
        )
    if max_rank and (cut := [one.name for one in modules if one.rank > max_rank]):
        lines.append(f"Cut to {max_rank} by --max-rank: {listed(cut, MOST_NAMED)}.")
    if wide := [one.name for one in modules if ranks[one.name] * one.sides >= one.size]:
        lines.append(
            f"The update has as many parameters as the matrix, or more, in {listed(wide, MOST_NAMED)}: "
            "--max-rank bounds it."
        )
    return lines
