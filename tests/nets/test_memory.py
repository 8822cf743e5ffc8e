"""ResidualMemory against a forward pass in plain numpy, and what it refuses."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.nets._memory import SHAPES, ResidualMemory, check_memory

SIZES = {"d": 12, "k": 3, "l": 4, "r": 5}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(dtype: torch.dtype = torch.float64, **sizes: int) -> dict[str, torch.Tensor]:
    sizes, generator = {**SIZES, **sizes}, seeded()
    return {
        name: torch.randn([sizes[one] for one in letters], generator=generator, dtype=dtype)
        for name, letters in SHAPES.items()
    }


def by_hand(tensors: dict[str, torch.Tensor], x: np.ndarray) -> np.ndarray:
    """One input after the other, one block after the other."""
    t = {name: tensor.numpy() for name, tensor in tensors.items()}
    scores = []
    for row in x.reshape(len(x), -1):
        h = t["projection"] @ (row - t["centre"]) + t["offset"]
        for u, s, v in zip(t["inner"], t["shift"], t["outer"], strict=True):
            h = h + v @ np.maximum(u @ h + s, 0)
        scores.append(t["head"] @ h + t["head_bias"])
    return np.array(scores)


@pytest.mark.parametrize("shape", [(7, 12), (7, 3, 2, 2), (1, 12), (7, 1, 12)])
def test_forward_is_what_the_formula_says(shape):
    tensors = drawn()
    x = torch.randn(shape, generator=seeded(1), dtype=torch.float64)
    # four blocks of random weights multiply rounding errors by some thousands at most
    np.testing.assert_allclose(ResidualMemory(tensors)(x).numpy(), by_hand(tensors, x.numpy()), rtol=1e-11)


@pytest.mark.parametrize("sizes", [{"k": 1}, {"d": 1}, {"l": 1}, {"r": 2}, {"k": 20, "d": 2}])
def test_forward_at_small_sizes(sizes):
    tensors = drawn(**sizes)
    x = torch.randn(6, sizes.get("d", 12), generator=seeded(1), dtype=torch.float64)
    found, expected = ResidualMemory(tensors)(x).numpy(), by_hand(tensors, x.numpy())
    # rounding relative to the largest score: wide blocks multiply it
    np.testing.assert_allclose(found, expected, atol=1e-12 * abs(expected).max())


def test_blocks_one_by_one_are_the_forward_pass():
    tensors = drawn()
    net, x = ResidualMemory(tensors), torch.randn(7, 12, generator=seeded(1), dtype=torch.float64)
    h = net.project(x)
    expected = (x - tensors["centre"]) @ tensors["projection"].T + tensors["offset"]
    torch.testing.assert_close(h, expected)
    for index in range(4):
        u, s, v = (tensors[name][index] for name in ("inner", "shift", "outer"))
        expected = h + (h @ u.T + s).clamp(min=0) @ v.T
        h = net.block(h, index)
        torch.testing.assert_close(h, expected)
    torch.testing.assert_close(net(x), h @ tensors["head"].T + tensors["head_bias"])


@pytest.mark.parametrize("given", [torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("weights", [torch.float32, torch.float64])
def test_inputs_take_the_type_of_the_weights(given, weights):
    net = ResidualMemory(drawn(weights))
    x = (torch.rand(5, 3, 4, generator=seeded(1)) * 255).to(given)
    assert net(x).dtype == weights
    assert torch.equal(net(x), net(x.to(weights)))


def test_sizes_names_and_the_empty_batch():
    net = ResidualMemory(drawn())
    assert (net.width, net.classes) == (3, 5)
    assert set(net.state_dict()) == set(SHAPES)
    assert repr(net) == "ResidualMemory(inputs=12, width=3, blocks=4, classes=5)"
    assert net(torch.zeros(0, 12)).shape == (0, 5)
    assert net.facts is None


def test_weights_ask_for_no_gradient_until_told():
    net, x = ResidualMemory(drawn()), torch.randn(7, 12, generator=seeded(1))
    assert not net(x).requires_grad
    net.requires_grad_()
    net(x).square().sum().backward()
    named = dict(net.named_parameters())
    assert set(named) == set(SHAPES) - {"centre"}
    assert all(parameter.grad.abs().sum() > 0 for parameter in named.values())


def test_a_copy_and_a_state_dict_carry_everything():
    net, x = ResidualMemory(drawn()), torch.randn(7, 12, generator=seeded(1), dtype=torch.float64)
    net.facts = "kept"
    copy = deepcopy(net)
    assert copy.facts == "kept"
    other = ResidualMemory({name: torch.zeros_like(one) for name, one in net.state_dict().items()})
    other.load_state_dict(net.state_dict())
    assert torch.equal(copy(x), net(x))
    assert torch.equal(other(x), net(x))


@pytest.mark.parametrize("shape", [(7, 11), (7, 13), (12, 1), (2, 3, 3), (12,), (), (0,), (0, 7), (3, 0)])
def test_inputs_of_another_size_are_refused(shape):
    with pytest.raises(BadInput, match="12 numbers each"):
        ResidualMemory(drawn())(torch.zeros(shape))


@pytest.mark.parametrize("name", list(SHAPES))
def test_tensors_that_are_not_those_of_such_a_net_are_refused(name):
    tensors = drawn()
    with pytest.raises(BadInput, match=name):
        ResidualMemory({key: one for key, one in tensors.items() if key != name})
    with pytest.raises(BadInput, match="other"):
        ResidualMemory({**tensors, "other": tensors[name]})
    for wrong in (tensors[name].unsqueeze(0), tensors[name][..., 0]):
        with pytest.raises(BadInput, match=name):
            ResidualMemory({**tensors, name: wrong})
    for value in (float("nan"), float("inf"), -float("inf")):
        holed = tensors[name].clone()
        holed.view(-1)[-1] = value
        with pytest.raises(BadInput, match=f"finite numbers in {name}"):
            ResidualMemory({**tensors, name: holed})
    for kind in (torch.float32, torch.int64, torch.complex128):
        with pytest.raises(BadInput, match="one floating type"):
            ResidualMemory({**tensors, name: tensors[name].to(kind)})


@pytest.mark.parametrize(
    ("name", "letter"),
    [(name, letter) for name, letters in SHAPES.items() for letter in sorted(set(letters))],
)
def test_each_size_is_one_for_all_tensors(name, letter):
    sizes = [SIZES[one] + (one == letter) for one in SHAPES[name]]
    wrong = {**drawn(), name: torch.zeros(sizes, dtype=torch.float64)}
    with pytest.raises(BadInput, match="numbers; got a tensor of shape"):
        ResidualMemory(wrong)


@pytest.mark.parametrize("letter", list(SIZES))
def test_nothing_is_of_size_zero(letter):
    with pytest.raises(BadInput, match="numbers; got a tensor of shape"):
        ResidualMemory(drawn(**{letter: 0}))


def test_one_class_is_refused():
    with pytest.raises(BadInput, match="two classes"):
        ResidualMemory(drawn(r=1))


def test_types_that_are_not_real_floats_are_refused_whole():
    for kind in (torch.int64, torch.bool, torch.complex128, torch.float8_e4m3fn):
        with pytest.raises(BadInput, match="one floating type"):
            check_memory({name: one.to(kind) for name, one in drawn().items()})
