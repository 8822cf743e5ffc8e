"""What changed from one audit (base, before) to another (tuned, after), layer by layer. Not for measuring."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._core import BadInput, Record, counted
from .results import Audit, Decomposition, Interval, LayerAudit, Number, Verdict

CLEAR = 2.0  # combined standard errors: about 5 % of unchanged numbers get the mark by chance


@dataclass(frozen=True)
class Change(Record):
    """A number before and after."""

    before: float
    after: float
    error: float | None  # combined standard error of the difference; None for what is only counted

    @property
    def clear(self) -> bool:
        """Is the change more than chance gives?"""
        return self.error is not None and abs(self.after - self.before) > CLEAR * self.error

    def __str__(self) -> str:
        return f"{self.before:.3g} → {self.after:.3g}{'*' if self.clear else ''}"


@dataclass(frozen=True)
class LayerChange(Record):
    """A layer that both audits have; what one of them did not measure is None."""

    name: str
    shape_before: tuple[int, int]
    shape_after: tuple[int, int]
    verdict_before: Verdict
    verdict_after: Verdict
    ratio: Change | None  # recovery error, layer ÷ shuffled, where it is worst
    random_share: Change | None  # of the energy
    rank: Change | None  # directions of the signal
    distance: Change | None  # of the bulk to the law, beyond that of noise
    ks: Change | None  # of the entries to a normal law

    @property
    def verdict(self) -> str:
        if self.verdict_before == self.verdict_after:
            return self.verdict_after
        return f"{self.verdict_before} → {self.verdict_after}"

    def __str__(self) -> str:
        parts = [self.verdict]
        if self.shape_before != self.shape_after:
            parts.append(f"shape {_shape(self.shape_before)} → {_shape(self.shape_after)}")
        numbers = {
            "random share": self.random_share,
            "directions": self.rank,
            "ratio": self.ratio,
            "bulk": self.distance,
            "KS": self.ks,
        }
        parts += [f"{name} {change}" for name, change in numbers.items() if change is not None]
        return f"{self.name}: {', '.join(parts)}"


@dataclass(frozen=True)
class Comparison(Record):
    """Two audits side by side; `notes` say what makes them hard to compare."""

    before: str
    after: str
    layers: tuple[LayerChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        """One line about all layers."""
        if not self.layers:
            return "; ".join(["no layer is in both", *self._only])
        turns = Counter(one.verdict for one in self.layers if one.verdict_before != one.verdict_after)
        changed = sum(turns.values())
        if changed:
            kinds = ", ".join(f"{count} {turn}" for turn, count in turns.items())
            verdicts = f"{counted(changed, 'verdict')} changed ({kinds})"
        else:
            verdicts = "no verdict changed"
        shares = [one.random_share for one in self.layers if one.random_share and one.random_share.clear]
        higher = sum(share.after > share.before for share in shares)
        moved = f"random share clearly higher in {higher}, lower in {len(shares) - higher}"
        if not shares:
            moved = "random share clearly changed in none"
        both = f"{counted(len(self.layers), 'layer')} in both"
        return "; ".join([f"{both}: {verdicts}", moved, *self._only])

    @property
    def _only(self) -> list[str]:
        sides = (("base", self.only_before), ("tuned", self.only_after))
        return [f"{len(names)} only in {side}" for side, names in sides if names]

    def __str__(self) -> str:
        lines = [f"  {one}" for one in self.layers]
        lines += [f"  {name}: only in base" for name in self.only_before]
        lines += [f"  {name}: only in tuned" for name in self.only_after]
        return "\n".join([self.summary, *lines, *(f"note: {note}" for note in self.notes)])


def compare_audits(before: Audit, after: Audit) -> Comparison:
    """Pair the layers by name, in the order of `after`, and say what changed.

        print(compare_audits(obverse.audit("base.safetensors"), obverse.audit("tuned.safetensors")))

    Args:
        before: the audit of the earlier weights, the base.
        after: the audit of the later ones.

    Returns:
        Comparison: a row for each layer in both, and what is in one of them only.
    """
    old, new = _by_name(before), _by_name(after)
    return Comparison(
        before=before.model,
        after=after.model,
        layers=tuple(_change(old[name], new[name]) for name in new if name in old),
        only_before=tuple(name for name in old if name not in new),
        only_after=tuple(name for name in new if name not in old),
        notes=tuple(_notes(before, after)),
    )


def _by_name(audit: Audit) -> dict[str, LayerAudit]:
    layers = {layer.name: layer for layer in audit.layers}
    if len(layers) < len(audit.layers):
        names = Counter(layer.name for layer in audit.layers)
        raise BadInput(
            f"layers of different names in {audit.model or 'an audit'}, to pair them",
            got=f"{names.most_common(1)[0][0]!r} more than once",
            do="rename them",
        )
    return layers


def _change(old: LayerAudit, new: LayerAudit) -> LayerChange:
    distance = ks = rank = share = None
    if old.parts and new.parts:
        distance = _excess(old.parts.distance, new.parts.distance)
        share = _share(old.parts.random_share, new.parts.random_share)
        rank = _rank(old.parts, new.parts)
    if old.entries and new.entries:
        ks = _difference(old.entries.ks, new.entries.ks)
    return LayerChange(
        name=new.name,
        shape_before=(old.rows, old.columns),
        shape_after=(new.rows, new.columns),
        verdict_before=old.verdict,
        verdict_after=new.verdict,
        ratio=_difference(old.ratio, new.ratio),
        random_share=share,
        rank=rank,
        distance=distance,
        ks=ks,
    )


def _share(old: Interval | None, new: Interval | None) -> Change | None:
    """95 % intervals are 1.96 standard errors to either side. Of a bound there is no change to tell."""
    if old is None or new is None or old.is_bound or new.is_bound:
        return None
    sides = [(one.high - one.low) / 2 / 1.96 for one in (old, new)]
    return Change(old.value, new.value, math.hypot(*sides))


def _rank(old: Decomposition, new: Decomposition) -> Change:
    """Counted where they may be more, otherwise with an error from their intervals."""
    if old.rank_is_bound or new.rank_is_bound:
        return Change(old.rank, new.rank, None)
    sides = [(one.rank_interval[1] - one.rank_interval[0]) / 2 / 1.96 for one in (old, new)]
    return Change(old.rank, new.rank, math.hypot(*sides))


def _difference(old: Number | None, new: Number | None) -> Change | None:
    if old is None or new is None:
        return None
    known = old.spread is not None and new.spread is not None
    error = math.hypot(*(size for size in (old.spread, new.spread) if size is not None))
    return Change(old.value, new.value, error if known else None)


def _excess(old: Number | None, new: Number | None) -> Change | None:
    change = _difference(old, new)
    return (
        None
        if old is None or new is None or change is None
        else replace(change, before=old.excess, after=new.excess)
    )


def _notes(before: Audit, after: Audit) -> list[str]:
    notes = []
    if names := _differing(before.thresholds, after.thresholds):
        notes.append(f"judged by different thresholds: {names}")
    if names := _differing(before.settings, after.settings, without="seed"):
        notes.append(f"measured with different settings: {names}")
    return notes


def _differing(old: Mapping[str, Any], new: Mapping[str, Any], without: str = "") -> str:
    """The names of what differs; the seed may: its effect is within the standard errors."""
    names = (old.keys() | new.keys()) - {without}
    return ", ".join(sorted(name for name in names if old.get(name) != new.get(name)))


def _shape(shape: tuple[int, int]) -> str:
    return f"{shape[0]} × {shape[1]}"
