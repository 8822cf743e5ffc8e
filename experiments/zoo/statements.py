"""The paper's hypothesis, statement by statement, as yes or no of one layer. Not for counting: see counts.

The lines are those of the claims alm.hypothesis.* and of the audit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from obverse.claims.alm._hypothesis import CLOSE, NORMAL
from obverse.weights import Thresholds

Row = Mapping[str, Any]
LINES = Thresholds()
WITHIN = 0.5  # of the biases, within a tenth of their mean


@dataclass(frozen=True)
class Statement:
    name: str
    words: str
    claim: str  # of which it is the reading on this layer
    holds: Callable[[Row], bool | None]  # None where the layer cannot say


def at_most(column: str, line: float) -> Callable[[Row], bool | None]:
    return lambda row: None if row[column] is None else row[column] <= line


def has_biases(row: Row) -> bool:
    """Biases that are all 0 say nothing."""
    return row["offsets_mean"] is not None and (row["offsets_mean"] != 0 or row["offsets_std"] != 0)


STATEMENTS = (
    Statement(
        "entries normal",
        f"the entries fit a normal distribution (Kolmogorov–Smirnov distance at most {NORMAL:g})",
        "alm.hypothesis.entries",
        at_most("raw_ks", NORMAL),
    ),
    Statement(
        "bulk’s entries normal",
        f"so do those of the bulk, without profile and signal (at most {NORMAL:g})",
        "alm.hypothesis.entries.bulk",
        at_most("bulk_ks", NORMAL),
    ),
    Statement(
        "biases near their mean",
        "most biases lie within a tenth of their mean",
        "alm.hypothesis.biases",
        lambda row: row["offsets_near_mean"] >= WITHIN if has_biases(row) else None,
    ),
    Statement(
        "biases constant",
        f"biases are nearly constant: ∣mean∣ ÷ standard deviation is above {LINES.offset_ratio:g}",
        "alm.hypothesis.biases.spread",
        lambda row: row["offsets_ratio"] > LINES.offset_ratio if has_biases(row) else None,
    ),
    Statement(
        "values on the law",
        f"the singular values follow the law of random entries (the same distance at most {CLOSE:g})",
        "alm.hypothesis.spectrum",
        at_most("raw_distance", CLOSE),
    ),
    Statement(
        "bulk’s values on the law",
        f"so do those of the bulk, without profile and signal (at most {CLOSE:g})",
        "alm.hypothesis.spectrum.bulk",
        at_most("distance", CLOSE),
    ),
    Statement(
        "a sparse h comes back",
        "a sparse h comes back through the layer with at most "
        f"{LINES.recovery_ratio:g} times the error of the layer’s own entries in random order",
        "",
        at_most("recovery_ratio", LINES.recovery_ratio),
    ),
)

# What a matrix does in its block, by the names that the files give it
ROLES = {
    "query": r"query|(^|[._])q(_?proj)?$|attn_q$|\.wq$|[._]to_q$",
    "key": r"\(key\)|[._]key$|(^|[._])k(_?proj)?$|attn_k$|\.wk$",
    "value": r"\(value\)|[._]value$|(^|[._])v(_?proj)?$|attn_v$|\.wv$",
    "attention output": r"attention\.output\.dense$|attention\.dense$|attn\.proj$|attn_output$|\.wo$|o_proj$",
    "MLP in": r"intermediate\.dense$|mlp\.fc1$|ffn_(up|gate)$|\.w[13]$|(up|gate)_proj$|\.ffn$",
    "MLP out": r"(?<!attention)\.output\.dense$|mlp\.fc2$|ffn_down$|\.w2$|down_proj$|\.ffn_output$",
}


def role(name: str) -> str:
    """Query, key, value, attention output, MLP in, MLP out; empty for any other."""
    return next((one for one, form in ROLES.items() if re.search(form, name, re.IGNORECASE)), "")


def third(place: float | None) -> str:
    if place is None:
        return ""
    return ("first third", "middle third", "last third")[min(2, int(3 * place))]
