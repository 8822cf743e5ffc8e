"""A checkpoint of the shape of Llama 3 in bfloat16, audited whole: minutes, peak memory, share of reading.

The checkpoint is made here, matrix by matrix: noise with a profile, and in three of four matrices directions
of known number, from 1.5 to 3 times the threshold. The time of 8B is predicted from the layers of 1B, and
that of 70B from those of 8B. 8B takes 16 GB of disk and most of an hour on two cores; `make bench` runs 1B.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from measure import RESULTS, Outcome, machine
from safetensors.torch import save_file

from obverse.weights import open_weights
from obverse.weights._layer import LARGE

BAR = 1.5e9  # bytes of peak memory
RANKS = (0, 1, 4, 16)  # of the planted signal, in turn
# That a layer's time is made of; one that is not in memory as a whole takes its time for products alone.
COSTS = ("layer", "1e9 entries", "1e12 products", "1e12 products in bands")
MODES = {"default": (), "quick": ("--quick",)}


@dataclass(frozen=True)
class Shape:
    """A Llama: rows are outputs."""

    blocks: int
    width: int
    inner: int
    keys: int  # width of keys and values
    words: int = 128_256
    tied: bool = False  # the last layer is the embedding

    def block(self, at: int) -> Iterator[tuple[str, int, int]]:
        name = f"model.layers.{at}"
        for kind, rows in (("q", self.width), ("k", self.keys), ("v", self.keys), ("o", self.width)):
            yield f"{name}.self_attn.{kind}_proj.weight", rows, self.width
        for kind in ("gate", "up"):
            yield f"{name}.mlp.{kind}_proj.weight", self.inner, self.width
        yield f"{name}.mlp.down_proj.weight", self.width, self.inner

    def shards(self) -> Iterator[list[tuple[str, int, int]]]:
        """Each shard's matrices."""
        yield [("model.embed_tokens.weight", self.words, self.width)]
        for at in range(self.blocks):
            yield list(self.block(at))
        if not self.tied:
            yield [("lm_head.weight", self.words, self.width)]

    def sizes(self) -> list[tuple[int, int]]:
        return [(rows, columns) for shard in self.shards() for _, rows, columns in shard]

    @property
    def parameters(self) -> int:
        return sum(rows * columns for rows, columns in self.sizes())


SHAPES = {
    "tiny": Shape(2, 256, 768, 64, words=2000),
    "1b": Shape(16, 2048, 8192, 512, tied=True),
    "8b": Shape(32, 4096, 14_336, 1024),
    "70b": Shape(80, 8192, 28_672, 1024),
}


def matrix(rows: int, columns: int, rank: int, generator: torch.Generator) -> torch.Tensor:
    """Log-normal profile × (signal + noise), in bfloat16."""
    noise = torch.empty(rows, columns).normal_(generator=generator)
    if rank:
        left, right = (
            torch.linalg.qr(torch.randn(side, rank, generator=generator)).Q for side in (rows, columns)
        )
        strengths = torch.linspace(3.0, 1.5, rank) * (rows * columns) ** 0.25
        noise.addmm_(left * strengths, right.T)
    for side, view in ((rows, (rows, 1)), (columns, (1, columns))):
        noise *= (0.1 * torch.randn(side, generator=generator)).exp().view(view)
    return noise.mul_(1 / math.sqrt(columns)).bfloat16()


def make(folder: Path, shape: Shape) -> dict[str, int]:
    """The shards and their index; the rank that is planted in each layer."""
    planted: dict[str, int] = {}
    places: dict[str, str] = {}
    for number, shard in enumerate(shape.shards()):
        tensors = {}
        for name, rows, columns in shard:
            generator = torch.Generator().manual_seed(len(places))
            rank = RANKS[len(places) % len(RANKS)]
            tensors[name] = matrix(rows, columns, rank, generator)
            planted[name.removesuffix(".weight")] = rank
            places[name] = f"model-{number:05}.safetensors"
        save_file(tensors, folder / f"model-{number:05}.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return planted


def forget(folder: Path) -> None:
    """Take the files out of the system's cache, so that they are read from the disk."""
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def audited(folder: Path, out: Path, flags: Sequence[str]) -> dict[str, Any]:
    """The audit as anybody runs it, in a process of its own: minutes, peak memory, and audit.json."""
    forget(folder)
    command = [sys.executable, "-m", "obverse", "audit", str(folder), "--out", str(out), *flags]
    began = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the audit ended with {process.returncode}")
    return {
        "minutes": (perf_counter() - began) / 60,
        "processor_minutes": (used.ru_utime + used.ru_stime) / 60,
        "peak_bytes": 1024 * used.ru_maxrss,
        "layers": json.loads((out / "audit.json").read_text())["layers"],
    }


def reading(folder: Path) -> float:
    """Seconds to read every matrix from the disk as float32, and do nothing else."""
    forget(folder)
    began = perf_counter()
    for weight in open_weights(folder):
        for _ in weight.bands() if weight.bands else [weight.load()]:
            pass
    return perf_counter() - began


def found(layers: Sequence[dict[str, Any]], planted: dict[str, int]) -> dict[str, Any]:
    """How the directions that were found agree with those that were planted."""
    ranks = {layer["name"]: layer["parts"]["rank"] for layer in layers}
    bounds = {layer["name"]: layer["parts"]["rank_interval"] for layer in layers}
    noise = [name for name, rank in planted.items() if rank == 0]
    signal = [name for name, rank in planted.items() if rank]
    return {
        "matrices": len(planted),
        "of noise": len(noise),
        "of noise, with a direction": sum(ranks[name] > 0 for name in noise),
        "with a signal": len(signal),
        "with a signal, its rank found": sum(ranks[name] == planted[name] for name in signal),
        "with a signal, its rank in the interval": sum(
            bounds[name][0] <= planted[name] <= bounds[name][1] for name in signal
        ),
    }


def costs(sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """A constant, the entries of a layer, and the products of its Gram matrix: `COSTS`."""
    rows = []
    for m, n in sizes:
        entries, products = m * n / 1e9, min(m, n) ** 2 * max(m, n) / 1e12
        in_bands = m * n > LARGE
        rows.append([1.0, 0.0, 0.0, products] if in_bands else [1.0, entries, products, 0.0])
    return np.array(rows)


def rates(layers: Sequence[dict[str, Any]]) -> np.ndarray:
    """Seconds of each of these, fitted to the layers of an audit by non-negative least squares."""
    from scipy.optimize import nnls

    sizes = [(layer["rows"], layer["columns"]) for layer in layers]
    seconds = np.array([layer["seconds"] for layer in layers])
    weights = 1 / np.maximum(seconds, 1e-3)  # relative errors
    fitted: np.ndarray = nnls(costs(sizes) * weights[:, None], seconds * weights)[0]
    return fitted


def minutes_of(shape: Shape, fitted: np.ndarray) -> float:
    return float((costs(shape.sizes()) @ fitted).sum()) / 60


def by_kind(layers: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Mean seconds of each kind of matrix."""
    seconds = defaultdict(list)
    for layer in layers:
        seconds[layer["name"].rpartition(".")[2]].append(layer["seconds"])
    return {kind: round(sum(all_of) / len(all_of), 2) for kind, all_of in seconds.items()}


def measured(
    name: str, folder: Path, planted: dict[str, int], flags: Sequence[str], modes: Sequence[str]
) -> Outcome:
    shape, details = SHAPES[name], dict[str, Any]()
    details |= {"parameters": shape.parameters, "bytes": 2 * shape.parameters, "flags": list(flags)}
    earlier = RESULTS / "audit_1b.json"
    for mode in modes:
        with tempfile.TemporaryDirectory() as out:
            one = audited(folder, Path(out), (*MODES[mode], *flags))
        layers = one.pop("layers")
        wall = sum(layer["seconds"] for layer in layers) / 60
        # of a processor: beside other work a layer waits, and its seconds say nothing
        fitted = rates(layers) * one["processor_minutes"] / wall
        details[mode] = one | {
            "seconds_of_a_matrix": by_kind(layers),
            "planted": found(layers, planted),
            "processor_seconds_per": dict(zip(COSTS, fitted.tolist(), strict=True)),
            "minutes_of_all_layers": wall,
            "processor_minutes_of_70b_at_this_rate": minutes_of(SHAPES["70b"], fitted),
        }
        if name == "8b" and earlier.exists():
            before = json.loads(earlier.read_text())["details"].get(mode)
            if before:
                rate = np.array(list(before["processor_seconds_per"].values()))
                details[mode]["processor_minutes_as_predicted_from_1b"] = minutes_of(shape, rate)
    seconds = reading(folder)
    details["seconds_of_reading_alone"] = seconds
    for mode in modes:
        details[mode]["share_of_reading"] = seconds / 60 / details[mode]["minutes"]
    peak = max(details[mode]["peak_bytes"] for mode in modes)
    question = f"peak memory of an audit of {name.upper()} ({2 * shape.parameters / 1e9:.1f} GB) ÷ 1.5 GB"
    return Outcome(f"audit_{name}", question, peak / BAR, 1.0, details=details)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=("tiny", "1b", "8b"), default="1b")
    parser.add_argument(
        "--folder", type=Path, help="where the checkpoint is, or is made and kept [temporary]"
    )
    parser.add_argument("--modes", default="quick,default", help="quick, default, or both [both]")
    parser.add_argument("--jobs", type=int, help="as of obverse audit")
    parser.add_argument("--beside", default="nothing", help="what else ran, for the record")
    parser.add_argument("--make", action="store_true", help="only make the checkpoint")
    parser.add_argument("--repetitions", type=int, help="ignored: each is measured once")
    arguments = parser.parse_args()
    where = machine() | {"beside": arguments.beside}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        note = folder / "planted.json"
        if arguments.make:
            note.write_text(json.dumps(make(folder, SHAPES[arguments.size])))
            return
        if not note.exists():  # in a process of its own: a process's peak counts for those it starts
            made = (__file__, "--size", arguments.size, "--folder", str(folder), "--make")
            subprocess.run([sys.executable, *made], check=True)
        flags = () if arguments.jobs is None else ("--jobs", str(arguments.jobs))
        outcome = measured(
            arguments.size, folder, json.loads(note.read_text()), flags, arguments.modes.split(",")
        )
    print(Outcome.header(), outcome, json.dumps(outcome.details, indent=1), sep="\n")
    RESULTS.mkdir(exist_ok=True)
    content = {**asdict(outcome), "holds": outcome.holds, "machine": where}
    (RESULTS / f"{outcome.name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
