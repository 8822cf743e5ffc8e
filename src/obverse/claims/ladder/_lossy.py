"""Ladders that lose information on the way up: what that does to broadness, to F, G̃ and ΔW.

Brute force is autograd on every input. Not for one condition at a time (see conditions).
"""

from __future__ import annotations

from dataclasses import replace
from math import comb

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import (
    Pass,
    Student,
    Teacher,
    broadness_gap,
    enumerate_teacher,
    propagate,
    random_table,
    reformulate,
    tree,
)
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts
from ._exact import GAP
from ._ladders import DRAWS, ROUNDING, TRIALS, apart, drawn_student

RULES = ("and", "or", "xor", "majority")
MOST_BITS = 12  # a table of 2^12 inputs for each pair of events
FEWEST = 100  # inputs drawn: each event has some, and its mean is near to normal


def check_lossy(setting: Setting) -> None:
    check_counts(setting)
    for name, choices in (
        ("rule", RULES if "bits" in setting else (*RULES, "full")),
        ("norm", ("none", "before", "after")),
        ("activation", ("relu", "linear")),
        ("message", ("forward", "backward", "weight")),
    ):
        if name in setting:
            check_choice(setting, name, *choices)
    for name, least, most in (
        ("bits", 2, MOST_BITS),
        ("leaves", 2, MOST_BITS),
        ("branching", 2, MOST_BITS),
        ("events", 2, MOST_BITS),
        ("count", FEWEST, 2**20),
    ):
        if not least <= setting.get(name, least) <= most:
            raise BadInput(f"{name} from {least} to {most:,}", got=setting[name], do=f"change {name}")
    if not 0 < setting.get("chance", 0.5) < 1 or not 0 <= setting.get("rho", 0.0) <= 1:
        raise BadInput("a chance in (0, 1) and ρ in [0, 1]", got="others", do="change chance or rho")


def bits_law(chance: Tensor) -> Tensor:
    """P of every input of independent bits, the last varying fastest."""
    p = torch.ones(1, dtype=torch.float64)
    for one in chance:
        p = torch.kron(p, torch.stack([1 - one, one]))
    return p


def _independent(count: int, generator: torch.Generator) -> Tensor:
    """Independent bits with chances from 0.2 to 0.8."""
    return bits_law(0.2 + 0.6 * torch.rand(count, generator=generator, dtype=torch.float64))


def total_variation(given: Tensor, also: Tensor, contents: Tensor, p: Tensor) -> float:
    """The total variation distance between P(x | given, also) and P(x | given), averaged over both."""
    shape = [int(part.max()) + 1 for part in (given, also, contents)]
    joint = p.new_zeros(shape[0] * shape[1] * shape[2])
    joint.index_add_(0, (given * shape[1] + also) * shape[2] + contents, p)
    joint = joint.view(shape)
    both, alone = joint.sum(2), joint.sum((1, 2))
    shares = joint.sum(1) / alone[:, None]  # P(x | given)
    return float((joint - both[:, :, None] * shares[:, None]).abs().sum() / 2)


@measurement("ladder.lossy.measure_broadness")
def measure_broadness(setting: Setting, generator: torch.Generator) -> list[float]:
    """The distance of P(x_α | z_α, z_β) and P(x_α | z_α), summed over every content of the region."""
    graph = tree(setting["bits"], setting["bits"])
    p = bits_law(torch.full((setting["bits"],), setting["chance"], dtype=torch.float64))
    teacher = enumerate_teacher(graph, setting["rule"], p=p)
    child = graph.lowest[int(torch.randint(setting["bits"], (1,), generator=generator))]
    return [total_variation(teacher.labels, teacher.events[child], teacher.contents(graph.top), p)] * setting[
        "trials"
    ]


def broadness(setting: Setting) -> float:
    """Σ_z 2P(1, z)P(0, z)/P(z) over the events of the region, P(b, z) that of a bit b with them."""
    count, chance = setting["bits"], setting["chance"]

    def binomial(least: int) -> float:
        """P(at least so many of the other bits are 1)."""
        others = count - 1
        return float(
            sum(
                comb(others, ones) * chance**ones * (1 - chance) ** (others - ones)
                for ones in range(least, others + 1)
            )
        )

    odd = (1 - (1 - 2 * chance) ** (count - 1)) / 2  # of the other bits
    # P(z_α = 1 | the bit is 1) and given that it is 0
    one, zero = {
        "and": (chance ** (count - 1), 0.0),
        "or": (1.0, 1 - (1 - chance) ** (count - 1)),
        "xor": (1 - odd, odd),
        "majority": (binomial(count // 2), binomial(count // 2 + 1)),
    }[setting["rule"]]
    total = 0.0
    for up, down in ((one, zero), (1 - one, 1 - zero)):
        first, second = chance * up, (1 - chance) * down
        total += 2 * first * second / (first + second)
    return total


@measurement("ladder.lossy.measure_told")
@per_trial
def measure_told(setting: Setting, generator: torch.Generator) -> float:
    """The share of random tables of which it is right that broadness holds where, and only where, no two
    joint events of the children are taken for one."""
    graph, joint = tree(2), setting["events"] ** 2
    right = 0
    for _ in range(setting["draws"]):
        least = 1 if float(torch.rand(1, generator=generator)) < 0.5 else joint
        count = int(torch.randint(least, joint + 1, (1,), generator=generator))
        table = random_table(joint, count, generator)
        p = chances(joint, generator=generator)
        teacher = enumerate_teacher(graph, table, values=setting["events"], p=p)
        holds = max(broadness_gap(teacher, *edge) for edge in graph.edges) <= ROUNDING
        right += holds == (len(table.unique()) == joint)
    return float(right / setting["draws"])


def drawn_teacher(setting: Setting, generator: torch.Generator) -> Teacher:
    """A tree over independent bits; every region sums up its children by the same rule."""
    graph = tree(setting["leaves"], setting["branching"])
    return enumerate_teacher(graph, setting["rule"], p=_independent(setting["leaves"], generator))


def living(setting: Setting, generator: torch.Generator) -> tuple[Teacher, Student, Pass]:
    """A ladder, and a student on it none of whose regions is dead: there would be nothing to compare."""
    for _ in range(DRAWS):
        teacher = drawn_teacher(setting, generator)
        student = drawn_student(teacher.model, setting, generator)
        seen = propagate(teacher, student)
        if all(bool(gate.any()) for gate in seen.gate.values()):
            return teacher, student, seen
    raise BadInput("students without a dead region", got=f"none in {DRAWS} draws", do="raise nodes")


@measurement("ladder.lossy.measure_lossy")
@per_trial
def measure_lossy(setting: Setting, generator: torch.Generator) -> float:
    """The gap of ΔW through the whole recursion, which is given the true gates."""
    teacher, student, seen = living(setting, generator)
    gates = {name: teacher.mean(gate.to(torch.float64), name) for name, gate in seen.gate.items()}
    events = reformulate(teacher.model, student, gates=gates)
    return apart((seen.step.weights[edge], events.step.weights[edge]) for edge in teacher.graph.edges)


@measurement("ladder.lossy.measure_upward")
@per_trial
def measure_upward(setting: Setting, generator: torch.Generator) -> float:
    """The gap of F through the whole recursion."""
    teacher = drawn_teacher(setting, generator)
    student = drawn_student(teacher.model, setting, generator)
    seen, events = propagate(teacher, student), reformulate(teacher.model, student)
    return apart((teacher.mean(seen.active[name], name), events.active[name]) for name in student.inner)


@measurement("ladder.lossy.measure_downward")
@per_trial
def measure_downward(setting: Setting, generator: torch.Generator) -> float:
    """The gap of P(z_β)E[g_α | z_β] and P_αβᵀG̃_α, edge by edge, in the same place."""
    teacher = drawn_teacher(setting, generator)
    gradient = propagate(teacher, drawn_student(teacher.model, setting, generator)).gradient
    pairs = []
    for parent, child in teacher.graph.edges:
        events = teacher.conditional(parent, child).transposed(teacher.total(gradient[parent], parent))
        pairs.append((teacher.total(gradient[parent], child), events))
    return apart(pairs)


# Inputs that are drawn


BOTH = tuple({"branching": branching, "leaves": leaves} for branching, leaves in ((2, 4), (2, 8), (3, 9)))


def ladder_settings(
    rules: tuple[str, ...], trials: int, sizes: tuple[Setting, ...] = BOTH, **more: str
) -> tuple[Setting, ...]:
    """Where a region has two children, majority is AND."""
    return tuple(
        {**size, "rule": rule, "trials": trials, **more}
        for size in sizes
        for rule in rules
        if rule != "majority" or size["branching"] == 3
    )


register(
    Claim(
        id="ladder.broadness",
        title="What a summary leaves open",
        statement=(
            "P(x_α | z_α, z_β) is E[1 − P(z_β | z_α)] from P(x_α | z_α) in total variation; for z_α the AND "
            "or OR of k even bits that is (2^{k−1} − 1)/(2^k − 1), for XOR ½."
        ),
        source=f"{PAPER}, broadness in Theorem 2",
        grid=grid(rule=RULES, bits=(2, 3, 5, 8), chance=(0.3, 0.5), trials=2),
        quick=grid(rule=RULES, bits=(2, 5), chance=(0.3, 0.5), trials=2),
        predict=broadness,
        measure=measure_broadness,
        domain=check_lossy,
        rule=Equal(tolerance=1e-9),  # every trial is the same number, to rounding
        quantity="total variation distance, averaged over (z_α, z_β)",
        axis="bits",
        series="rule",
        reading="exact",
        remark="The prediction counts bits, the measurement sums over every content of the region.",
    )
)

register(
    Claim(
        id="ladder.broadness.told",
        title="Broadness means that nothing is lost",
        statement=(
            "Broadness holds for all children of a region where, and only where, z_α tells all their events "
            "apart: z_β is a function of z_α."
        ),
        source=f"{PAPER}, broadness in Theorem 2",
        grid=grid(events=(2, 3, 4), draws=20, trials=20),
        quick=grid(events=(2, 3), draws=5, trials=10),
        predict=1.0,
        measure=measure_told,
        domain=check_lossy,
        rule=Equal(),
        quantity="share of random tables where that is right",
        axis="events",
        reading="exact",
        remark="So Theorem 2 covers no ladder that loses events on the way up, whatever the inputs' law.",
    )
)

stated = register(
    Claim(
        id="ladder.thm2.lossy",
        title="Steps from events, where events are lost on the way up",
        statement=(
            "Also where each z_α tells less than the events of its children, so that information is lost on "
            "the way up, the recursions for F, G̃ and ΔW describe gradient descent."
        ),
        source=(
            f"{PAPER}, Theorems 2 and 4, without their conditions; below Theorem 3 it is said that "
            "information is lost, not that the recursions then hold"
        ),
        grid=ladder_settings(RULES, TRIALS),
        quick=ladder_settings(RULES, 15, BOTH[:1]),
        predict=ROUNDING,
        measure=measure_lossy,
        domain=check_lossy,
        rule=HoldsIn(),
        quantity=f"ΔW: {GAP}",
        axis="leaves",
        series="rule",
        reading="beyond the paper",
        twin="ladder.thm2.lossless",
        expected="failed",
        remark=(
            "Off by about half of the largest ΔW, although the recursion is given the true share of open "
            "gates: broadness, decorrelation and the fourth condition all fail."
        ),
    )
)

register(
    stated.other(
        title="Steps from events, where no event is lost",
        statement="Where each z_α tells all events of its children, the recursions are exact.",
        source=f"{PAPER}, Theorems 3 and 4",
        grid=ladder_settings(("full",), TRIALS),
        quick=ladder_settings(("full",), 15, BOTH[:1]),
        reading="exact",
    )
)

stated = register(
    stated.also(
        id="ladder.thm2.upward",
        title="Focus alone carries activations up",
        statement=(
            "In a tree over independent inputs focus holds whatever is lost, and without ReLU F_α = Σ "
            "P_αβF_βW_βα is exact: broadness is not needed for the forward half of Theorem 2."
        ),
        source=f"{PAPER}, Theorem 2, eqs 20–30",
        grid=ladder_settings(RULES, TRIALS, activation="linear"),
        quick=ladder_settings(RULES, 15, BOTH[:1], activation="linear"),
        measure=measure_upward,
        quantity=f"F: {GAP}",
        reading="exact",
    )
)

register(
    replace(
        stated,
        id="ladder.thm2.downward",
        title="Without broadness gradients do not go down",
        statement="In a tree over independent inputs and without ReLU, P(z_β)E[g_α | z_β] = P_αβᵀG̃_α.",
        source=f"{PAPER}, Theorem 2, eqs 31–45, without broadness",
        measure=measure_downward,
        quantity=GAP,
        reading="beyond the paper",
        expected="failed",
        remark="The same ladders. Given z_α, the gradient still varies with the child's event that was lost.",
    )
)
