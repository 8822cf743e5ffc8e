"""Theorem 1 and the gradient bound: near the identity, linear residual nets have no bad critical points.

Each beside what limits it: the plain net, the world beyond ‖A‖ = 1, the boundary of the region. Not for which
targets can be reached inside the region (Theorem 2).
"""

from __future__ import annotations

from math import cos, inf, log, log1p, pi, sin, sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from ...identity import Landscape, critical_point, descend, spectral_norms
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, HoldsIn
from ..results import Setting

PAPER = "Hardt & Ma 2016, as reviewed in 2018"

# Of f/f_opt. A gradient that counts as zero (1e-10 of the problem's scale) leaves less than this of excess
# risk, by eq. 6 as corrected, at every setting here; most are polished to 1e-15.
ROUNDING = 1e-9
SEARCHES = 100  # starts for one critical point in the region, before it is said that there is none
NEAR = 0.4  # targets are made of layers with ‖A_i‖ up to this
SPARE = 1.02  # τ over what a rotation needs
SIZE = 0.8  # ‖R‖, so that the plain net too can reach it with ‖A_i‖ < 1


def check_net(setting: Setting) -> None:
    for name in ("d", "layers"):
        if not isinstance(setting[name], int) or setting[name] < 1:
            raise BadInput(f"{name} ≥ 1", got=setting[name], do=f"raise {name}")
    if not 0 <= setting.get("tau", 0.0) < 1:
        raise BadInput("τ in [0, 1), where Theorem 1 speaks", got=setting["tau"], do="lower tau")
    if not setting.get("condition", 1.0) >= 1:
        raise BadInput("a condition number ≥ 1", got=setting["condition"], do="raise condition")
    if not setting.get("sigma", 1.0) > 0:
        raise BadInput("σ_min(Σ) > 0, or eq. 6 says nothing", got=setting["sigma"], do="raise sigma")


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def _identity(setting: Setting) -> Tensor:
    return torch.eye(setting["d"], dtype=torch.float64)


def _layers(setting: Setting, largest: float, generator: torch.Generator) -> Tensor:
    """A_1 to A_l in random directions, each ‖A_i‖ uniform below `largest`."""
    drawn = _normal((setting["layers"], setting["d"], setting["d"]), generator)
    sizes: Tensor = largest * _uniform((setting["layers"],), generator) / spectral_norms(drawn)
    return drawn * sizes[:, None, None]


def _target(setting: Setting, generator: torch.Generator) -> Tensor:
    """R = c(I + B_l)⋯(I + B_1), which the residual net reaches with ‖A‖ < 0.7."""
    product = _identity(setting)
    for layer in _layers(setting, NEAR, generator):
        product = product + layer @ product
    scaled: Tensor = SIZE * product / torch.linalg.matrix_norm(product, 2)
    return scaled


def _covariance(setting: Setting, generator: torch.Generator) -> Tensor:
    """Σ with eigenvalues from `sigma` to `condition`·`sigma`, both taken, the smallest on the first axis."""
    axes, _ = torch.linalg.qr(_normal((setting["d"], setting["d"]), generator))
    values = 1 + (setting["condition"] - 1) * _uniform((setting["d"],), generator)
    values[-1], values[0] = setting["condition"], 1
    covariance: Tensor = (axes * (setting["sigma"] * values)) @ axes.mT
    return covariance


@measurement("identity.landscape.measure_critical")
@per_trial
def measure_critical(setting: Setting, generator: torch.Generator) -> float:
    """The largest f/f_opt of `found` critical points, each of a problem of its own; with noise ζ ~ N(0, I).

    Starts are random in ‖A‖ < 1. Only critical points with ‖A‖ ≤ τ count; without a τ all do.
    """
    residual = setting["net"] == "residual"

    def search() -> float:
        for _ in range(SEARCHES):
            covariance, target = _covariance(setting, generator), _target(setting, generator)
            start = _layers(setting, 1.0, generator)
            point = critical_point(start, target, covariance, residual=residual)
            if point.critical and point.norm <= setting.get("tau", inf):
                return 1 + point.excess / float(setting["d"])
        raise BadInput("critical points in the region", got=f"none from {SEARCHES} starts", do="raise tau")

    return max(search() for _ in range(setting["found"]))


def _rotation(angle: float) -> Tensor:
    return torch.tensor([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]], dtype=torch.float64)


def check_turn(setting: Setting) -> None:
    check_net(setting)
    if setting["d"] != 2:
        raise BadInput("d = 2, where rotations have a sense", got=setting["d"], do="leave d as it is")
    if not 0 < setting["turn"] <= 1 or 2 * SPARE * sin(setting["turn"] * pi / setting["layers"] / 2) >= 1:
        raise BadInput(
            "a turn in (0, 1], as a share of π, by layers with ‖A_i‖ < 1",
            got=f"{setting['turn']} by {setting['layers']} layers",
            do="lower turn or raise layers",
        )


@measurement("identity.landscape.measure_projected")
@per_trial
def measure_projected(setting: Setting, generator: torch.Generator) -> float:
    """f/f_opt where projected descent ends, with R a rotation of the plane and a start turned the other way.

    R = (I + A)^l for the l-th part of the rotation, with ‖A‖ = 2 sin(angle/2l), a little less than τ.
    """
    identity, layers = _identity(setting), setting["layers"]
    part = setting["turn"] * pi / layers
    tau = 2 * SPARE * sin(part / 2)
    noise = 0.05 * tau * _normal((layers, 2, 2), generator)
    start = _rotation(-0.9 * part) - identity + noise
    end = descend(start, _rotation(layers * part), identity, steps=setting["steps"], tau=tau)
    return float(1 + end.losses[-1] / setting["d"])


@measurement("identity.landscape.measure_inverse_slope")
@per_trial
def measure_inverse_slope(setting: Setting, generator: torch.Generator) -> float:
    """l(1 − τ)^{2l−2}(f − f_opt)/‖∇f‖² with τ = ‖A‖: the largest of some draws of A, R and Σ.

    The A_i are −τI plus noise of all sizes, cut to ‖A_i‖ ≤ τ; R is normal.
    """
    layers, d = setting["layers"], setting["d"]

    def draw() -> float:
        covariance, target = _covariance(setting, generator), _normal((d, d), generator)
        landscape = Landscape(target, covariance)
        noise = 10 ** (3 * float(_uniform((1,), generator)) - 2) * _normal((layers, d, d), generator)
        weights = landscape.project(noise - setting["tau"] * _identity(setting), setting["tau"])
        room = 1 - float(spectral_norms(weights).max())
        slope = float(landscape.gradient(weights).square().sum())
        return float(layers * room ** (2 * layers - 2) * landscape.risk(weights) / slope)

    return max(draw() for _ in range(setting["draws"]))


def inverse_printed(setting: Setting) -> float:
    return float(1 / (4 * setting["sigma"] ** 2))


def inverse_corrected(setting: Setting) -> float:
    return float(1 / (4 * setting["sigma"]))


@measurement("identity.landscape.measure_slope")
@per_trial
def measure_slope(setting: Setting, generator: torch.Generator) -> float:
    """‖∇f‖²/(f − f_opt) where all A_i = −τI and M − R sees only the axis of Σ with the least spread."""
    identity = _identity(setting)
    covariance = _covariance(setting, generator)
    least_axis = torch.linalg.eigh(covariance).eigenvectors[:, 0]
    weights = -setting["tau"] * identity.expand(setting["layers"], -1, -1)
    product = (1 - setting["tau"]) ** setting["layers"] * identity
    target = product + torch.outer(_normal((setting["d"],), generator), least_axis)
    landscape = Landscape(target, covariance)
    return float(landscape.gradient(weights).square().sum() / landscape.risk(weights))


def slope_corrected(setting: Setting) -> float:
    layers = setting["layers"]
    return float(4 * layers * (1 - setting["tau"]) ** (2 * layers - 2) * setting["sigma"])


def smoothness(setting: Setting) -> float:
    """What ‖∇²f‖ is at most where ‖A‖ ≤ τ and f − f_opt ≤ `excess`.

    f''[D, D] = 2‖M'Σ^½‖² + 2⟨EΣ, M''⟩ with E = M − R, ‖M'‖_F ≤ √l(1 + τ)^{l−1}‖D‖,
    ‖M''‖_F ≤ (l − 1)(1 + τ)^{l−2}‖D‖² and ‖EΣ‖_F ≤ √(‖Σ‖(f − f_opt)).
    """
    layers, top, large = setting["layers"], setting["condition"] * setting["sigma"], 1 + setting["tau"]
    bending = 2 * (layers - 1) * large ** (layers - 2) * sqrt(top * setting["excess"])
    return float(2 * layers * large ** (2 * layers - 2) * top + bending)


@measurement("identity.landscape.measure_descent")
def measure_descent(setting: Setting, generator: torch.Generator) -> list[float]:
    """Steps that gradient descent takes for each factor e in f − f_opt, from A = 0, at rate 1/smoothness.

    Targets have f − f_opt = `excess` at the start; a run that leaves ‖A‖ ≤ τ does not count.
    """
    start = torch.zeros(setting["layers"], setting["d"], setting["d"], dtype=torch.float64)
    values: list[float] = []
    for _ in range(2 * setting["trials"]):
        covariance, drawn = _covariance(setting, generator), _normal((setting["d"], setting["d"]), generator)
        scale = sqrt(setting["excess"] / float((drawn @ covariance * drawn).sum()))
        target = _identity(setting) + scale * drawn
        run = descend(start, target, covariance, lr=1 / smoothness(setting), steps=setting["steps"])
        if max(run.norms) <= setting["tau"]:
            values.append(len(run.lrs) / log(run.losses[0] / run.losses[-1]))
        if len(values) == setting["trials"]:
            return values
    raise BadInput("runs that stay inside ‖A‖ ≤ τ", got="fewer than half", do="raise tau or lower excess")


def steps_corrected(setting: Setting) -> float:
    """f − f_opt shrinks by 1 − slope/(2·smoothness) a step, where ‖∇f‖² ≥ slope·(f − f_opt)."""
    return float(-1 / log1p(-slope_corrected(setting) / (2 * smoothness(setting))))


# HoldsIn asks for 104 trials without exception; up to 140 or so, one exception is enough for no verdict.
TRIALS = 110
SIZES = (
    {"d": 2, "layers": 2, "tau": 0.95},
    {"d": 2, "layers": 3, "tau": 0.95},
    {"d": 3, "layers": 3, "tau": 0.95},
    {"d": 3, "layers": 4, "tau": 0.95},
)


def _searches(net: str, sizes: tuple[Setting, ...], trials: int, found: int) -> tuple[Setting, ...]:
    more = {"net": net, "sigma": 0.3, "condition": 10.0, "trials": trials, "found": found}
    return tuple({**size, **more} for size in sizes)


stated = register(
    Claim(
        id="identity.thm1",
        title="Critical points near the identity",
        statement=(
            "Every critical point of f(A) = E‖y − (I + A_l)⋯(I + A_1)x‖² with ‖A‖ ≤ τ < 1 is a global "
            "minimum: there, f = f_opt."
        ),
        source=f"{PAPER}, Theorem 1",
        place=(
            "“all critical points of the objective function f(·) are global minimum”, Section 2, Theorem 1, "
            "lines 48 to 52"
        ),
        grid=_searches("residual", SIZES, TRIALS, 2),
        quick=_searches("residual", SIZES[:2], 30, 1),
        predict=1 + ROUNDING,
        measure=measure_critical,
        domain=check_net,
        rule=HoldsIn(),
        quantity="largest f/f_opt of the critical points found",
        axis="layers",
        series="d",
        remark=(
            "Found by Levenberg–Marquardt on the gradient from random starts in ‖A‖ < 1. It goes to saddles "
            "as gladly as to minima: in the plain net, and beyond ‖A‖ = 1, the same search finds them."
        ),
    )
)

PLAIN = _searches("plain", SIZES, 40, 1)
thm1_plain = register(
    stated.also(
        id="identity.thm1.plain",
        title="Critical points of the plain deep linear net",
        statement=(
            "Every critical point of E‖y − A_l⋯A_1x‖² with ‖A‖ ≤ τ < 1 is a global minimum: Theorem 1 "
            "without the identity."
        ),
        source=f"{PAPER}, Theorem 1, said of the plain net",
        grid=PLAIN,
        quick=_searches("plain", SIZES[:2], 30, 1),
        quantity=stated.quantity,
        reading="beyond the paper",
        expected="failed",
        remark=(
            "A = 0 and other weights with a product of low rank are saddles, although R can be reached with "
            "‖A‖ ≤ τ: this is what the identity is for."
        ),
    )
)

ANYWHERE = tuple({"d": size["d"], "layers": size["layers"]} for size in SIZES)
register(
    thm1_plain.also(
        id="identity.thm1.anywhere",
        title="Critical points far from the identity",
        statement=(
            "Every critical point of f(A) = E‖y − (I + A_l)⋯(I + A_1)x‖², whatever ‖A‖ is, is a global "
            "minimum: Theorem 1 without its region."
        ),
        source=f"{PAPER}, Theorem 1, without ‖A‖ ≤ τ",
        grid=_searches("residual", ANYWHERE, TRIALS, 2),
        quick=_searches("residual", ANYWHERE[1:2], 30, 2),
        expected="failed",
        remark=(
            "From ‖A‖ = 1 on, I + A_i can be singular, and then there are saddles: all A_i = −I is one, for "
            "two layers or more. So no τ ≥ 1 will do."
        ),
    )
)

TURNS = grid(d=2, layers=(4, 6, 8), turn=(0.8, 0.9), steps=300, trials=40)
register(
    Claim(
        id="identity.thm1.projected",
        title="Descent with projection to the region",
        statement=(
            "Where R can be reached with ‖A‖ ≤ τ < 1, gradient descent with projection to this region comes "
            "to f = f_opt from any start in it."
        ),
        source=f"{PAPER}, Theorem 1, said of the constrained problem",
        grid=TURNS,
        quick=grid(d=2, layers=4, turn=(0.8, 0.9), steps=300, trials=6),
        predict=1 + ROUNDING,
        measure=measure_projected,
        domain=check_turn,
        rule=HoldsIn(),
        quantity="f/f_opt at the end",
        axis="layers",
        series="turn",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "Theorem 1 speaks of critical points of f. On the boundary the constrained problem has minima "
            "that are none: while ‖A_i‖ < 1 the net keeps its sense of rotation, and started the wrong way "
            "round it would have to turn farther than τ allows. Without projection the same starts reach "
            "f_opt."
        ),
    )
)

SLOPES = grid(
    d=3, layers=(2, 5), tau=(0.1, 0.5), sigma=(0.1, 1.0, 10.0), condition=3.0, draws=20, trials=TRIALS
)
SLOPES_QUICK = grid(d=3, layers=(2, 5), tau=(0.1, 0.5), sigma=(0.1, 10.0), condition=3.0, draws=10, trials=20)
stated = register(
    Claim(
        id="identity.eq6",
        title="Gradient bound, as printed",
        statement="Where ‖A‖ ≤ τ, ‖∇f‖²_F ≥ 4l(1 − τ)^{2l−2} σ_min(Σ)² (f − f_opt).",
        source=f"{PAPER}, eq. 6",
        place="“‖∇f(A)‖²_F ≥ 4l(1 − τ)^{2l−2} σ_min(Σ)² (f(A) − f^opt)”, Section 2, eq. 6, line 70",
        grid=SLOPES,
        quick=SLOPES_QUICK,
        predict=inverse_printed,
        measure=measure_inverse_slope,
        domain=check_net,
        rule=HoldsIn(),
        quantity="l(1 − τ)^{2l−2}(f − f_opt)/‖∇f‖², to be at most 1/(4σ_min²)",
        axis="sigma",
        series="layers",
        twin="identity.eq6.corrected",
        expected="failed",
        remark=(
            "The unit is wrong: with Σ ten times as large, ‖∇f‖² is a hundred times as large, and f − f_opt "
            "ten times. A = 0, Σ = 10I, R = 2I, d = 3, l = 5 has 6000 on the left and 60000 on the right."
        ),
    )
)

register(
    stated.other(
        title="Gradient bound",
        statement="Where ‖A‖ ≤ τ, ‖∇f‖²_F ≥ 4l(1 − τ)^{2l−2} σ_min(Σ)(f − f_opt).",
        source=f"{PAPER}, eq. 6, with the first power of σ_min",
        predict=inverse_corrected,
        reading="corrected",
        quantity="l(1 − τ)^{2l−2}(f − f_opt)/‖∇f‖², to be at most 1/(4σ_min)",
    )
)

register(
    Claim(
        id="identity.eq6.tight",
        title="Gradient bound: where it is an equality",
        statement=(
            "Where all A_i = −τI and M − R maps all but the axis of Σ's smallest eigenvalue to 0, "
            "‖∇f‖²_F = 4l(1 − τ)^{2l−2} σ_min(Σ)(f − f_opt)."
        ),
        source=f"{PAPER}, eq. 6, as corrected",
        grid=grid(
            d=(1, 3, 6), layers=(1, 2, 5, 10), tau=(0.0, 0.3), sigma=(0.1, 10.0), condition=5.0, trials=10
        ),
        quick=grid(d=3, layers=(1, 5), tau=(0.0, 0.3), sigma=(0.1, 10.0), condition=5.0, trials=5),
        predict=slope_corrected,
        measure=measure_slope,
        domain=check_net,
        rule=Equal(tolerance=1e-9),  # every trial is the same number, to rounding
        quantity="‖∇f‖²/(f − f_opt)",
        axis="layers",
        series="tau",
        reading="exact",
        remark="So neither the power of 1 − τ nor the constant can be better. With Σ = sI any R will do.",
    )
)


def _descents(
    layers: tuple[int, ...], condition: tuple[float, ...], steps: int, trials: int
) -> tuple[Setting, ...]:
    """τ = 1/(2l), the size that Theorem 2 speaks of."""
    return tuple(
        {**setting, "tau": 0.5 / setting["layers"]}
        for setting in grid(
            d=3, layers=layers, sigma=1.0, condition=condition, excess=0.1, steps=steps, trials=trials
        )
    )


register(
    Claim(
        id="identity.convergence",
        title="Gradient descent converges linearly",
        statement=(
            "Gradient descent at rate 1/L, L the smoothness of f where ‖A‖ ≤ τ, takes at most "
            "−1/ln(1 − 2l(1 − τ)^{2l−2}σ_min(Σ)/L) steps for each factor e in f − f_opt, if it stays inside."
        ),
        source=f"{PAPER}, below Theorem 2, with eq. 6 as corrected",
        grid=_descents((2, 4, 8), (1.0, 4.0), 100, TRIALS),
        quick=_descents((2, 4), (4.0,), 40, 20),
        predict=steps_corrected,
        measure=measure_descent,
        domain=check_net,
        rule=HoldsIn(),
        quantity="steps a factor e in f − f_opt",
        axis="layers",
        series="condition",
        reading="corrected",
        remark="From A = 0, which is the identity map, to targets R near it; all runs stay inside.",
    )
)
