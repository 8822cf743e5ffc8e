"""Everything that docs/ladder.md shows, part after part; each part can be run alone.

python -m experiments.ladder.run       # an hour; what is there is not measured again
"""

from __future__ import annotations

from . import dynamics, gaps, overfitting, real, selectivity, sgd


def run() -> None:
    for part in (gaps, dynamics, selectivity, overfitting, sgd, real):
        part.measure_all()


if __name__ == "__main__":
    run()
