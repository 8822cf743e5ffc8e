"""Does SHADOW help in my own training loop, and is it the shadows that help? With a control."""

import torch

from obverse import ShadowLoss
from obverse.data import load
from obverse.nets import relu_mlp

METHODS = {"shadows": {}, "no second batch": {"weight": 0.0}, "noise in their place": {"control": "noise"}}


def test_error(seed: int, **options: float | str) -> float:
    data, generator = load("digits"), torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(data.train_y), generator=generator)[:200]  # few labels: there is room to gain
    net = relu_mlp(data.input_shape, hidden=(200, 200), classes=10, generator=generator)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loss = ShadowLoss(net, normalize=True, generator=generator, **options)  # the one line
    for batch in rows[torch.randint(200, (160, 50), generator=generator)]:
        optimizer.zero_grad()
        loss(data.train_x[batch], data.train_y[batch]).backward()
        optimizer.step()
    return 100 * float((net(data.test_x).argmax(1) != data.test_y).double().mean())


def main() -> None:
    errors = {name: torch.tensor([test_error(s, **how) for s in range(5)]) for name, how in METHODS.items()}
    own = errors.pop("shadows")
    print(f"shadows: test error {own.mean():.1f} %")
    helped = True
    for name, error in errors.items():
        gap = own - error  # seed by seed: the same labels, the same first weights
        spread = gap.std() / len(gap) ** 0.5
        helped = helped and bool(gap.mean() < -2 * spread)
        print(f"{name}: test error {error.mean():.1f} %; shadows differ by {gap.mean():+.1f} ± {spread:.1f}")
    print("Here shadows helped." if helped else "Here nothing says that it is shadows that help.")


if __name__ == "__main__":
    main()
