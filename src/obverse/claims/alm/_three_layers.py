"""Theorem 3.2 and its dropout: three layers, entry by entry."""

from __future__ import annotations

from math import log

from .._claim import Claim
from .._rates import Along, NotGrowing
from .._registry import register
from .._rules import HoldsIn
from ..results import Setting
from ._entrywise import measure_relative, shape
from ._two_layers import EACH, PAPER, QUANTITY, bound, rate


def printed_rate(setting: Setting) -> float:
    """k3/k2, with one logarithm of all units for the Õ."""
    widths, _ = shape(setting)
    return float(setting["k3"] / setting["k2"] * log(sum(widths)))


def layers(k3: int, first: int, rest: int, width: int, **more: int) -> Setting:
    """k2 = first·k3, k1 and k0 `rest` times the one above; hidden layers `width` times as wide as kept."""
    k2, k1 = first * k3, rest * first * k3
    kept = {"k3": k3, "k2": k2, "k1": k1, "k0": rest * k1}
    return {**kept, "n3": 2 * k3, "n2": width * k2, "n1": width * k1, **more}


FULL = {"nets": 56, "draws": 96}
QUICK = {"nets": 52, "draws": 48}
WIDE = tuple(layers(20, ratio, 4, ratio, nets=160, draws=96) for ratio in (3, 4, 5, 6, 8))
WIDE_QUICK = tuple(layers(10, ratio, 4, ratio, nets=20, draws=48) for ratio in (2, 3, 4, 5, 6))
RATIO = Along("k2/k3", lambda setting: setting["k2"] / setting["k3"])
BALANCED = tuple((ratio, ratio, 2) for ratio in (5, 7, 10))

stated = register(
    Claim(
        id="alm.thm3.2",
        title="Three layers, entry by entry",
        statement=(
            "With k3 < k2 < k1 < k0 < k2², √k3·k2 < k0 and constant offsets, E|h̃_i − h_i|² ≤ ετ² at the top "
            "for all i, where τ = (1/k3)Σh_i and ε = Õ(k3/k2): its ratio to (k3/k2)·ln N does not grow with "
            "k2/k3 at k1 = 4k2, k0 = 4k1."
        ),
        source=f"{PAPER}, Theorem 3.2",
        place=(
            "“the same type of reversibility and dropout robustness properties as in Theorem 3.1”, Section "
            "3, Theorem 3.2, line 208"
        ),
        grid=WIDE,
        quick=WIDE_QUICK,
        predict=printed_rate,
        measure=measure_relative,
        rule=NotGrowing(RATIO),
        quantity=QUANTITY,
        axis="k2",
        twin="alm.thm3.2.corrected",
        expected="failed",
        remark="As with two layers, the bias of each layer below stays where its own ratio does.",
    )
)
register(
    stated.other(
        title="Three layers, entry by entry, with the bias of the layers below",
        statement=(
            "With k3 < k2 < k1 < k0 < k2², √k3·k2 < k0 and constant offsets, E|h̃_i − h_i|² ≤ ετ² at the top "
            "for all i, where ε = Õ(k3/k2 + k2/k1 + k1/k0): its ratio to this sum times ln N does not grow "
            "with k2/k3 at k1 = 4k2, k0 = 4k1."
        ),
        source=f"{PAPER}, Theorem 3.2, with the bias of the layers below",
        predict=rate,
        reading="corrected",
    )
)
register(
    Claim(
        id="alm.thm3.2.bound",
        title="Three layers, entry by entry, with a constant",
        statement=(
            "With k3 < k2 < k1 < k0 < k2² and √k3·k2 < k0, E|h̃_i − h_i|² ≤ 3(k3/k2 + k2/k1 + k1/k0)τ² "
            f"at the top, τ = (1/k3)Σh_i, and less than h̃ = 0 has, (π/2)(k3/n3)τ², {EACH}."
        ),
        source=f"{PAPER}, Theorem 3.2, with the bias of the layers below and a constant",
        grid=tuple(layers(12, *each, **FULL) for each in BALANCED),
        quick=(layers(12, 5, 5, 2, **QUICK),),
        predict=bound,
        measure=measure_relative,
        rule=HoldsIn(share=0.9),
        quantity=QUANTITY,
        axis="k2",
        series="k0",
        reading="corrected",
        remark="At these sizes the bound that counts is that of h̃ = 0.",
    )
)
register(
    Claim(
        id="alm.thm3.2.dropout",
        title="Three layers with dropout",
        statement=(
            "With half of every layer dropped on the way up and made up for by a factor 2, E|h̃_i − h_i|² ≤ "
            f"6(k3/k2 + k2/k1 + k1/k0)τ² at the top of three layers, and less than h̃ = 0 has, {EACH}."
        ),
        source=f"{PAPER}, Theorem 3.2 with Theorem C.1, with the bias of the layers below",
        grid=(layers(12, *BALANCED[-1], drop=1, **FULL),),
        quick=(layers(12, *BALANCED[-1], drop=1, nets=5, draws=96),),
        predict=bound,
        measure=measure_relative,
        rule=HoldsIn(share=0.9),
        quantity=QUANTITY,
        axis="k2",
        reading="corrected",
        remark="At these sizes the bound that counts is that of h̃ = 0, (π/2)(k3/n3)τ².",
    )
)
