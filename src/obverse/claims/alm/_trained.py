"""Section 4: what training on images is said to show.

One recipe for all claims that train (two hidden layers, SGD with momentum, the defaults of `Settings`), each
trial with a net and a choice of training images of its own. Not for tuning: see experiments.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..._core import BadInput
from ...data import load
from ...training import ClassifierTask, Settings, fit_classifier
from ...weights import best_multiple, root_mean_square, shuffled
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._conditions import check_layer
from ._hidden import draw_hidden
from ._stream import draw_seed

SECTION = "Arora, Liang & Ma 2015, Section 4"
FULL: dict[str, Any] = {"data": "mnist", "labels": 5000, "width": 500, "epochs": 10, "rate": 0.05}
QUICK: dict[str, Any] = {"data": "digits", "labels": 1000, "width": 100, "epochs": 10, "rate": 0.05}
DRAWS = 64  # of h, for the recovery error of one matrix


def prepare(setting: Setting, seed: int, **changes: Any) -> ClassifierTask:
    """A net about to be trained by the recipe.

    Nets with the same seed see the same images in the same order, whatever else is changed. The loss is
    divided by 1 + its weight of shadows: otherwise a weight is a larger step as well.
    """
    settings = Settings(
        data=setting["data"],
        train_size=setting["labels"],
        hidden=(setting["width"], setting["width"]),
        epochs=setting["epochs"],
        lr=setting["rate"],
        evaluate_every=setting["epochs"],
        normalize=True,
        seed=seed,
        **{"weight": 0.0, **changes},
    )
    return ClassifierTask(settings, load(settings.data))


def train(setting: Setting, seed: int, **changes: Any) -> tuple[ClassifierTask, dict[str, Any]]:
    """A net trained by the recipe, and its errors at the end: on test images, on their shadows."""
    task = prepare(setting, seed, **changes)
    return task, fit_classifier(task)[-1]


def error_ratio(above: float, below: float) -> float:
    if not below > 0:
        raise BadInput("wrong answers to compare", got="none", do="take harder images or fewer epochs")
    return above / below


@measurement("alm.trained.measure_tracking")
@per_trial
def measure_tracking(setting: Setting, generator: torch.Generator) -> float:
    """The larger over the smaller of a net's errors on test images and on their shadows."""
    _, found = train(setting, draw_seed(generator), weight=setting["weight"])
    pair = found["test_error"], found["shadow_error"]
    return error_ratio(max(pair), min(pair))


@measurement("alm.trained.measure_gain")
@per_trial
def measure_gain(setting: Setting, generator: torch.Generator) -> float:
    """Test error with shadows over test error without, paired by seed."""
    return _paired(setting, generator, weight=setting["weight"])


@measurement("alm.trained.measure_uniform_bias")
@per_trial
def measure_uniform_bias(setting: Setting, generator: torch.Generator) -> float:
    """Test error with one bias a layer over test error with one a unit, paired by seed."""
    return _paired(setting, generator, uniform_bias=True)


def _paired(setting: Setting, generator: torch.Generator, **changes: Any) -> float:
    seed = draw_seed(generator)
    plain, changed = (train(setting, seed, **each)[1]["test_error"] for each in ({}, changes))
    return error_ratio(changed, plain)


@measurement("alm.trained.measure_random_like")
@per_trial
def measure_random_like(setting: Setting, generator: torch.Generator) -> float:
    """Recovery error through a trained layer over that through its entries in random order, on the same h."""
    if setting["layer"] not in (1, 2):
        raise BadInput("layer 1 or 2, the hidden ones", got=setting["layer"], do="change layer")
    check_layer({"m": setting["width"], "k": setting["k"]})
    task, _ = train(setting, draw_seed(generator))
    weight = task.net.get_parameter(f"h{setting['layer']}.weight").detach()
    h = draw_hidden(DRAWS, len(weight), setting["k"], "half-normal", generator).float()
    return recovery(weight, h) / recovery(shuffled(weight, generator), h)


@torch.no_grad()
def recovery(weight: Tensor, h: Tensor) -> float:
    """Mean of ‖r(Wᵀx − θ) − h‖² for x = r(αWh) (eqs 1 and 9), at the best θ for these h together.

    `weight` is out × in, the transpose of W; its scale drops out.
    """
    unit = weight / root_mean_square(weight)
    x = (h @ unit).mul(2 / unit.shape[1]).relu()
    response = x @ unit.T
    threshold = best_multiple(response, h, torch.ones_like(h[0]))
    return float((response - threshold).relu().sub(h).square().sum(1).mean())


stated = register(
    Claim(
        id="alm.sec4.tracking",
        title="The error on shadows tracks the real one",
        statement=(
            "Trained with SHADOW, a net's error on the shadows of test images and its error on the images "
            "themselves differ by at most a fifth: larger ÷ smaller ≤ 1.2, in the mean over trainings."
        ),
        source=f"{SECTION} (line 234), and Appendix E (line 624), which say “tracks” and no number",
        grid=grid(**FULL, weight=1.0, trials=16),
        quick=grid(**QUICK, weight=1.0, trials=4),
        predict=1.2,
        measure=measure_tracking,
        rule=MeanBelow(),
        quantity="larger ÷ smaller of the errors on shadows and on images",
        axis="weight",
        reading="beyond the paper",
        twin="alm.sec4.tracking.without",
        long=True,
        remark=(
            "The paper gives no number; the fifth is ours, one point where the error is five. The loss "
            "is (L + wL′)/(1 + w), with w = 1; with L + wL′ at the same rate, a step twice as large, six "
            "pilot trainings gave 1.18 ± 0.03: on the bound."
        ),
    )
)
register(
    stated.other(
        title="Tracking without training on shadows",
        statement=(
            "Also after plain backpropagation, a net's error on the shadows of test images and its error on "
            "the images themselves differ by at most a fifth: larger ÷ smaller ≤ 1.2, in the mean over "
            "trainings."
        ),
        source=f"{SECTION}, and Appendix E, Figure 5, without its regularization",
        grid=grid(**FULL, weight=0.0, trials=16),
        quick=grid(**QUICK, weight=0.0, trials=4),
        expected="failed",
        remark="Tracking is learned from shadows; it does not come with the weights that images alone give.",
    )
)
register(
    stated.also(
        id="alm.sec4.improves",
        title="SHADOW lowers the test error",
        statement=(
            "At the same step size, training with SHADOW lowers the test error by at least a twentieth: "
            "error with (L + wL′)/(1 + w) ÷ error with L ≤ 0.95, in the mean over paired trainings."
        ),
        source=f"{SECTION}, and Appendix E, Figure 5",
        grid=grid(**FULL, weight=1.0, trials=24),
        predict=0.95,
        measure=measure_gain,
        quantity="test error with SHADOW ÷ without",
        expected="failed",
        remark=(
            "The paper gives no number, and chose rates and weights by validation; here both are fixed and "
            "training is short: a failure says that this recipe gains no twentieth, not that no recipe does. "
            "The twentieth was set after a pilot (1.04 ± 0.01 over nine pairs), since so few trainings "
            "do not separate no gain from a small one. Without the division by 1 + w, which doubles the "
            "step, six pairs gave 0.97 ± 0.04."
        ),
    )
)
register(
    Claim(
        id="alm.sec4.uniform_bias",
        title="One bias a layer is enough",
        statement=(
            "Restricting the biases of each hidden layer to one constant raises the test error by at most a "
            "tenth: error with one bias a layer ÷ with one a unit ≤ 1.1, in the mean over paired trainings."
        ),
        source=(
            "Arora, Liang & Ma 2015, remark after Theorem 2.4, which says “almost no change” (line 129) and "
            "no number"
        ),
        grid=grid(**FULL, trials=12),
        quick=grid(**QUICK, trials=4),
        predict=1.1,
        measure=measure_uniform_bias,
        rule=MeanBelow(),
        quantity="test error with uniform bias ÷ without",
        axis="epochs",
        reading="beyond the paper",
        long=True,
        remark="The tenth is ours: half a point where the error is five.",
    )
)
register(
    Claim(
        id="alm.sec4.random_like",
        title="Trained weights recover h as random ones do",
        statement=(
            "Random-like read as no worse than random: a trained layer gives a sparse h back as well as the "
            "same weights in random order; the ratio of their recovery errors ‖r(Wᵀr(αWh) − θ) − h‖² is 1, "
            "each at its best uniform θ."
        ),
        source=(
            f"{SECTION}, the random-like nets hypothesis, which says “random-like” (line 214) and no quantity"
        ),
        grid=grid(**FULL, k=25, layer=(1, 2), trials=16),
        quick=grid(**QUICK, k=5, layer=(1, 2), trials=4),
        predict=1.0,
        measure=measure_random_like,
        rule=Equal(),
        quantity="recovery error of the layer ÷ of its entries shuffled",
        axis="layer",
        reading="beyond the paper",
        expected="failed",
        long=True,
        remark=(
            "Nearly, and not quite: the error is 14 % above that of random weights in the first layer and 8 "
            "% in the second after ten epochs, within what the audit lets pass (1.2)."
        ),
    )
)
