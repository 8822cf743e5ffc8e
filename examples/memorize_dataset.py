"""Can a net memorize a data set without training, even with random labels? And what is that worth?

python examples/memorize_dataset.py [mydata.npz with x and y]
"""

import sys

import torch

from obverse.data import load
from obverse.identity import memorize


def main() -> None:
    data = load(sys.argv[1] if sys.argv[1:] else "digits")
    order = torch.randperm(len(data.train_y), generator=torch.Generator().manual_seed(0))
    guessing = 100 - 100 / len(data.classes)
    for name, y in (("its own labels", data.train_y), ("labels dealt at random", data.train_y[order])):
        net = memorize(data.train_x, y, generator=torch.Generator().manual_seed(0))
        error = 100 * float((net(data.test_x).argmax(1) != data.test_y).double().mean())
        print(f"{data.name} with {name}, without a training step:")
        print(f"  {net.facts}")
        print(f"  on new points {error:.0f} % wrong; guessing would be {guessing:.0f} %")
    print("To be perfect on what one has seen says little about the rest.")


if __name__ == "__main__":
    main()
