"""What each condition of Theorems 2 and 4 is worth: focus, the fourth one, decorrelation, two events."""

from __future__ import annotations

from dataclasses import replace

import torch

from ...ladder import (
    Teacher,
    compare,
    enumerate_teacher,
    propagate,
    random_student,
    reformulate,
    tree,
)
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, normal
from ._exact import GAP
from ._ladders import ROUNDING, TRIALS, apart, drawn_student
from ._lossy import BOTH, RULES, check_lossy, drawn_teacher, ladder_settings, living, total_variation


def _tied(setting: Setting) -> Teacher:
    """Four even bits, the first and the third alike with probability (1 + ρ)/2; XOR hides the first."""
    signs = 2 * torch.cartesian_prod(*[torch.arange(2)] * 4).to(torch.float64) - 1
    p = (1 + setting["rho"] * signs[:, 0] * signs[:, 2]) / 16
    return enumerate_teacher(tree(4), {"1.0": "xor"}, p=p)


@measurement("ladder.lossy.measure_focus")
def measure_focus(setting: Setting, generator: torch.Generator) -> list[float]:
    """The distance of P(x_β | z_α, z_β) and P(x_β | z_β), summed over every content of the region."""
    teacher = _tied(setting)
    contents = teacher.contents("1.0")
    return [total_variation(teacher.events["1.0"], teacher.labels, contents, teacher.p)] * setting["trials"]


@measurement("ladder.lossy.measure_unfocused")
@per_trial
def measure_unfocused(setting: Setting, generator: torch.Generator) -> float:
    """|E[f_β | z_α] − P_αβF_β| ÷ |w|, the largest, for a node that shows w times the first bit."""
    teacher = _tied(setting)
    student = drawn_student(teacher.model, {"nodes": 1, "activation": "linear"}, generator)
    size = normal(1, 1, generator=generator)
    first = torch.cat([torch.zeros_like(size), size])
    weights = {**student.weights, ("1.0", "0.0"): first, ("1.0", "0.1"): torch.zeros_like(first)}
    compared = compare(teacher, replace(student, weights=weights))
    return compared.edges["2.0", "1.0"].forward.gap.largest / abs(float(size))


def half_rho(setting: Setting) -> float:
    return float(setting["rho"] / 2)


@measurement("ladder.lossy.measure_fourth")
@per_trial
def measure_fourth(setting: Setting, generator: torch.Generator) -> float:
    """What (PF)ᵀG̃ lacks of ΔW, ÷ −w, where a linear node sums even bits with the same weight w."""
    graph = tree(setting["bits"], setting["bits"])
    teacher = enumerate_teacher(graph, "and")
    start = random_student(
        teacher.model,
        1,
        generator=generator,
        targets=normal(2, 1, generator=generator),
        activation="linear",
    )
    size = normal(1, 1, generator=generator)
    weights = {edge: torch.cat([torch.zeros_like(size), size]) for edge in graph.edges}
    edge = compare(teacher, replace(start, weights=weights)).edges[graph.edges[0]]
    lacking = edge.weight.brute - edge.weight.reformulated
    return float(lacking[1, 0] / -size)


def fourth_of_and(setting: Setting) -> float:
    """Σ_z P(z) Cov(x_1, x_1 + … + x_k | z) for z the AND of k even bits, which vary only where it is 0."""
    count = setting["bits"]
    every = 2.0**-count
    one, two = 0.5 - every, 0.25 - every  # P(x_1 = 1, z = 0) and P(x_1 = x_2 = 1, z = 0)
    return float(one + (count - 1) * two - count * one**2 / (1 - every))


@measurement("ladder.lossy.measure_gates")
@per_trial
def measure_gates(setting: Setting, generator: torch.Generator) -> float:
    """How far E[f | z] is from D·E[f_raw | z] + D(1 − D)(E[f_raw | open, z] − E[f_raw | shut, z])."""
    teacher = drawn_teacher(setting, generator)
    student = drawn_student(teacher.model, setting, generator)
    seen = propagate(teacher, student)
    pairs = []
    for name in student.inner:
        if name == teacher.graph.top:
            continue
        gate, raw = seen.gate[name].to(torch.float64), seen.before[name]
        share = teacher.mean(gate, name)
        opened = teacher.mean(gate * raw, name) / share.clamp(min=ROUNDING)
        shut = teacher.mean((1 - gate) * raw, name) / (1 - share).clamp(min=ROUNDING)
        apart_by = share * (1 - share) * (opened - shut)
        pairs.append((teacher.mean(seen.active[name], name), share * teacher.mean(raw, name) + apart_by))
    return apart(pairs)


@measurement("ladder.lossy.measure_settled")
@per_trial
def measure_settled(setting: Setting, generator: torch.Generator) -> float:
    """The share of nodes and events of which it is right that they are uncorrelated where, and only where,
    the event settles the gate."""
    teacher = drawn_teacher(setting, generator)
    student = drawn_student(teacher.model, setting, generator)
    seen = propagate(teacher, student)
    right = []
    for name in student.inner:
        if name == teacher.graph.top:
            continue
        gate, raw = seen.gate[name].to(torch.float64), seen.before[name]
        share, mean = teacher.mean(gate, name), teacher.mean(raw, name)
        covariance = (teacher.mean(gate * raw, name) - share * mean).abs()
        settled = (share < ROUNDING) | (share > 1 - ROUNDING)
        right.append((covariance <= ROUNDING) == settled)
    return float(torch.cat(right).to(torch.float64).mean())


@measurement("ladder.lossy.measure_projected")
@per_trial
def measure_projected(setting: Setting, generator: torch.Generator) -> float:
    """‖G̃ − eq. 12's G̃‖ ÷ ‖G̃‖ below batch norm, in regions with two events."""
    teacher, student, seen = living(setting, generator)
    events = reformulate(teacher.model, student)
    hidden = [name for name in student.inner if name != teacher.graph.top]
    true = torch.cat([teacher.total(seen.gradient[name], name).flatten() for name in hidden])
    stated = torch.cat([events.gradient[name].flatten() for name in hidden])
    return float((true - stated).norm() / true.norm())


focus = register(
    Claim(
        id="ladder.focus",
        title="What inputs that hang together take from focus",
        statement=(
            "Where XOR hides a bit that agrees with a bit elsewhere with probability (1 + ρ)/2, P(x_β | "
            "z_α, z_β) is ρ/2 from P(x_β | z_β) in total variation."
        ),
        source=f"{PAPER}, focus in Theorem 2",
        grid=grid(rho=(0.1, 0.3, 0.5, 1.0), trials=2),
        predict=half_rho,
        measure=measure_focus,
        domain=check_lossy,
        rule=Equal(tolerance=1e-9),  # every trial is the same number, to rounding
        quantity="total variation distance, averaged over (z_α, z_β)",
        axis="rho",
        reading="exact",
    )
)


register(
    focus.also(
        id="ladder.focus.forward",
        title="What the loss of focus does to activations",
        statement="There E[f_β | z_α] is wρ/2 from P_αβF_β, for a node that shows w times the hidden bit.",
        source=f"{PAPER}, Theorem 2, without focus",
        grid=grid(rho=(0.1, 0.3, 0.5, 1.0), trials=20),
        quick=grid(rho=(0.1, 1.0), trials=5),
        measure=measure_unfocused,
        quantity="largest |E[f_β | z_α] − P_αβF_β| ÷ |w|",
    )
)


register(
    Claim(
        id="ladder.fourth",
        title="What AND takes from the fourth condition",
        statement=(
            "Where z is the AND of k even bits and a linear node sums them with weight w, ΔW is −w[½ − "
            "2^{−k} + (k − 1)(¼ − 2^{−k}) − k(½ − 2^{−k})²/(1 − 2^{−k})] more than (PF)ᵀG̃."
        ),
        source=f"{PAPER}, Theorem 4, without a fourth condition",
        grid=grid(bits=(2, 3, 4, 6, 8), trials=20),
        quick=grid(bits=(2, 5), trials=5),
        predict=fourth_of_and,
        measure=measure_fourth,
        domain=check_lossy,
        rule=Equal(tolerance=1e-9),  # every trial is the same number, to rounding
        quantity="what (PF)ᵀG̃ lacks of ΔW, ÷ −w",
        axis="bits",
        reading="exact",
        remark="F and G̃ are exact here: it is E[f_k g_j | z] ≠ E[f_k | z]E[g_j | z] and nothing else.",
    )
)


decorrelation = register(
    Claim(
        id="ladder.decorrelation",
        title="What a gate that is not settled does",
        statement=(
            "E[f | z] = D E[f_raw | z] + D(1 − D)(E[f_raw | open, z] − E[f_raw | shut, z]), D the share of "
            "open gates."
        ),
        source=f"{PAPER}, decorrelation in Theorem 2",
        grid=ladder_settings(RULES, TRIALS, BOTH[1:]),
        quick=ladder_settings(RULES, 15, BOTH[1:2]),
        predict=ROUNDING,
        measure=measure_gates,
        domain=check_lossy,
        rule=HoldsIn(),
        quantity=f"F: {GAP}",
        axis="leaves",
        series="rule",
        reading="exact",
        remark="The last factor is positive for a ReLU: D ∘ F_raw never overstates an activation.",
    )
)


decorrelation_settled = register(
    decorrelation.also(
        id="ladder.decorrelation.settled",
        title="Decorrelation means that gates are settled",
        statement=(
            "For a ReLU f_raw and its gate are uncorrelated given z where, and only where, z settles the "
            "gate."
        ),
        grid=ladder_settings(RULES, 40, BOTH[1:]),
        quick=ladder_settings(RULES, 10, BOTH[1:2]),
        predict=1.0,
        measure=measure_settled,
        rule=Equal(),
        quantity="share of nodes and events where that is right",
    )
)


register(
    decorrelation_settled.also(
        id="ladder.eq12.two-events",
        title="Batch norm in a region with two events",
        statement=(
            "In a region with two events eq. 12 leaves no gradient at all, since f and 1 span everything: "
            "its error is the whole of G̃."
        ),
        source=f"{PAPER}, eq. 12",
        grid=tuple(
            {**setting, "norm": norm}
            for norm in ("before", "after")
            for setting in ladder_settings(RULES, 30, BOTH[1:])
        ),
        quick=ladder_settings(RULES, 10, BOTH[1:2], norm="before"),
        measure=measure_projected,
        rule=Equal(tolerance=1e-6),
        quantity="‖G̃ − eq. 12's G̃‖ ÷ ‖G̃‖",
        remark=(
            "So AND, OR, XOR and majority ladders with batch norm do not train below their top by the matrix "
            "dynamics, while the net does. Where events tell all, both are 0 there."
        ),
    )
)
