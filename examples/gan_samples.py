"""Has my GAN collapsed, or does it hand back its training set? A folder of its samples tells.

python examples/gan_samples.py [samples/ train/ held-out/]    three folders of pictures of one size
"""

import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image

from obverse.data import load
from obverse.diversity import birthday_test, memorization, open_source


def make_samples(folder: Path, training: torch.Tensor) -> Path:
    """What a bad GAN would have written: 60 training pictures over and over, with a little noise."""
    noisy = training[torch.randint(60, (600,))] + 0.03 * torch.randn(600, 1, 8, 8)
    for number, picture in enumerate((noisy.clamp(0, 1) * 255).byte().numpy()):
        Image.fromarray(picture[0]).save(folder / f"{number:03}.png")
    return folder


def main() -> None:
    torch.manual_seed(0)
    if sys.argv[1:]:
        samples, train, held_out = (open_source(path).pool for path in sys.argv[1:4])
    else:
        data = load("digits")
        train, held_out = data.train_x, data.test_x
        with tempfile.TemporaryDirectory() as folder:
            samples = open_source(make_samples(Path(folder), train)).pool
    found = birthday_test(samples, real=held_out)
    print("Collapsed?", f"yes (p = {found.p_real:.2g});" if found.p_real < 0.05 else "no sign;", found)
    print(f"Copied? {memorization(samples, train, held_out)}.")


if __name__ == "__main__":
    main()
