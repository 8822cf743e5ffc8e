"""Encoders, decoders and critics: shapes, first weights, and what they refuse."""

import pytest
import torch
from torch import nn

from obverse._core.errors import BadInput
from obverse.generative._networks import LEAK, critic, decode_in_blocks, decoder, draw, encoder

PICTURES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 4, 12)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("body", "shape"), [("conv", shape) for shape in PICTURES] + [("mlp", (1, 8, 8)), ("mlp", (5,))]
)
@pytest.mark.parametrize("hidden", [(), (7, 9)])
def test_shapes(body, shape, hidden):
    x = torch.rand(3, *shape, generator=seeded())
    assert encoder(shape, 6, hidden, body)(x).shape == (3, 6)
    assert decoder(4, shape, hidden, body)(torch.zeros(2, 4)).shape == (2, *shape)
    assert critic(shape, hidden, body)(x).shape == (3,)


def test_the_mlp_is_matrices_and_relus_written_out():
    net = encoder((2, 3), 4, (5,), generator=seeded())
    x = torch.randn(7, 2, 3, generator=seeded(1))
    first, last = net[1], net[3]
    hidden = (x.reshape(7, 6) @ first.weight.T + first.bias).clamp(min=0)
    torch.testing.assert_close(net(x), hidden @ last.weight.T + last.bias)  # float32: its default tolerance


def test_critics_leak_and_the_others_do_not():
    def slopes(net):
        return {getattr(one, "negative_slope", 0.0) for one in net if isinstance(one, nn.ReLU | nn.LeakyReLU)}

    assert slopes(critic((1, 8, 8), (5,), "conv")) == {LEAK}
    assert slopes(encoder((1, 8, 8), 2, (5,), "conv")) == {0.0}
    assert slopes(decoder(2, (1, 8, 8), (5,), "conv")) == {0.0}


@pytest.mark.parametrize("body", ["mlp", "conv"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "critic"])
def test_first_weights_keep_the_size_of_what_passes(body, kind):
    """E y² = E x² = 1 on average over weights. At a border some of the 4 taps meet padding, which takes up to
    a factor 0.8 a layer at this size; a wrong fan would be a factor 2 or 4 off a layer."""
    shape = (2, 16, 16)
    found = []
    for seed in range(20):
        if kind == "decoder":
            y = decoder(50, shape, (100,), body, generator=seeded(seed))(
                draw((64, 50), torch.ones(1), seeded(9))
            )
        else:
            x = draw((64, *shape), torch.ones(1), seeded(9))
            make = encoder if kind == "encoder" else critic
            some = (shape, 30) if kind == "encoder" else (shape,)
            y = make(*some, (100,), body, generator=seeded(seed))(x)  # type: ignore[call-arg]
        found.append(float(y.detach().square().mean()))
    assert 0.5 < sum(found) / 20 < 1.5


def test_biases_start_at_zero():
    for net in (decoder(3, (1, 8, 8), (4,), "conv"), encoder((5,), 2, (4,))):
        assert not any(value.any() for name, value in net.named_parameters() if name.endswith("bias"))


@pytest.mark.parametrize("make", [lambda g: critic((1, 8, 8), (5,), "conv", generator=g),
                                  lambda g: decoder(3, (6,), (5,), generator=g)])  # fmt: skip
def test_the_generator_decides_the_weights_and_the_global_one_is_left_alone(make):
    before = torch.get_rng_state()
    first, again, other = make(seeded(3)), make(seeded(3)), make(seeded(4))
    assert torch.equal(torch.get_rng_state(), before)
    for one, two in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


@pytest.mark.parametrize("body", ["mlp", "conv"])
def test_a_score_is_about_one_picture(body):
    """What the gradient penalty relies on: no score depends on the other rows."""
    net = critic((1, 8, 8), (9,), body)
    x = torch.rand(4, 1, 8, 8, generator=seeded(), requires_grad=True)
    (slope,) = torch.autograd.grad(net(x)[1], x)
    assert slope[1].any()
    assert not slope[[0, 2, 3]].any()


@pytest.mark.parametrize(
    ("shape", "body"),
    [((1, 10, 8), "conv"), ((1, 8, 30), "conv"), ((64,), "conv"), ((8, 8), "conv"), ((), "mlp"),
     ((0, 8, 8), "conv"), ((4,), "transformer")],
)  # fmt: skip
def test_shapes_and_bodies_that_do_not_fit_are_refused(shape, body):
    for make in (lambda: encoder(shape, 2, (3,), body), lambda: decoder(2, shape, (3,), body),
                 lambda: critic(shape, (3,), body)):  # fmt: skip
        with pytest.raises(BadInput):
            make()


def test_sizes_below_one_are_refused():
    for sizes in [(0, (3,)), (2, (0,)), (2.5, (3,))]:
        with pytest.raises(BadInput, match="at least 1"):
            decoder(sizes[0], (4,), sizes[1])


def test_blocks_of_rows_are_put_together():
    z = torch.randn(2345, 3, generator=seeded(), dtype=torch.float64)
    sizes = []

    def decode(part: torch.Tensor) -> torch.Tensor:
        sizes.append(len(part))
        return part.exp()[:, None]

    assert torch.equal(decode_in_blocks(decode, z, (1, 3)), z.exp()[:, None])
    assert sizes == [1000, 1000, 345]
    assert decode_in_blocks(decode, z[:0], (1, 3)).shape == (0, 1, 3)


def test_draw_follows_the_dtype():
    assert draw((2, 3), torch.ones(1, dtype=torch.float64), seeded()).dtype == torch.float64
