"""From which layer can my CNN still draw its input? Shadows of every layer, beside the same net shuffled."""

import torch

from obverse.data import load
from obverse.nets import small_cnn
from obverse.shadow import survey


def main() -> None:
    data = load("digits")
    net = small_cnn(data.input_shape, classes=10, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(data.train_x), data.train_y).backward()
        optimizer.step()
    found = survey(net, data.test_x[:200], data.test_y[:200])  # any net that torch.fx can trace
    print(f"The net is wrong on {100 * found.test_error:.1f} % of the pictures.")
    print("Share of shadows that it gives the label of their picture:")
    for layer in found.layers:
        own, shuffled, chance = layer.own.agreement, layer.shuffled.agreement, layer.own.chance
        print(
            f"  {layer.name:<8} {own:4.0%}   with weights shuffled {shuffled:4.0%}   by chance {chance:4.0%}"
        )
    drawn = [layer.name for layer in found.layers if layer.own.agreement > 0.9]
    print(f"More than nine in ten keep their label when drawn from: {', '.join(drawn) or 'no layer'}.")
    print("Where shuffled weights do nearly as well, the drawing owes little to training.")


if __name__ == "__main__":
    main()
