"""ShadowLoss against the formulas of the paper written out by hand, values and gradients."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse.nets import relu_mlp
from obverse.shadow import Shadow, ShadowLoss

SHAPE, WIDTHS, CLASSES, ROWS = (1, 4, 3), (9, 8), 5, 7


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_net(dropout: float = 0.0) -> nn.Sequential:
    net = relu_mlp(SHAPE, WIDTHS, CLASSES, dropout=dropout, generator=seeded()).double()
    for index, name in enumerate(("h1", "h2", "h3")):
        nn.init.normal_(getattr(net, name).bias, std=0.1, generator=seeded(index))
    return net


def make_batch() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(ROWS, *SHAPE, generator=seeded(5), dtype=torch.float64)
    return x, torch.arange(ROWS) % CLASSES


# --- the paper by hand: plain matrix products, no module of obverse ---------------------------------


def forward(net: nn.Sequential, x: torch.Tensor) -> dict[str, torch.Tensor]:
    h1 = (x.flatten(1) @ net.h1.weight.T + net.h1.bias).relu()
    h2 = (h1 @ net.h2.weight.T + net.h2.bias).relu()
    return {"h1": h1, "h2": h2, "h3": h2 @ net.h3.weight.T + net.h3.bias}


def alpha(weight: torch.Tensor, keep: float) -> float:
    return 2 / (keep * weight.shape[1] * float(weight.detach().square().mean()))


def generate(weights, h, layer="h2", keep=1.0, smooth=False, norms=None, seed=9) -> torch.Tensor:
    """x' = r(α1 W1 r(α2 W2 h)), masks drawn in generating order; keeps the graph if h has one."""
    generator = seeded(seed)
    for name in ("h3", "h2", "h1")[3 - int(layer[1]) :]:
        h = (alpha(weights[name], keep) * (h @ weights[name])).relu()
        if keep < 1:
            h = h * torch.empty_like(h).bernoulli_(keep, generator=generator)
    image = h.reshape(ROWS, *SHAPE)
    if smooth:
        rows = []
        for i in range(SHAPE[1]):
            for j in range(SHAPE[2]):
                rows.append(image[:, :, max(0, i - 1) : i + 2, max(0, j - 1) : j + 2].mean((2, 3)))
        image = torch.stack(rows, -1).reshape(ROWS, *SHAPE)
    if norms is not None:
        sizes = image.detach().flatten(1).norm(dim=1)
        ratios = [float(want / have) if have > 0 else 0.0 for want, have in zip(norms, sizes, strict=True)]
        image = image * torch.tensor(ratios, dtype=image.dtype).reshape(-1, 1, 1, 1)
    return image


def weights_of(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: net.get_parameter(f"{name}.weight") for name in ("h1", "h2", "h3")}


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (logits.exp().sum(1).log() - logits[torch.arange(len(y)), y]).mean()


def by_hand(net, x, y, *, weight=1.0, layer="h2", keep=1.0, smooth=False, match_norm=True, labels="given",
            normalize=False, twin=None, flow=False):  # fmt: skip
    """The whole loss; `twin` is a given second batch, `flow` lets gradients through the generation."""
    states = forward(net, x)
    logits = states["h3"]
    if twin is None:
        weights = weights_of(net) if flow else {name: w.detach() for name, w in weights_of(net).items()}
        h = states[layer] if flow else states[layer].detach()
        norms = x.flatten(1).norm(dim=1) if match_norm else None
        twin = generate(weights, h, layer, keep, smooth, norms)
    twin_logits = forward(net, twin)["h3"]
    if labels == "consistency":
        p, q = logits.detach().softmax(1), twin_logits.softmax(1)
        second = (p * (p.log() - q.log())).sum(1).mean()
    else:
        second = cross_entropy(twin_logits, logits.argmax(1) if labels == "net" else y)
    total = weight * second if y is None else cross_entropy(logits, y) + weight * second
    return total / (1 + weight) if normalize else total


def gradients(net: nn.Module, loss: torch.Tensor) -> list[torch.Tensor]:
    return [g.clone() for g in torch.autograd.grad(loss, list(net.parameters()))]


VARIANTS = {
    "h2, weight 1": {},
    "weight 4": {"weight": 4.0},
    "from h3": {"layer": "h3"},
    "from h1": {"layer": "h1"},
    "sampling 0.5 at each layer": {"keep": 0.5},
    "from h3, sampling": {"layer": "h3", "keep": 0.5},
    "smooth": {"smooth": True},
    "theory's scale": {"match_norm": False},
    "theory's scale, sampling, smooth": {"match_norm": False, "keep": 0.5, "smooth": True},
    "the net's labels": {"labels": "net"},
    "consistency": {"labels": "consistency"},
    "consistency, normalized": {"labels": "consistency", "normalize": True, "weight": 2.0},
    "normalized": {"normalize": True, "weight": 3.0},
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("labelled", [True, False], ids=["labelled", "unlabelled"])
def test_every_variant_has_the_value_and_the_gradient_of_the_formula(variant, labelled):
    net, (x, y) = make_net(), make_batch()
    if not labelled:
        if variant.get("labels", "given") == "given":
            variant = variant | {"labels": "net"}
        y = None
    loss = ShadowLoss(net, generator=seeded(9), **variant)(x, y)
    expected = by_hand(net, x, y, **variant)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    for mine, theirs in zip(gradients(net, loss), gradients(net, expected), strict=True):
        torch.testing.assert_close(mine, theirs)  # float64: rtol 1e-7


def test_no_gradient_flows_through_the_generation():
    net, (x, y) = make_net(), make_batch()
    x.requires_grad_()
    seen: list[torch.Tensor] = []
    handle = net.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    loss = ShadowLoss(net, match_norm=False)(x, y)
    handle.remove()
    assert len(seen) == 2  # the net ran on x and on x̃, and on nothing else
    twin = seen[1]
    assert twin.grad_fn is None
    assert not twin.requires_grad

    # the gradient is that of a loss in which x̃ is a constant, not that of one with flow
    mine = gradients_with_x(net, x, loss)
    constant = gradients_with_x(net, x, by_hand(net, x, y, match_norm=False, twin=twin.clone()))
    flowing = gradients_with_x(net, x, by_hand(net, x, y, match_norm=False, flow=True))
    for got, expected in zip(mine, constant, strict=True):
        torch.testing.assert_close(got, expected)
    assert by_hand(net, x, y, match_norm=False, flow=True).item() == pytest.approx(loss.item(), rel=1e-12)
    for got, other in zip(mine[1:5], flowing[1:5], strict=True):  # h1, h2: what x̃ is made from; h3 is not
        assert (got - other).abs().max() > 1e-3 * got.abs().max()
    # x itself gets the gradient of the real part alone
    (real,) = torch.autograd.grad(cross_entropy(forward(net, x)["h3"], y), x)
    torch.testing.assert_close(mine[0], real)
    assert (flowing[0] - real).abs().max() > 1e-3 * real.abs().max()


def gradients_with_x(net, x, loss) -> list[torch.Tensor]:
    """Gradients of x, then weight and bias of h1, h2, h3."""
    return list(torch.autograd.grad(loss, [x, *net.parameters()]))


def test_gradients_are_to_the_bit_those_of_calling_the_net_twice():
    net, (x, y) = make_net().float(), make_batch()
    x = x.float()
    twin = Shadow(net).of(x, match_norm=True)
    plain = F.cross_entropy(net(x), y) + 1.0 * F.cross_entropy(net(twin), y)
    plain.backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()
    ShadowLoss(net)(x, y).backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(net.parameters(), expected, strict=True))
    # and once more on top: gradients accumulate over calls as they do for any loss
    ShadowLoss(net)(x, y).backward()
    assert all(torch.equal(p.grad, 2 * e) for p, e in zip(net.parameters(), expected, strict=True))


def test_second_derivatives_with_the_shadow_held_fixed():
    net, (x, y) = make_net(), make_batch()
    twin = Shadow(net).of(x, match_norm=True)
    results = []
    for loss in (ShadowLoss(net)(x, y), by_hand(net, x, y, twin=twin)):
        first = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        results.append(torch.autograd.grad(sum(g.square().sum() for g in first), list(net.parameters())))
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("shared", ["module", "weight"])
def test_frozen_and_tied_parameters_train_as_in_a_plain_loss(shared):
    torch.manual_seed(0)
    first, second = (nn.Linear(12, 12, dtype=torch.float64) for _ in range(2))
    if shared == "module":
        second = first
    else:
        second.weight = first.weight
    head = nn.Linear(12, CLASSES, dtype=torch.float64).requires_grad_(False)
    net = nn.Sequential(nn.Flatten(), first, nn.ReLU(), second, nn.ReLU(), head)
    parameters = list(net.parameters())
    x, y = make_batch()
    twin = Shadow(net).of(x, match_norm=True)
    plain = F.cross_entropy(net(x), y) + F.cross_entropy(net(twin), y)
    (expected,) = torch.autograd.grad(plain, [first.weight])
    loss = ShadowLoss(net)(x, y)
    assert all(p is q for p, q in zip(parameters, net.parameters(), strict=True))
    loss.backward()
    torch.testing.assert_close(first.weight.grad, expected)
    assert head.weight.grad is None


@pytest.mark.parametrize("control", [None, "same", "noise", "shuffled"])
def test_the_second_batch_is_data_under_every_control(control):
    net, (x, _) = make_net(), make_batch()
    x.requires_grad_()
    loss = ShadowLoss(net, control=control)
    assert not loss.twin(x, Shadow(net).infer(x)).requires_grad


def test_the_shuffled_control_takes_over_the_set_up_of_its_shadow():
    net, (x, _) = make_net(), make_batch()
    loss = ShadowLoss(Shadow(net, signed=True, scale=0.3), control="shuffled", match_norm=False)
    h = forward(net, x)["h2"].detach()
    twin = loss.twin(x, h).flatten(1)
    weights = weights_of(loss._shuffled.copy)
    expected = 0.3 * ((0.3 * h @ weights["h2"]).relu() @ weights["h1"])
    assert (expected < 0).any()
    torch.testing.assert_close(twin, expected)


@pytest.mark.parametrize("control", ["same", "noise", "shuffled"])
@pytest.mark.parametrize("labels", ["given", "net", "consistency"])
def test_controls_replace_only_the_second_batch(control, labels):
    net, (x, y) = make_net(), make_batch()
    module = ShadowLoss(net, weight=2.0, control=control, labels=labels, noise=0.3, generator=seeded(9))
    loss = module(x, y)
    norms = x.flatten(1).norm(dim=1)
    if control == "same":
        twin = x
    elif control == "noise":
        twin = x + 0.3 * torch.empty_like(x).normal_(generator=seeded(9))
        twin = twin * (norms / twin.flatten(1).norm(dim=1)).reshape(-1, 1, 1, 1)
    else:
        shuffled = weights_of(module._shuffled.copy)
        assert all(not torch.equal(shuffled[name], w) for name, w in weights_of(net).items())
        twin = generate(shuffled, forward(net, x)["h2"].detach(), norms=norms)
    expected = by_hand(net, x, y, weight=2.0, labels=labels, twin=twin)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)


def test_weight_zero_is_the_plain_loss_in_one_pass():
    net, (x, y) = make_net(), make_batch()
    passes = []
    net.register_forward_hook(lambda *_: passes.append(1))
    loss = ShadowLoss(net, weight=0.0, normalize=True)(x, y)
    assert loss.item() == pytest.approx(cross_entropy(forward(net, x)["h3"], y).item(), rel=1e-12)
    assert len(passes) == 1


def test_another_criterion_is_used_for_both_parts():
    net, (x, y) = make_net(), make_batch()

    def squared(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (logits - F.one_hot(y, CLASSES)).square().mean()

    twin = Shadow(net).of(x, match_norm=True)
    expected = squared(net(x), y) + squared(net(twin), y)
    assert ShadowLoss(net, criterion=squared)(x, y).item() == pytest.approx(expected.item(), rel=1e-12)


def test_a_calibrated_and_signed_shadow_is_used_as_it_is():
    net, (x, y) = make_net(), make_batch()
    shadow = Shadow(net, signed=True)
    shadow.calibrate(x)
    twin = shadow.of(x)
    expected = cross_entropy(net(x), y) + cross_entropy(net(twin), y)
    assert ShadowLoss(shadow, match_norm=False)(x, y).item() == pytest.approx(expected.item(), rel=1e-12)


def test_no_hook_stays_behind_even_after_an_error():
    net, (x, y) = make_net(), make_batch()
    loss = ShadowLoss(net)
    loss(x, y)
    with pytest.raises(RuntimeError):
        loss(x[..., :-1], y)
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in net.modules())


@pytest.mark.parametrize("inplace", [False, True])
def test_a_relu_object_used_twice_gives_the_right_h(inplace):
    net, (x, y) = make_net(), make_batch()
    relu = nn.ReLU(inplace=inplace)
    shared = nn.Sequential(net.flatten, net.h1, relu, net.h2, relu, net.h3)
    for mine, theirs in [("1", "h1"), ("3", "h2"), ("5", "h3")]:
        expected = by_hand(net, x, y, layer=theirs)
        assert ShadowLoss(shared, layer=mine)(x, y).item() == pytest.approx(expected.item(), rel=1e-12)


def test_with_dropout_h_is_the_one_of_the_training_pass():
    net, (x, y) = make_net(dropout=0.5).train(), make_batch()
    torch.manual_seed(3)
    loss = ShadowLoss(net)(x, y)
    # by hand: the same four masks in the order the two passes draw them (F.dropout on ones shows them)
    torch.manual_seed(3)
    masks = [F.dropout(torch.ones(ROWS, n, dtype=torch.float64), 0.5) for n in WIDTHS * 2]

    def run(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor):
        h1 = (x.flatten(1) @ net.h1.weight.T + net.h1.bias).relu()
        h2 = ((h1 * first) @ net.h2.weight.T + net.h2.bias).relu()  # behind the ReLU, before its dropout
        return h2, (h2 * second) @ net.h3.weight.T + net.h3.bias

    h2, logits = run(x, *masks[:2])
    twin = generate(weights_of(net), h2.detach(), norms=x.flatten(1).norm(dim=1)).detach()
    expected = cross_entropy(logits, y) + cross_entropy(run(twin, *masks[2:])[1], y)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)


def test_a_dropout_that_works_in_place_does_not_change_the_h_of_the_layer_below():
    (x, y), values = make_batch(), []
    for inplace in (False, True):
        torch.manual_seed(0)
        first, second = (nn.Linear(12, n, dtype=torch.float64) for n in (12, CLASSES))
        net = nn.Sequential(nn.Flatten(), first, nn.Dropout(0.5, inplace=inplace), second)
        loss = ShadowLoss(net, layer="1")(x, y)
        loss.backward()
        values.append(loss.item())
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_three_lines_in_a_training_loop_reduce_the_loss():
    net, (x, y) = make_net(), make_batch()
    loss, optimizer = ShadowLoss(net), torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    before = loss(x, y).item()
    for _ in range(60):
        loss(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss(x, y).item() < before / 2


def test_the_loss_owns_no_parameters_and_leaves_the_nets_mode_alone():
    net = make_net(dropout=0.5)
    loss = ShadowLoss(net, control="shuffled")
    assert list(loss.parameters()) == []
    assert loss.state_dict() == {}
    loss.eval()
    assert net.training
    assert repr(loss) == "ShadowLoss(weight=1.0, layer='h2', labels='given')"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"weight": -1.0}, "expected a finite weight ≥ 0; got -1.0; use 0 for no shadows"),
        ({"weight": float("nan")}, "expected a finite weight ≥ 0; got nan"),
        ({"weight": float("inf")}, "expected a finite weight ≥ 0; got inf"),
        ({"labels": "mine"}, "expected labels out of .*; got 'mine'; pass one of these"),
        ({"control": "random"}, "expected control out of .*; got 'random'; pass one or None"),
        ({"layer": "h7"}, "expected a layer out of h1, h2, h3; got 'h7'; pass one of these"),
        ({"keep": 1.5}, r"expected keep in \(0, 1\]; got 1.5; use keep=1.0 for no sampling"),
        (
            {"keep": {"h7": 0.5}},
            r"expected keep for layers out of h1, h2, h3; got \['h7'\]; check the names",
        ),
        ({"noise": -1.0, "control": "noise"}, "expected noise ≥ 0; got -1.0; use"),
    ],
)
def test_bad_settings_are_refused_when_the_loss_is_made(arguments, sentence):
    with pytest.raises(BadInput, match=sentence):
        ShadowLoss(make_net(), **arguments)


def test_missing_labels_are_refused_with_the_way_out():
    x, _ = make_batch()
    with pytest.raises(
        BadInput, match="expected labels y for labels='given'; got None; pass y, or use labels"
    ):
        ShadowLoss(make_net())(x)


def test_the_shuffled_control_knows_the_image_shape():
    net = nn.Sequential(nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 3))
    loss = ShadowLoss(Shadow(net, input_shape=(1, 8, 8)), smooth=True, control="shuffled")
    assert loss(torch.rand(5, 64), torch.zeros(5, dtype=torch.long)).isfinite()


def test_negative_inputs_are_told_once_unless_the_shadow_is_signed():
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    x, y = torch.randn(8, 6), torch.zeros(8, dtype=torch.long)
    loss = ShadowLoss(net)
    with pytest.warns(UserWarning, match="expected inputs ≥ 0"):
        loss(x, y)
    loss(x, y)  # warnings are errors here: a second one would fail
    ShadowLoss(Shadow(net, signed=True))(x, y)
