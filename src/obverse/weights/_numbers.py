"""The numbers of an audited layer as text, beside what random entries give. Not for their layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .._core import FIXED, brief, number, p_value
from .results import Interval, LayerAudit, Number, Reversal


def signed(value: float) -> str:
    """A change, its sign always written."""
    text = number(value)
    return text if text in ("0", "—") or text.startswith("−") else f"+{text}"


@dataclass(frozen=True)
class Quantity:
    """One number of a layer, and from which size on it would matter."""

    label: str
    measured: Number
    matters: float | None = None
    is_share: bool = False
    is_bound: bool = False  # it is known to be no more than that

    def write(self, value: float, spell: Callable[[float], str] = number) -> str:
        return f"{spell(100 * value)}{FIXED}%" if self.is_share else spell(value)


@dataclass(frozen=True)
class Line:
    """A quantity in words, for the table of all numbers; `other` and `change` where two nets are compared."""

    label: str
    value: str
    other: str
    change: str
    null: str
    spread: str
    p: str
    matters: str


def line(this: Quantity, other: Quantity | None = None, *, clear: bool = False) -> Line:
    """`clear` marks a change that is more than chance gives."""
    measured = this.measured
    return Line(
        this.label,
        _bounded(this),
        "—" if other is None else _bounded(other),
        ""
        if other is None or this.is_bound or other.is_bound
        else _change(this, measured.value - other.measured.value, clear),
        "" if measured.null is None else this.write(measured.null, brief),
        "" if measured.spread is None else this.write(measured.spread, brief),
        "" if measured.p is None else p_value(measured.p),
        "" if this.matters is None else this.write(this.matters, brief),
    )


def _bounded(quantity: Quantity) -> str:
    text = quantity.write(quantity.measured.value)
    return f"at most {text}" if quantity.is_bound else text


def _change(quantity: Quantity, value: float, clear: bool) -> str:
    """Empty where there is none."""
    if value == 0:
        return ""
    text = f"{signed(100 * value)}{FIXED}points" if quantity.is_share else signed(value)
    return f"{text}*" if clear else text


def quantities(layer: LayerAudit, thresholds: Mapping[str, float]) -> dict[str, Quantity]:
    """Every number of a layer, by aspect and name, in reading order."""
    return {
        **_parts(layer),
        **_entries(layer, thresholds),
        **_offsets(layer, thresholds),
        **_norms(layer, thresholds),
        **_correlations(layer, thresholds),
        **_ratio(layer, thresholds),
    }


def _entries(layer: LayerAudit, thresholds: Mapping[str, float]) -> dict[str, Quantity]:
    found = layer.entries
    if found is None:
        return {}
    matters = found.matters_from
    mean = matters.get("mean")
    return {
        "mean": Quantity("mean of entries", found.mean, None if mean is None else mean * found.scale.value),
        "scale": Quantity("scale (standard deviation)", found.scale),
        "skew": Quantity("skew", found.skew, matters.get("skew")),
        "kurtosis": Quantity("excess kurtosis", found.kurtosis, matters.get("kurtosis")),
        "ks": Quantity("distance to normal (KS)", found.ks, thresholds.get("normal_distance")),
        "anderson": Quantity("Anderson–Darling A²", found.anderson),
        "zeros": Quantity("entries exactly 0", Number(found.zeros), is_share=True),
    }


def _offsets(layer: LayerAudit, thresholds: Mapping[str, float]) -> dict[str, Quantity]:
    found = layer.offsets
    if found is None:
        return {}
    return {
        "offset mean": Quantity("mean of offsets", Number(found.mean)),
        "offset std": Quantity("standard deviation of offsets", Number(found.std)),
        "offset ratio": Quantity("offsets, |mean| / std", found.ratio, thresholds.get("offset_ratio")),
        "near mean": Quantity("offsets within ±10 % of their mean", Number(found.near_mean), is_share=True),
    }


def _parts(layer: LayerAudit) -> dict[str, Quantity]:
    found = layer.parts
    if found is None:
        return {}
    made: dict[str, Quantity] = {}
    if found.random_share is not None:
        made["random share"] = Quantity(
            "random share of the energy",
            _known(found.random_share),
            is_share=True,
            is_bound=found.random_share.is_bound,
        )
    rank = "directions of the signal (at least)" if found.rank_is_bound else "directions of the signal"
    made["rank"] = Quantity(rank, Number(found.rank))
    made["rank low"] = Quantity("directions, at least", Number(found.rank_interval[0]))
    if not found.rank_is_bound:
        made["rank high"] = Quantity("directions, at most", Number(found.rank_interval[1]))
    if found.signal_share is not None:
        made["signal share"] = Quantity(
            "signal, share of the energy", _known(found.signal_share), is_share=True
        )
    if found.profile_share is not None:
        made["profile share"] = Quantity("profile, share of the energy", found.profile_share, is_share=True)
    if found.distance is not None:
        made["distance"] = Quantity("distance of the bulk to the law (KS)", found.distance)
        made["excess"] = Quantity("the same, beyond that of random numbers", Number(found.distance.excess))
    p = Number(found.rank, p=layer.p)
    if layer.p is not None:
        made["p"] = Quantity("this layer as noise", p)
    if layer.family_p is not None:
        made["family"] = Quantity("the same among all layers (Holm)", Number(found.rank, p=layer.family_p))
    made |= {
        "bulk scale": Quantity("scale of the bulk’s entries, without the profile", Number(found.scale)),
        "lower": Quantity("lower edge of the law", Number(found.lower)),
        "upper": Quantity("upper edge of the law", Number(found.upper)),
        "below": Quantity("singular values below those of noise", Number(len(found.below), p=found.lower_p)),
        "null directions": Quantity(
            "singular values that are 0 to float32 precision", Number(found.null_directions)
        ),
        "bulk kurtosis": Quantity("excess kurtosis of the bulk’s entries", Number(found.kurtosis)),
        "mean share": Quantity("energy in the mean of the entries", Number(layer.mean_share), is_share=True),
    }
    return made


def _known(share: Interval) -> Number:
    """With the standard error that its 95 % interval comes from; a bound has none."""
    if share.is_bound:
        return Number(share.value)
    return Number(share.value, (share.high - share.low) / 2 / 1.96)


def _norms(layer: LayerAudit, thresholds: Mapping[str, float]) -> dict[str, Quantity]:
    found, spread = layer.norms, thresholds.get("norm_spread")
    if found is None:
        return {}
    return {
        "row norms": Quantity("variation of squared row norms", found.rows, spread),
        "column norms": Quantity("variation of squared column norms", found.columns, spread),
    }


def _correlations(layer: LayerAudit, thresholds: Mapping[str, float]) -> dict[str, Quantity]:
    made = {}
    excess = thresholds.get("correlation")
    for one in layer.correlations:
        side = one.side
        made[f"{side} rms"] = Quantity(
            f"cosines of {side}, rms × √length", one.rms, None if excess is None else 1 + excess
        )
        made[f"{side} largest"] = Quantity(f"largest |cosine| of {side}", one.largest)
        made[f"{side} ks"] = Quantity(f"cosines of {side}, distance to normal (KS)", one.ks)
    if layer.blocks is not None:
        made["blocks"] = Quantity("contrast between blocks", layer.blocks, thresholds.get("block_contrast"))
    return made


def _ratio(layer: LayerAudit, thresholds: Mapping[str, float]) -> dict[str, Quantity]:
    if layer.ratio is None:
        return {}
    words = "recovery error, layer ÷ shuffled (surely worst)"
    return {"ratio": Quantity(words, layer.ratio, thresholds.get("recovery_ratio"))}


def interval(one: Reversal) -> str:
    low, high = one.interval
    return f"{number(low)}–{number(high)}"


def counterpart(one: Reversal, others: Sequence[Reversal]) -> Reversal | None:
    """The measurement of another net that compares with this one: same source, same sparsity if drawn."""
    for two in others:
        if one.source == two.source and (one.source == "data" or one.sparsity == two.sparsity):
            return two
    return None
