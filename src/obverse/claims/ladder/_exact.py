"""Theorems 1 to 4: averages over inputs, and the same numbers from events alone, where nothing is lost.

Brute force is autograd on every input that there is. Not for ladders that lose information on the way up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import (
    Comparison,
    Conditional,
    Pass,
    Student,
    Teacher,
    compare,
    compare_pass,
    focus_gap,
    propagate,
    reformulate,
)
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
from .._registry import register
from .._rules import HoldsIn
from ..results import Setting
from ._draws import PAPER
from ._ladders import (
    NOISY,
    ROUNDING,
    SHAPES,
    TRIALS,
    apart,
    check_ladder,
    drawn_student,
    drawn_teacher,
    labelled_teacher,
    noisy_pass,
)

GAP = "largest difference ÷ largest number"


def events_apart(teacher: Teacher, seen: Pass, student: Student) -> float:
    """The largest relative gap of F, G̃ and the steps of all parameters: from inputs, and from events alone.

    Nothing but P(z), P(z_β | z_α) and the weights goes into the latter: gates are its own.
    """
    found = reformulate(teacher.model, student)
    return max(
        apart((teacher.mean(seen.active[name], name), found.active[name]) for name in student.inner),
        apart((teacher.total(seen.gradient[name], name), found.gradient[name]) for name in student.inner),
        apart(zip(seen.step.tensors(), found.step.tensors(), strict=True)),
    )


@measurement("ladder.exact.measure_recursive")
@per_trial
def measure_recursive(setting: Setting, generator: torch.Generator) -> float:
    """How far E[g_j | x_k] is from E over x_j given x_k of E[g_j | x_j]; labels are any function of x."""
    teacher = labelled_teacher(setting, generator)
    seen = propagate(teacher, drawn_student(teacher.model, setting, generator))
    return apart(_projections(teacher, seen))


def _projections(teacher: Teacher, seen: Pass) -> list[tuple[Tensor, Tensor]]:
    """(E[g | x_β], E[E[g | x_α] | x_β]) of every edge between regions that do not see all."""
    pairs = []
    for parent, child in teacher.graph.edges:
        if parent == teacher.graph.top:
            continue
        above, below = teacher.contents(parent), teacher.contents(child)
        counts = int(above.max()) + 1, int(below.max()) + 1

        def mean(contents: Tensor, count: int, values: Tensor) -> Tensor:
            chance = teacher.p.new_zeros(count).index_add_(0, contents, teacher.p)
            return values.new_zeros(count, values.shape[1]).index_add_(0, contents, values) / chance[:, None]

        gradient = seen.gradient[parent]  # with p(x)
        nearer = Conditional.of(below, above, teacher.p, (counts[1], counts[0]))  # P(x_α | x_β)
        pairs.append((mean(below, counts[1], gradient), nearer @ mean(above, counts[0], gradient)))
    return pairs


@measurement("ladder.exact.measure_conditions")
@per_trial
def measure_conditions(setting: Setting, generator: torch.Generator) -> float:
    """The largest gap of focus, broadness, decorrelation and the fourth condition, of any edge or region."""
    teacher = drawn_teacher(setting, generator)
    compared = compare(teacher, drawn_student(teacher.model, setting, generator))
    contents = {name: teacher.contents(name) for name in teacher.graph.order}
    return max(
        *(focus_gap(teacher, *edge, contents[edge[1]]) for edge in teacher.graph.edges),
        *(edge.broadness for edge in compared.edges.values()),
        *(edge.fourth.relative for edge in compared.edges.values()),
        *(region.decorrelation.relative for region in compared.regions.values()),
        *(region.decorrelation_back.relative for region in compared.regions.values()),
    )


@measurement("ladder.exact.measure_exact")
@per_trial
def measure_exact(setting: Setting, generator: torch.Generator) -> float:
    """The gap between inputs and events, F, G̃ and all steps together."""
    teacher = drawn_teacher(setting, generator)
    student = drawn_student(teacher.model, setting, generator)
    return events_apart(teacher, propagate(teacher, student), student)


def _check_conditions(teacher: Teacher, compared: Comparison) -> None:
    """The conditions of Theorem 2, with P(x|z) that are no deltas: otherwise nothing was shown."""
    graph = teacher.graph
    broken = max(
        *(edge.broadness for edge in compared.edges.values()),
        *(focus_gap(teacher, *edge, teacher.contents(edge[1])) for edge in graph.edges),
        *(region.decorrelation.relative for region in compared.regions.values()),
        *(region.decorrelation_back.relative for region in compared.regions.values()),
    )
    if broken > ROUNDING:
        raise BadInput("the conditions of Theorem 2", got=f"a gap of {broken:.2g}", do="correct the setting")


def _recursion(compared: Comparison) -> float:
    """F and G̃ of every region through the whole recursion."""
    regions = compared.regions.values()
    return max(
        apart((region.active.brute, region.active.reformulated) for region in regions),
        apart((region.gradient.brute, region.gradient.reformulated) for region in regions),
    )


@measurement("ladder.exact.measure_recursion")
@per_trial
def measure_recursion(setting: Setting, generator: torch.Generator) -> float:
    """The gap of F and G̃ where Theorem 2's conditions hold, and P(x|z) is no delta."""
    teacher, student, seen, lowest = noisy_pass(setting, generator)
    compared = compare_pass(teacher, student, seen, lowest)
    _check_conditions(teacher, compared)
    return _recursion(compared)


@measurement("ladder.exact.measure_steps")
@per_trial
def measure_steps(setting: Setting, generator: torch.Generator) -> float:
    """The gap of ΔW in the same place."""
    teacher, student, seen, lowest = noisy_pass(setting, generator)
    compared = compare_pass(teacher, student, seen, lowest)
    _check_conditions(teacher, compared)
    return apart((edge.recursive.brute, edge.recursive.reformulated) for edge in compared.edges.values())


@measurement("ladder.exact.measure_covariance")
@per_trial
def measure_covariance(setting: Setting, generator: torch.Generator) -> float:
    """How far ΔW is from (PF)ᵀG̃ plus the mean covariance of f_k and g_j inside events."""
    teacher, student, seen, lowest = noisy_pass(setting, generator)
    compared = compare_pass(teacher, student, seen, lowest)
    pairs = []
    for (parent, child), edge in compared.edges.items():
        shown = lowest[child] if child in lowest else seen.active[child]
        pull = seen.gradient[parent]
        inside = shown - teacher.mean(shown, parent)[teacher.events[parent]]
        means = (teacher.total(pull, parent) / teacher.prior(parent)[:, None])[teacher.events[parent]]
        covariance = inside.T @ (pull - teacher.p[:, None] * means)
        pairs.append((edge.weight.brute, edge.recursive.reformulated + covariance))
    return apart(pairs)


@measurement("ladder.exact.measure_backward")
@per_trial
def measure_backward(setting: Setting, generator: torch.Generator) -> float:
    """The gap of P(z_β)E[g_α | z_β] and P_αβᵀG̃_α, edge by edge, where contents are not independent."""
    compared = _compared(setting, generator)
    return apart((edge.backward.brute, edge.backward.reformulated) for edge in compared.edges.values())


@measurement("ladder.exact.measure_forward")
@per_trial
def measure_forward(setting: Setting, generator: torch.Generator) -> float:
    """The gap of E[f_β | z_α] and P_αβF_β, edge by edge, in the same place."""
    compared = _compared(setting, generator)
    return apart((edge.forward.brute, edge.forward.reformulated) for edge in compared.edges.values())


def _compared(setting: Setting, generator: torch.Generator) -> Comparison:
    teacher, student, seen, lowest = noisy_pass(setting, generator)
    return compare_pass(teacher, student, seen, lowest)


def spread_squared(setting: Setting) -> float:
    return float(setting["spread"] ** 2)


ALL = tuple(SHAPES)


def _noisy(
    losses: tuple[str, ...], trials: int, relu: Mapping[str, tuple[float, ...]], linear: tuple[float, ...]
) -> tuple[Setting, ...]:
    """Students with a ReLU where events settle gates often enough; linear ones anywhere."""
    kept = {"contents": 2, "noise": "independent", "nodes": 2, "trials": trials}
    rectified = (
        {"shape": shape, "spread": spread, "activation": "relu", "loss": loss, **kept}
        for shape, spreads in relu.items()
        for spread in spreads
        for loss in losses
    )
    plain = (
        {"shape": shape, "spread": spread, "activation": "linear", "loss": loss, **kept}
        for shape in NOISY
        for spread in linear
        for loss in losses
    )
    return (*rectified, *plain)


RELU = {"tree": (0.1, 0.3), "windows": (0.1,)}

register(
    Claim(
        id="ladder.thm1",
        title="Marginal gradients are recursive",
        statement="E[g_j | x_k] is the mean of E[g_j | x_j] over x_j given x_k, k a child of j.",
        source=f"{PAPER}, Theorem 1",
        place="“g_j(x_k) = E_{x_{j,−k}|x_k}[g_j(x_j)]”, Section 2.3, Theorem 1, line 109",
        grid=grid(shape=ALL, norm=("none", "before", "after"), classes=3, trials=TRIALS),
        quick=grid(shape=ALL[:2], norm="none", classes=3, trials=20),
        predict=ROUNDING,
        measure=measure_recursive,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity=GAP,
        axis="norm",
        series="shape",
        remark="All inputs enumerated under a random law; the label is any function of the input.",
    )
)

thm2 = register(
    Claim(
        id="ladder.thm2",
        title="Events instead of inputs, under the conditions",
        statement=(
            "Where focus, broadness and decorrelation hold, F_α = D_α ∘ Σ P_αβF_βW_βα and G_β = D_β ∘ Σ "
            "E[G_α | z_β]W_βαᵀ are the means of activations and gradients over the inputs of an event, also "
            "where P(x | z) is no delta."
        ),
        source=f"{PAPER}, Theorem 2, eq. 8",
        place=(
            "“Then the following iterative equations hold”, Section 3.2, Theorem 2, eq. 8, lines 157 to 171"
        ),
        grid=_noisy(("square",), TRIALS, RELU, (1.0,)),
        quick=_noisy(("square",), 8, {"tree": (0.1,)}, (0.3,)),
        predict=ROUNDING,
        measure=measure_recursion,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity=f"F and G̃: {GAP}",
        axis="spread",
        series="shape",
        remark=(
            "Such ladders exist: each z_α knows the events of all its children, the lowest events have "
            "several contents each, contents are independent given the events, and every gate is settled by "
            "its event (or there are none). The gradient at the top is I − F, which is linear in F."
        ),
    )
)

register(
    thm2.also(
        id="ladder.thm2.softmax",
        title="Events instead of inputs, from a softmax",
        statement="The same with the gradient of softmax cross entropy at the top, computed from F.",
        source=f"{PAPER}, Theorem 2 with eq. 7",
        grid=_noisy(("softmax",), TRIALS, {"tree": (0.1, 0.3)}, (1.0,)),
        quick=_noisy(("softmax",), 8, {"tree": (0.3,)}, (0.3,)),
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The recursion is not closed: the mean of softmax(f) is not softmax of the mean. It would be if "
            "the mean gradient at the top were given, or linear in F as I − F is."
        ),
    )
)

stated = register(
    thm2.also(
        id="ladder.thm2.backward",
        title="Broadness alone carries gradients down",
        statement=(
            "Where z_β is a function of z_α, P(z_β)E[g_α | z_β] = P_αβᵀG̃_α, however the contents of regions "
            "hang together: focus is not needed for the backward half of Theorem 2."
        ),
        source=f"{PAPER}, Theorem 2, eqs 31–45",
        grid=grid(
            shape=tuple(NOISY),
            spread=(0.3, 1.0),
            contents=2,
            noise="shared",
            activation="linear",
            nodes=2,
            loss="square",
            trials=TRIALS,
        ),
        quick=grid(
            shape="tree",
            spread=0.3,
            contents=2,
            noise="shared",
            activation="linear",
            nodes=2,
            loss="square",
            trials=10,
        ),
        measure=measure_backward,
        quantity=GAP,
        reading="exact",
    )
)

register(
    replace(
        stated,
        id="ladder.thm2.focus",
        title="Without focus activations do not go up",
        statement=(
            "Where z_β is a function of z_α, E[f_β | z_α] = P_αβF_β, however the contents of regions hang "
            "together."
        ),
        source=f"{PAPER}, Theorem 2, eqs 20–30, without focus",
        measure=measure_forward,
        reading="beyond the paper",
        expected="failed",
        remark="The same ladders. Focus is needed for the forward half, as the proof says; broadness is not.",
    )
)

thm3 = register(
    Claim(
        id="ladder.thm3",
        title="Where events tell everything, all conditions hold",
        statement=(
            "If P(x_α | z_α) is a delta for every region, focus, broadness and decorrelation hold (and with "
            "them E[f_k g_j | z_α] = E[f_k | z_α]E[g_j | z_α], the fourth condition, which Theorem 4 needs)."
        ),
        source=f"{PAPER}, Theorem 3",
        place="“then all conditions in Thm. 2 hold”, Section 3.2, Theorem 3, line 176",
        grid=grid(shape=ALL, norm=("none", "before", "after"), trials=TRIALS),
        quick=grid(shape=ALL[:2], norm="none", trials=15),
        predict=ROUNDING,
        measure=measure_conditions,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity="largest gap of any condition",
        axis="norm",
        series="shape",
    )
)

register(
    thm3.also(
        id="ladder.thm3.exact",
        title="Where events tell everything, the reformulation is exact",
        statement=(
            "If P(x_α | z_α) is a delta for every region, F, G̃ and the steps of all weights, offsets, "
            "scales and shifts follow from P(z_α), P(z_β | z_α) and the weights alone."
        ),
        source=f"{PAPER}, Theorems 3 and 4, eqs 9 and 12",
        place=(
            "“the reformulation becomes exact”, Section 7.3, Theorem 3, line 661; Theorem 4, lines 193 to "
            "205; “compatible with the reformulation”, Section 4.2, eq. 12, line 269"
        ),
        grid=(
            *grid(
                shape=ALL, norm=("none", "before", "after"), activation="relu", loss="softmax", trials=TRIALS
            ),
            *grid(shape=ALL, norm=("none", "before"), activation="linear", loss="square", trials=TRIALS),
        ),
        quick=grid(shape=ALL[:2], norm=("none", "before"), activation="relu", loss="square", trials=15),
        measure=measure_exact,
        quantity=f"F, G̃ and steps: {GAP}",
        remark="With offsets, and batch norm before or after the ReLU; gates are the recursion's own.",
    )
)

stated = register(
    Claim(
        id="ladder.thm4",
        title="Steps from events, under the conditions of Theorem 2",
        statement="Where focus, broadness and decorrelation hold, ΔW_βα = (P_αβF_β)ᵀG̃_α.",
        source=f"{PAPER}, Theorem 4, eqs 60–71",
        place=(
            "“ΔW_βα = (P_αβ F_β)ᵀ G̃_α”, Section 3.3, Theorem 4, eq. 9, line 205; “We assume decorrelation”, "
            "Section 7.4, line 753"
        ),
        grid=_noisy(("square",), TRIALS, RELU, (1.0,)),
        quick=_noisy(("square",), 8, {"tree": (0.3,)}, (0.3,)),
        predict=ROUNDING,
        measure=measure_steps,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity=f"ΔW: {GAP}",
        axis="spread",
        series="shape",
        twin="ladder.thm4.corrected",
        expected="failed",
        remark=(
            "The step from eq. 63 to eq. 64 says decorrelation, but means another one: E[f_k g_j | z_α] = "
            "E[f_k | z_α]E[g_j | z_α]. The same ladders as under Theorem 2, where F and G̃ are right to "
            "rounding; here g = 1 − f at the top varies with the content that f_k sees."
        ),
    )
)

register(
    stated.other(
        title="Steps from events, with a fourth condition",
        statement=(
            "Where focus, broadness, decorrelation and E[f_k g_j | z_α] = E[f_k | z_α]E[g_j | z_α] hold, "
            "ΔW_βα = (P_αβF_β)ᵀG̃_α."
        ),
        source=f"{PAPER}, Theorem 4, with the condition that its proof uses",
        grid=_noisy(("fixed",), TRIALS, RELU, (1.0,)),
        quick=_noisy(("fixed",), 8, {"tree": (0.3,)}, (0.3,)),
        reading="corrected",
        remark=(
            "With the gradient a₁ or −a₂ of eq. 7 at the top, whatever f is, g_j is settled by events, and "
            "the fourth condition follows from focus."
        ),
    )
)

register(
    stated.also(
        id="ladder.thm4.covariance",
        title="What Theorem 4 leaves out",
        statement=(
            "Under the conditions of Theorem 2, ΔW_βα = (P_αβF_β)ᵀG̃_α + Σ_z P(z_α) Cov(f_k, g_j | z_α)."
        ),
        source=f"{PAPER}, Theorem 4, without a fourth condition",
        measure=measure_covariance,
        reading="exact",
    )
)

SPREADS = (1e-5, 3e-5, 1e-4, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1)


def _spreads(trials: int) -> tuple[Setting, ...]:
    kept = {"contents": 2, "noise": "independent", "nodes": 2, "trials": trials}
    return tuple(
        {"shape": "tree", "spread": spread, "activation": "linear", "loss": "square", **kept}
        for spread in SPREADS
    )


register(
    Claim(
        id="ladder.thm4.spread",
        title="How much Theorem 4 leaves out",
        statement=(
            "Under the conditions of Theorem 2, (P_αβF_β)ᵀG̃_α is off by the square of how far contents of "
            "one event differ."
        ),
        source=f"{PAPER}, Theorem 4, without a fourth condition",
        grid=_spreads(200),
        quick=_spreads(30),
        predict=spread_squared,
        measure=measure_steps,
        domain=check_ladder,
        rule=Exponent(Along("spread")),
        quantity=f"ΔW: {GAP}",
        axis="spread",
        reading="beyond the paper",
    )
)
