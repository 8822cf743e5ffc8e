"""The ends of a ladder: contents of a lowest region as events, the gradient at the top; and Bayes' rule."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ...ladder import (
    Conditional,
    enumerate_teacher,
    gap,
    propagate,
    random_table,
    renumber,
)
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, chances, normal
from ._exact import ALL, GAP
from ._ladders import (
    ROUNDING,
    SHAPES,
    TRIALS,
    apart,
    check_ladder,
    drawn_student,
    drawn_teacher,
    labelled_teacher,
)


@measurement("ladder.exact.measure_bayes")
@per_trial
def measure_bayes(setting: Setting, generator: torch.Generator) -> float:
    """How far Λ_β(P^b)ᵀ is from PᵀΛ_α, events by random tables, over every edge."""
    graph, values = SHAPES[setting["shape"]]
    p = chances(values**graph.inputs, generator=generator)

    def summary(events: Tensor) -> Tensor:
        joint, count = renumber(list(events.T))
        return random_table(count, (count + 1) // 2, generator)[joint]

    rules = {name: summary for name in graph.order if graph.children[name]}
    teacher = enumerate_teacher(graph, rules, values=values, p=p)
    pairs = []
    for parent, child in graph.edges:
        sizes = teacher.sizes[child], teacher.sizes[parent]
        backward = Conditional.of(teacher.events[child], teacher.events[parent], p, sizes).dense()
        forward = teacher.conditional(parent, child).dense()
        pairs.append((teacher.prior(child)[:, None] * backward, forward.T * teacher.prior(parent)))
    return apart(pairs)


@measurement("ladder.exact.measure_features")
@per_trial
def measure_features(setting: Setting, generator: torch.Generator) -> float:
    """Inputs shown by any features V, and by one node an event with weights VW: F, G̃, and ΔW beside VᵀΔW."""
    teacher = drawn_teacher(setting, generator)
    graph = teacher.graph
    pixels = drawn_student(teacher.model, setting, generator)
    features = {
        name: normal(teacher.sizes[name], setting["features"], generator=generator) for name in graph.lowest
    }
    weights = {
        (parent, child): normal(setting["features"], weight.shape[1], generator=generator)
        for (parent, child), weight in pixels.weights.items()
        if child in features
    }
    shown = replace(pixels, weights={**pixels.weights, **weights})
    same = {edge: features[edge[1]] @ weight for edge, weight in weights.items()}
    pixels = replace(pixels, weights={**pixels.weights, **same})
    lowest = {name: value[teacher.events[name]] for name, value in features.items()}
    one, other = propagate(teacher, shown, lowest), propagate(teacher, pixels)
    steps = [
        (
            step,
            features[edge[1]].T @ other.step.weights[edge]
            if edge[1] in features
            else other.step.weights[edge],
        )
        for edge, step in one.step.weights.items()
    ]
    return max(
        apart((one.active[name], other.active[name]) for name in pixels.inner),
        apart((one.gradient[name], other.gradient[name]) for name in pixels.inner),
        apart(steps),
    )


def _top(setting: Setting, generator: torch.Generator) -> Tensor:
    """E[g_j | y] of the top region, y × j; labels are any function of the input."""
    teacher = labelled_teacher(setting, generator)
    top = teacher.graph.top
    student = drawn_student(teacher.model, setting, generator)
    edges = {edge: setting["scale"] * weight for edge, weight in student.weights.items() if edge[0] == top}
    student = replace(
        student,
        weights={**student.weights, **edges},
        biases={**student.biases, top: setting["scale"] * student.biases[top]},
    )
    seen = propagate(teacher, student)
    return teacher.total(seen.gradient[top], top) / teacher.prior(top)[:, None]


@measurement("ladder.exact.measure_signs")
@per_trial
def measure_signs(setting: Setting, generator: torch.Generator) -> float:
    """The share of g_j(y) that are positive for y = j and negative elsewhere."""
    signs = 2 * torch.eye(setting["classes"], dtype=torch.float64) - 1
    return float((_top(setting, generator) * signs > 0).to(torch.float64).mean())


@measurement("ladder.exact.measure_two_numbers")
@per_trial
def measure_two_numbers(setting: Setting, generator: torch.Generator) -> float:
    """How far g_j(y) is from the nearest a₁1[j = y] − a₂1[j ≠ y], relative."""
    same = torch.eye(setting["classes"], dtype=torch.bool)
    top = _top(setting, generator)
    nearest = torch.where(same, top[same].mean(), top[~same].mean())
    return gap(top, nearest).relative


def scale_of(setting: Setting) -> float:
    return float(setting["scale"])


SCALES = (1e-5, 3e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1)


register(
    Claim(
        id="ladder.eq58",
        title="Bayes' rule for events",
        statement="Λ_β(P^b_αβ)ᵀ = P_αβᵀΛ_α, where P^b_αβ = P(z_α | z_β).",
        source=f"{PAPER}, below eq. 57",
        place=(
            "“Using Λ_β(P^b_αβ)ᵀ = P_αβᵀΛ_α”, its Greek letters lost in the text, Section 7.4, below eq. 57, "
            "line 723"
        ),
        grid=grid(shape=ALL, trials=TRIALS),
        quick=grid(shape=ALL[:2], trials=20),
        predict=ROUNDING,
        measure=measure_bayes,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity=GAP,
        axis="shape",
        remark="For any events; here random tables with half as many events as their children have together.",
    )
)


register(
    Claim(
        id="ladder.bottom",
        title="Each content of a lowest region as an event",
        statement=(
            "A net whose inputs are shown by any features V is the ladder with F = I at the bottom and "
            "weights VW: the same F and G̃, and its ΔW is Vᵀ times that of the ladder."
        ),
        source=f"{PAPER}, the boundary condition f_k(z) = 1[k = z] below eq. 8",
        grid=grid(shape=ALL, features=(1, 2, 5), norm="none", trials=TRIALS),
        quick=grid(shape=ALL[:2], features=2, norm="none", trials=15),
        predict=ROUNDING,
        measure=measure_features,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity=GAP,
        axis="features",
        series="shape",
        reading="exact",
        remark="So F = I loses nothing, but descent on W takes the steps VVᵀΔW of the ladder's weights.",
    )
)


stated = register(
    Claim(
        id="ladder.eq7.square",
        title="Signs of the gradient I − F",
        statement="At the top G = I − F has g_j(y = j) > 0 and g_j(y ≠ j) < 0.",
        source=f"{PAPER}, eq. 7, which is said of a softmax, for Theorem 4's G = I − F",
        reading="beyond the paper",
        grid=grid(shape=("tree", "grid"), classes=(2, 3, 5), loss="square", scale=(0.3, 1.0), trials=60),
        quick=grid(shape="tree", classes=3, loss="square", scale=1.0, trials=20),
        predict=1.0,
        measure=measure_signs,
        domain=check_ladder,
        rule=Equal(),
        quantity="share of the right signs",
        axis="classes",
        series="scale",
        twin="ladder.eq7",
        expected="failed",
        remark="1 − f_j(y = j) is negative where f is above 1, and −f_j(y) is positive where f is below 0.",
    )
)


register(
    stated.other(
        title="Signs of the gradient under a softmax",
        statement="Under softmax cross entropy the top nodes have g_j(y = j) > 0 and g_j(y ≠ j) < 0.",
        source=f"{PAPER}, eq. 7",
        place="“g_j(y = j) > 0, g_j(y ≠ j) < 0”, Section 3.2, eq. 7, lines 146 to 150",
        reading="as printed",
        grid=grid(shape=("tree", "grid"), classes=(2, 3, 5), loss="softmax", scale=(0.3, 1.0), trials=60),
        quick=grid(shape="tree", classes=3, loss="softmax", scale=1.0, trials=20),
        remark="g_j = 1[y = j] − softmax_j(f), for every input and so for every mean.",
    )
)


stated = register(
    Claim(
        id="ladder.eq7.two-numbers",
        title="The gradient at the top as two numbers",
        statement="Under a softmax g_j(y) = a₁1[j = y] − a₂1[j ≠ y] at the top, a₁ and a₂ constant.",
        source=f"{PAPER}, the boundary condition below eq. 8",
        place="“g_j(z_ω) = a_1 I[j = z_ω] − a_2 I[j ≠ z_ω]”, Section 3.2, below eq. 8, line 174",
        grid=grid(shape="tree", classes=(3, 5), loss="softmax", scale=(0.1, 1.0), trials=TRIALS),
        quick=grid(shape="tree", classes=3, loss="softmax", scale=1.0, trials=20),
        predict=ROUNDING,
        measure=measure_two_numbers,
        domain=check_ladder,
        rule=HoldsIn(),
        quantity="distance to the nearest such matrix ÷ size",
        axis="scale",
        series="classes",
        twin="ladder.eq7.small",
        expected="failed",
        remark="g_j(y) = 1[j = y] − E[softmax_j(f) | y] has as many numbers as there are pairs (j, y).",
    )
)


register(
    stated.other(
        title="The gradient at the top of a small net as two numbers",
        statement=(
            "Where activations at the top are of size s, g_j(y) is off from a₁1[j = y] − a₂1[j ≠ y] by the "
            "order of s."
        ),
        grid=grid(shape="tree", classes=3, loss="softmax", scale=SCALES, trials=200),
        quick=grid(shape="tree", classes=3, loss="softmax", scale=SCALES, trials=60),
        predict=scale_of,
        rule=Exponent(Along("scale")),
        reading="corrected",
        remark="With a₁ = 1 − 1/m and a₂ = 1/m for m classes: a random start with small weights.",
    )
)
