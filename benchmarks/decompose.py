"""How long taking layers apart takes: large ones beside `W @ W.T`, small ones beside plain svdvals.

Two threads. Layers are profile × (signal + noise), as trained ones are; a noise layer would be faster.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import torch
from audit_memory import IMPORTS, MEGABYTE, peak_bytes
from measure import RESULTS, Outcome, alternate, compare, machine
from threadpoolctl import threadpool_limits
from torch import Tensor

from obverse.weights import decompose

THREADS = 2
Shape = tuple[int, int]

# Rows (outputs) × columns (inputs): query, output; key, value; gate, up; down of a block of Llama 3 8B.
LLAMA_BLOCK: tuple[Shape, ...] = (
    ((4096, 4096),) * 2 + ((1024, 4096),) * 2 + ((14336, 4096),) * 2 + ((4096, 14336),)
)
LLAMA_QUICK: tuple[Shape, ...] = ((4096, 4096), (1024, 4096), (14336, 4096))  # one of each kind


def resnet50() -> tuple[Shape, ...]:
    """The convolutions of a ResNet-50 as matrices on a patch, and its last layer."""
    shapes: list[Shape] = [(64, 3 * 49)]
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        shapes.append((4 * width, before))
        for _ in range(blocks):
            shapes += [(width, before), (width, 9 * width), (4 * width, width)]
            before = 4 * width
    return (*shapes, (1000, 2048))


def minilm() -> tuple[Shape, ...]:
    """MiniLM with 6 layers of width 384: attention, feed-forward, positions, pooler; not the vocabulary."""
    layer: tuple[Shape, ...] = ((384, 384),) * 4 + ((1536, 384), (384, 1536))
    return 6 * layer + ((512, 384), (384, 384))


def trained(shape: Shape, share: float, seed: int) -> Tensor:
    """Log-normal profile × (signal + noise); `share` of the directions, from 1.5 to 5 × the threshold."""
    rows, columns = shape
    generator = torch.Generator().manual_seed(seed)
    rank = max(1, round(share * min(shape)))
    left, right = (torch.linalg.qr(torch.randn(side, rank, generator=generator)).Q for side in shape)
    strengths = torch.linspace(1.5, 5.0, rank) * (rows * columns) ** 0.25
    matrix = torch.randn(shape, generator=generator).addmm_(left * strengths, right.T)
    for side, view in ((rows, (rows, 1)), (columns, (1, columns))):
        matrix *= (0.3 * torch.randn(side, generator=generator)).exp().view(view)
    return matrix.mul_(1 / math.sqrt(columns))


def short_side_up(layer: Tensor) -> Tensor:
    return layer if layer.shape[0] <= layer.shape[1] else layer.T


def against_product(name: str, shapes: Sequence[Shape], share: float, repetitions: int) -> Outcome:
    """One layer after the other; W @ W.T is the smaller of the two Gram matrices."""
    layers = [trained(shape, share, seed) for seed, shape in enumerate(shapes)]
    generator = torch.Generator().manual_seed(0)
    ranks: list[int] = []

    def take_apart() -> None:
        ranks[:] = [decompose(layer, generator=generator).rank for layer in layers]

    def multiply() -> None:
        for layer in layers:
            short_side_up(layer) @ short_side_up(layer).T

    seconds = alternate({"decompose": take_apart, "W @ W.T": multiply}, repetitions, warm_up=1)
    return compare(
        name,
        f"decompose ÷ W @ W.T, {len(shapes)} matrices of a Llama block, signal in {share:.1%} of directions",
        1.5,
        seconds,
        shapes=shapes,
        ranks=ranks,
        planted=[max(1, round(share * min(shape))) for shape in shapes],
    )


def against_values(name: str, net: str, shapes: Sequence[Shape], repetitions: int) -> Outcome:
    """Several layers at once on one thread each, as the audit does it; svdvals one after the other."""
    layers = [trained(shape, 0.04, seed) for seed, shape in enumerate(shapes)]

    def side_by_side(work: Callable[[Tensor], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                with threadpool_limits(1), ThreadPoolExecutor(THREADS, initializer=_one_thread) as pool:
                    list(pool.map(work, layers))
            finally:
                torch.set_num_threads(THREADS)

        return run

    def plain() -> None:
        for layer in layers:
            torch.linalg.svdvals(layer)

    sides = {
        "decompose": side_by_side(decompose),
        "svdvals": plain,
        "svdvals, side by side": side_by_side(torch.linalg.svdvals),
        "svdvals of the taller, side by side": side_by_side(
            lambda one: torch.linalg.svdvals(short_side_up(one).T)
        ),
    }
    seconds = alternate(sides, repetitions, warm_up=1)
    others = {
        side: compare("", "", 3.0, {key: seconds[key] for key in ("decompose", side)}).ratio
        for side in list(sides)[2:]
    }
    return compare(
        name,
        f"decompose ÷ svdvals, {len(shapes)} layers of a {net}",
        3.0,
        {key: seconds[key] for key in ("decompose", "svdvals")},
        ratio_to=others,
    )


def _one_thread() -> None:
    torch.set_num_threads(1)


DECOMPOSE = """
import sys, torch
from obverse.weights import decompose
rows, columns = int(sys.argv[1]), int(sys.argv[2])
weight = torch.empty(rows, columns).normal_(generator=torch.Generator().manual_seed(0))
decompose(weight)
"""


def memory(shapes: Sequence[Shape]) -> Outcome:
    """Of a fresh process for each shape, the layer itself included."""
    peaks = {f"{rows} × {columns}": peak_bytes(DECOMPOSE, rows, columns) for rows, columns in shapes}
    allowed = {f"{rows} × {columns}": 8 * rows * columns + 500 * MEGABYTE for rows, columns in shapes}
    ratios = {name: peaks[name] / allowed[name] for name in peaks}
    worst = max(ratios, key=ratios.__getitem__)
    return Outcome(
        "decompose_memory",
        f"peak memory ÷ (2 × layer + 500 MB), {worst}",
        ratios[worst],
        1.0,
        details={
            "ratios": ratios,
            "peak_megabytes": {name: peak / MEGABYTE for name, peak in peaks.items()},
            "imports_alone_megabytes": peak_bytes(IMPORTS) / MEGABYTE,
        },
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each side")
    parser.add_argument("--quick", action="store_true", help="one matrix of each kind; nothing is written")
    parser.add_argument("--only", nargs="+", help="names of results, in place of all")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    where, repetitions = machine(), max(2, arguments.repetitions)
    block = LLAMA_QUICK if arguments.quick else LLAMA_BLOCK
    measures: dict[str, Callable[[], Outcome]] = {
        "decompose_block": lambda: against_product("decompose_block", block, 0.002, repetitions),
        "decompose_block_many": lambda: against_product("decompose_block_many", block, 0.05, repetitions),
        "decompose_resnet50": lambda: against_values(
            "decompose_resnet50", "ResNet-50", resnet50(), repetitions
        ),
        "decompose_minilm": lambda: against_values("decompose_minilm", "MiniLM", minilm(), repetitions),
        "decompose_memory": lambda: memory(tuple(dict.fromkeys(block))),
    }
    print(Outcome.header())
    for name in arguments.only or measures:
        outcome = measures[name]()
        print(outcome, json.dumps(outcome.details, ensure_ascii=False), sep="\n    ", flush=True)
        if not arguments.quick:
            content = {**asdict(outcome), "holds": outcome.holds, "machine": where}
            text = json.dumps(content, indent=2, ensure_ascii=False)
            (RESULTS / f"{outcome.name}.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
