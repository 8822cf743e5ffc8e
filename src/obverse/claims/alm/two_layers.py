"""Theorem 3.1, its dropout, and eqs 22–23: two layers, entry by entry."""

from __future__ import annotations

from math import log, pi, sqrt

from ..claim import Claim, grid
from ..rates import Along, NotGrowing
from ..registry import register
from ..results import Setting
from ..rules import HoldsIn
from .entrywise import measure_absolute, measure_relative, shape

PAPER = "Arora, Liang & Ma 2015"
EACH = "for 0.9 of nets and all i, with the best constant offsets"


def printed_rate(setting: Setting) -> float:
    """k2/k1, with one logarithm of all units for the Õ."""
    widths, _ = shape(setting)
    return float(setting["k2"] / setting["k1"] * log(sum(widths)))


def bound(setting: Setting) -> float:
    """3(k2/k1 + k1/k0): a layer adds the noise of its inversion and passes on the bias of the one below.

    Dropping half of a layer halves its k.
    """
    shape(setting)
    doubled = 2 if setting.get("drop") else 1
    return float(3 * doubled * (setting["k2"] / setting["k1"] + setting["k1"] / setting["k0"]))


def first_bound(setting: Setting) -> float:
    """40 k1/k0, where n1 = 2k1."""
    shape(setting)
    return float(40 * setting["k1"] / setting["k0"])


def entry_mean(setting: Setting) -> float:
    """h̄ of layer `layer`, (1/k) Σ h_i, for half-normal entries and ‖h‖ = scale at the top."""
    top = setting["scale"] * sqrt(2 / pi / setting["k2"])
    # h^(1) = r(2/k1 · W h), half of k1 entries: of deviation 2‖h‖/k1
    first = setting["scale"] * 2 / setting["k1"] * sqrt(1 / (2 * pi))
    return float(top if setting["layer"] == 2 else first)


def linear_in_mean(setting: Setting) -> float:
    """Eqs 22 and 23 as printed: rate · h̄."""
    return _rate(setting) * entry_mean(setting)


def square_of_mean(setting: Setting) -> float:
    """With the square of Theorem 3.1: rate · h̄²."""
    return _rate(setting) * entry_mean(setting) ** 2


def _rate(setting: Setting) -> float:
    shape(setting)
    layer = int(setting["layer"])
    return float(setting[f"k{layer}"] / setting[f"k{layer - 1}"])


def balanced(k2: int, ratios: tuple[int, ...], **rest: int) -> tuple[Setting, ...]:
    """k1/k0 = k2/k1 and n1 = 2k1."""
    return tuple(
        {"k2": k2, "k1": k2 * r, "k0": k2 * r * r, "n2": 2 * k2, "n1": 2 * k2 * r, **rest} for r in ratios
    )


def wide(k2: int, ratios: tuple[int, ...], **rest: int) -> tuple[Setting, ...]:
    """k1/k0 = 1/4 whatever k2/k1, in a wide layer: n1 = k1²/k2."""
    return tuple(
        {"k2": k2, "k1": k2 * r, "k0": 4 * k2 * r, "n2": 2 * k2, "n1": k2 * r * r, **rest} for r in ratios
    )


# 56 nets: all within are enough for Clopper–Pearson to say 0.9 with 99 % confidence (51 are)
FULL = {"nets": 56, "draws": 256}
QUICK = {"nets": 52, "draws": 48}
WIDE, WIDE_QUICK = wide(64, (3, 4, 6, 8, 12), **FULL), wide(20, (2, 3, 4), **QUICK)
RATIO = Along("k1/k2", lambda setting: setting["k1"] / setting["k2"])
QUANTITY = "max over i of E|h̃_i − h_i|²/τ²"

register(
    Claim(
        id="alm.thm3.1",
        title="Two layers, entry by entry",
        statement=(
            "With k2 < k1 < k0 < k2² and constant offsets, E|h̃_i − h_i|² ≤ ετ² at the top for all i, where "
            "τ = (1/k2)Σh_i and ε = Õ(k2/k1): its ratio to (k2/k1)·ln N does not grow with k1/k2 at k0 = 4k1."
        ),
        source=f"{PAPER}, Theorem 3.1, eq. 16",
        grid=WIDE,
        quick=WIDE_QUICK,
        predict=printed_rate,
        measure=measure_relative,
        rule=NotGrowing(RATIO),
        quantity=QUANTITY,
        axis="k1",
        twin="alm.thm3.1.corrected",
        expected="failed",
        remark=(
            "Within its conditions k1/k0 can stay while k2/k1 falls. In a wide layer (n1 ≫ k1) the offset "
            "that silences the noise also loses the weaker of the half-normal entries of h^(1), and the top "
            "comes out too small by their share, which depends on k1/k0 alone. The proof of Theorem C.2 "
            "takes this bias, which is proportional to h_i, for a constant that an offset removes."
        ),
    )
)
register(
    Claim(
        id="alm.thm3.1.corrected",
        title="Two layers, entry by entry",
        statement=(
            f"With k2 < k1 < k0 < k2², E|h̃_i − h_i|² ≤ 3(k2/k1 + k1/k0)τ² at the top, τ = (1/k2)Σh_i, {EACH}."
        ),
        source=f"{PAPER}, Theorem 3.1, eq. 16, with the bias of the layer below",
        grid=(*balanced(100, (3, 5, 9), **FULL), *WIDE),
        quick=(*balanced(17, (3, 4), **QUICK), *WIDE_QUICK),
        predict=bound,
        measure=measure_relative,
        rule=HoldsIn(share=0.9),
        quantity=QUANTITY,
        axis="k1",
        series="k0",
        reading="corrected",
        twin="alm.thm3.1",
        remark="At k1/k0 ≤ k2/k1 this is the printed rate, with a constant of 6 and no logarithm.",
    )
)
register(
    Claim(
        id="alm.thm3.1.dropout",
        title="Two layers with dropout",
        statement=(
            "With half of x and half of h̃^(1) dropped on the way up and made up for by factors 2, "
            f"E|h̃_i − h_i|² ≤ 6(k2/k1 + k1/k0)τ² at the top, {EACH}."
        ),
        source=f"{PAPER}, Theorem C.1, with the bias of the layer below",
        grid=balanced(100, (3, 5, 9), drop=1, **FULL),
        quick=balanced(17, (3, 4), drop=1, **QUICK),
        predict=bound,
        measure=measure_relative,
        rule=HoldsIn(share=0.9),
        quantity=QUANTITY,
        axis="k1",
        reading="corrected",
        remark="Printed with h^(1) in place of h̃^(1) in the second layer: read as h̃^(1), with the drop.",
    )
)
register(
    Claim(
        id="alm.eq23.rate",
        title="First hidden layer of two",
        statement=(
            "With n1 = 2k1, E|h̃_i − h_i|² ≤ 40(k1/k0)h̄² in the first hidden layer, h̄ = (1/k1)Σh_i, where "
            f"half of the k1 kept are zero, {EACH}."
        ),
        source=f"{PAPER}, Theorem C.1, eq. 23, with the square",
        grid=tuple(
            {"k2": 100, "k1": 160, "k0": 160 * r, "n2": 200, "n1": 320, "layer": 1, **FULL}
            for r in (4, 10, 25, 60)
        ),
        quick=tuple(
            {"k2": 50, "k1": 80, "k0": 80 * r, "n2": 100, "n1": 160, "layer": 1, **QUICK} for r in (4, 10)
        ),
        predict=first_bound,
        measure=measure_relative,
        rule=HoldsIn(share=0.9),
        quantity=QUANTITY,
        axis="k0",
        reading="corrected",
    )
)
SCALES = {
    layer: grid(
        k2=36,
        k1=108,
        k0=324,
        n2=72,
        n1=216,
        layer=layer,
        scale=(0.01, 0.1, 1.0, 10.0, 100.0),
        nets=48,
        draws=64,
    )
    for layer in (2, 1)
}
for layer, equation, rate in ((2, "22", "k2/k1"), (1, "23", "k1/k0")):
    for corrected in (False, True):
        id = f"alm.eq{equation}"
        power = "h̄²" if corrected else "h̄"
        register(
            Claim(
                id=f"{id}.corrected" if corrected else id,
                title=f"Layer {layer} of two, the scale of h",
                statement=(
                    f"E|h̃_i − h_i|² ≤ Õ({rate})·{power} in layer {layer} for all i, h̄ = (1/k)Σh_i: the ratio "
                    "of the worst entry to this does not grow with the scale of h."
                ),
                source=f"{PAPER}, Theorem C.1, eq. {equation}" + (", with the square" if corrected else ""),
                grid=SCALES[layer],
                quick=tuple({**setting, "nets": 8} for setting in SCALES[layer]),
                predict=square_of_mean if corrected else linear_in_mean,
                measure=measure_absolute,
                rule=NotGrowing(Along("scale")),
                quantity="max over i of E|h̃_i − h_i|²",
                axis="scale",
                reading="corrected" if corrected else "as printed",
                twin=id if corrected else f"{id}.corrected",
                expected="held" if corrected else "failed",
                remark=""
                if corrected
                else "A square stands on the left only; Theorem 3.1 has it on both sides.",
            )
        )
