"""Both experiments of docs/results.md in turn: 5,000 labels, and all of MNIST at the paper's width.

python -m experiments.mnist.run --data-root DIR          (DIR/mnist holds the official files)
"""

from __future__ import annotations

import argparse

from . import labels, width


def run(data_root: str | None = None) -> None:
    labels.measure_all(data_root)
    width.measure_all(data_root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/")
    run(parser.parse_args().data_root)


if __name__ == "__main__":
    main()
