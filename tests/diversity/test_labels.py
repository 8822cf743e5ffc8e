"""The classifier behind directions for labels: against scikit-learn's, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.diversity._labels import RIDGE, fit_scores


def test_it_is_scikit_learns_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    data = load("digits")
    x, y = data.train_x[:400], data.train_y[:400]
    found = fit_scores(x, y, 10)
    # theirs: ½‖W‖² + C·Σ loss; ours: RIDGE/2·‖W‖² + mean loss, so that C = 1/(RIDGE·n)
    theirs = LogisticRegression(C=1 / (RIDGE * 400), max_iter=2000, tol=1e-8).fit(x.flatten(1).numpy(), y)
    expected = theirs.predict_proba(data.test_x.flatten(1).numpy())
    shown = found(data.test_x).softmax(1).numpy()
    # both stop where the gradient is about 1e-6, and probabilities are of order 1
    assert np.abs(shown - expected).max() < 0.01
    assert found.accuracy is None, "none were left out"


def test_the_accuracy_is_that_of_others():
    data = load("digits")
    found = fit_scores(data.train_x, data.train_y, 10, most=800, generator=torch.Generator().manual_seed(0))
    right = float((found(data.test_x).argmax(1) == data.test_y).double().mean())
    # 497 and 500 pictures: two standard errors of √(0.05·0.95/500) each
    assert found.accuracy == pytest.approx(right, abs=0.04)
    assert found.accuracy > 0.9


def test_the_global_random_state_is_left_alone_and_steps_are_told():
    before = torch.get_rng_state()
    told: list[tuple[int, int, str]] = []
    x, y = torch.rand(20, 1, 3, 3, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 2
    fit_scores(x, y, 2, generator=torch.Generator().manual_seed(0), progress=lambda *step: told.append(step))
    assert torch.equal(before, torch.get_rng_state())
    assert told[0] == (1, 100, "label scores")


@pytest.mark.parametrize(
    ("y", "labels", "said"),
    [
        (torch.zeros(3, dtype=torch.int64), 2, "a label for each"),
        (torch.tensor([0, 1, 2, 1]), 2, "labels from 0 to 1"),
        (torch.tensor([0, 0, 0, 0]), 1, "at least two"),
    ],
)
def test_wrong_labels_are_refused(y, labels, said):
    with pytest.raises(BadInput, match=said):
        fit_scores(torch.rand(4, 1, 2, 2), y, labels)
