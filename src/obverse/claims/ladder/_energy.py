"""Batch norm in a net: centred gradients, and the energy of a row of weights, in a step and over time.

Everything is measured by autograd on plain formulas of batch norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import normalize
from .._claim import Claim, grid, measurement
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, check_choice, check_counts, normal
from ._normalized import ROUNDING, TRIALS

ORDERS = ("relu, norm", "norm, relu")  # after the linear layer


@dataclass(frozen=True)
class Nets:
    """`trials` nets at once: linear, ReLU and batch norm in some order, and one linear output.

    x is trials × rows × inputs, target trials × rows, weights trials × nodes × inputs, others trials × nodes.
    """

    order: str
    biased: bool
    x: Tensor
    target: Tensor
    weights: Tensor
    bias: Tensor
    scale: Tensor
    shift: Tensor
    top: Tensor

    def gradients(self) -> tuple[list[Tensor], Tensor]:
        """Of the square loss, averaged over rows: by each parameter, and by the linear layer's output."""
        own = [one.detach().requires_grad_() for one in self.parameters]
        weights, bias, scale, shift, top = own
        linear = self.x @ weights.mT + bias.unsqueeze(1)
        active = torch.relu(linear) if self.order == "relu, norm" else linear
        trials, rows, nodes = active.shape
        side = active.movedim(1, 0).reshape(rows, -1)
        p = torch.full((rows,), 1 / rows, dtype=torch.float64)
        standard = normalize(side, p)[0].reshape(rows, trials, nodes).movedim(0, 1)
        out = scale.unsqueeze(1) * standard + shift.unsqueeze(1)
        if self.order == "norm, relu":
            out = torch.relu(out)
        errors = (out @ top.unsqueeze(2)).squeeze(2) - self.target
        *by_own, by_linear = torch.autograd.grad(errors.square().mean(1).sum() / 2, [*own, linear])
        if not self.biased:  # it is 0 and stays there
            by_own[1] = torch.zeros_like(bias)
        return list(by_own), by_linear

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        return self.weights, self.bias, self.scale, self.shift, self.top

    def energy(self) -> Tensor:
        """½(‖w_j‖² + b_j²) of each net and row."""
        return (self.weights.square().sum(2) + self.bias.square()) / 2

    def moved(self, gradients: list[Tensor], rate: float) -> Nets:
        """After a step of descent."""
        steps = [one - rate * by for one, by in zip(self.parameters, gradients, strict=True)]
        return Nets(self.order, self.biased, self.x, self.target, *steps)


def check_nets(setting: Setting) -> None:
    check_counts(setting)
    check_choice(setting, "order", *ORDERS)
    if setting["rows"] < 8:
        raise BadInput("eight rows or more, so that ReLU leaves some", got=setting["rows"], do="raise rows")
    if not setting.get("rate", 1.0) > 0:
        raise BadInput("a rate > 0", got=setting["rate"], do="raise rate")


def _nets(setting: Setting, generator: torch.Generator) -> Nets:
    trials, rows, nodes, inputs = setting["trials"], setting["rows"], 4, 5
    bias = normal(trials, nodes, generator=generator)
    return Nets(
        order=setting["order"],
        biased=bool(setting["bias"]),
        x=normal(trials, rows, inputs, generator=generator),
        target=normal(trials, rows, generator=generator),
        weights=normal(trials, nodes, inputs, generator=generator),
        bias=bias if setting["bias"] else torch.zeros_like(bias),
        scale=1 + normal(trials, nodes, generator=generator) / 4,
        shift=normal(trials, nodes, generator=generator) / 4,
        top=normal(trials, nodes, generator=generator),
    )


def at_most_rounding(setting: Setting) -> float:
    check_nets(setting)
    return ROUNDING


@measurement("ladder.normalized.measure_centred")
def measure_centred(setting: Setting, generator: torch.Generator) -> list[float]:
    """1 − |1ᵀG̃|/Σ|G̃| of the gradient at the linear layer's output, both averaged over nodes."""
    _, by_linear = _nets(setting, generator).gradients()
    sums, sizes = by_linear.sum(1).abs(), by_linear.abs().sum(1)
    shares: list[float] = (1 - sums.mean(1) / sizes.mean(1)).tolist()
    return shares


@measurement("ladder.normalized.measure_slope")
def measure_slope(setting: Setting, generator: torch.Generator) -> list[float]:
    """|⟨w_j, ∇w_j⟩|/(‖w_j‖·max‖∇w_i‖), the largest of a net's nodes; w_j with the bias if that is `counted`.

    Beside the largest gradient, for a node that one input alone makes speak has none but rounding.
    """
    check_nets(setting)
    check_choice(setting, "counted", "weights", "weights and bias")
    nets = _nets(setting, generator)
    by, _ = nets.gradients()
    own, slope = nets.weights, by[0]
    if setting["counted"] == "weights and bias":
        own, slope = torch.cat([own, nets.bias.unsqueeze(2)], 2), torch.cat([slope, by[1].unsqueeze(2)], 2)
    sizes = own.norm(dim=2) * slope.norm(dim=2).amax(1, keepdim=True)
    cosines: list[float] = ((own * slope).sum(2).abs() / sizes).amax(1).tolist()
    return cosines


def _descent(setting: Setting, steps: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """½(‖w_j‖² + b_j²) of each net and row before and after so many steps, and Σ_j‖∇‖² at each step."""
    nets = _nets(setting, generator)
    before, slopes = nets.energy(), []
    for _ in range(steps):
        by, _ = nets.gradients()
        slopes.append(by[0].square().sum((1, 2)) + by[1].square().sum(1))
        nets = nets.moved(by, setting["rate"])
    return before, nets.energy(), torch.stack(slopes)


@measurement("ladder.normalized.measure_growth")
def measure_growth(setting: Setting, generator: torch.Generator) -> list[float]:
    """½‖w_j‖² after `steps` steps of descent over what it was before, the row of a net that changes most."""
    before, after, _ = _descent(setting, setting["steps"], generator)
    ratios: list[float] = (after / before).amax(1).tolist()
    return ratios


@measurement("ladder.normalized.measure_ledger")
def measure_ledger(setting: Setting, generator: torch.Generator) -> list[float]:
    """What `steps` steps have added to the energy of all rows, over ½η²Σ‖∇‖²."""
    before, after, slopes = _descent(setting, setting["steps"], generator)
    ratios: list[float] = ((after - before).sum(1) / (setting["rate"] ** 2 / 2 * slopes.sum(0))).tolist()
    return ratios


@measurement("ladder.normalized.measure_drift")
def measure_drift(setting: Setting, generator: torch.Generator) -> list[float]:
    """Energy added to all rows in the time rate·steps = `time`, over time·½‖∇‖² of the start."""
    before, after, slopes = _descent(setting, round(setting["time"] / setting["rate"]), generator)
    ratios: list[float] = ((after - before).sum(1) / (setting["time"] / 2 * slopes[0])).tolist()
    return ratios


def rate(setting: Setting) -> float:
    return float(setting["rate"])


def _energies(orders: str | tuple[str, ...], counted: str, bias: bool, trials: int) -> tuple[Setting, ...]:
    return grid(order=orders, rows=(16, 64), bias=bias, counted=counted, trials=trials)


centred = register(
    Claim(
        id="ladder.centred",
        title="Batch norm after linear layers centres gradients",
        statement="With batch norm between the linear layer and the ReLU, 1ᵀG̃ = 0 at the linear layer.",
        source=f"{PAPER}, Section 5.2, after Theorem 9",
        place=(
            "“centered gradient is guaranteed if we insert Batch Norm (Eqn. 12) after linear layers”, "
            "Section 5.2, after Theorem 9, line 364"
        ),
        grid=grid(order="norm, relu", rows=(8, 16, 64), bias=True, trials=50),
        quick=grid(order="norm, relu", rows=(16, 64), bias=True, trials=20),
        predict=1.0,
        measure=measure_centred,
        domain=check_nets,
        rule=Equal(tolerance=ROUNDING),
        quantity="1 − |1ᵀG̃_j|/Σ|G̃_j|",
        axis="rows",
    )
)


register(
    centred.also(
        id="ladder.centred.after-relu",
        title="Batch norm after the ReLU centres gradients",
        statement="With batch norm behind linear layer and ReLU, as in §7.5.1, 1ᵀG̃ = 0 at the linear layer.",
        source=f"{PAPER}, Section 5.2, with the order of §7.5.1",
        grid=grid(order="relu, norm", rows=(8, 16, 64), bias=True, trials=50),
        quick=grid(order="relu, norm", rows=(16, 64), bias=True, trials=20),
        reading="beyond the paper",
        expected="failed",
        remark="The gradient is centred behind the ReLU, which then drops what belongs to silent inputs.",
    )
)


register(
    Claim(
        id="ladder.energy",
        title="Batch norm: the gradient keeps the row energy",
        statement=(
            "With batch norm behind linear layer and ReLU, ⟨w_j, ∇w_j⟩ = 0 (by eq. 80 it is E_x[g_j f_j]); "
            "with batch norm before the ReLU as well."
        ),
        source=f"{PAPER}, §7.5.1, eq. 80",
        place=(
            "“E_x[g_j f_j] ≡ 0 for all iterations”, Section 7.5.1, below eq. 81, line 1020; eq. 80, lines "
            "977 to 990"
        ),
        grid=_energies(ORDERS, "weights", False, TRIALS),
        quick=_energies(ORDERS, "weights", False, 30),
        predict=at_most_rounding,
        measure=measure_slope,
        rule=HoldsIn(),
        quantity="|⟨w_j, ∇w_j⟩|/(‖w_j‖·max‖∇w_i‖), largest of 4 nodes",
        axis="rows",
        series="order",
        remark="Layers without bias. Only the order linear, ReLU, batch norm is in the paper.",
    )
)


stated = register(
    Claim(
        id="ladder.energy.bias",
        title="The row energy with a bias, as printed",
        statement="⟨w_j, ∇w_j⟩ = 0 with bias terms too: all analysis still holds with them.",
        source=f"{PAPER}, §7.5.1 and Section 2.1",
        place=(
            "“all analysis still holds with bias terms”, Section 2.1, line 42, for “the row energy … is "
            "conserved”, Section 7.5.1, lines 1020 to 1022"
        ),
        grid=_energies("relu, norm", "weights", True, TRIALS),
        quick=_energies("relu, norm", "weights", True, 30),
        predict=at_most_rounding,
        measure=measure_slope,
        rule=HoldsIn(),
        quantity="|⟨w_j, ∇w_j⟩|/(‖w_j‖·max‖∇w_i‖), largest of 4 nodes",
        axis="rows",
        twin="ladder.energy.bias-corrected",
        expected="failed",
        remark="Scaling w_j alone moves the place where the ReLU sets in; w_j and b_j must grow together.",
    )
)


register(
    stated.other(
        title="The row energy with a bias",
        statement="⟨w_j, ∇w_j⟩ + b_j∇b_j = 0: the energy that is kept is ½(‖w_j‖² + b_j²).",
        source=f"{PAPER}, §7.5.1, with the bias counted",
        grid=_energies(ORDERS, "weights and bias", True, TRIALS),
        quick=_energies(ORDERS, "weights and bias", True, 30),
        series="order",
        reading="corrected",
        quantity="|⟨w_j, ∇w_j⟩ + b_j∇b_j|/(‖(w_j, b_j)‖·max‖∇‖), largest of 4 nodes",
        remark="With batch norm before the ReLU ∇b_j = 0, and ‖w_j‖² is kept alone as well.",
    )
)


def _descents(rates: tuple[float, ...], bias: bool, steps: int, trials: int) -> tuple[Setting, ...]:
    return grid(order=ORDERS, rate=rates, steps=steps, rows=32, bias=bias, trials=trials)


stated = register(
    Claim(
        id="ladder.energy.conserved",
        title="The row energy over time, as printed",
        statement="With batch norm the row energy ½‖w_j‖² is conserved over time: over steps of descent.",
        source=f"{PAPER}, §7.5.1, eq. 81",
        place=(
            "“the row energy E_j(t) … is conserved over time”, Section 7.5.1, below eq. 81, lines 1020 to "
            "1022"
        ),
        grid=_descents((0.05, 0.2), False, 100, TRIALS),
        quick=_descents((0.2,), False, 20, 20),
        predict=1 + ROUNDING,
        measure=measure_growth,
        domain=check_nets,
        rule=HoldsIn(),
        quantity="½‖w_j‖² after ÷ before, the row that changes most",
        axis="rate",
        series="order",
        twin="ladder.energy.ledger",
        expected="failed",
        remark=(
            "A step at a right angle to w_j makes it longer. The paper argues for flow (eq. 81), but for all "
            "iterations; only gradient flow conserves it."
        ),
    )
)


register(
    stated.other(
        title="The row energy's ledger",
        statement=(
            "Each step of descent adds exactly ½η²(‖∇w_j‖² + ∇b_j²) to ½(‖w_j‖² + b_j²): summed over steps "
            "and rows."
        ),
        grid=_descents((0.05, 0.2), True, 100, TRIALS) + _descents((0.05, 0.2), False, 100, TRIALS),
        quick=_descents((0.2,), True, 20, 20),
        source=f"{PAPER}, §7.5.1, for steps in place of flow",
        predict=1.0,
        measure=measure_ledger,
        domain=check_nets,
        rule=Equal(tolerance=1e-9),  # a difference of energies, some 1e-4 of them, after 100 steps in float64
        quantity="energy added ÷ ½η²Σ‖∇‖²",
        reading="corrected",
        remark="",
    )
)


RATES = (0.00025, 0.0005, 0.001, 0.002, 0.004)


register(
    Claim(
        id="ladder.energy.flow",
        title="The row energy under smaller steps",
        statement="In a given time rate·steps, the energy that descent adds is proportional to the rate.",
        source=f"{PAPER}, §7.5.1, eq. 81, in the limit of small steps",
        grid=grid(order="relu, norm", rate=RATES, time=0.04, rows=32, bias=True, trials=500),
        quick=grid(order="relu, norm", rate=RATES[1:], time=0.04, rows=32, bias=True, trials=100),
        predict=rate,
        measure=measure_drift,
        domain=check_nets,
        rule=Exponent(Along("rate")),
        quantity="energy added ÷ time·½‖∇‖² of the start",
        axis="rate",
        reading="beyond the paper",
        remark="So gradient flow conserves it.",
    )
)
