"""What a diversity test found, row by row, for the tables of the page and the terminal. Not for measuring."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from .._core import NONE, counted, named, number, plain, spell
from ._birthday import Birthday
from ._dimension import Dimension
from ._findings import finding_rows
from ._jumps import SIZE, WITHIN
from ._memorization import Memorization
from ._numbers import about, chance, down_to, estimate, percent, sure, up_to
from ._verdict import LONGEST_REASON
from .results import Diversity

SETTLED = 0.1  # of a dimension, by which half of the points may differ
Row = tuple[str, str, str]  # what, how much, what that means


# --- birthday ---


def birthday_rows(b: Birthday) -> list[Row]:
    low, high = b.interval
    rows = [
        (
            "samples a batch, M",
            f"{b.batch_size:,}",
            f"{counted(b.batches, 'batch', 'batches')} that share no sample; {b.samples:,} drawn in all",
        ),
        (
            "batches with a collision",
            f"{b.collisions:,} of {b.batches:,}",
            f"γ = {b.collision_probability:.3g}; {sure(b.confidence)} interval {low:.3g} to {high:.3g} "
            "(Clopper–Pearson)",
        ),
        ("the same picture", same(b), calibrated(b)),
    ]
    if b.support_bound is not None:
        rows.append(
            (
                "effective support, at most",
                up_to(b.support_bound, 4),
                "N* with Π_{k<M} (1 − k/N*) = 1 − γ, where γ is its one-sided lower limit",
            )
        )
        rows.append(
            (
                "the printed closed form",
                NONE if b.printed_bound is None else up_to(b.printed_bound, 4),
                "2M / (−3 + √(9 + (24/M)·ln 1/(1 − γ))), the same γ and ρ = 1: a little above N*",
            )
        )
    if b.support_at_least is not None:
        rows.append(
            (
                "different pictures, at least",
                down_to(b.support_at_least, 4),
                f"N with Π_{{k<M}} (1 − k/N) = (1 − {b.confidence:g})^(1/{b.batches:,}): fewer, equally "
                "likely, would have shown a collision. Of the support, not of the effective support",
            )
        )
    e = b.effective
    if e.value is not None:
        rows.append(
            (
                "effective support, estimated",
                f"{about(e.value)} ({about(e.low)} to {about(e.high)})",
                f"N_eff = 1/Σp², from {counted(e.pairs, 'pair')} of {e.of:,} that collided",
            )
        )
    limit = b.threshold
    if limit.real_support is not None:
        rows.append(
            (
                "effective support, real data",
                about(limit.real_support),
                f"at the same distance: C(n, 2)/(r + 1) with n = {limit.real_points or 0:,} real pictures, "
                f"r = {limit.real_pairs or 0:,} pairs of them within it",
            )
        )
    if b.p_real is not None:
        rows.append(
            (
                "as diverse as real data",
                chance(b.p_real),
                "the chance of so many collisions or more, if it were",
            )
        )
    return rows


def same(b: Birthday) -> str:
    if b.threshold.origin == "exact":
        return "equal in every value"
    return f"distance ≤ {number(b.threshold.distance)}"


def calibrated(b: Birthday) -> str:
    """Where the distance comes from."""
    limit = b.threshold
    if limit.origin == "exact":
        return "without real data there is nothing to calibrate a distance on"
    if limit.origin == "given":
        return "as was asked"
    points = f"{limit.real_points or 0:,} real pictures"
    level = f"at most {100 * (limit.level or 0):.3g} % of cases ({points})"
    if not limit.distance:
        own = counted(limit.real_pairs or 0, "equal pair")
        return f"the real data has {own} itself: batches show one in {level}"
    return f"real batches of this size show such a pair in {level}"


# --- copies ---


def memorization_rows(m: Memorization) -> list[Row]:
    rows = []
    if m.sides is not None:
        rows.append(
            (
                "nearest to a training image",
                f"{percent(m.sides.share)}, {chance(m.sides.p)}",
                f"and not to a held-out one; the sizes of both sets make that {percent(m.sides.expected)}. "
                f"p is of the share that counts close ones most, {percent(m.sides.weighted)}",
            )
        )
    own = percent(m.authentic.share)
    held = "" if m.authentic.held_out is None else f"; of held-out data {percent(m.authentic.held_out)}"
    rows.append(
        (
            "authentic (AuthPct)",
            own if m.authentic.p is None else f"{own}, {chance(m.authentic.p)}",
            f"farther from the nearest training image than that one is from its own neighbour{held}",
        )
    )
    if m.close is not None:
        rows.append(
            (
                "very close to training",
                f"{percent(m.close.share)}, {chance(m.close.p)}",
                f"nearer than {number(m.close.distance)}; {percent(m.close.expected)} of held-out data are",
            )
        )
    if m.copying is not None:
        c = m.copying
        rows.append(
            (
                "C_T",
                f"{c.value:.2f} ± {c.deviation:.2f}".replace("-", "−"),
                f"{c.reading(m.confidence)}: below 0 samples are closer to training than held-out data "
                f"({chance(c.p_closer)}), above 0 farther ({chance(c.p_farther)})",
            )
        )
    held = "" if m.median_held_out is None else f"of held-out data {number(m.median_held_out)}"
    rows.append(("distance to training", number(m.median), f"median; {held}" if held else "median"))
    return rows


# --- quality ---


def quality_rows(found: Diversity) -> list[tuple[str, str, str, str]]:
    """(what, of the samples, of real data, how to read it)."""
    rows = []
    q, r = found.quality, found.quality_real
    if q is not None:
        parts = {
            "precision": "samples among real pictures: low if many are like none of them",
            "recall": "real pictures among samples: low if kinds of pictures are missing",
            "density": "how many real pictures a sample has around it; above 1 they crowd where real ones do",
            "coverage": "real pictures with a sample near by: low if kinds are missing or rare",
        }
        for what, meaning in parts.items():
            other = None if r is None else getattr(r, what)
            rows.append((what, estimate(getattr(q, what)), estimate(other), meaning))
    m = found.moments
    if m is not None:
        rows.append(
            (
                "FID",
                number(m.at_floor),
                number(m.floor),
                f"of means and covariances, {m.size:,} pictures on either side: what real data has is bias "
                f"({number(m.fid)} with all pictures)",
            )
        )
        rows.append(("KID", estimate(m.kid), "0", "much the same, without bias: 0 for the same distribution"))
        if m.inception_score is not None:
            right = "" if found.label_accuracy is None else f", right for {percent(found.label_accuracy)}"
            rows.append(
                (
                    "inception score",
                    estimate(m.inception_score),
                    NONE,
                    f"sure and varied labels, by a linear classifier made here{right}: nobody else's",
                )
            )
    d = found.discrepancy
    if d is not None:
        rows.append(
            (
                "squared discrepancy",
                f"{number(d.value)}, {chance(d.p)}",
                f"0 ± {number(d.deviation)}",
                "whether they differ at all, by a Gaussian kernel: as large by chance with probability p",
            )
        )
    if found.vendi is not None:
        rows.append(
            (
                "Vendi score",
                number(found.vendi.score),
                NONE if found.vendi_real is None else number(found.vendi_real.score),
                f"different pictures by cosine, of {found.vendi.samples:,}: below real data, less varied",
            )
        )
    return rows


# --- dimension, seeds ---


def dimension_said(one: Dimension | None) -> str:
    return NONE if one is None else f"{one.value:.1f} ({one.low:.1f} to {one.high:.1f})"


def unsettled(one: Dimension | None) -> bool:
    """Half of the points say something else."""
    return one is not None and one.at_half is not None and abs(one.at_half - one.value) > SETTLED * one.value


def smoothness_rows(found: Diversity) -> list[Row]:
    s = found.smoothness
    if s is None:
        return []
    low, high = s.interval
    out = "" if not s.jumped else f", without {counted(s.jumped, 'step')} that fell on a jump"
    below = "; below 1 where jumps do the rest" if s.jumping else ""
    return [
        (
            "paths that jump",
            f"{s.jumping:,} of {s.walked:,}",
            f"{100 * low:.1f} to {100 * high:.1f} % ({sure(found.birthday.confidence)}): somewhere on the "
            f"way the picture changes by more than {100 * SIZE:g} % of the distance of two random ones "
            f"within 1/{round(1 / WITHIN):,} of it: a mixture does, from one generator to the next",
        ),
        (
            "perceptual path length",
            f"{number(s.length)} ± {number(s.error)}",
            f"mean of (distance ÷ step)² by {named(found.features)} on {s.pairs:,} "
            f"{plain(s.kind, 20)} paths between random seeds{out}; median {number(s.median)}",
        ),
        (
            "compared with straight paths",
            f"{s.ratio:.2f} ± {s.ratio_error:.2g}",
            f"1 if pictures change evenly from end to end{below}",
        ),
    ]


def strengths(values: Iterable[float]) -> str:
    return ", ".join(number(value) for value in values)


# --- all of it ---


def rows(found: Diversity) -> list[Row]:
    """For the terminal."""
    made = finding_rows(found) + birthday_rows(found.birthday)
    if found.memorization is not None:
        made += memorization_rows(found.memorization)
    made += [
        (what, own if real == NONE else f"{own} (real data {real})", meaning)
        for what, own, real, meaning in quality_rows(found)
    ]
    if found.dimension is not None or found.dimension_real is not None:
        settled = "; half of the samples say something else" if unsettled(found.dimension) else ""
        said = f"of the data {dimension_said(found.dimension_real)}{settled}"
        made.append(("intrinsic dimension", dimension_said(found.dimension), said))
    made += smoothness_rows(found)
    if found.directions is not None:
        sizes = strengths(found.directions.strengths)
        made.append(("strongest directions", sizes, "how much a picture changes for a unit step of the seed"))
    return made


def skipped(found: Diversity) -> list[tuple[str, str]]:
    return [(named(one.what), plain(one.reason, LONGEST_REASON)) for one in found.skipped]


FLAGS = {  # and what they are unless given
    "train": None,
    "real": None,
    "features": "pixels",
    "batch_size": None,
    "batches": None,
    "budget": None,
    "threshold": None,
    "confidence": 0.95,
    "samples": None,
    "seed": 0,
}


def command(found: Diversity) -> str:
    """What makes it again; where files lie is not said, as that would name the machine or its user."""
    words = ["obverse", "diversity", named(spell(found.settings.get("source", "SOURCE")))]
    for flag, usual in FLAGS.items():
        value = found.settings.get(flag)
        if value is not None and value != usual:
            words += [f"--{flag.replace('_', '-')}", named(spell(value))]
    if found.settings.get("quick"):
        words.append("--quick")
    return shlex.join([*words, "--out", "DIR"])
