"""Batch norm under probabilities against torch's own, autograd, finite differences and loops."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.ladder._batchnorm import affine_gradients, normalize, normalize_back, project


def layer(rows: int = 7, nodes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Activations, probabilities and a gradient, random, float64."""
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(rows, nodes, generator=generator, dtype=torch.float64) + 2
    p = torch.rand(rows, generator=generator, dtype=torch.float64)
    return raw, p / p.sum(), torch.randn(rows, nodes, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_forward_is_a_loop_over_rows_and_nodes(eps):
    raw, p, _ = layer()
    standard, sigma = normalize(raw, p, eps)
    for node in range(3):
        mean = sum(float(p[i] * raw[i, node]) for i in range(7))
        variance = sum(float(p[i]) * (float(raw[i, node]) - mean) ** 2 for i in range(7))
        spread = sqrt(variance + eps)
        assert float(sigma[node]) == pytest.approx(spread, rel=1e-13)  # float64, a dozen operations
        for i in range(7):
            expected = (float(raw[i, node]) - mean) / spread
            assert float(standard[i, node]) == pytest.approx(expected, abs=1e-13)  # likewise


@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.3])
def test_backward_is_that_of_autograd(eps):
    raw, p, gradient = layer()
    raw.requires_grad_()
    mean = (p.unsqueeze(1) * raw).sum(0)
    variance = (p.unsqueeze(1) * (raw - mean) ** 2).sum(0)
    plain = (raw - mean) / (variance + eps).sqrt()
    (expected,) = torch.autograd.grad((plain * gradient).sum(), raw)
    standard, sigma = normalize(raw, p, eps)
    torch.testing.assert_close(normalize_back(gradient, standard, sigma, p), expected)  # float64 rounding
    (followed,) = torch.autograd.grad((standard * gradient).sum(), raw)
    torch.testing.assert_close(followed, expected)  # autograd through normalize itself


def test_uniform_rows_are_those_of_a_batch_norm_layer():
    raw, _, gradient = layer(16)
    p = torch.full((16,), 1 / 16, dtype=torch.float64)
    net = torch.nn.BatchNorm1d(3, eps=0.01).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor([0.5, -1.0, 2.0]))
        net.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
    raw.requires_grad_()
    (net(raw) * gradient).sum().backward()
    standard, sigma = normalize(raw.detach(), p, 0.01)
    scale, shift = affine_gradients(gradient, standard)
    torch.testing.assert_close(net.weight.grad, scale)  # float64 rounding, here and below
    torch.testing.assert_close(net.bias.grad, shift)
    back = net.weight.detach() * normalize_back(gradient, standard, sigma, p)
    torch.testing.assert_close(raw.grad, back)


@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_backward_is_a_difference(eps):
    raw, p, gradient = layer(4, 2)
    standard, sigma = normalize(raw, p, eps)
    found = normalize_back(gradient, standard, sigma, p)
    step = 1e-6
    for i in range(4):
        for node in range(2):
            up, down = raw.clone(), raw.clone()
            up[i, node] += step
            down[i, node] -= step
            change = (normalize(up, p, eps)[0] - normalize(down, p, eps)[0]) / (2 * step)
            # A central difference is good to step² and to rounding/step, here 1e-10.
            assert float((change * gradient).sum()) == pytest.approx(float(found[i, node]), abs=1e-8)


def test_values_and_weighted_gradients_go_the_same_way():
    raw, p, values = layer()
    standard, sigma = normalize(raw, p)
    expected = p.unsqueeze(1) * project(values, standard, p) / sigma
    torch.testing.assert_close(normalize_back(p.unsqueeze(1) * values, standard, sigma, p), expected)


def test_project_is_the_matrix_of_the_theorem_and_a_projection():
    raw, p, values = layer()
    standard, _ = normalize(raw, p)
    found = project(values, standard, p)
    for node in range(3):
        axes = torch.stack([standard[:, node], torch.ones(7, dtype=torch.float64)], 1)
        matrix = torch.eye(7, dtype=torch.float64) - axes @ axes.mT @ torch.diag(p)
        torch.testing.assert_close(found[:, node], matrix @ values[:, node])
        torch.testing.assert_close(matrix @ matrix, matrix)
        for axis in (raw[:, node], torch.ones(7, dtype=torch.float64)):
            # ⟨a, b⟩ = Σ p a b, numbers of size 1 in float64
            assert abs(float((p * axis * found[:, node]).sum())) < 1e-14


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8 / 3])
def test_a_constant_node_gives_and_takes_nothing(constant):
    raw, p, gradient = layer()
    raw[:, 1] = constant
    raw.requires_grad_()
    standard, sigma = normalize(raw, p)
    assert sigma.tolist()[1] == 0
    assert not bool(standard[:, 1].any())
    assert bool(standard[:, [0, 2]].any(0).all())
    back = normalize_back(gradient, standard, sigma, p)
    assert not bool(back[:, 1].any())
    (followed,) = torch.autograd.grad((standard * gradient).sum(), raw)
    assert bool(followed.isfinite().all())
    assert not bool(followed[:, 1].any())


def test_a_node_that_is_constant_but_for_rounding_is_constant():
    raw, p, _ = layer()
    raw[:, 1] = 0.1
    raw[3, 1] += 2e-17
    assert float(normalize(raw, p)[1][1]) == 0
    raw[3, 1] += 1e-11  # more than rounding, even of sums that cancel
    assert float(normalize(raw, p)[1][1]) > 0


def test_rows_that_never_occur_change_nothing():
    raw, p, gradient = layer()
    more = torch.cat([raw, torch.full((1, 3), 100.0, dtype=torch.float64)])
    chances = torch.cat([p, torch.zeros(1, dtype=torch.float64)])
    standard, sigma = normalize(more, chances)
    torch.testing.assert_close(standard[:7], normalize(raw, p)[0])
    torch.testing.assert_close(sigma, normalize(raw, p)[1])
    raised = torch.cat([gradient, torch.zeros(1, 3, dtype=torch.float64)])
    back = normalize_back(raised, standard, sigma, chances)
    torch.testing.assert_close(back[:7], normalize_back(gradient, standard[:7], sigma, p))
    assert not bool(back[7].any())
    more[:7] = 1.0  # what occurs is constant, although not all rows are equal
    assert not bool(normalize(more, chances)[1].any())


def test_a_small_spread_on_a_large_offset_keeps_its_digits():
    raw, p, _ = layer()
    expected = normalize(raw, p)[0]
    # 1e6 has a rounding of 1e-10, which is all that the sum with it loses.
    torch.testing.assert_close(normalize(raw + 1e6, p)[0], expected, rtol=0, atol=1e-9)


def test_single_precision_is_accepted():
    raw, p, gradient = (one.float() for one in layer())
    standard, sigma = normalize(raw, p)
    exact = normalize(raw.double(), p.double() / p.double().sum())[0]
    torch.testing.assert_close(standard.double(), exact, rtol=0, atol=1e-5)  # a dozen float32 roundings
    assert normalize_back(gradient, standard, sigma, p).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"raw": [[1.0]]}, "activations as a tensor"),
        ({"raw": torch.ones(7, dtype=torch.float64)}, "rows × nodes"),
        ({"raw": torch.ones(0, 3, dtype=torch.float64)}, "rows × nodes"),
        ({"raw": torch.ones(7, 3, dtype=torch.int64)}, "activations as a tensor"),
        ({"raw": torch.full((7, 3), float("nan"), dtype=torch.float64)}, "finite activations"),
        ({"p": torch.ones(7, dtype=torch.float64)}, "sum to one"),
        ({"p": torch.tensor([2.0, -1.0, 0, 0, 0, 0, 0], dtype=torch.float64)}, "≥ 0"),
        ({"p": torch.full((7,), float("nan"), dtype=torch.float64)}, "sum to one"),
        ({"p": torch.full((6,), 1 / 6, dtype=torch.float64)}, "7 probabilities"),
        ({"p": torch.full((7,), 1 / 7)}, "float64"),
        ({"eps": -1.0}, "eps ≥ 0"),
        ({"eps": float("nan")}, "eps ≥ 0"),
        ({"eps": True}, "eps ≥ 0"),
    ],
)
def test_bad_input_of_normalize_is_named(change, words):
    raw, p, _ = layer()
    with pytest.raises(BadInput, match=words):
        normalize(**{"raw": raw, "p": p, "eps": 0.0, **change})


def test_bad_input_of_the_way_back_is_named():
    raw, p, gradient = layer()
    standard, sigma = normalize(raw, p)
    with pytest.raises(BadInput, match="normalized activations of shape"):
        normalize_back(gradient, standard[:, :2], sigma, p)
    with pytest.raises(BadInput, match="one σ for each of 3 nodes"):
        normalize_back(gradient, standard, sigma[:2], p)
    with pytest.raises(BadInput, match="finite gradients"):
        normalize_back(gradient / 0, standard, sigma, p)
    with pytest.raises(BadInput, match="sum to one"):
        project(gradient, standard, 2 * p)
    with pytest.raises(BadInput, match="normalized activations of shape"):
        affine_gradients(gradient, standard[1:])
