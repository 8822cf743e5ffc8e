"""Ladders that lose information on the way up: which conditions fail, by how much, and what that does.

Brute force is autograd on every input. The last claims are about inputs that are drawn instead of enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb, erf, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from ...ladder import (
    Pass,
    Sides,
    Student,
    Teacher,
    broadness_gap,
    compare,
    enumerate_teacher,
    propagate,
    random_student,
    random_table,
    reformulate,
    sample_teacher,
    tree,
    windows,
)
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting
from ._draws import PAPER, chances, check_choice, check_counts, normal
from ._exact import GAP
from ._ladders import DRAWS, ROUNDING, TRIALS, apart, drawn_student

RULES = ("and", "or", "xor", "majority")
MOST_BITS = 12  # a table of 2^12 inputs for each pair of events
SMALL = windows(3, 2)  # where inputs are drawn
FEWEST = 100  # inputs drawn: each event has some, and its mean is near to normal
STILL = 1e-8  # a standard error below this is the rounding of a difference of squares


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


def _distance(given: Tensor, also: Tensor, contents: Tensor, p: Tensor) -> float:
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
    return [_distance(teacher.labels, teacher.events[child], teacher.contents(graph.top), p)] * setting[
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
def measure_told(setting: Setting, generator: torch.Generator) -> list[float]:
    """The share of random tables of which it is right that broadness holds where, and only where, no two
    joint events of the children are taken for one."""
    graph, joint = tree(2), setting["events"] ** 2
    shares = []
    for _ in range(setting["trials"]):
        right = 0
        for _ in range(setting["draws"]):
            least = 1 if float(torch.rand(1, generator=generator)) < 0.5 else joint
            count = int(torch.randint(least, joint + 1, (1,), generator=generator))
            table = random_table(joint, count, generator)
            p = chances(joint, generator=generator)
            teacher = enumerate_teacher(graph, table, values=setting["events"], p=p)
            holds = max(broadness_gap(teacher, *edge) for edge in graph.edges) <= ROUNDING
            right += holds == (len(table.unique()) == joint)
        shares.append(right / setting["draws"])
    return shares


def _teacher(setting: Setting, generator: torch.Generator) -> Teacher:
    """A tree over independent bits; every region sums up its children by the same rule."""
    graph = tree(setting["leaves"], setting["branching"])
    return enumerate_teacher(graph, setting["rule"], p=_independent(setting["leaves"], generator))


def _living(setting: Setting, generator: torch.Generator) -> tuple[Teacher, Student, Pass]:
    """A ladder, and a student on it none of whose regions is dead: there would be nothing to compare."""
    for _ in range(DRAWS):
        teacher = _teacher(setting, generator)
        student = drawn_student(teacher.model, setting, generator)
        seen = propagate(teacher, student)
        if all(bool(gate.any()) for gate in seen.gate.values()):
            return teacher, student, seen
    raise BadInput("students without a dead region", got=f"none in {DRAWS} draws", do="raise nodes")


@measurement("ladder.lossy.measure_lossy")
@per_trial
def measure_lossy(setting: Setting, generator: torch.Generator) -> float:
    """The gap of ΔW through the whole recursion, which is given the true gates."""
    teacher, student, seen = _living(setting, generator)
    gates = {name: teacher.mean(gate.to(torch.float64), name) for name, gate in seen.gate.items()}
    events = reformulate(teacher.model, student, gates=gates)
    return apart((seen.step.weights[edge], events.step.weights[edge]) for edge in teacher.graph.edges)


@measurement("ladder.lossy.measure_upward")
@per_trial
def measure_upward(setting: Setting, generator: torch.Generator) -> float:
    """The gap of F through the whole recursion."""
    teacher = _teacher(setting, generator)
    student = drawn_student(teacher.model, setting, generator)
    seen, events = propagate(teacher, student), reformulate(teacher.model, student)
    return apart((teacher.mean(seen.active[name], name), events.active[name]) for name in student.inner)


@measurement("ladder.lossy.measure_downward")
@per_trial
def measure_downward(setting: Setting, generator: torch.Generator) -> float:
    """The gap of P(z_β)E[g_α | z_β] and P_αβᵀG̃_α, edge by edge, in the same place."""
    teacher = _teacher(setting, generator)
    gradient = propagate(teacher, drawn_student(teacher.model, setting, generator)).gradient
    pairs = []
    for parent, child in teacher.graph.edges:
        events = teacher.conditional(parent, child).transposed(teacher.total(gradient[parent], parent))
        pairs.append((teacher.total(gradient[parent], child), events))
    return apart(pairs)


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
    return [_distance(teacher.events["1.0"], teacher.labels, contents, teacher.p)] * setting["trials"]


@measurement("ladder.lossy.measure_unfocused")
def measure_unfocused(setting: Setting, generator: torch.Generator) -> list[float]:
    """|E[f_β | z_α] − P_αβF_β| ÷ |w|, the largest, for a node that shows w times the first bit."""
    teacher, found = _tied(setting), []
    for _ in range(setting["trials"]):
        student = drawn_student(teacher.model, {"nodes": 1, "activation": "linear"}, generator)
        size = normal(1, 1, generator=generator)
        first = torch.cat([torch.zeros_like(size), size])
        weights = {**student.weights, ("1.0", "0.0"): first, ("1.0", "0.1"): torch.zeros_like(first)}
        compared = compare(teacher, replace(student, weights=weights))
        found.append(compared.edges["2.0", "1.0"].forward.gap.largest / abs(float(size)))
    return found


def half_rho(setting: Setting) -> float:
    return float(setting["rho"] / 2)


@measurement("ladder.lossy.measure_fourth")
def measure_fourth(setting: Setting, generator: torch.Generator) -> list[float]:
    """What (PF)ᵀG̃ lacks of ΔW, ÷ −w, where a linear node sums even bits with the same weight w."""
    graph = tree(setting["bits"], setting["bits"])
    teacher, found = enumerate_teacher(graph, "and"), []
    for _ in range(setting["trials"]):
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
        found.append(float(lacking[1, 0] / -size))
    return found


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
    teacher = _teacher(setting, generator)
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
    teacher = _teacher(setting, generator)
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
    teacher, student, seen = _living(setting, generator)
    events = reformulate(teacher.model, student)
    hidden = [name for name in student.inner if name != teacher.graph.top]
    true = torch.cat([teacher.total(seen.gradient[name], name).flatten() for name in hidden])
    stated = torch.cat([events.gradient[name].flatten() for name in hidden])
    return float((true - stated).norm() / true.norm())


# Inputs that are drawn

BIASED = torch.tensor([0.3, 0.6, 0.8], dtype=torch.float64)


def _draw(count: int, generator: torch.Generator) -> Tensor:
    return (torch.rand(count, 3, generator=generator, dtype=torch.float64) < BIASED).long()


def _drawn(setting: Setting, generator: torch.Generator) -> Iterator[tuple[list[Sides], list[Sides]]]:
    """The same messages of every edge from drawn inputs and from all of them; one student in all trials."""
    whole = enumerate_teacher(SMALL, "majority", p=bits_law(BIASED))
    student = drawn_student(whole.model, setting, torch.Generator().manual_seed(0))

    def messages(teacher: Teacher) -> list[Sides]:
        return [getattr(edge, setting["message"]) for edge in compare(teacher, student).edges.values()]

    exact = messages(whole)
    for _ in range(setting["trials"]):
        some = sample_teacher(SMALL, "majority", count=setting["count"], draw=_draw, generator=generator)
        yield messages(some), exact


@measurement("ladder.lossy.measure_units")
def measure_units(setting: Setting, generator: torch.Generator) -> list[float]:
    """The share of numbers that are within two of their stated standard errors of the truth."""
    found = []
    for drawn, exact in _drawn(setting, generator):
        within = []
        for some, whole in zip(drawn, exact, strict=True):
            assert some.error is not None
            live = some.error > STILL  # others do not vary
            within.append(((some.brute - whole.brute).abs() <= 2 * some.error)[live])
        found.append(float(torch.cat(within).to(torch.float64).mean()))
    return found


@measurement("ladder.lossy.measure_sampled")
def measure_sampled(setting: Setting, generator: torch.Generator) -> list[float]:
    """‖drawn − exact‖ ÷ ‖exact‖."""
    found = []
    for drawn, exact in _drawn(setting, generator):
        off = torch.cat(
            [(some.brute - whole.brute).flatten() for some, whole in zip(drawn, exact, strict=True)]
        )
        found.append(float(off.norm() / torch.cat([whole.brute.flatten() for whole in exact]).norm()))
    return found


def root(setting: Setting) -> float:
    return float(1 / sqrt(setting["count"]))


BOTH = tuple({"branching": branching, "leaves": leaves} for branching, leaves in ((2, 4), (2, 8), (3, 9)))


def _ladders(
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
        grid=_ladders(RULES, TRIALS),
        quick=_ladders(RULES, 15, BOTH[:1]),
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
        grid=_ladders(("full",), TRIALS),
        quick=_ladders(("full",), 15, BOTH[:1]),
        reading="exact",
    )
)

stated = register(
    Claim(
        id="ladder.thm2.upward",
        title="Focus alone carries activations up",
        statement=(
            "In a tree over independent inputs focus holds whatever is lost, and without ReLU F_α = Σ "
            "P_αβF_βW_βα is exact: broadness is not needed for the forward half of Theorem 2."
        ),
        source=f"{PAPER}, Theorem 2, eqs 20–30",
        grid=_ladders(RULES, TRIALS, activation="linear"),
        quick=_ladders(RULES, 15, BOTH[:1], activation="linear"),
        predict=ROUNDING,
        measure=measure_upward,
        domain=check_lossy,
        rule=HoldsIn(),
        quantity=f"F: {GAP}",
        axis="leaves",
        series="rule",
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

register(
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
    Claim(
        id="ladder.focus.forward",
        title="What the loss of focus does to activations",
        statement="There E[f_β | z_α] is wρ/2 from P_αβF_β, for a node that shows w times the hidden bit.",
        source=f"{PAPER}, Theorem 2, without focus",
        grid=grid(rho=(0.1, 0.3, 0.5, 1.0), trials=20),
        quick=grid(rho=(0.1, 1.0), trials=5),
        predict=half_rho,
        measure=measure_unfocused,
        domain=check_lossy,
        rule=Equal(tolerance=1e-9),  # every trial is the same number, to rounding
        quantity="largest |E[f_β | z_α] − P_αβF_β| ÷ |w|",
        axis="rho",
        reading="exact",
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

register(
    Claim(
        id="ladder.decorrelation",
        title="What a gate that is not settled does",
        statement=(
            "E[f | z] = D E[f_raw | z] + D(1 − D)(E[f_raw | open, z] − E[f_raw | shut, z]), D the share of "
            "open gates."
        ),
        source=f"{PAPER}, decorrelation in Theorem 2",
        grid=_ladders(RULES, TRIALS, BOTH[1:]),
        quick=_ladders(RULES, 15, BOTH[1:2]),
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

register(
    Claim(
        id="ladder.decorrelation.settled",
        title="Decorrelation means that gates are settled",
        statement=(
            "For a ReLU f_raw and its gate are uncorrelated given z where, and only where, z settles the "
            "gate."
        ),
        source=f"{PAPER}, decorrelation in Theorem 2",
        grid=_ladders(RULES, 40, BOTH[1:]),
        quick=_ladders(RULES, 10, BOTH[1:2]),
        predict=1.0,
        measure=measure_settled,
        domain=check_lossy,
        rule=Equal(),
        quantity="share of nodes and events where that is right",
        axis="leaves",
        series="rule",
        reading="exact",
    )
)

register(
    Claim(
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
            for setting in _ladders(RULES, 30, BOTH[1:])
        ),
        quick=_ladders(RULES, 10, BOTH[1:2], norm="before"),
        predict=1.0,
        measure=measure_projected,
        domain=check_lossy,
        # rounding divided by σ, where F of both events agree in the first digits
        rule=Equal(tolerance=1e-6),
        quantity="‖G̃ − eq. 12's G̃‖ ÷ ‖G̃‖",
        axis="leaves",
        series="rule",
        reading="exact",
        remark=(
            "So AND, OR, XOR and majority ladders with batch norm do not train below their top by the matrix "
            "dynamics, while the net does. Where events tell all, both are 0 there."
        ),
    )
)

register(
    Claim(
        id="ladder.sampled.errors",
        title="Standard errors of drawn inputs",
        statement=(
            "Averages over drawn inputs are within two of their stated standard errors of the exact ones "
            "with probability 0.954."
        ),
        source="of this library; the paper takes frequencies for probabilities",
        grid=grid(message=("forward", "backward", "weight"), count=1000, nodes=3, trials=250),
        quick=grid(message="weight", count=1000, nodes=3, trials=40),
        predict=erf(sqrt(2)),
        measure=measure_units,
        domain=check_lossy,
        # the normal law is off by as much for the least frequent event here, of some 50 inputs
        rule=Equal(tolerance=0.01),
        quantity="share within two standard errors",
        axis="message",
        reading="beyond the paper",
    )
)

COUNTS = (250, 500, 1000, 2000, 4000, 8000)
register(
    Claim(
        id="ladder.sampled.rate",
        title="Drawn inputs approach all inputs",
        statement="ΔW from n drawn inputs is off by the order of 1/√n.",
        source="of this library; the paper takes frequencies for probabilities",
        grid=grid(message="weight", count=COUNTS, nodes=3, trials=600),
        quick=grid(message="weight", count=COUNTS, nodes=3, trials=10),
        predict=root,
        measure=measure_sampled,
        domain=check_lossy,
        rule=Exponent(Along("count")),
        quantity="‖ΔW drawn − ΔW‖ ÷ ‖ΔW‖",
        axis="count",
        reading="beyond the paper",
    )
)
