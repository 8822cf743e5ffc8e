"""Has fine-tuning changed my weights, and in which layers does it show?

python examples/finetuned.py [before.safetensors after.safetensors]
"""

import sys

import torch

import obverse
from obverse.data import load
from obverse.nets import relu_mlp


def trained(net: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> obverse.Audit:
    optimizer = torch.optim.Adam([one for one in net.parameters() if one.requires_grad], lr=2e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return obverse.audit(net, generator=torch.Generator().manual_seed(0))  # equal layers: equal numbers


def main() -> None:
    if sys.argv[1:]:
        before, after = (
            obverse.audit(path, generator=torch.Generator().manual_seed(0)) for path in sys.argv[1:3]
        )
    else:  # a net that has begun to tell odd from even is taught all ten digits, its first layer frozen
        data, generator = load("digits"), torch.Generator().manual_seed(0)
        net = relu_mlp(data.input_shape, hidden=(200, 200), classes=10, generator=generator)
        before = trained(net, data.train_x, data.train_y % 2, steps=10)
        net.h1.requires_grad_(False)
        after = trained(net, data.train_x, data.train_y, steps=200)
    print(obverse.compare_audits(before, after), "* clearly: by more than twice the standard error", sep="\n")


if __name__ == "__main__":
    main()
