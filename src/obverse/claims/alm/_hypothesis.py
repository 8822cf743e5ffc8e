"""The random-like nets hypothesis of Section 4: as printed, and as profile × (signal + bulk).

How nets are trained and what is measured on them: see hypothesis_nets.
"""

from __future__ import annotations

from typing import Any

from .._claim import Claim, grid
from .._registry import register
from .._rules import HoldsIn, MeanBelow
from ._hypothesis_nets import (
    check_layer_named,
    measure_bias_spread,
    measure_biases,
    measure_bulk_entries,
    measure_bulk_spectrum,
    measure_entries,
    measure_kept,
    measure_lost,
    measure_spectrum,
)

SECTION = "Arora, Liang & Ma 2015, Section 4"
APPENDIX = "Arora, Liang & Ma 2015, Appendix E"
FULL: dict[str, Any] = {"data": "digits", "labels": 1297, "width": 256, "epochs": 40, "rate": 0.1}
QUICK: dict[str, Any] = {"data": "digits", "labels": 1000, "width": 128, "epochs": 25, "rate": 0.1}
DECAYS = (0.0, 0.003)
DECAYED = DECAYS[1]  # leaves exp(−0.1 · 0.003 · 520 steps / (1 − momentum 0.9)) = 0.21 of the start
FEW, SOME, MORE = 4, 6, 12  # trainings per setting: few where the answer is far from the line
NORMAL = 0.02  # distance of the weights to a normal distribution from which on the audit says they have none
CLOSE = 0.1  # distance to the law from which on `decompose` calls a bulk structured otherwise


def by_layer(trials: int) -> dict[str, Any]:
    return {
        "domain": check_layer_named,
        "axis": "layer",
        "series": "decay",
        "long": True,
        "grid": grid(**FULL, decay=DECAYS, layer=(1, 2), trials=trials),
        "quick": grid(**QUICK, decay=DECAYS, layer=(1, 2), trials=SOME),
    }


def by_treatment(treatment: str, decay: float, trials: int) -> dict[str, Any]:
    return {
        "axis": "decay",
        "long": True,
        "grid": grid(**FULL, decay=decay, treatment=treatment, trials=trials),
        "quick": grid(**QUICK, decay=decay, treatment=treatment, trials=SOME),
    }


entries = register(
    Claim(
        id="alm.hypothesis.entries",
        title="Weights fit a normal distribution",
        statement=(
            "The weights of a trained layer fit a normal distribution: their Kolmogorov–Smirnov distance to "
            "it is at most 0.02, in the mean over trainings."
        ),
        source=f"{SECTION}, and Appendix E, Figure 4(a)",
        place="“Edge weights fit a Gaussian distribution”, Section 4, line 214",
        predict=NORMAL,
        measure=measure_entries,
        rule=MeanBelow(),
        quantity="distance of the weights to a normal distribution",
        twin="alm.hypothesis.entries.bulk",
        expected="failed",
        remark=(
            "With weight decay, which leaves a fifth of the initial weights, the distance is 0.04 in the "
            "first layer and 0.05 in the second. Without it the initial weights, which are normal, are still "
            "there, and it is 0.005 and 0.003. The line is the audit's; the paper gives none."
        ),
        **by_layer(SOME),
    )
)
register(
    entries.other(
        title="Weights without profile and signal fit a normal distribution",
        statement=(
            "With W = profile × (signal + bulk), the entries of the bulk fit a normal distribution: their "
            "Kolmogorov–Smirnov distance to it is at most 0.02, in the mean over trainings."
        ),
        source=f"{SECTION}, for what is left without the scales of rows and columns and without the signal",
        reading="corrected",
        measure=measure_bulk_entries,
        grid=by_layer(SOME)["grid"],
        quantity="distance of the bulk's entries to a normal distribution",
    )
)
biases = register(
    Claim(
        id="alm.hypothesis.biases",
        title="Biases are mostly within a tenth of their mean",
        statement=(
            "Most biases of a trained layer lie within a tenth of their mean, as [0.9, 1.1] does around 1: "
            "at most half of them lie outside, in the mean over trainings."
        ),
        source=f"{APPENDIX}, Figure 4(b), for nets whose biases start at 0",
        place=(
            "“The bias entries are essentially constant (in accord with Theorem 2.3, mostly within the "
            "interval [0.9, 1.1]”, Appendix E, lines 596 and 610"
        ),
        predict=0.5,
        measure=measure_biases,
        rule=MeanBelow(),
        quantity="share of biases further than 10 % from their mean",
        twin="alm.hypothesis.biases.one",
        expected="failed",
        remark=(
            "95 to 99 % lie outside, with weight decay and without. AlexNet's fully connected layers start "
            "with biases of 1, and not of 0: see alm.hypothesis.biases.one."
        ),
        **by_layer(FEW),
    )
)
register(
    biases.other(
        title="Biases that start at 1 stay there",
        statement=(
            "Where all biases start at 1 and nothing decays, most lie within a tenth of their mean after "
            "training: at most half of them lie outside, in the mean over trainings."
        ),
        source=f"{APPENDIX}, Figure 4(b), with the start that AlexNet's fully connected layers have",
        reading="beyond the paper",
        expected="failed",
        grid=grid(**FULL, decay=0.0, start=1.0, layer=(1, 2), trials=MORE),
        quick=grid(**QUICK, decay=0.0, start=1.0, layer=(1, 2), trials=SOME),
        remark=(
            "In the first layer 75 % lie outside, in the second 35 %, and of biases that start at 0 95 to "
            "99 %: the start accounts for a part of what is printed, and training moves the biases away "
            "from it."
        ),
    )
)
register(
    Claim(
        id="alm.hypothesis.biases.spread",
        title="Biases are nearly constant",
        statement=(
            "The biases of a trained layer are nearly constant: |mean| ÷ standard deviation is at least 5 in "
            "95 % of trainings."
        ),
        source=f"{SECTION}, which says “essentially constant” (line 214) and no number",
        predict=0.2,
        measure=measure_bias_spread,
        rule=HoldsIn(),
        quantity="standard deviation ÷ |mean| of the biases",
        reading="beyond the paper",
        expected="failed",
        remark=(
            "The standard deviation is 1.5 to 17 times the |mean|, in the mean over trainings. The 5 is the "
            "audit's line."
        ),
        **by_layer(FEW),
    )
)
spectrum = register(
    Claim(
        id="alm.hypothesis.spectrum",
        title="Singular values follow the quarter-circle law",
        statement=(
            "The singular values of a trained layer are close to the law of random normal entries of the "
            "same mean square (Marchenko–Pastur; a quarter circle where the layer is square): their "
            "Kolmogorov–Smirnov distance to it is at most 0.1, in the mean over trainings."
        ),
        source=f"{SECTION}, and Appendix E, Figure 4(c)",
        place=(
            "“the distribution of the singular values of the weight matrix is close to the quartercircular "
            "law of random Gaussian matrices”, Section 4, line 214"
        ),
        predict=CLOSE,
        measure=measure_spectrum,
        rule=MeanBelow(),
        quantity="distance of the singular values to the law",
        twin="alm.hypothesis.spectrum.bulk",
        expected="failed",
        remark=(
            "With weight decay, which leaves a fifth of the initial weights, the distance is 0.45 in the "
            "first layer and 0.27 in the second. Without it the initial weights, which follow the law, are "
            "still there, and it is 0.05 and 0.03. The line is that of decompose; the paper gives none."
        ),
        **by_layer(FEW),
    )
)
register(
    spectrum.other(
        title="Singular values of the bulk follow the quarter-circle law",
        statement=(
            "With W = profile × (signal + bulk), the singular values of the bulk are close to the "
            "Marchenko–Pastur law (a quarter circle where the layer is square): their Kolmogorov–Smirnov "
            "distance to it is at most 0.1, in the mean over trainings."
        ),
        source=f"{SECTION}, for what is left without the scales of rows and columns and without the signal",
        reading="corrected",
        measure=measure_bulk_spectrum,
        grid=by_layer(SOME)["grid"],
        quantity="distance of the bulk's singular values to the law",
        remark=(
            "As far as random numbers of these shapes are: about 0.04 where there are at most 64 singular "
            "values, as in the first layer, and 0.01 where there are 256."
        ),
    )
)
replaceable = register(
    Claim(
        id="alm.hypothesis.replaceable",
        title="What is like random numbers can be replaced by random numbers",
        statement=(
            "In a net whose initial weights have decayed to a fifth, with W = profile × (signal + bulk) in "
            "both hidden layers, the bulk can be replaced by fresh normal numbers: the net loses at most a "
            "twentieth of its accuracy, in the mean over trainings."
        ),
        source=f"{SECTION}, the random-like nets hypothesis as a statement about what the net needs",
        predict=0.05,
        measure=measure_lost,
        rule=MeanBelow(),
        quantity="share of the accuracy lost with a fresh bulk",
        reading="beyond the paper",
        twin="alm.hypothesis.replaceable.start",
        remark=(
            "Rounding the weights to errors of the bulk's size costs about as little (see the page on "
            "ablation): such a net is robust, and that is part of why its bulk can be replaced."
        ),
        **by_treatment("bulk resampled", DECAYED, MORE),
    )
)
register(
    replaceable.other(
        title="It can be replaced where the initial weights are still there, too",
        statement=(
            "Also in a net trained without weight decay, the bulk of both hidden layers can be replaced by "
            "fresh normal numbers: it loses at most a twentieth of its accuracy, in the mean over trainings."
        ),
        expected="failed",
        remark=(
            "It loses 91 %: the bulk of such a net is like random numbers (alm.hypothesis.spectrum.bulk "
            "holds), but it is the initial weights, to which the layers above were fitted. Looking random "
            "does not make a bulk replaceable."
        ),
        **by_treatment("bulk resampled", 0.0, SOME),
    )
)
signal = register(
    Claim(
        id="alm.hypothesis.signal",
        title="Without the signal nothing is left",
        statement=(
            "In a net whose initial weights have decayed to a fifth, the signal of both hidden layers is "
            "what it needs: with its directions removed, the net keeps at most a quarter of its accuracy, in "
            "the mean over trainings."
        ),
        source=f"{SECTION}, the random-like nets hypothesis as a statement about what the net needs",
        predict=0.25,
        measure=measure_kept,
        rule=MeanBelow(),
        quantity="share of the accuracy kept without the signal",
        reading="beyond the paper",
        twin="alm.hypothesis.signal.control",
        remark=("11 % is left, which is chance for ten classes."),
        **by_treatment("signal removed", DECAYED, 8),
    )
)
register(
    signal.other(
        title="As many random directions can be removed",
        statement=(
            "In a net whose initial weights have decayed to a fifth, as many random directions as the signal "
            "has can be removed from both hidden layers: it loses at most a quarter of its accuracy, in the "
            "mean over trainings."
        ),
        measure=measure_lost,
        quantity="share of the accuracy lost without as many random directions",
        remark=(
            "7 % is lost on average, 18 % at most: that so much was removed is not why the net fails without "
            "its signal."
        ),
        **by_treatment("random directions removed", DECAYED, 8),
    )
)
