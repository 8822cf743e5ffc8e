"""Shadow of a whole net against the formulas of the paper written out by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from obverse._core.errors import BadInput
from obverse.nets import relu_mlp
from obverse.shadow import Shadow, recovery

SHAPE = (1, 3, 4)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_net(dropout: float = 0.0, seed: int = 0) -> nn.Sequential:
    net = relu_mlp(SHAPE, (9, 8), 5, dropout=dropout, generator=seeded(seed)).double()
    for parameter in net.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, std=0.1, generator=seeded(seed + 1))
    return net


def make_x(rows: int = 6, seed: int = 5) -> torch.Tensor:
    return torch.rand(rows, *SHAPE, generator=seeded(seed), dtype=torch.float64)


def relu(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(min=0)


def theory_alpha(layer: nn.Linear) -> float:
    """2/(n s²), entry by entry."""
    squares = [float(w) ** 2 for w in layer.weight.detach().flatten()]
    return 2 / (layer.in_features * sum(squares) / len(squares))


def hidden_by_hand(net: nn.Sequential, x: torch.Tensor) -> dict[str, torch.Tensor]:
    h1 = relu(x.flatten(1) @ net.h1.weight.detach().T + net.h1.bias.detach())
    h2 = relu(h1 @ net.h2.weight.detach().T + net.h2.bias.detach())
    return {"h1": h1, "h2": h2, "h3": h2 @ net.h3.weight.detach().T + net.h3.bias.detach()}


def shadow_by_hand(net: nn.Sequential, h: torch.Tensor, layer: str, alphas: dict[str, float]) -> torch.Tensor:
    """x' = r(α1 W1 r(α2 W2 …h)), without sampling."""
    for name in ("h3", "h2", "h1")[3 - int(layer[1]) :]:
        h = relu(alphas[name] * (h @ getattr(net, name).weight.detach()))
    return h.reshape(len(h), *SHAPE)


def test_layers_are_hidden_and_output_in_forward_order():
    shadow = Shadow(make_net(dropout=0.5))
    assert shadow.layers == ("h1", "h2", "h3")
    assert shadow.default_layer == "h2"
    assert Shadow(nn.Linear(3, 2)).default_layer == "Linear"


@pytest.mark.parametrize("layer", ["h1", "h2", "h3", None])
@pytest.mark.parametrize("training", [True, False])
def test_infer_is_the_net_in_evaluation_mode_and_leaves_the_mode_alone(layer, training):
    net = make_net(dropout=0.5).train(training)
    x = make_x()
    expected = hidden_by_hand(net, x)[layer or "h2"]
    torch.testing.assert_close(Shadow(net).infer(x, layer), expected)
    assert all(module.training is training for module in net.modules())
    if layer == "h3":
        torch.testing.assert_close(Shadow(net).infer(x, layer), net.eval()(x))


@pytest.mark.parametrize("layer", ["h1", "h2", "h3"])
def test_of_is_the_formula_with_the_theorys_scales(layer):
    net, x = make_net(), make_x()
    alphas = {name: theory_alpha(getattr(net, name)) for name in ("h1", "h2", "h3")}
    expected = shadow_by_hand(net, hidden_by_hand(net, x)[layer], layer, alphas)
    result = Shadow(net).of(x, layer)
    assert result.shape == x.shape
    assert result.grad_fn is None
    torch.testing.assert_close(result, expected)


def test_of_by_default_is_the_papers_x_from_h2():
    net, x = make_net(), make_x()
    h2 = hidden_by_hand(net, x)["h2"]
    expected = relu(relu(h2 @ net.h2.weight.detach()) @ net.h1.weight.detach()).reshape(x.shape)
    torch.testing.assert_close(Shadow(net, scale=1.0).of(x), expected)


def test_scales_by_number_and_by_layer():
    net, x = make_net(), make_x()
    h = hidden_by_hand(net, x)["h2"]
    for scale, alphas in [(0.5, {"h1": 0.5, "h2": 0.5}), ({"h1": 2.0, "h2": 3.0, "h3": 1.0},) * 2]:
        torch.testing.assert_close(Shadow(net, scale=scale).of(x), shadow_by_hand(net, h, "h2", alphas))


def test_dropout_modules_are_ignored_both_ways():
    plain, dropped, x = make_net(), make_net(dropout=0.5).train(), make_x()
    assert torch.equal(Shadow(plain).of(x), Shadow(dropped).of(x))


def test_signed_leaves_out_only_the_last_relu():
    net, x = make_net(), make_x() - 0.5
    h2 = hidden_by_hand(net, x)["h2"]
    expected = relu(h2 @ net.h2.weight.detach()) @ net.h1.weight.detach()
    assert (expected < 0).any()
    torch.testing.assert_close(Shadow(net, signed=True, scale=1.0).of(x).flatten(1), expected)


def test_sample_is_a_function_of_h_alone():
    net, x = make_net(), make_x()
    shadow = Shadow(net, input_shape=SHAPE)
    h = shadow.infer(x)
    kept = h.clone()
    first = shadow.sample(h.detach().clone(), keep=0.5, generator=seeded(1))
    second = shadow.from_hidden(torch.zeros_like(x), h, keep=0.5, generator=seeded(1))
    assert torch.equal(first, second)
    assert torch.equal(first, shadow.of(x, keep=0.5, generator=seeded(1)))
    assert torch.equal(h, kept)
    # one row does not depend on the others, up to the rounding of a matrix product over another batch
    torch.testing.assert_close(shadow.sample(h[2:3]), shadow.sample(h)[2:3])


def test_generator_repeats_sampling_and_the_global_state_stays():
    shadow, x = Shadow(make_net()), make_x()
    state = torch.get_rng_state()
    first, again = (shadow.of(x, keep=0.5, generator=seeded(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, shadow.of(x, keep=0.5, generator=seeded(4)))
    assert torch.equal(state, torch.get_rng_state())


def test_keep_by_layer_masks_what_is_generated_from_that_layer():
    net, x = make_net(), make_x()
    shadow = Shadow(net)
    h2 = hidden_by_hand(net, x)["h2"]
    a1, a2 = theory_alpha(net.h1), theory_alpha(net.h2)
    # ρ = ¼ only from h2: the mask falls on h1, which has 9 units; the scale grows by 1/ρ
    mask = torch.empty(6, 9, dtype=torch.float64).bernoulli_(0.25, generator=seeded(9))
    h1 = relu(a2 / 0.25 * (h2 @ net.h2.weight.detach())) * mask
    expected = relu(a1 * (h1 @ net.h1.weight.detach())).reshape(x.shape)
    torch.testing.assert_close(shadow.of(x, keep={"h2": 0.25}, generator=seeded(9)), expected)


def test_keep_as_one_number_masks_every_layer_in_generating_order():
    net, x = make_net(), make_x()
    generator = seeded(9)
    masks = [torch.empty(6, n, dtype=torch.float64).bernoulli_(0.5, generator=generator) for n in (9, 12)]
    h2 = hidden_by_hand(net, x)["h2"]
    h1 = relu(2 * theory_alpha(net.h2) * (h2 @ net.h2.weight.detach())) * masks[0]
    expected = relu(2 * theory_alpha(net.h1) * (h1 @ net.h1.weight.detach())) * masks[1]
    result = Shadow(net).of(x, keep=0.5, generator=seeded(9))
    torch.testing.assert_close(result.flatten(1), expected)


@pytest.mark.parametrize("scale", [0.5, {"h1": 0.5, "h2": 0.5, "h3": 0.5}])
def test_a_chosen_scale_is_divided_by_keep_as_the_theorys_is(scale):
    net, x = make_net(), make_x()
    mask = torch.empty(6, 12, dtype=torch.float64).bernoulli_(0.25, generator=seeded(9))
    expected = relu(0.5 / 0.25 * (hidden_by_hand(net, x)["h1"] @ net.h1.weight.detach())) * mask
    result = Shadow(net, scale=scale).of(x, "h1", keep=0.25, generator=seeded(9))
    torch.testing.assert_close(result.flatten(1), expected)


def test_input_shape_shapes_samples_and_without_it_they_are_flat():
    net = make_net()
    h = torch.rand(4, 8, dtype=torch.float64)
    flat = Shadow(net).sample(h)
    assert flat.shape == (4, 12)
    assert torch.equal(Shadow(net, input_shape=SHAPE).sample(h), flat.reshape(4, *SHAPE))
    assert torch.equal(Shadow(net).sample(h, input_shape=SHAPE), flat.reshape(4, *SHAPE))


def test_match_norm_has_the_norm_of_x_and_the_direction_of_the_shadow():
    net, x = make_net(), make_x()
    plain, matched = Shadow(net).of(x), Shadow(net).of(x, match_norm=True)
    for one, unscaled, original in zip(matched, plain, x, strict=True):
        assert one.norm().item() == pytest.approx(original.norm().item(), rel=1e-12)
        torch.testing.assert_close(one / one.norm(), unscaled / unscaled.norm())


def test_smooth_is_applied_before_the_norm():
    net, x = make_net(), make_x()
    plain = Shadow(net).of(x)
    smoothed = torch.zeros_like(plain)
    for i in range(3):
        for j in range(4):
            window = plain[:, :, max(0, i - 1) : i + 2, max(0, j - 1) : j + 2]
            smoothed[:, :, i, j] = window.mean((2, 3))
    torch.testing.assert_close(Shadow(net).of(x, smooth=True), smoothed)
    ratio = x.flatten(1).norm(dim=1) / smoothed.flatten(1).norm(dim=1)
    expected = smoothed * ratio.reshape(-1, 1, 1, 1)
    torch.testing.assert_close(Shadow(net).of(x, smooth=True, match_norm=True), expected)


def test_flat_inputs_are_smoothed_as_the_images_that_input_shape_says_they_are():
    net, x = make_net(), make_x()
    as_images = Shadow(net).of(x, smooth=True)
    flat = Shadow(net, input_shape=SHAPE).of(x.flatten(1), smooth=True)
    assert torch.equal(flat, as_images.flatten(1))
    with pytest.raises(
        BadInput, match=r"expected images .* got a tensor of shape \(6, 12\); give Shadow the"
    ):
        Shadow(net).of(x.flatten(1), smooth=True)


@pytest.mark.parametrize("size", [1e-3, 30.0])
def test_match_norm_survives_depth_in_float32(size):
    """Forty unscaled layers would leave the range of float32; matched shadows must not."""
    torch.manual_seed(0)
    net = nn.Sequential()
    for _ in range(40):
        linear = nn.Linear(30, 30, bias=False)
        nn.init.normal_(linear.weight, std=size)
        net.append(linear).append(nn.ReLU())
    h, x = torch.rand(3, 30), torch.rand(3, 30)
    matched = Shadow(net).from_hidden(x, h, Shadow(net).layers[-1], match_norm=True)
    torch.testing.assert_close(matched.norm(dim=1), x.norm(dim=1))
    # the same directions in float64, where nothing over- or underflows
    exact = Shadow(net.double(), scale=1 / size / 8).sample(h.double(), Shadow(net).layers[-1])
    directions = exact / exact.norm(dim=1, keepdim=True)
    # 40 products of float32 rounding, each ≤ 30·eps relative to the terms: 40·30·1.2e-7 ≈ 1.4e-4
    torch.testing.assert_close(
        (matched / matched.norm(dim=1, keepdim=True)).double(), directions, rtol=0, atol=1.5e-4
    )


def test_a_layer_that_starts_at_zero_gives_a_zero_shadow_without_nan():
    net, x = make_net(), make_x()
    nn.init.zeros_(net.h2.weight)
    for match_norm in (False, True):
        assert torch.equal(Shadow(net).of(x, match_norm=match_norm), torch.zeros_like(x))


def test_a_shadow_follows_the_training_of_its_net():
    net, x = make_net(), make_x()
    shadow = Shadow(net)
    shadow.of(x)
    with torch.no_grad():
        net.h1.weight.add_(0.3)
    assert torch.equal(shadow.of(x), Shadow(net).of(x))


@given(rows=st.integers(0, 3), layer=st.sampled_from(["h1", "h2", "h3"]), match_norm=st.booleans())
def test_shape_and_dtype_follow_x(rows, layer, match_norm):
    for dtype in (torch.float32, torch.float64):
        x = make_x(rows).to(dtype)
        result = Shadow(make_net().to(dtype)).of(x, layer, match_norm=match_norm)
        assert result.shape == x.shape
        assert result.dtype == dtype


def test_calibrate_keeps_the_scales_it_finds():
    shadow, x = Shadow(make_net()), make_x(40)
    before = recovery(shadow, x).errors["h1"]
    result = shadow.calibrate(x)
    assert [one.layer for one in result.layers] == ["h1", "h2", "h3"]
    assert shadow.scale == {one.layer: one.scale for one in result.layers}
    # h1 is generated in one step, so recovery there is exactly what was minimized
    alone = Shadow(shadow.net, scale=shadow.scale)
    assert recovery(alone, x).errors["h1"] == pytest.approx(result.layers[0].error, rel=1e-9)
    # the level is found on 32 of the 40 inputs, and can miss by a little
    after = recovery(shadow, x).errors["h1"]
    assert after < 1.05 * result.layers[0].error
    assert before == pytest.approx(result.layers[0].theory_error, rel=1e-9)
    assert after < before


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s, x: s.of(x, "h9"), "expected a layer out of h1, h2, h3; got 'h9'; pass one"),
        (lambda s, x: s.infer(x, "flatten"), "expected a layer out of h1, h2, h3; got 'flatten'"),
        (lambda s, x: s.of(x, keep=1.5), r"expected keep in \(0, 1\]; got 1.5; use keep=1.0"),
        (lambda s, x: s.of(x, keep={"h2": 0.0}), r"expected keep in \(0, 1\]; got 0.0"),
        (lambda s, x: s.of(x, keep={"h7": 0.5}), r"expected keep for layers out of .*; got \['h7'\]; check"),
        (
            lambda s, x: s.sample(torch.ones(2, 9)),
            r"h with 8 entries a row for layer 'h2'; got shape \(2, 9\); t",
        ),
        (
            lambda s, x: s.sample(torch.ones(8)),
            r"a batch of h with 8 entries .*; got shape \(8,\); take h from",
        ),
        (lambda s, x: s.calibrate(x[:0]), "expected inputs to calibrate on; got an empty batch; pass"),
        (lambda s, x: Shadow(s.net, scale="big"), "expected scale 'theory' or numbers > 0; got 'big'; leave"),
        (lambda s, x: Shadow(s.net, scale=0.0), "expected scale 'theory' or numbers > 0; got 0.0"),
        (
            lambda s, x: Shadow(s.net, scale={"h1": 1.0}),
            r"a scale for each of h1, h2, h3; got \['h1'\]; name",
        ),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(BadInput, match=sentence):
        call(Shadow(make_net()), make_x())
