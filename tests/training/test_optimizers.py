"""Adam and SGD by their names, and their state carried over in plain tensors."""

import pytest
import torch

from obverse.training import Settings
from obverse.training._optimizers import make_optimizer, optimizer_tensors, restore_optimizer


def make_net() -> torch.nn.Linear:
    net = torch.nn.Linear(3, 2)
    torch.nn.init.normal_(net.weight, generator=torch.Generator().manual_seed(0))
    torch.nn.init.zeros_(net.bias)
    return net


def step(net: torch.nn.Linear, optimizer: torch.optim.Optimizer, number: int) -> None:
    x = torch.rand(4, 3, generator=torch.Generator().manual_seed(number))
    optimizer.zero_grad()
    net(x).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("changes", [{}, {"momentum": 0.0}, {"optimizer": "adam"}, {"weight_decay": 0.1}])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_carried_over_it_goes_on_to_the_bit(changes, before):
    settings = Settings(lr=0.01, **changes)
    nets = [make_net(), make_net()]
    first, second = (make_optimizer(settings, net) for net in nets)
    for number in range(before):
        step(nets[0], first, number)
    nets[1].load_state_dict(nets[0].state_dict())
    kept = {name: tensor.clone() for name, tensor in optimizer_tensors(first, nets[0]).items()}
    restore_optimizer(second, nets[1], kept)
    for number in range(before, before + 3):
        step(nets[0], first, number)
        step(nets[1], second, number)
        assert torch.equal(nets[0].weight, nets[1].weight)


def test_adam_is_adam():
    """One step of Adam moves every weight by the rate against its gradient's sign, up to its epsilon."""
    net = make_net()
    before = net.weight.detach().clone()
    step(net, make_optimizer(Settings(lr=0.01, optimizer="adam"), net), 0)
    torch.testing.assert_close(net.weight.detach(), before - 0.01 * net.weight.grad.sign(), rtol=0, atol=1e-6)
