"""What is measured of each layer: rows of its audit, and the paper's statements before and after the profile.

Not for counting over layers and nets: see counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse._core import Progress, write_text
from obverse.claims.alm._hypothesis_nets import bare_bulk, law_distance, normal_distance
from obverse.weights import Weight, audit, decompose, open_weights, root_mean_square
from obverse.weights._decomposition.live import live_part
from obverse.weights._settings import Settings
from obverse.weights._verdict import KEEP, Thresholds
from obverse.weights.results import Audit, LayerAudit, rows, write_audit

from .._lab.result_files import short

SEED, SAMPLES = 0, 32
ENTRIES = 2**20  # of a layer for distances to a normal distribution: a larger one is sampled
COLUMNS = (  # of the audit's table
    *("layer", "kind", "rows", "columns", "verdict", "family_p", "remarks", "sentence"),
    *("random_share", "random_share_low", "random_share_high", "random_share_is_bound"),
    *("rank", "rank_is_bound", "signal_share", "profile_share", "mean_share", "distance", "distance_null"),
    *(
        "entries_ks",
        "entries_kurtosis",
        "entries_best_law",
        "entries_zeros",
        "entries_step",
        "entries_distinct",
    ),
    *("bulk_kurtosis", "offsets_mean", "offsets_std", "offsets_ratio", "offsets_near_mean"),
    *("recovery_ratio", "recovery_ratio_low", "recovery_ratio_high", "dead_rows", "dead_columns"),
)


@dataclass
class Clock:
    """How long a run may take; what it has begun it finishes, layer by layer."""

    seconds: float = float("inf")
    began: float = field(default_factory=time.perf_counter)

    @property
    def over(self) -> bool:
        return time.perf_counter() - self.began > self.seconds

    def progress(self) -> Progress:
        """Of an audit: stopped by it, that says where it is resumed. It gets one layer further at least."""
        before: list[int] = []

        def stop(done: int, total: int, name: str) -> None:
            before.append(done)
            if self.over and before[0] < done < total:
                raise KeyboardInterrupt

        return stop


def audited(file: Path, name: str, place: Path, clock: Clock, jobs: int) -> Audit:
    """The audit of a file; each layer is written as it is done."""
    found = audit(
        file,
        model=name,
        samples=SAMPLES,
        jobs=jobs,
        record=place / "audit.jsonl",
        generator=torch.Generator().manual_seed(SEED),
        progress=clock.progress(),
    )
    write_audit(found, place / "audit.json")
    return found


def table(found: Audit, file: Path, place: Path, clock: Clock) -> list[dict[str, Any]] | None:
    """One row for each layer, or None where the time was over before the last one."""
    known_in = place / "layers.json"
    known: dict[str, Any] = json.loads(known_in.read_text(encoding="utf-8")) if known_in.exists() else {}
    result = []
    for at, (row, layer, weight) in enumerate(
        zip(rows(found), found.layers, open_weights(file), strict=True)
    ):
        if str(at) not in known:
            if clock.over:
                return None
            known[str(at)] = short(beyond_the_audit(weight, layer))
            write_text(known_in, json.dumps(known) + "\n")
        result.append({name: short(row[name]) for name in COLUMNS} | known[str(at)])
    return result


@torch.no_grad()
def beyond_the_audit(weight: Weight, layer: LayerAudit) -> dict[str, Any]:
    """The distances that the claims alm.hypothesis.* ask for; nothing of a layer that is not judged."""
    if layer.verdict == "not judged" or layer.parts is None or layer.parts.method == "none":
        return {"raw_distance": None, "raw_ks": None, "bulk_ks": None}
    matrix = live_part(weight.load()).matrix
    generator = Settings(SEED, Thresholds(), KEEP, SAMPLES, None).generator(weight.name)
    singular = singular_values(matrix).numpy()
    tall, wide = matrix.shape
    raw = law_distance(singular, tall, wide, root_mean_square(matrix))
    centred = matrix - matrix.double().mean().float() if layer.mean_share else matrix
    parts = decompose(centred, generator=generator)
    bulk = None if parts.summary.scale <= 0 else normal_distance(some(bare_bulk(parts), generator))
    return {"raw_distance": raw, "raw_ks": normal_distance(some(matrix, generator)), "bulk_ks": bulk}


def singular_values(matrix: Tensor) -> Tensor:
    """Ascending, by the Gram matrix of the shorter side: good to 1e-8 of the largest, plots need 1e-3."""
    short_side = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    gram = torch.zeros(len(short_side), len(short_side), dtype=torch.float64)
    for band in short_side.split(2**15, dim=1):
        gram += band.double() @ band.double().T
    return torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()


def some(matrix: Tensor, generator: torch.Generator) -> Tensor:
    """All entries, or so many of them at random."""
    entries = matrix.flatten()
    if len(entries) <= ENTRIES:
        return entries
    return entries[torch.randint(len(entries), (ENTRIES,), generator=generator)]


def judged(table: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The layers that could be taken apart."""
    return (row for row in table if row["verdict"] not in ("not judged", "cannot tell"))
