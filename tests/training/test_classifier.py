"""ShadowClassifier: a scikit-learn estimator like any other, that happens to train with shadows."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
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


# A step or two on a hundred points learn nothing, and it is said: not what these tests are about.
FEW_STEPS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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


def test_raw_pixels_are_learned_without_a_word():
    """0 to 16, as they come: the obvious first try. Unscaled, the same net learns nothing, and says so."""
    x, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = small().fit(x[::2], y[::2])
    assert found.score(x[1::2], y[1::2]) > 0.9
    with pytest.warns(ConvergenceWarning, match=r'learned nothing: .* set scale="auto"'):
        lost = small(scale=None, lr=0.5).fit(x[:200], y[:200])
    assert lost.score(x[:200], y[:200]) < 0.3


def test_features_of_very_different_sizes_do_not_diverge():
    """Breast cancer: some features near 0.01, some near 1,000."""
    x, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = small(epochs=5).fit(x[::2], y[::2])
    assert found.score(x[1::2], y[1::2]) > 0.9
    assert np.allclose(found.scaler_.mean_, x[::2].mean(0))


def test_shadows_come_in_the_units_of_the_data(digits):
    """Scaling by hand, shadows of the bare net, and back: the same. A unit that differs changes nothing."""
    train_x, test_x, train_y, _ = digits
    found = small(epochs=2).fit(train_x, train_y)
    mean, spread = train_x.mean(0), train_x.std(0)
    spread[spread == 0] = 1
    scaled = torch.from_numpy((test_x - mean) / spread)
    expected = found.shadow_.of(scaled, match_norm=True).numpy() * spread + mean
    assert found.shadows(test_x) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for layer in ("h1", "h3"):
        assert found.shadows(test_x, layer).shape == test_x.shape
    bare = small(epochs=2, scale=None).fit(train_x, train_y)
    assert bare.scaler_ is None
    plain = bare.shadow_.of(torch.from_numpy(test_x), match_norm=True).numpy()
    assert (bare.shadows(test_x) == plain).all()


def test_standardized_data_with_negative_values(digits):
    train_x, test_x, train_y, test_y = digits
    pipeline = make_pipeline(StandardScaler(), small()).fit(train_x, train_y)
    assert pipeline[-1].shadow_.signed
    assert pipeline.score(test_x, test_y) > 0.9


@FEW_STEPS
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


@FEW_STEPS
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


@FEW_STEPS
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
        ({"scale": "minmax"}, "scale 'auto' or None"),
    ):
        with pytest.raises(BadInput, match=said):
            small(**parameters).fit(train_x, train_y)
    with pytest.raises(Diverged, match="try a smaller lr"):
        small(lr=1e12, momentum=0.0).fit(train_x, train_y)
