"""What adapter_config.json says of an adapter: rank and scaling of each layer. Not for its weights.

The file is untrusted: every number is checked, and only patterns are matched whose time is bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._core import BadInput, printable, read_json

_LARGEST_RANK, _LARGEST_ALPHA = 2**16, 1e9
_MOST_PATTERNS, _LONGEST_PATTERN, _LONGEST_NAME = 10_000, 500, 1000
_LARGEST_FILE = 2**24
_DO = "restore the file that came with the weights"
# Kinds that change no weights: nothing is left to audit.
_PROMPTS = {"PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "CPT", "ADAPTION_PROMPT"}
# Settings of LoRA with which the update is another product than scaling · B · A.
_OTHER_PRODUCTS = (
    "use_qalora",
    "use_bdlora",
    "kasa_config",
    "monteclora_config",
    "arrow_config",
    "target_parameters",
)
_AT_ZERO = (True, "gaussian", "eva", "true")  # starts at which B is 0, and the base is left as it is
# Of a name with wildcards: what repeats, a choice, one letter. Nothing is inside anything else.
_TOKEN = re.compile(
    r"(?P<repeat>(?:\.|\\[dw]|\[[\w\-]+\])[*+])|(?P<choice>\((?:\?:)?[\w\-.|]+\))"
    r"|\[[\w\-]+\]|\\[.dw\-]|[\w\-/. ]"
)
_MOST_WILD = 64  # names with wildcards


@dataclass(frozen=True)
class AdapterConfig:
    """Rank and scaling of each layer, and what else bears on the product."""

    rank: int
    alpha: float
    rank_stabilized: bool  # scaling = alpha / √rank
    ranks: Mapping[str, int]  # where the name of a layer matches, in place of `rank`
    alphas: Mapping[str, float]
    turned: bool  # the base stores its weights inputs × outputs; B · A is outputs × inputs in any case
    has_magnitudes: bool  # DoRA: the sum is scaled row by row
    uniform_start: bool  # A began with PEFT's usual uniform numbers
    start: str  # how the factors began, where that is not with B = 0; empty where it is
    replicated: bool  # layers of the base are used several times: names are those of the copies
    base: str  # as the file calls it

    def rank_of(self, module: str) -> int:
        return self.ranks.get(matching(self.ranks, module), self.rank)

    def alpha_of(self, module: str) -> float:
        return self.alphas.get(matching(self.alphas, module), self.alpha)

    def scaling_of(self, module: str) -> float:
        rank = self.rank_of(module)
        return self.alpha_of(module) / (math.sqrt(rank) if self.rank_stabilized else rank)


def matching(patterns: Mapping[str, object], module: str) -> str:
    """The first pattern that is the whole name, or its end after a dot; else the name itself, as in PEFT."""
    for pattern in patterns:
        if re.match(rf"(.*\.)?({pattern})$", module[:_LONGEST_NAME]):
            return pattern
    return module


def read_config(path: Path) -> AdapterConfig:
    """adapter_config.json of a LoRA adapter; other kinds are refused by name."""
    content = read_json(path, "the configuration of an adapter", _LARGEST_FILE)
    kind = content.get("peft_type")
    if kind != "LORA":
        said = printable(kind[:60]) if isinstance(kind, str) else "no peft_type"
        do = "merge it into its base with PEFT (merge_and_unload), save that, and audit it"
        if said in _PROMPTS:
            do = "there is nothing to audit: it changes no weights"
        raise BadInput(f"a LoRA adapter in {path}", got=said, do=do)
    for name in _OTHER_PRODUCTS:
        if content.get(name):
            raise BadInput(
                f"a plain LoRA adapter, whose update is scaling · B · A, in {path}",
                got=f"one with {name}",
                do="merge it into its base with PEFT (merge_and_unload), save that, and audit it",
            )
    start = content.get("init_lora_weights", True)
    named = "random factors" if start is False else str(start) if isinstance(start, str) else "another way"
    base = content.get("base_model_name_or_path")
    return AdapterConfig(
        rank=_rank(content.get("r", 8), "r", path),
        alpha=_alpha(content.get("lora_alpha", 8), "lora_alpha", path),
        rank_stabilized=_flag(content, "use_rslora", path),
        ranks={key: _rank(one, key, path) for key, one in _patterns(content, "rank_pattern", path).items()},
        alphas={
            key: _alpha(one, key, path) for key, one in _patterns(content, "alpha_pattern", path).items()
        },
        turned=_flag(content, "fan_in_fan_out", path),
        has_magnitudes=_flag(content, "use_dora", path),
        uniform_start=start is True or start == "true",
        start="" if start in _AT_ZERO else printable(named[:60]),
        replicated=bool(content.get("layer_replication")),
        base=printable(base[:200]) if isinstance(base, str) else "",
    )


def _rank(value: Any, name: str, path: Path) -> int:
    if type(value) is int and 1 <= value <= _LARGEST_RANK:
        return value
    expected = f"a rank from 1 to {_LARGEST_RANK:,} as {printable(name[:60])} in {path}"
    raise BadInput(expected, got=repr(value)[:100], do=_DO)


def _alpha(value: Any, name: str, path: Path) -> float:
    if type(value) in (int, float) and abs(value) <= _LARGEST_ALPHA:
        return float(value)
    expected = f"a number of at most {_LARGEST_ALPHA:g} as {printable(name[:60])} in {path}"
    raise BadInput(expected, got=repr(value)[:100], do=_DO)


def _flag(content: Mapping[str, Any], name: str, path: Path) -> bool:
    value = content.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise BadInput(f"true or false as {name} in {path}", got=repr(value)[:100], do=_DO)


def _patterns(content: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    found = content.get(name) or {}
    if not isinstance(found, dict) or len(found) > _MOST_PATTERNS:
        got = f"{len(found):,}" if isinstance(found, dict) else repr(found)[:100]
        expected = f"at most {_MOST_PATTERNS:,} names of layers and their values as {name} in {path}"
        raise BadInput(expected, got=got, do=_DO)
    wild = 0
    for pattern in found:
        count = _wildcards(pattern)
        if count is None:
            raise BadInput(
                f"names of layers in {name} of {path}, with two wildcards or choices at most, one repeating",
                got=printable(pattern[:100]),
                do="write the names out",
            )
        wild += count > 0
    if wild > _MOST_WILD:
        expected = f"at most {_MOST_WILD} names with wildcards in {name} of {path}"
        raise BadInput(expected, got=f"{wild:,}", do="write the names out")
    return found


def _wildcards(pattern: str) -> int | None:
    """How many parts of it may go back in matching; None where these are too many, or something else."""
    inner = pattern.removeprefix("^").removesuffix("$")
    at = repeats = choices = 0
    if len(pattern) > _LONGEST_PATTERN:
        return None
    while at < len(inner):
        match = _TOKEN.match(inner, at)
        if match is None:
            return None
        repeats += bool(match["repeat"])
        choices += bool(match["choice"])
        at = match.end()
    try:
        re.compile(pattern)
    except re.error:  # a range that ends before it begins
        return None
    return repeats + choices if repeats <= 1 and repeats + choices <= 2 else None
