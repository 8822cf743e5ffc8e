"""What an adapter's audit says of each adapted layer, as plain values. Not for computing, nor for showing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from ..._core import FIXED, Record, counted, read_record
from ..results import Grade


@dataclass(frozen=True)
class OnBase(Record):
    """The update beside the layer of the base, and in it."""

    relative: float  # norm of the update ÷ norm of the base layer
    threshold: float | None  # below it a direction leaves no trace in the base's bulk; without the profile
    above: int | None  # directions of the update above it
    before: int  # directions of the signal: of the base
    after: int  # of base + update
    is_bound: bool  # there may be more of either
    grade_before: Grade
    grade_after: Grade
    note: str = ""  # why something is missing

    @property
    def is_told(self) -> bool:
        """Whether the directions of both could be counted."""
        return "cannot tell" not in (self.grade_before, self.grade_after)


@dataclass(frozen=True)
class AdaptedLayer(Record):
    """scaling · B · A of one layer. What does not apply is None."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("rows, columns and rank ≥ 1", lambda record: min(record.rows, record.columns, record.rank) >= 1),
        (
            "singular values ≥ 0 that descend",
            lambda r: min(r.values, default=0) >= 0 and r.values == tuple(sorted(r.values, reverse=True)),
        ),
        (
            "where the norm is not 0: singular values, and what they say",
            lambda r: (
                r.norm == 0
                or (bool(r.values) and r.values[0] > 0 and None not in (r.effective_rank, r.for_90, r.for_99))
            ),
        ),
    )
    name: str
    kind: str
    rows: int
    columns: int
    rank: int
    scaling: float
    sentence: str
    norm: float = 0.0  # Frobenius
    values: tuple[float, ...] = ()  # singular values of the update, descending; thinned to a few hundred
    effective_rank: float | None = None
    for_90: int | None = None  # directions that carry 90 % of the energy
    for_99: int | None = None
    standing: int | None = None  # at least so many are larger than random factors would have them
    standing_p: float | None = None  # of the largest one
    draws: int = 0  # of random factors that were compared with
    initial_p: float | None = None  # of A, were it still as it was initialized; None where it surely is not
    on_base: OnBase | None = None

    @property
    def is_zero(self) -> bool:
        return self.norm == 0

    def __str__(self) -> str:
        return f"{self.name} ({self.rows} × {self.columns}): {self.sentence}"


@dataclass(frozen=True)
class AdapterAudit(Record):
    """Every adapted layer, alone or on its base."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("at least one layer", lambda record: bool(record.layers)),
    )

    model: str
    base: str  # empty where the adapter is looked at alone
    layers: tuple[AdaptedLayer, ...]
    notes: tuple[str, ...]  # what of the file is not in the products
    settings: dict[str, Any]  # of the adapter: rank, alpha, …
    versions: dict[str, str]
    seconds: float

    @property
    def summary(self) -> str:
        """One line about the whole adapter."""
        count = counted(len(self.layers), "adapted layer")
        live = [layer for layer in self.layers if not layer.is_zero]
        if not live:
            return f"{count}: {'its update is 0' if len(self.layers) == 1 else 'all updates are 0'}"
        ranks = sorted({layer.rank for layer in self.layers})
        rank = f"rank at most {_span(ranks)} by construction"
        effective = sorted(layer.effective_rank for layer in live if layer.effective_rank is not None)
        ninety = sorted(layer.for_90 for layer in live if layer.for_90 is not None)
        zero = len(self.layers) - len(live)
        noun = "direction" if ninety[-1] == 1 else "directions"
        parts = [f"{count}, {rank}", f"90{FIXED}% of the energy in {_span(ninety)} {noun}"]
        if len(live) == 1:
            parts.append(f"effective rank {effective[0]:.1f}")
        else:
            parts[-1] += f" (median {median(ninety):g})"
            parts.append(
                f"effective rank {effective[0]:.1f} to {effective[-1]:.1f} (median {median(effective):.1f})"
            )
        if zero:
            parts.append(f"{zero} of the updates {'is' if zero == 1 else 'are'} 0")
        beside = [layer.on_base.above for layer in live if layer.on_base and layer.on_base.above is not None]
        if beside:
            shown = sum(above > 0 for above in beside)
            parts.append(
                f"{shown or 'none'} of {counted(len(beside), 'layer')} on the base "
                f"{'has' if shown == 1 else 'have'} a direction strong enough to show in the base's bulk"
            )
        return "; ".join(parts)

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"  {layer}" for layer in self.layers)])


def _span(values: list[int]) -> str:
    return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,} to {values[-1]:,}"


FORMAT = 1
NAME = "adapter.json"


def read_adapter(path: Path) -> AdapterAudit:
    """The audit of an adapter in a file, or in the adapter.json of a directory."""
    file = Path(path)
    return read_record(file / NAME if file.is_dir() else file, AdapterAudit, "audit of an adapter", FORMAT)
