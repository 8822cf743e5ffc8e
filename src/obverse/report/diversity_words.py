"""What a diversity test says, in plain sentences; for the page and the terminal. Not for measuring."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from math import ceil, floor, log10

from ..diversity.birthday import Birthday
from ..diversity.dimension import Dimension
from ..diversity.estimates import Estimate
from ..diversity.memorization import Memorization
from ..diversity.results import Diversity
from .audit_numbers import number
from .template import plain, spell
from .words import FIXED, p_value

NONE = "–"
LONGEST_NAME = 80
LONGEST_REASON = 400
TOO_FEW = 0.25  # of real batches, from which on a threshold is not what was asked for
SETTLED = 0.1  # of a dimension, by which half of the points may differ
Row = tuple[str, str, str]  # what, how much, what that means


def name(found: Diversity) -> str:
    return plain(found.subject, LONGEST_NAME) or "this generator"


def title(found: Diversity) -> str:
    return f"Has {name(found)} learned the distribution?"


# --- numbers ---


def sure(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


def up_to(value: float, digits: int = 2) -> str:
    """Rounded upwards, as an upper bound has to be."""
    step = _step(value, digits)
    # a little slack: what is 14,000 but for rounding is 14,000
    return f"{ceil(value / step - 1e-9) * step:,.0f}"


def down_to(value: float, digits: int = 2) -> str:
    """Rounded downwards, as a lower bound has to be."""
    step = _step(value, digits)
    return f"{floor(value / step + 1e-9) * step:,.0f}"


def _step(value: float, digits: int) -> float:
    return 10.0 ** max(0, floor(log10(max(value, 1.0))) + 1 - digits)


def about(value: float | None) -> str:
    """A count that is estimated: to three digits."""
    if value is None:
        return NONE
    return f"{float(f'{value:.3g}'):,.0f}" if 100 <= value < 1e15 else number(value)


def many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f} %"


def chance(p: float | None) -> str:
    """p = 0.03, or p < 0.001."""
    said = p_value(p).replace(FIXED, " ")  # a terminal may not know it
    return f"p {said}" if said.startswith("<") else f"p = {said}"


def estimate(one: Estimate | None) -> str:
    if one is None:
        return NONE
    if 1e-3 <= abs(one.value) < 1e4 and one.error >= 5e-5:
        places = max(0, min(4, 1 - floor(log10(one.error))))
        return f"{one.value:.{places}f} ± {one.error:.{places}f}".replace("-", "−")
    return f"{number(one.value)} ± {number(one.error)}"


# --- at the top ---


def verdict(found: Diversity) -> str:
    """The one sentence that is asked for."""
    b = found.birthday
    if b.constant:
        return f"This generator makes one picture: all {b.batches * b.batch_size:,} samples are the same."
    if b.support_bound is not None:
        most = up_to(b.support_bound)
        return f"This generator has effectively at most {most} pictures ({sure(b.confidence)})."
    least = down_to(b.support_at_least or 0.0)
    return (
        f"No collision seen: this generator makes at least {least} different pictures ({sure(b.confidence)})."
    )


def outlook(found: Diversity) -> list[str]:
    """What else has to be said at once."""
    said = [f"{seen(found.birthday)} {against_real(found.birthday)}".strip(), likeness(found), copying(found)]
    return [sentence for sentence in said if sentence]


def seen(b: Birthday) -> str:
    batches = many(b.batches, "fresh batch", "fresh batches")
    if b.collisions:
        return f"In {b.collisions:,} of {batches} of {b.batch_size:,} samples two were the same."
    return f"In none of {batches} of {b.batch_size:,} samples were two the same."


def against_real(b: Birthday) -> str:
    """What counts as the same, and what real data would have shown."""
    limit = b.threshold
    if limit.origin == "exact":
        return (
            "Only exact duplicates count here: without real data nothing says how close two pictures must be "
            "to count as one, so near-duplicates were not looked for. Give held-out data (--real), or a "
            "distance (--threshold)."
        )
    if limit.origin == "given":
        return f"Two pictures count as the same up to the distance {number(limit.distance)}, as was asked."
    if b.p_real is None:
        return ""
    if not b.collisions:
        return (
            "Real pictures hardly ever are at this distance: by this test it is as diverse as the real data."
        )
    if b.p_real <= 1 - b.confidence:
        has = (
            "" if limit.real_support is None else f", which has effectively about {about(limit.real_support)}"
        )
        return (
            f"That is less diverse than the real data{has}: it would collide less often ({chance(b.p_real)})."
        )
    return f"By this test it is as diverse as the real data, which may collide as often ({chance(b.p_real)})."


def likeness(found: Diversity) -> str:
    """Many different pictures may be noise."""
    q, r = found.quality, found.quality_real
    if q is None:
        return ""
    real = (
        ("", "")
        if r is None
        else tuple(f" (real data: {percent(one.value)})" for one in (r.precision, r.recall))
    )
    return (
        f"{percent(q.precision.value)} of its samples lie among real pictures{real[0]}, and "
        f"{percent(q.recall.value)} of real pictures among its samples{real[1]}."
    )


def copying(found: Diversity) -> str:
    """Whether it repeats its training set."""
    m = found.memorization
    if m is None:
        return "Whether it copies training images was not tested."
    if m.sides is None:
        return "Whether it copies training images can't be told without held-out real data (--real)."
    if m.copied:
        return (
            "It copies: samples are closer to training images than to held-out ones, more often than chance "
            f"has it ({chance(m.sides.p)})."
        )
    said = (
        "No sign of copying: samples are no closer to training images than to held-out ones "
        f"({chance(m.sides.p)})."
    )
    if m.closer:
        said += " They are closer to both than real pictures are, as smooth or typical pictures are."
    return said


def notices(found: Diversity) -> list[str]:
    """What the reader must know before believing anything."""
    said = []
    if found.broken_total:
        names = ", ".join(plain(one, LONGEST_NAME) for one in found.broken[:5])
        more = ", …" if found.broken_total > 5 else ""
        left = many(
            found.broken_total, "picture could not be read and is", "pictures could not be read and are"
        )
        said.append(f"{left} left out: {names}{more}.")
    return said + [plain(note, LONGEST_REASON) for note in found.notes]


# --- birthday ---


def birthday_rows(b: Birthday) -> list[Row]:
    low, high = b.interval
    rows = [
        (
            "samples a batch, M",
            f"{b.batch_size:,}",
            f"{many(b.batches, 'batch', 'batches')} that share no sample; {b.samples:,} drawn in all",
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
                f"N with Π_{{k<M}} (1 − k/N) = (1 − {b.confidence:g})^(1/{b.batches:,}): of the support, not "
                "of the effective support",
            )
        )
    e = b.effective
    if e.value is not None:
        rows.append(
            (
                "effective support, estimated",
                f"{about(e.value)} ({about(e.low)} to {about(e.high)})",
                f"N_eff = 1/Σp², from {many(e.pairs, 'pair')} of {e.of:,} that collided",
            )
        )
    limit = b.threshold
    if limit.real_support is not None:
        rows.append(
            (
                "effective support, real data",
                about(limit.real_support),
                f"at the same distance, from {limit.real_points or 0:,} real pictures",
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
    if limit.level is None or limit.level > TOO_FEW:
        return f"just below the closest pair of {points}, too few to calibrate batches of this size"
    return (
        f"real batches of this size show such a pair in at most {100 * limit.level:.2g} % of cases ({points})"
    )


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
    return [
        (
            "perceptual path length",
            f"{number(s.length)} ± {number(s.error)}",
            f"mean of (distance ÷ step)² by {plain(found.features, LONGEST_NAME)} on {s.pairs:,} "
            f"{plain(s.kind, 20)} paths between random seeds; median {number(s.median)}",
        ),
        (
            "compared with straight paths",
            f"{s.ratio:.2f} ± {s.ratio_error:.2g}",
            "1 if pictures change evenly from end to end; jumps between few pictures make it large",
        ),
    ]


def strengths(values: Iterable[float]) -> str:
    return ", ".join(number(value) for value in values)


# --- all of it ---


def rows(found: Diversity) -> list[Row]:
    """For the terminal."""
    made = birthday_rows(found.birthday)
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
    return [(plain(one.what, LONGEST_NAME), plain(one.reason, LONGEST_REASON)) for one in found.skipped]


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
    words = ["obverse", "diversity", plain(spell(found.settings.get("source", "SOURCE")), LONGEST_NAME)]
    for flag, usual in FLAGS.items():
        value = found.settings.get(flag)
        if value is not None and value != usual:
            words += [f"--{flag.replace('_', '-')}", plain(spell(value), LONGEST_NAME)]
    if found.settings.get("quick"):
        words.append("--quick")
    return shlex.join([*words, "--out", "DIR"])
