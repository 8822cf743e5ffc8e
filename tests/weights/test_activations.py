"""Activations of named modules against a plain forward pass; the net is left as it was."""

import pytest
import torch
from scipy.stats import chisquare
from torch import nn

from obverse._core.errors import BadInput
from obverse.weights._activations import own_activations


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Net(nn.Module):
    """A convolution, a sequence of linear outputs, and a module that never runs."""

    def __init__(self):
        super().__init__()
        self.picture = nn.Conv2d(1, 5, 3)
        self.drop = nn.Dropout(0.5)
        self.words = nn.Linear(5, 7)
        self.line = nn.Conv1d(7, 4, 2)
        self.unused = nn.Linear(3, 3)
        for index, parameter in enumerate(self.parameters()):
            nn.init.normal_(parameter, generator=seeded(index))

    def forward(self, x):
        x = self.drop(self.picture(x)).relu().flatten(2)  # batch × 5 × positions
        x = self.words(x.movedim(1, 2))  # batch × positions × 7
        return self.line(x.movedim(1, 2))


def pictures(count: int) -> torch.Tensor:
    return torch.randn(count, 1, 6, 5, generator=seeded(9))


def by_hand(net: Net, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """All rows of each module: channels at a position, in evaluation mode."""
    with torch.no_grad():
        picture = net.picture(x)
        words = net.words(picture.relu().flatten(2).movedim(1, 2))
        line = net.line(words.movedim(1, 2))
    rows = {
        "picture": picture.permute(0, 2, 3, 1).reshape(-1, 5),
        "words": words.reshape(-1, 7),
        "line": line.permute(0, 2, 1).reshape(-1, 4),
    }
    return {name: one.relu() for name, one in rows.items()}


NAMES = ["picture", "words", "line", "unused"]


@pytest.mark.parametrize("samples", [10, 10_000])
def test_rows_are_channels_at_a_position_behind_the_relu(samples):
    net = Net()
    x = pictures(40)
    found = own_activations(net, x, NAMES, samples=samples, generator=seeded(1))
    every = by_hand(net, x)
    assert found.keys() == every.keys()
    for name, rows in found.items():
        assert rows.shape == (min(samples, len(every[name])), every[name].shape[1])
        assert rows.dtype == torch.float32
        distances = torch.cdist(rows, every[name], compute_mode="donot_use_mm_for_euclid_dist")
        # a batch of another size sums in another order: float32 rounding on numbers of size 10
        assert float(distances.min(1).values.max()) < 1e-4
        if samples > len(every[name]):
            assert float(distances.min(0).values.max()) < 1e-4


def test_rows_are_drawn_without_favour():
    """Each position of each input has the same chance, in whichever batch it runs."""
    net = nn.Linear(1, 1, bias=False)
    nn.init.ones_(net.weight)
    x = torch.arange(1.0, 101)[:, None]
    generator, counts = seeded(2), torch.zeros(100)
    for _ in range(200):
        rows = own_activations(net, x, [""], samples=20, generator=generator)[""]
        values = rows[:, 0].long()
        assert len(values.unique()) == 20
        counts[values - 1] += 1
    # 200 × 20 draws without replacement vary a little less than a multinomial
    assert chisquare(counts.numpy()).pvalue > 1e-3


def test_rows_come_from_all_that_was_run():
    net, batches = nn.Sequential(nn.Linear(1, 1, bias=False)), []
    nn.init.ones_(net[0].weight)
    net.register_forward_hook(lambda module, inputs, output: batches.append(output.unique()))
    x = torch.arange(1.0, 101)[:, None, None].expand(100, 50, 1)  # 50 positions an input
    rows = own_activations(net, x, ["0"], samples=20, generator=seeded(3))["0"]
    assert [len(batch) for batch in batches] == [32, 32, 16]
    for batch in batches:
        # 20 rows all miss a batch of 16 inputs among 80 with a chance of 0.8²⁰ = 1 %; the seed is fixed
        assert torch.isin(rows, batch).any()


def test_the_net_is_left_as_it_was_even_on_error():
    net = Net().train()
    net.words.eval()
    modes = [module.training for module in net.modules()]
    own_activations(net, pictures(3), NAMES, generator=seeded())
    for bad in (lambda: torch.ones(2, 3), lambda: pictures(3).expand(3, 2, 6, 5)):
        with pytest.raises(BadInput, match="expected data that the net takes"):
            own_activations(net, bad(), NAMES, generator=seeded())
    with pytest.raises(BadInput, match=r"expected names of modules of the net; got 'nothing'; see net.named"):
        own_activations(net, pictures(3), ["words", "nothing"], generator=seeded())
    assert [module.training for module in net.modules()] == modes
    assert all(not module._forward_hooks for module in net.modules())
    assert all(parameter.grad is None for parameter in net.parameters())


def test_only_as_many_inputs_are_run_as_are_needed():
    net, seen = nn.Sequential(nn.Linear(2, 3)), []
    net.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    own_activations(net, torch.rand(10_000, 2), ["0"], samples=30, generator=seeded())
    assert sum(seen) == 120
    assert max(seen) <= 32


def test_types_follow_the_net_and_tokens_stay_whole():
    net = nn.Sequential(nn.Linear(4, 3)).double()
    assert own_activations(net, torch.rand(5, 4), ["0"], generator=seeded())["0"].dtype == torch.float32
    words = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3))
    tokens = torch.randint(10, (6, 8), generator=seeded())
    assert own_activations(words, tokens, ["1"], generator=seeded())["1"].shape == (48, 3)


def test_a_module_called_twice_gives_rows_from_both_calls():
    net = nn.Linear(2, 2)
    twice = nn.Sequential(net, nn.ReLU(), net)
    assert len(own_activations(twice, torch.rand(5, 2), ["0"], generator=seeded())["0"]) == 10


def test_no_data_gets_a_sentence():
    with pytest.raises(BadInput, match="expected inputs to run the net on; got an empty batch; pass some"):
        own_activations(nn.Linear(2, 2), torch.empty(0, 2), [""], generator=seeded())
