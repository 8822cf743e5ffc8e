"""One to eight layers: how the error grows with depth, whether state evolution foresees it, where it ends.

The paper proves two and three layers and remarks that reversibility was "verified empirically up to 6". What
holds is said here in numbers. Tops have equal entries, so that only weights and masks are random.
"""

from __future__ import annotations

import torch

from ...shadow.recovery import relative_error
from ..claim import Claim, grid
from ..hidden import draw_hidden
from ..registry import register
from ..results import Setting
from ..rules import Equal, MeanBelow
from ..stack import Stack, calibrate, check_stack, misalignment
from .evolution import evolve

REMARK = "Arora, Liang & Ma 2015, Section 3, after eq. 14"


def schedule(setting: Setting) -> tuple[list[int], list[int]]:
    """Widths and sparsities from x to the top: k_j = k0/r^j below the top, which has k of n; n_j = c·k_j."""
    depth = int(setting["depth"])
    sparsities = [round(setting["k0"] / setting["r"] ** layer) for layer in range(depth)]
    widths = [sparsities[0], *(round(setting["c"] * kept) for kept in sparsities[1:]), int(setting["n"])]
    sparsities.append(int(setting["k"]))
    check_stack(widths, sparsities)
    return widths, sparsities


def measure_squared(setting: Setting, generator: torch.Generator) -> list[float]:
    """‖h̃ − h‖²/‖h‖² at the top over fresh draws, one value a net; offsets by least squares, bottom up."""
    return _measure(setting, generator, direction=False)


def measure_direction(setting: Setting, generator: torch.Generator) -> list[float]:
    """1 − cos²(h̃, h) at the top over fresh draws, one value a net; offsets by direction, bottom up."""
    return _measure(setting, generator, direction=True)


def _measure(setting: Setting, generator: torch.Generator, *, direction: bool) -> list[float]:
    widths, sparsities = schedule(setting)

    def draw(stack: Stack) -> list[torch.Tensor]:
        tops = draw_hidden(int(setting["draws"]), widths[-1], sparsities[-1], "equal", generator)
        return stack.generate(tops, generator)

    values = []
    for _ in range(int(setting["nets"])):
        stack = Stack.draw(widths, sparsities, generator)
        offsets = calibrate(stack, draw(stack), direction=direction)
        layers = draw(stack)
        found = stack.infer(layers[0], offsets)
        values.append((misalignment if direction else relative_error)(found, layers[-1]))
    return values


def predict_squared(setting: Setting) -> float:
    return evolve(*schedule(setting))[-1].error


def predict_direction(setting: Setting) -> float:
    return evolve(*schedule(setting), direction=True)[-1].misalignment


def half(setting: Setting) -> float:
    schedule(setting)
    return 0.5


def constant_ratio(k0: int, depths: dict[float, tuple[int, ...]], **rest: int | float) -> tuple[Setting, ...]:
    """k_(j−1) = r·k_j all the way up, the top included; the top has four times as many units as non-zeros."""
    return tuple(
        {"k0": k0, "r": r, "depth": depth, "k": round(k0 / r**depth), "n": 4 * round(k0 / r**depth), **rest}
        for r, chosen in depths.items()
        for depth in chosen
    )


SQUARED = (
    *constant_ratio(
        4096, {1.5: (1, 2, 4, 6, 8), 2: (1, 2, 4, 6, 8), 3: (2, 4), 4: (2, 4)}, c=1, nets=8, draws=64
    ),
    *constant_ratio(4096, {3: (2, 4), 4: (2, 4)}, c=2, nets=8, draws=64),
)
LABELS: dict[str, int | float] = {"k0": 16384, "k": 1, "n": 50, "r": 2, "c": 1, "nets": 6, "draws": 48}
SMALL: dict[str, int | float] = {"k0": 2048, "k": 1, "n": 50, "r": 2, "c": 1, "nets": 24, "draws": 64}

register(
    Claim(
        id="alm.depth",
        title="reversible up to six layers",
        statement=(
            "With up to 6 layers, one of n_ℓ = 50 units active at the top, k_j = k_0/2^j and no dropout "
            "(n_j = k_j), the feedforward net with constant offsets answers an h̃ with 1 − cos²(h̃, h) ≤ 1/2 "
            "(the least ‖c·h̃ − h‖²/‖h‖² over a factor c), where a constant answer has 0.98."
        ),
        source=REMARK,
        grid=grid(**LABELS, depth=(2, 4, 6)),
        quick=grid(**{**SMALL, "nets": 8}, depth=(2, 4)),
        predict=half,
        measure=measure_direction,
        rule=MeanBelow(),
        quantity="1 − cos² at the top",
        axis="depth",
        twin="alm.depth.eight",
        remark=(
            "The paper does not say what holds for 6 layers, nor at which widths. At k_0 = 16384 this does, "
            "up to one factor: h̃ itself is too short, as each layer loses the weakest of its support. What "
            "counts is k_0/k_ℓ, of which one more layer takes a factor of about 4 n_j/k_j."
        ),
    )
)
register(
    Claim(
        id="alm.depth.eight",
        title="eight layers are too many",
        statement=(
            "With 8 layers of the same schedule as for 6 (one of 50 units at the top, k_j = k_0/2^j, "
            "n_j = k_j) the feedforward net answers an h̃ with 1 − cos²(h̃, h) ≤ 1/2."
        ),
        source=REMARK,
        grid=grid(**LABELS, depth=(8,)),
        quick=grid(**{**SMALL, "nets": 8}, depth=(8,)),
        predict=half,
        measure=measure_direction,
        rule=MeanBelow(),
        quantity="1 − cos² at the top",
        axis="depth",
        reading="beyond the paper",
        twin="alm.depth",
        expected="failed",
        remark="It takes k_0 of about 50,000: state evolution says where reversibility ends.",
    )
)
register(
    Claim(
        id="alm.depth.evolution",
        title="state evolution of the error",
        statement=(
            "‖h̃ − h‖²/‖h‖² at the top of 1 to 8 layers with k_(j−1) = r·k_j, n_j = c·k_j and the best "
            "constant offset of each layer in turn is what a recursion of a signal and a noise predicts."
        ),
        source=f"beyond {REMARK}",
        grid=SQUARED,
        quick=constant_ratio(1024, {2: (1, 2, 4), 4: (1, 2)}, c=1, nets=8, draws=48),
        predict=predict_squared,
        measure=measure_squared,
        # The recursion leaves out that ‖h^(j)‖² varies by 6/k_j from draw to draw while offsets do not: at
        # the smallest layers here, of 32 and 64 units kept, a share of some percent.
        rule=Equal(tolerance=0.05),
        quantity="‖h̃ − h‖²/‖h‖² at the top",
        axis="depth",
        series="r",
        reading="beyond the paper",
    )
)
register(
    Claim(
        id="alm.depth.direction",
        title="state evolution of the direction",
        statement=(
            "1 − cos²(h̃, h) at the top of 3 to 6 layers with k_j = k_0/r^j, n_j = c·k_j and one of 50 units "
            "at the top is what the recursion predicts, offsets chosen for the signal of the layer above."
        ),
        source=f"beyond {REMARK}",
        grid=(
            *grid(**SMALL, depth=(3, 4, 5, 6)),
            *grid(**{**SMALL, "r": 1.5}, depth=(4, 6)),
            *grid(**{**SMALL, "r": 3, "c": 2}, depth=(3, 4)),
        ),
        quick=grid(**{**SMALL, "k0": 1024}, depth=(3, 4)),
        predict=predict_direction,
        measure=measure_direction,
        # As above; and offsets are fitted to so many draws, which with one unit active are few.
        rule=Equal(tolerance=0.08),
        quantity="1 − cos² at the top",
        axis="depth",
        series="r",
        reading="beyond the paper",
        remark=(
            "For wide layers the recursion has a fixed point, and depth no end, from k_(j−1)/k_j = 3.17 on "
            "at n_j = k_j, 4.28 at n_j = 2k_j, 5.44 at 4k_j, 7.06 at 10k_j (`evolution.critical_ratio`)."
        ),
    )
)
