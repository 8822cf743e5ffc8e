"""Does `difference` tell rounding from updates, and lineage from none? Pairs of which the truth is known.

    python -m experiments.difference.run                    (one core, about an hour)
    python -m experiments.difference.run --zoo DIR          (real layers too: minilm-l6, minilm-l6-fp16)
    python -m experiments.difference.run --quick            (a few of each, into runs/quick)

Rounding: matrices of four kinds against their copies in other formats. Updates: rank 1, 4 and 16, each
direction a multiple of the strength θ = ε (rows · columns)^¼ at which a direction begins to show beside the
error of rounding, of root mean square ε: step / √12, times √2 where both files are rounded. Dense: changes of
full rank. Lineage: nets of 64-32-16-10 trained on the embedded digits, in disjoint pairs, and nets trained
further. Each entry of the results is written as it is done, and none is measured twice.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from obverse.data import load
from obverse.weights import difference, open_weights

from .._lab.places import RUNS
from .._lab.result_files import measure

FILE = Path(__file__).parent / "results" / "difference.json"
QUICK_FILE = RUNS / "quick" / "difference" / "difference.json"
SHAPE = (256, 384)
FAMILIES = ("normal", "log-normal profile", "Student t5")
RANKS = (1, 4, 16)
PART = 50  # pairs of nets in an entry of the results
BITS = 7  # of bfloat16's mantissa, after the leading one


def own_generator(*names: object) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32("/".join(map(str, names)).encode()))


def matrix(family: str, generator: torch.Generator, shape: tuple[int, int] = SHAPE) -> Tensor:
    """Entries of about 0.02, as trained layers have them."""
    values = torch.randn(shape, generator=generator)
    if family == "log-normal profile":
        sides = (
            torch.randn(shape[0], 1, generator=generator),
            torch.randn(1, shape[1], generator=generator),
        )
        values = values * (sides[0] / 2).exp() * (sides[1] / 2).exp()
    elif family == "Student t5":
        values = values / (torch.randn(5, *shape, generator=generator).square().mean(0)).sqrt()
    elif family == "with a signal":
        values = values + 2 * update(shape, 8, math.sqrt(shape[0]), generator).float()
    return 0.02 * values


def update(shape: tuple[int, int], rank: int, strength: float, generator: torch.Generator) -> Tensor:
    """Equal singular values in random directions, float64."""
    sides = [
        torch.linalg.qr(torch.randn(side, rank, generator=generator, dtype=torch.float64))[0]
        for side in shape
    ]
    return strength * sides[0] @ sides[1].T


def step(values: Tensor) -> Tensor:
    """Between neighbouring numbers of bfloat16."""
    return torch.exp2(values.double().abs().log2().floor() - BITS)


def on_grid(values: Tensor, bits: int, block: int | None) -> Tensor:
    """Rounded to whole multiples of a scale (float16), for each block of a row or for all."""
    grouped = values.reshape(1, -1) if block is None else values.reshape(-1, block)
    most = 2 ** (bits - 1) - 1
    scale = (grouped.abs().amax(1, keepdim=True) / most).half().float()
    return ((grouped / scale).round().clamp(-most, most) * scale).reshape(values.shape)


COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "bfloat16": lambda w: w.bfloat16(),
    "float16": lambda w: w.half(),
    "bfloat16 in a float32 file": lambda w: w.bfloat16().float(),
    "float8 e4m3": lambda w: w.to(torch.float8_e4m3fn),
    "bfloat16, cut off": lambda w: (w.view(torch.int32) & ~0xFFFF).view(torch.float32).bfloat16(),
    "int8, a scale for all": lambda w: on_grid(w, 8, None),
    "int8, a scale for each row": lambda w: on_grid(w, 8, w.shape[1]),
    "int8, a scale for 32, in float16": lambda w: on_grid(w, 8, 32).half(),
    "int8, a scale for each row, in bfloat16": lambda w: on_grid(w, 8, w.shape[1]).bfloat16(),
    "int4, a scale for 32": lambda w: on_grid(w, 4, 32),
    "int4, a scale for 128, in float16": lambda w: on_grid(w, 4, 128).half(),
}


def changes(pairs: list[tuple[Tensor, Tensor]], *names: object) -> list[Any]:
    """Of (tuned, base), each alone."""
    return [
        difference({"w.weight": tuned}, {"w.weight": base}, generator=own_generator(*names, at)).layers[0]
        for at, (tuned, base) in enumerate(pairs)
    ]


def told(found: list[Any], right: int | None = None) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "pairs": len(found),
        "changes": dict(Counter(one.change for one in found).most_common()),
        "with directions": sum((one.rank or 0) > 0 for one in found),
    }
    if right is not None:
        counts["right rank"] = sum(one.rank == right and not one.rank_is_bound for one in found)
        counts["rank"] = dict(Counter(str(one.rank) for one in found).most_common())
    return counts


def rounding(copy: str, trials: int) -> dict[str, Any]:
    found = []
    for family in (*FAMILIES, "with a signal"):
        for at in range(trials):
            base = matrix(family, own_generator(copy, family, at))
            found += changes(
                [(COPIES[copy](base), base), (base, COPIES[copy](base))],
                copy,
                family,
                at,
            )
    return told(found)


def real(folder: Path, copy: str) -> dict[str, Any]:
    """Every matrix of MiniLM-L6 against a copy, or against the file that others have rounded."""
    base = folder / "minilm-l6"
    if copy == "the published float16 file":
        return told(list(difference(folder / "minilm-l6-fp16", base, generator=own_generator(copy))))
    pairs = []
    for one in open_weights(base):
        if one.rows * one.columns < 2**23:
            pairs.append((COPIES[copy](one.load()), one.load()))
    return told(changes(pairs, "real", copy))


BASES = (
    "float32",
    "bfloat16: the update is rounded into it",
    "bfloat16: both rounded from float32",
)


def updates(family: str, base_kind: str, rank: int, times: float, trials: int) -> dict[str, Any]:
    """Of base + an update, saved in bfloat16, against base."""
    found = []
    for at in range(trials):
        own = own_generator(family, base_kind, rank, times, at)
        master = matrix(family, own)
        if base_kind == BASES[1]:
            master = master.bfloat16().float()
        noise = math.sqrt(float(step(master).square().mean()) / 12) * (
            math.sqrt(2) if base_kind == BASES[2] else 1
        )
        strength = times * noise * math.prod(SHAPE) ** 0.25
        tuned = (master.double() + update(SHAPE, rank, strength, own)).bfloat16()
        found += changes([(tuned, master if base_kind == BASES[0] else master.bfloat16())], at)
    return told(found, rank)


def dense(family: str, size: float, stored: str, trials: int) -> dict[str, Any]:
    """A change of full rank, `size` times the typical step of bfloat16 in every number."""
    found = []
    for at in range(trials):
        own = own_generator("dense", family, size, stored, at)
        base = matrix(family, own)
        moved = base + size * float(step(base).median()) * torch.randn(SHAPE, generator=own)
        pair = (moved, base) if stored == "float32" else (moved.bfloat16(), base.bfloat16())
        found += changes([pair], at)
    return told(found)


def trained(seed: int, steps: int, x: Tensor, y: Tensor) -> nn.Sequential:
    """Uniform initial weights as PyTorch has them, then Adam at 0.01 in batches of 128."""
    own = own_generator("net", seed)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10))
    with torch.no_grad():
        for one in net.parameters():
            bound = (one.shape[1] if one.ndim > 1 else 32) ** -0.5
            one.copy_((2 * torch.rand(one.shape, generator=own) - 1) * bound)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        at = torch.randint(len(x), (128,), generator=own)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[at]), y[at]).backward()
        optimizer.step()
    return net


def lineages(first: int, pairs: int, related: bool) -> dict[str, Any]:
    """P-values of disjoint pairs of independent trainings, or of nets and what they became."""
    data = load("digits")
    x, y = data.train_x.flatten(1), data.train_y
    chances, accuracy = [], []
    for at in range(first, first + pairs):
        base = trained(2 * at, 200, x, y)
        tuned = trained(2 * at, 600, x, y) if related else trained(2 * at + 1, 200, x, y)
        found = difference(tuned, base, generator=own_generator("lineage", at)).lineage
        chances.append(float(found.p if found.p is not None else math.nan))
        accuracy.append(float((base(data.test_x.flatten(1)).argmax(1) == data.test_y).double().mean()))
    return {
        "p": chances,
        "layers": len(found.layers),
        "test accuracy": sum(accuracy) / pairs,
    }


def output_rows(pairs: int) -> dict[str, Any]:
    """The same test asked of the output layer, whose rows are classes: why it may not be."""
    from obverse.weights._difference.lineage import match_rows

    data = load("digits")
    x, y = data.train_x.flatten(1), data.train_y
    chances = []
    for at in range(pairs):
        nets = []
        for seed in (2 * at, 2 * at + 1):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                net = nn.Linear(64, 10)
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
            own = own_generator("output", seed)
            for _ in range(200):
                few = torch.randint(len(x), (128,), generator=own)
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x[few]), y[few]).backward()
                optimizer.step()
            nets.append(net)
        found = match_rows(
            nets[0].weight.detach(),
            nets[1].weight.detach(),
            generator=own_generator(at),
            draws=999,
        )
        assert found is not None
        chances.append(found[2])
    return {"p": chances}


def entries(quick: bool, zoo: Path | None) -> dict[str, Callable[[], Any]]:
    few = 1 if quick else 20
    made: dict[str, Callable[[], Any]] = {}
    made |= {f"rounding/{copy}": partial(rounding, copy, 1 if quick else 10) for copy in COPIES}
    for kind, parts in (
        ("independent", 1 if quick else 8),
        ("related", 1 if quick else 2),
    ):
        for part in range(parts):
            pairs = 5 if quick else PART
            name = f"lineage/{kind}/{part}"
            made[name] = partial(lineages, PART * part, pairs, kind == "related")
    made["lineage/output rows"] = partial(output_rows, 5 if quick else PART)
    for family in FAMILIES:
        for size in (0.05, 1.0, 20.0):
            for stored in ("float32", "bfloat16"):
                made[f"dense/{family}/{size:g}/{stored}"] = partial(dense, family, size, stored, few)
    for times in (1.5, 1.0, 3.0, 10.0, 30.0) if not quick else (1.5,):
        for family in FAMILIES:
            for base_kind in BASES:
                for rank in RANKS:
                    name = f"update/{family}/{base_kind}/{rank}/{times:g}"
                    made[name] = partial(updates, family, base_kind, rank, times, few)
    if zoo is not None:
        copies = ("the published float16 file", *COPIES)
        made |= {f"real/{copy}": partial(real, zoo, copy) for copy in copies}
    return made


def run(quick: bool = False, zoo: Path | None = None, only: str = "") -> None:
    wanted = {name: entry for name, entry in entries(quick, zoo).items() if only in name}
    measure(QUICK_FILE if quick else FILE, {"shape": SHAPE, "quick": quick}, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--only", default="", help="entries with this in their name")
    given = parser.parse_args()
    run(quick=given.quick, zoo=given.zoo, only=given.only)


if __name__ == "__main__":
    main()
