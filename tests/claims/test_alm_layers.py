"""Two, three and more layers: state evolution against closed forms and simulation, measures, bad settings."""

import numpy as np
import pytest
import torch
from scipy import stats

from obverse._core.errors import BadInput
from obverse.claims.alm import _depth as depth
from obverse.claims.alm import _entrywise as entrywise
from obverse.claims.alm import _three_layers as three_layers
from obverse.claims.alm import _two_layers as two_layers
from obverse.claims.alm._evolution import State, critical_ratio, evolve
from obverse.claims.alm._hidden import draw_hidden
from obverse.claims.alm._stack import Stack
from obverse.shadow import best_threshold, recovery_error


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("n", "t", "m", "k"), [(2000, 500, 300, 20), (800, 800, 50, 50), (10_000, 4000, 40, 1)]
)
def test_one_layer_is_the_closed_form_of_one_layer(n: int, t: int, m: int, k: int) -> None:
    h = torch.zeros(m)
    h[:k] = 1
    closed = float(recovery_error(h, t, best_threshold(h, t, n), n))
    # the same formula twice, each with its own search; best_threshold looks at θ ≥ 0 only
    (layer,) = evolve((n, m), (t, k))
    assert layer.error <= closed * (1 + 1e-6)
    if m > k:
        assert layer.error == pytest.approx(closed, rel=1e-5)


def test_dropping_half_of_x_is_half_as_many_kept() -> None:
    (halved,) = evolve((10**9, 300), (1000, 10), halved=True)
    (fewer,) = evolve((10**9, 300), (500, 10))
    assert halved.error == pytest.approx(fewer.error, rel=1e-6)


def test_the_sums_of_a_layer_against_quadrature() -> None:
    signal, noise, offset, active, silent = 0.7, 0.6, 0.4, 50.0, 90.0
    layer = State(signal, noise, 0.05, active, silent, equal=False).at(offset)

    g, u = np.linspace(-9, 9, 1801), np.linspace(0, 9, 901)[:, None]
    spread = np.sqrt(noise**2 * (1 - u**2 / active) + 0.05 * u**2)
    found = np.maximum(signal * u + spread * g - offset, 0)

    def mean(values: np.ndarray) -> float:
        density = stats.norm.pdf(g) * 2 * stats.norm.pdf(u)
        return float(np.trapezoid(np.trapezoid(values * density, g, axis=1), u[:, 0]))

    zero = np.trapezoid(np.maximum(noise * g - offset, 0) ** 2 * stats.norm.pdf(g), g)
    energy = active * mean(found**2) + silent * zero
    product = mean(u * found)
    # the trapezoid rule in steps of 0.01 has errors of 1e-4 at most, 0.01·density where a step jumps
    assert layer.energy == pytest.approx(energy, rel=1e-4)
    assert layer.error == pytest.approx(energy / active - 2 * product + 1, rel=1e-3)
    assert layer.misalignment == pytest.approx(1 - active * product**2 / energy, rel=1e-3)
    assert layer.kept == pytest.approx(mean((found > 0).astype(float)), abs=2e-3)


def test_signal_and_noise_of_the_second_layer_against_a_simulation() -> None:
    """ĥ^(2) = a·h + noise, with a the share of layer 1 that stays: from explicit W, at given offsets."""
    n0, k1, n1, k2, n2 = 1500, 300, 600, 10, 300
    random = generator(5)
    h = torch.zeros(n2)
    h[:k2] = k2**-0.5
    signals, noises = [], []
    offset = 1.2  # in units of σ of layer 1
    for _ in range(20):
        upper, lower = (torch.randn(shape, generator=random) for shape in ((n1, n2), (n0, n1)))
        mask = torch.rand(n1, generator=random) < k1 / n1
        first = 2 / k1 * torch.relu(upper @ h) * mask
        x = 2 / n0 * torch.relu(lower @ first)
        estimate = upper.T @ torch.relu(lower.T @ x - offset * 2 / k1)
        signals.append(float(estimate[:k2].mean()) * k2**0.5)
        noises.append(float(estimate[k2:].square().mean()))
    layer = State(1.0, (k1 / n0) ** 0.5, 0.0, k1 / 2, n1 - k1 / 2, equal=False).at(offset)
    for found, predicted in ((signals, layer.kept), (noises, layer.energy * 4 / k1**2)):
        error = float(np.std(found, ddof=1)) / 20**0.5
        # 5 standard errors, and 1/k1 of what is left out (wobble, noise along h)
        assert abs(np.mean(found) - predicted) < 5 * error + predicted / k1 * 3


def test_evolution_agrees_with_nets_of_two_layers() -> None:
    setting = {"k0": 1200, "r": 4, "c": 2, "k": 20, "n": 80, "depth": 2, "nets": 6, "draws": 64}
    for measure, predict in (
        (depth.measure_squared, depth.predict_squared),
        (depth.measure_direction, depth.predict_direction),
    ):
        values = measure(setting, generator(1))
        error = float(np.std(values, ddof=1)) / 6**0.5
        # 6 standard errors of 6 nets, and 6/k1 = 2 % for norms that vary
        assert abs(np.mean(values) - predict(setting)) < 6 * error + 0.02 * predict(setting)


def test_critical_ratio_tells_where_depth_has_no_end() -> None:
    critical = critical_ratio(2)

    def kept(ratio: float, layers: int) -> float:
        sparsities = [1e6 * ratio ** (layers - layer) for layer in range(layers + 1)]
        widths = [sparsities[0], *(2 * kept for kept in sparsities[1:])]
        return evolve(widths, sparsities, direction=True)[-1].misalignment

    # above, the last of many layers is as good as the one before; below, it tends to what a constant answers
    above, below = 1.1 * critical, 0.9 * critical
    assert kept(above, 40) == pytest.approx(kept(above, 41), abs=1e-3)
    assert kept(above, 40) < 0.45
    assert kept(below, 40) > 0.49
    assert critical_ratio(1) < critical < critical_ratio(4)


def test_the_worst_entry_of_a_net_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same draws, replayed without the stack's own search and inference."""
    setting = {"k2": 8, "k1": 20, "k0": 50, "n2": 16, "n1": 40, "nets": 1, "draws": 32}
    seen: dict[str, torch.Tensor] = {}

    def search(stack, layers, steps, drops):  # type: ignore[no-untyped-def]
        seen.update(weights=stack.weights)
        return (0.0, 0.1)

    draws = []
    original = Stack.generate

    def generate(self, top, random):  # type: ignore[no-untyped-def]
        draws.append(original(self, top, random))
        return draws[-1]

    monkeypatch.setattr(entrywise, "search_offsets", search)
    monkeypatch.setattr(Stack, "generate", generate)
    (found,) = entrywise.measure_relative(setting, generator())
    x, _, top = draws[1]
    lower, upper = seen["weights"]
    answer = np.maximum(np.maximum(x.numpy() @ lower.numpy(), 0) @ upper.numpy() - 0.1, 0)
    worst = ((answer - top.numpy()) ** 2).mean(0).max()
    tau = top.numpy().sum(1).mean() / 8
    assert found == pytest.approx(worst / tau**2, rel=1e-4)


def test_the_mean_entry_of_each_layer() -> None:
    setting = {"k2": 100, "k1": 400, "k0": 1600, "n2": 200, "n1": 800, "scale": 3.0, "nets": 8, "draws": 64}
    for layer in (1, 2):
        chosen = {**setting, "layer": layer}
        taus = [tau for _, tau in entrywise.worst_errors(chosen, generator(2))]
        # ‖h‖ = 3 fixes the mean up to 1/k2; 64 draws of 8 nets leave less than 2 %
        assert np.mean(taus) == pytest.approx(two_layers.entry_mean(chosen), rel=0.02)


def test_rates_and_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {"k2": 10, "k1": 40, "k0": 80, "n2": 20, "n1": 100}
    assert two_layers.printed_rate(two) == pytest.approx(0.25 * np.log(200))
    assert two_layers.rate(two) == pytest.approx(0.75 * np.log(200))
    assert two_layers.bound(two) == two_layers.answering_zero(two) < 0.75 * 3
    monkeypatch.setattr(two_layers, "answering_zero", lambda setting: np.inf)
    assert two_layers.bound(two) == pytest.approx(2.25)
    assert two_layers.bound({**two, "drop": 1}) == pytest.approx(4.5)
    three = three_layers.layers(10, 4, 3, 2)
    assert two_layers.bound(three) == pytest.approx(3 * (1 / 4 + 2 / 3))
    assert three_layers.printed_rate(three) == pytest.approx(np.log(360 + 240 + 80 + 20) / 4)


def test_what_an_answer_of_zero_has() -> None:
    """E h_i²/τ² from draws: 20,000 of them leave 1 % (τ is a mean over them, as where it is measured)."""
    for setting in ({"k2": 40, "k1": 60, "k0": 90, "n2": 100, "n1": 60}, three_layers.layers(12, 3, 3, 2)):
        top = 3 if "k3" in setting else 2
        h = draw_hidden(20_000, setting[f"n{top}"], setting[f"k{top}"], "half-normal", generator())
        tau = float(h.sum(1).mean()) / setting[f"k{top}"]
        # the norm of k half-normals varies, by 1/(2k) of its square: so much larger is τ² of ‖h‖ = 1
        near = 0.01 + 1 / setting[f"k{top}"]
        assert float(h.square().mean()) / tau**2 == pytest.approx(
            two_layers.answering_zero(setting), rel=near
        )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k1": 10}, "k2 < k1 < k0"),
        ({"k0": 100}, "k0 < k2²"),
        ({"n1": 30}, "1 ≤ k_1 ≤ n_1"),
    ],
)
def test_settings_outside_theorem_3_1_are_refused(change: dict[str, int], sentence: str) -> None:
    setting = {"k2": 10, "k1": 40, "k0": 80, "n2": 20, "n1": 100, "nets": 1, "draws": 2, **change}
    for of in (two_layers.bound, lambda bad: entrywise.measure_relative(bad, generator())):
        with pytest.raises(BadInput, match=sentence):
            of(setting)


def test_settings_outside_theorem_3_2_are_refused() -> None:
    setting = {
        "k3": 90,
        "k2": 100,
        "k1": 200,
        "k0": 300,
        "n3": 90,
        "n2": 100,
        "n1": 200,
        "nets": 1,
        "draws": 2,
    }
    with pytest.raises(BadInput, match="√k3·k2 < k0"):
        two_layers.bound(setting)


def test_a_schedule_that_runs_out_of_units_is_refused() -> None:
    setting = {"k0": 16, "r": 4, "c": 1, "k": 1, "n": 4, "depth": 6, "nets": 1, "draws": 2}
    with pytest.raises(BadInput, match="1 ≤ k_3 ≤ n_3"):
        depth.predict_squared(setting)
