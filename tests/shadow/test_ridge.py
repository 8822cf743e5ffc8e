"""Ridge regression of many targets, against scikit-learn's on the same rows."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Peer

from obverse.shadow._ridge import STRENGTHS, ridge


def rows(count, features, targets, seed=0, groups=1):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(groups, count, features, generator=draw, dtype=torch.float64) + 2.0
    true = torch.randn(groups, features, targets, generator=draw, dtype=torch.float64)
    y = x @ true + 0.5 * torch.randn(groups, count, targets, generator=draw, dtype=torch.float64) - 1.0
    return x, y


def marked(count):
    held = torch.zeros(count, dtype=torch.bool)
    held[::5] = True
    return held


# Both solve the same linear system in double: what differs is rounding, about 1e-16 times its condition.
@pytest.mark.parametrize(("count", "features", "targets"), [(40, 7, 3), (12, 30, 3), (12, 30, 60), (9, 1, 1)])
@pytest.mark.parametrize("strength", [0.03, 5.0])
def test_it_is_scikit_learns(count, features, targets, strength):
    x, y = rows(count, features, targets)
    found = ridge(x, y, marked(count), strength)
    peer = Peer(alpha=strength).fit(x[0].numpy(), y[0].numpy())
    np.testing.assert_allclose(found.whole[0].T.numpy(), np.atleast_2d(peer.coef_), atol=1e-9)
    wanted = peer.predict(x[0].numpy()).reshape(count, targets)
    np.testing.assert_allclose(found(x)[0].numpy(), wanted, atol=1e-9)
    assert (found.strength, found.rows) == (strength, count)


def test_a_map_larger_than_its_rows_is_kept_as_factors():
    x, y = rows(12, 300, 400)
    found = ridge(x, y, marked(12), 1.0)
    assert isinstance(found.weight, tuple)
    assert found.size == 8 * (300 * 12 + 12 * 400) < 8 * 300 * 400
    torch.testing.assert_close(found.linear(x), x @ found.whole)


@pytest.mark.parametrize(("count", "features"), [(60, 8), (25, 70)])
def test_the_strength_is_the_best_on_held_out_rows(count, features):
    x, y = rows(count, features, 2, seed=3)
    y = y + 5 * torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    held = marked(count)
    found = ridge(x, y, held)
    centred_x, centred_y = (x - x.mean(1, True))[0], (y - y.mean(1, True))[0]
    unit = float(centred_x.square().sum()) / min(count, features)
    errors = []
    for strength in STRENGTHS:
        peer = Peer(alpha=strength * unit, fit_intercept=False)
        peer.fit(centred_x[~held].numpy(), centred_y[~held].numpy())
        left = centred_y[held].numpy() - peer.predict(centred_x[held].numpy())
        errors.append(float((left**2).sum()) / float(centred_y[held].square().sum()))
    assert found.strength == pytest.approx(STRENGTHS[int(np.argmin(errors))] * unit)
    assert found.error == pytest.approx(min(errors), rel=1e-6)


def test_groups_are_fits_of_their_own():
    x, y = rows(30, 6, 2, groups=3)
    found = ridge(x, y, marked(30), 1.0)
    for one in range(3):
        alone = ridge(x[one : one + 1], y[one : one + 1], marked(30), 1.0)
        torch.testing.assert_close(found.whole[one], alone.whole[0])


def test_features_that_do_not_vary_leave_the_mean():
    x, y = torch.full((1, 10, 4), 3.0), torch.randn(1, 10, 2, generator=torch.Generator().manual_seed(0))
    found = ridge(x, y, marked(10))
    torch.testing.assert_close(found(x)[0], y[0].mean(0).expand(10, 2))


def test_rank_deficient_rows_give_finite_maps():
    x, y = rows(40, 3, 2)
    doubled = torch.cat((x, x, torch.zeros_like(x)), 2).float()
    found = ridge(doubled, y.float(), marked(40))
    assert bool(found.whole.isfinite().all())
    assert found.error is not None
    assert found.error < 0.2  # noise 0.5 against a signal of about √3


def test_targets_that_do_not_vary_have_no_error():
    x, _ = rows(20, 3, 1)
    found = ridge(x, torch.ones(1, 20, 2, dtype=x.dtype), marked(20))
    assert found.error is None
    torch.testing.assert_close(found(x), torch.ones(1, 20, 2, dtype=x.dtype))
