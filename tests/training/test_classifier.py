"""ShadowClassifier: a scikit-learn estimator like any other, that happens to train with shadows."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obverse import BadInput, ShadowClassifier
from obverse.training import Diverged
from training.helpers import ENVIRONMENT

CHECKS = """
import json, sys
from sklearn.utils.estimator_checks import check_estimator
from obverse import ShadowClassifier
results = check_estimator(ShadowClassifier(random_state=0), on_fail=None, on_skip=None)
json.dump([(r["check_name"], r["status"], str(r["exception"])) for r in results], sys.stdout)
"""


@pytest.mark.slow  # trains some hundred nets
def test_every_check_of_scikit_learn_passes_and_none_is_skipped():
    # The array-API check is skipped unless SciPy is told, before it is imported, to support it.
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        capture_output=True,
        text=True,
        timeout=900,
        env=ENVIRONMENT | {"SCIPY_ARRAY_API": "1"},
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert len(results) > 40
    assert [result for result in results if result[1] != "passed"] == []


@pytest.fixture(scope="module")
def digits() -> list[np.ndarray]:
    x, y = load_digits(return_X_y=True)
    names = np.array([f"digit {label}" for label in range(10)])[y]
    return train_test_split(x / 16, names, random_state=0)


def small(**parameters: object) -> ShadowClassifier:
    return ShadowClassifier((40, 40), **{"epochs": 15, "random_state": 0, **parameters})


def test_it_learns_digits(digits):
    train_x, test_x, train_y, test_y = digits
    classifier = small(epochs=30).fit(train_x, train_y)
    assert classifier.score(test_x, test_y) > 0.9
    probabilities = classifier.predict_proba(test_x)
    assert probabilities.shape == (len(test_x), 10)
    assert probabilities.sum(1) == pytest.approx(np.ones(len(test_x)))
    assert (classifier.classes_[probabilities.argmax(1)] == classifier.predict(test_x)).all()
    assert len(classifier.loss_curve_) == 30
    assert classifier.loss_curve_[-1] < classifier.loss_curve_[0]
    assert classifier.shadow_.of(torch.from_numpy(test_x)).shape == test_x.shape


def test_standardized_data_with_negative_values(digits):
    train_x, test_x, train_y, test_y = digits
    pipeline = make_pipeline(StandardScaler(), small()).fit(train_x, train_y)
    assert pipeline[-1].shadow_.signed
    assert pipeline.score(test_x, test_y) > 0.9


def test_the_same_random_state_gives_the_same_net_and_none_another(digits):
    train_x, test_x, train_y, _ = digits
    train_x, train_y = train_x[:200], train_y[:200]
    fits = [
        small(epochs=2, random_state=state, dropout=0.2, keep=0.5).fit(train_x, train_y).predict_proba(test_x)
        for state in (0, 0, 1, np.random.RandomState(5), np.random.RandomState(5), None, None)
    ]
    assert (fits[0] == fits[1]).all()
    assert (fits[0] != fits[2]).any()
    assert (fits[3] == fits[4]).all()
    assert (fits[5] != fits[6]).any()


def test_fitting_leaves_the_callers_random_numbers_alone(digits):
    train_x, _, train_y, _ = digits
    torch.manual_seed(1)
    np.random.seed(1)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(1)
    np.random.seed(1)
    small(epochs=1).fit(train_x[:100], train_y[:100])
    assert (torch.rand(1), np.random.rand()) == expected


def test_clone_and_pickle(digits):
    train_x, test_x, train_y, _ = digits
    classifier = small(epochs=1, keep=0.5, control="noise").fit(train_x, train_y)
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    assert not hasattr(copy, "net_")
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301  (our own bytes)
    assert (again.predict_proba(test_x) == classifier.predict_proba(test_x)).all()


def test_a_grid_search_over_weights(digits):
    train_x, _, train_y, _ = digits
    search = GridSearchCV(small(epochs=1), {"weight": np.array([0.0, 1.0])}, cv=2, error_score="raise")
    search.fit(train_x[:100], train_y[:100])
    assert search.best_params_["weight"] in (0.0, 1.0)


def test_bad_parameters_are_sentences(digits):
    train_x, _, train_y, _ = digits
    for parameters, said in (
        ({"keep": 2.0}, r"keep in \(0, 1\]"),
        ({"layer": "h9"}, "a layer out of h1, h2, h3"),
        ({"labels": "mine"}, "labels out of"),
        ({"epochs": 0}, "epochs ≥ 1"),
    ):
        with pytest.raises(BadInput, match=said):
            small(**parameters).fit(train_x, train_y)
    with pytest.raises(Diverged, match="try a smaller lr"):
        small(lr=1e12, momentum=0.0).fit(train_x, train_y)
