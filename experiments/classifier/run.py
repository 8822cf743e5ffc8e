"""Is ShadowClassifier as it comes as good as MLPClassifier as it comes?

    python -m experiments.classifier.run

Ten data sets of scikit-learn, four that it ships and six that it makes, 1,000 points each. Ten splits, 70 %
to train on and 30 % to test on, the same for every method; what is made is made anew for each split. No
method has a setting other than its default, but for the random state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obverse import ShadowClassifier

from .._lab.arguments import folder_asked_for
from .._lab.result_files import measure

FOLDER = Path(__file__).parent / "results"
SPLITS = range(10)
HELD_OUT = 0.3
POINTS = 1000  # of what is made

Data = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
DATA: dict[str, Callable[[int], Data]] = {
    "digits": lambda seed: datasets.load_digits(return_X_y=True),
    "iris": lambda seed: datasets.load_iris(return_X_y=True),
    "wine": lambda seed: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda seed: datasets.load_breast_cancer(return_X_y=True),
    "make_moons, noise 0.2": lambda seed: datasets.make_moons(POINTS, noise=0.2, random_state=seed),
    "make_circles, noise 0.1": lambda seed: datasets.make_circles(
        POINTS, noise=0.1, factor=0.5, random_state=seed
    ),
    "make_blobs, 5 centres": lambda seed: datasets.make_blobs(
        POINTS, centers=5, cluster_std=2.5, random_state=seed
    )[:2],
    "make_classification, 8 of 20 informative": lambda seed: datasets.make_classification(
        POINTS, n_informative=8, random_state=seed
    ),
    "make_gaussian_quantiles, 5 features": lambda seed: datasets.make_gaussian_quantiles(
        n_samples=POINTS, n_features=5, n_classes=3, random_state=seed
    ),
    "make_hastie_10_2": lambda seed: datasets.make_hastie_10_2(POINTS, random_state=seed),
}
METHODS: dict[str, Callable[[int], Any]] = {
    "ShadowClassifier": lambda seed: ShadowClassifier(random_state=seed),
    "MLPClassifier": lambda seed: MLPClassifier(random_state=seed),
    "scaled MLPClassifier": lambda seed: make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)),
}


def score(data: str, make: Callable[[int], Any], split: int) -> dict[str, Any]:
    """Accuracy on the held-out part and on the training part, seconds, and whether it warned."""
    x, y = DATA[data](split)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=HELD_OUT, random_state=split)
    start = perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = make(split).fit(train_x, train_y)
    return {
        "accuracy": model.score(test_x, test_y),
        "training_accuracy": model.score(train_x, train_y),
        "seconds": round(perf_counter() - start, 2),
        "warned": any(issubclass(one.category, ConvergenceWarning) for one in said),
    }


def run(folder: Path = FOLDER) -> None:
    entries = {
        f"{data}|{method}|{split}": partial(score, data, make, split)
        for split in SPLITS
        for data in DATA
        for method, make in METHODS.items()
    }
    settings = {"splits": len(SPLITS), "held_out": HELD_OUT, "points": POINTS}
    measure(folder / "accuracy.json", settings, entries)


if __name__ == "__main__":
    run(folder_asked_for(__doc__, FOLDER))
