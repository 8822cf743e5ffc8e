"""ShadowLayer under the checks torch applies to its own distributions, and the theory's exact moments."""

from itertools import product
from math import log, sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import constraints

from obverse.shadow import ShadowLayer

OUT, IN = 4, 6


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weight_and_h(seed: int = 0, batch: tuple[int, ...] = (), out: int = OUT, inputs: int = IN):
    generator = seeded(seed)
    weight = torch.randn(out, inputs, generator=generator, dtype=torch.float64)
    return weight, torch.rand(*batch, out, generator=generator, dtype=torch.float64)


def by_loop(weight: torch.Tensor, h: torch.Tensor, scale: float) -> list[float]:
    """r(αWh) coordinate by coordinate; the paper's W_ji is weight[i, j]."""
    out, inputs = weight.shape
    return [max(0.0, scale * sum(float(weight[i, j] * h[i]) for i in range(out))) for j in range(inputs)]


def enumerate_support(layer: ShadowLayer) -> torch.Tensor:
    """All different vectors whose coordinates are 0 or the layer's value."""
    choices = [(0.0, v) if v > 0 else (0.0,) for v in layer.value.tolist()]
    return torch.tensor(list(product(*choices)), dtype=layer.value.dtype)


def test_value_is_the_loop_and_moments_are_those_of_one_scaled_coin_a_coordinate():
    weight, h = weight_and_h()
    layer = ShadowLayer(weight, h, keep=0.3, scale=0.7)
    value = by_loop(weight, h, 0.7)
    assert any(v == 0 for v in value)  # both kinds of coordinates are there
    assert any(v > 0 for v in value)
    assert layer.value.tolist() == pytest.approx(value, rel=1e-12)  # float64 rounding of 4 terms
    assert layer.mean.tolist() == pytest.approx([0.3 * v for v in value], rel=1e-12)
    assert layer.variance.tolist() == pytest.approx([0.3 * 0.7 * v * v for v in value], rel=1e-12)
    assert layer.stddev.tolist() == pytest.approx([sqrt(0.21) * v for v in value], rel=1e-12)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 1.0])
def test_mean_and_variance_by_simulation(keep):
    weight, h = weight_and_h(1, batch=(3,))
    layer = ShadowLayer(weight, h, keep=keep)
    draws = 40_000
    x = layer.sample((draws,), generator=seeded(2))
    p, q, value = keep, 1 - keep, layer.value
    # Standard errors of the mean and of the variance of value·Bernoulli(p); five of them, and rounding.
    mean_error = (p * q * value**2 / draws).sqrt()
    variance_error = (value**4 * (p * q * (1 - 3 * p * q) - (p * q) ** 2).__abs__() / draws).sqrt()
    rounding = 1e-9 * (1 + value**2)
    assert ((x.mean(0) - layer.mean).abs() <= 5 * mean_error + rounding).all()
    # the second-order term of a variance around the sample mean is (5·mean_error)²
    slack = 25 * mean_error**2
    assert ((x.var(0) - layer.variance).abs() <= 5 * variance_error + slack + rounding).all()


@pytest.mark.parametrize("keep", [0.25, 0.5, 1.0])
def test_log_prob_sums_to_one_over_the_support_and_gives_entropy_and_mean(keep):
    weight, h = weight_and_h(3)
    layer = ShadowLayer(weight, h, keep=keep)
    support = enumerate_support(layer)
    log_prob = layer.log_prob(support)
    probability = log_prob.exp()
    assert probability.sum().item() == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(probability @ support, layer.mean)
    entropy = -sum(p * log(p) for p in probability.tolist() if p > 0)
    assert layer.entropy().item() == pytest.approx(entropy, abs=1e-12)
    assert layer.support.check(support).all()


def test_log_prob_is_the_frequency_of_each_vector():
    weight, h = weight_and_h(3, inputs=4)
    layer = ShadowLayer(weight, h, keep=0.4)
    draws = 50_000
    x = layer.sample((draws,), generator=seeded(5))
    for vector in enumerate_support(layer):
        p = layer.log_prob(vector).exp().item()
        frequency = (x == vector).all(-1).double().mean().item()
        assert abs(frequency - p) <= 5 * sqrt(p * (1 - p) / draws)


def test_log_prob_has_the_factor_for_zeros_that_equation_2_leaves_out():
    layer = ShadowLayer(torch.ones(1, 3), torch.ones(1), keep=0.25, scale=1.0)
    x = torch.tensor([1.0, 0.0, 0.0])
    assert layer.log_prob(x).item() == pytest.approx(log(0.25) + 2 * log(0.75), rel=1e-6)


def test_impossible_values_raise_or_without_validation_have_probability_zero():
    weight, h = weight_and_h(3)
    strict = ShadowLayer(weight, h, keep=0.5, validate_args=True)
    loose = ShadowLayer(weight, h, keep=0.5, validate_args=False)
    alive, dead = int((strict.value > 0).nonzero()[0]), int((strict.value == 0).nonzero()[0])
    for index, wrong in [(alive, 1e-3), (alive, -1.0), (dead, 1e-3), (alive, float("nan"))]:
        x = strict.value.clone()
        x[index] = wrong if index == dead else x[index] + wrong
        assert loose.log_prob(x).item() == -torch.inf
        assert not strict.support.check(x)
        with pytest.raises(ValueError, match="within the support"):
            strict.log_prob(x)


def test_at_keep_one_a_zero_where_the_value_is_not_has_probability_zero():
    weight, h = weight_and_h(3)
    layer = ShadowLayer(weight, h, keep=1.0)
    assert layer.log_prob(layer.value).item() == 0
    assert layer.log_prob(torch.zeros_like(layer.value)).item() == -torch.inf
    assert layer.entropy().item() == 0


def test_samples_computed_another_way_are_still_in_the_support():
    """A sum in another order differs in the last bits; log_prob must not call that impossible."""
    generator = seeded(4)
    weight, h = torch.randn(300, 50, generator=generator), torch.rand(300, generator=generator)
    layer = ShadowLayer(weight, h, keep=0.5)
    order = torch.randperm(300, generator=generator)
    other = ShadowLayer(weight[order], h[order], keep=0.5, scale=layer.scale)
    x = torch.where(layer.value > 1e-3, other.value, layer.value)
    assert not torch.equal(x, layer.value)
    assert layer.log_prob(x).isfinite()


@given(
    sample=st.lists(st.integers(0, 3), max_size=2),
    batch=st.lists(st.integers(1, 3), max_size=2),
    keep=st.floats(0.01, 1),
)
def test_shapes(sample, batch, keep):
    weight, h = weight_and_h(batch=tuple(batch))
    layer = ShadowLayer(weight, h, keep=keep)
    assert layer.batch_shape == torch.Size(batch)
    assert layer.event_shape == (IN,)
    x = layer.sample(tuple(sample), generator=seeded())
    assert x.shape == (*sample, *batch, IN)
    assert layer.log_prob(x).shape == (*sample, *batch)
    assert layer.log_prob(x).isfinite().all()
    assert layer.support.check(x).all()
    assert layer.mean.shape == layer.variance.shape == layer.mode.shape == (*batch, IN)
    assert layer.entropy().shape == torch.Size(batch)


@pytest.mark.parametrize("shape", [(2, 3), (5, 2, 3), (2, 1, 2, 3)])
def test_expand_keeps_the_values(shape):
    weight, h = weight_and_h(batch=(2, 3))
    keep = torch.linspace(0.2, 1, 3, dtype=torch.float64)
    layer = ShadowLayer(weight, h, keep=keep)
    wide = layer.expand(shape)
    assert wide.batch_shape == torch.Size(shape)
    assert wide.event_shape == layer.event_shape
    # equal up to the rounding of a matrix product over another batch size
    torch.testing.assert_close(wide.mean, layer.mean.expand(*shape, IN))
    torch.testing.assert_close(wide.variance, layer.variance.expand(*shape, IN))
    x = layer.sample(generator=seeded())
    assert torch.equal(wide.log_prob(x), layer.log_prob(x).expand(shape))
    assert wide.sample((4,)).shape == (4, *shape, IN)
    assert torch.equal(wide.entropy(), layer.entropy().expand(shape))


def test_expand_keeps_validation_off_or_on():
    weight, h = weight_and_h()
    impossible = torch.full((2, IN), 77.0, dtype=torch.float64)
    assert (ShadowLayer(weight, h, validate_args=False).expand((2,)).log_prob(impossible) == -torch.inf).all()
    with pytest.raises(ValueError, match="within the support"):
        ShadowLayer(weight, h, validate_args=True).expand((2,)).log_prob(impossible)


def test_keep_and_scale_as_batch_tensors_equal_one_layer_each():
    weight, h = weight_and_h(batch=(3,))
    keep = torch.tensor([[0.2], [0.9]], dtype=torch.float64)  # broadcasts with the batch: 2 × 3
    scale = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    layer = ShadowLayer(weight, h, keep, scale)
    assert layer.batch_shape == (2, 3)
    for a in range(2):
        for b in range(3):
            one = ShadowLayer(weight, h[b], float(keep[a, 0]), float(scale[b]))
            torch.testing.assert_close(layer.mean[a, b], one.mean)
            torch.testing.assert_close(layer.variance[a, b], one.variance)
            torch.testing.assert_close(layer.entropy()[a, b], one.entropy())


def test_default_scale_is_the_theorys_two_over_keep_n_variance():
    weight, h = weight_and_h()
    mean_square = sum(float(w) ** 2 for w in weight.flatten()) / (OUT * IN)
    assert ShadowLayer(weight, h, keep=0.4).scale.item() == pytest.approx(2 / (0.4 * IN * mean_square))


def test_dtype_follows_h_and_no_gradient_comes_out_of_a_sample():
    weight, h = weight_and_h()
    for dtype in (torch.float32, torch.float64):
        layer = ShadowLayer(weight.to(dtype).requires_grad_(), h.to(dtype), keep=0.5)
        x = layer.sample()
        assert x.dtype == layer.mean.dtype == layer.log_prob(x).dtype == dtype
        assert x.grad_fn is None
    assert not layer.has_rsample
    with pytest.raises(NotImplementedError):
        layer.rsample()


def test_generator_repeats_the_draws():
    layer = ShadowLayer(*weight_and_h(), keep=0.5)
    first, second = (layer.sample((8,), generator=seeded(7)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, layer.sample((8,), generator=seeded(8)))


def test_mode_is_the_most_probable_vector():
    for keep in (0.3, 0.7):
        layer = ShadowLayer(*weight_and_h(3), keep=keep)
        support = enumerate_support(layer)
        assert torch.equal(layer.mode, support[layer.log_prob(support).argmax()])


def test_a_layer_of_zeros_generates_zeros():
    layer = ShadowLayer(torch.zeros(OUT, IN), torch.ones(OUT), keep=0.5)
    assert torch.equal(layer.sample(), torch.zeros(IN))
    assert layer.log_prob(torch.zeros(IN)).item() == 0


def test_support_says_it_is_discrete_over_vectors():
    support = ShadowLayer(*weight_and_h()).support
    assert support.is_discrete
    assert support.event_dim == 1
    assert constraints.is_dependent(ShadowLayer.support)


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.5, float("nan"), torch.tensor([0.5, 1.5])])
def test_bad_keep_is_refused(keep):
    weight, h = weight_and_h()
    with pytest.raises(ValueError, match=r"keep .* number in \(0, 1\] .*but found invalid"):
        ShadowLayer(weight, h, keep=keep, validate_args=True)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_scale_is_refused(scale):
    weight, h = weight_and_h()
    with pytest.raises(ValueError, match=r"scale .* finite number > 0 .*but found invalid"):
        ShadowLayer(weight, h, scale=scale, validate_args=True)


def test_bad_h_and_weight_are_refused():
    weight, h = weight_and_h()
    nan = torch.full_like(h, float("nan"))
    with pytest.raises(ValueError, match="parameter h"):
        ShadowLayer(weight, nan, validate_args=True)
    with pytest.raises(ValueError, match="parameter weight"):
        ShadowLayer(torch.full_like(weight, float("nan")), h, scale=1.0, validate_args=True)
    for bad_weight, bad_h in [(weight, h[:-1]), (weight.T, h), (weight[0], h), (weight, h[0])]:
        with pytest.raises(ValueError, match=r"expected weight of shape out × in .* got .* nn.Linear"):
            ShadowLayer(bad_weight, bad_h)
    for bad_h in (h.float(), h.long()):
        with pytest.raises(
            ValueError, match=r"expected weight and h of one floating-point dtype; got .*convert"
        ):
            ShadowLayer(weight, bad_h)


def test_theory_mean_and_covariance_of_the_recovered_h_over_gaussian_weights():
    """Theory §1: E ĥ = h and Cov ĥ = (2/t)‖h‖²I + (4/t − 1/n)hhᵀ, exactly, for unit-variance Gaussian W."""
    n, keep, nets = 40, 0.5, 20_000
    t = keep * n
    h = torch.tensor([1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    # One wide layer holds `nets` independent W side by side: n columns each.
    weight = torch.randn(4, nets * n, generator=seeded(11), dtype=torch.float64)
    x = ShadowLayer(weight, h, keep=keep, scale=2 / t).sample(generator=seeded(12))
    recovered = torch.einsum("mrn,rn->rm", weight.view(4, nets, n), x.view(nets, n))

    errors = recovered - h
    standard_error = recovered.std(0) / sqrt(nets)
    assert (errors.mean(0).abs() < 5 * standard_error).all()

    size = h.square().sum()
    covariance = 2 / t * size * torch.eye(4, dtype=torch.float64) + (4 / t - 1 / n) * torch.outer(h, h)
    products = errors[:, :, None] * errors[:, None, :]
    assert ((products.mean(0) - covariance).abs() < 5 * products.std(0) / sqrt(nets)).all()
    # the form of the diagonal
    torch.testing.assert_close(covariance.diagonal(), 2 / t * (size + 2 * h**2) - h**2 / n)
