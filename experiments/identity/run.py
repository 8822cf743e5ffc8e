"""What docs/identity.md shows, without the all-convolutional net (experiments/allconv): three parts in turn.

python -m experiments.identity.run      # 25 minutes; needs CIFAR-10
"""

from __future__ import annotations

from . import factors, landscape, memorize


def run() -> None:
    factors.run()
    landscape.run()
    memorize.run()


if __name__ == "__main__":
    run()
