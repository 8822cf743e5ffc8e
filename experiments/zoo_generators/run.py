"""What can be said of public generators without their training sets?

    python -m experiments.zoo_generators.run ZOO [--only NAME] [--out DIR]

ZOO holds the folders dcgan-eyes and progan-celeba-128. Images are averaged down to 32 × 32 before they are
compared; results/NAME has the record and the pictures of its page.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from obverse._core.files import write_text
from obverse._core.records import record_text
from obverse.diversity import assess
from obverse.diversity.charts import write_pictures
from obverse.diversity.results import FORMAT, NAME

from .._lab.places import RUNS
from .nets import ProgressiveGAN, dcgan

RESULTS = Path(__file__).parent / "results"
SIDE = 32
BATCH = 16
OPEN: dict[str, Callable[[Path], Any]] = {"dcgan-eyes": dcgan, "progan-celeba-128": ProgressiveGAN}
SIZES = {"dcgan-eyes": (600, 1000), "progan-celeba-128": (24, 16)}  # samples, and those of the birthday test


def sampler_of(net: Any, side: int = SIDE) -> Callable[[int, torch.Generator], Tensor]:
    """Normal seeds to images, averaged down."""

    def sample(count: int, generator: torch.Generator) -> Tensor:
        seeds = torch.randn(count, net.latent, generator=generator)
        with torch.no_grad():
            parts = [functional.adaptive_avg_pool2d(net(part), side) for part in seeds.split(BATCH)]
        return torch.cat(parts)

    return sample


def look(name: str, folder: Path, out: Path) -> None:
    samples, budget = SIZES[name]
    sampler = sampler_of(OPEN[name](folder))
    sampler.__name__ = name
    generator = torch.Generator().manual_seed(0)
    settings = {"source": name, "samples": samples, "budget": budget, "seed": 0}
    found, pictures = assess(
        sampler, samples=samples, budget=budget, batches=4, generator=generator, settings=settings
    )
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / NAME, record_text(found, FORMAT))
    write_pictures(out, pictures)
    print(found, flush=True)


def run(zoo: Path = RUNS / "zoo", only: str = "", out: Path = RESULTS) -> None:
    """Each of them, or one."""
    torch.set_num_threads(1)
    for name in [only] if only else OPEN:
        look(name, zoo / name, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("zoo", type=Path)
    parser.add_argument("--only", choices=tuple(OPEN), default="")
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    run(asked.zoo, asked.only, asked.out)


if __name__ == "__main__":
    main()
