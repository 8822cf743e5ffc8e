"""What a diversity test says first: the verdict, and what belongs to it. Not for tables: see words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import counted, named, number, plain
from ._numbers import about, chance, down_to, percent, sure, times, up_to

if TYPE_CHECKING:
    from ._birthday import Birthday
    from ._memorization import Memorization
    from .results import Diversity

LONGEST_REASON = 400
PIXELS = "pixels"


def name(found: Diversity) -> str:
    return named(found.subject, "this generator")


def title(found: Diversity) -> str:
    return f"Has {name(found)} learned the distribution?"


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
    batches = counted(b.batches, "fresh batch", "fresh batches")
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
    if b.p_real is None or limit.real_support is None:
        return ""
    if b.p_real <= 1 - b.confidence:
        return (
            f"That is less diverse than the real data, which collides less often ({chance(b.p_real)}) and "
            f"has effectively about {about(limit.real_support)}."
        )
    has = f"which has effectively about {about(limit.real_support)}"
    least = b.effective.low if b.collisions else b.support_at_least
    if least is None or not least > 0:
        return ""
    if least >= limit.real_support:
        return f"By this test it is at least as diverse as the real data, {has} ({sure(b.confidence)})."
    fewer = f"up to {times(limit.real_support / least)} times less"
    if b.collisions:
        return (
            f"Real data may collide as often ({chance(b.p_real)}): by this test it is as diverse as the real "
            f"data, {has}, or {fewer}."
        )
    return (
        f"Up to {down_to(least)} equally likely pictures would have shown a collision "
        f"({sure(b.confidence)}). The real data has more, effectively about {about(limit.real_support)}: too "
        f"few samples to tell whether it is as diverse as the real data, or {fewer}."
    )


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
            f"has it ({chance(m.sides.p)}).{exactness(found)}"
        )
    said = (
        "No sign of copying: samples are no closer to training images than to held-out ones "
        f"({chance(m.sides.p)})."
    )
    if m.closer:
        said += " They are closer to both than real pictures are, as smooth or typical pictures are."
    return said + exactness(found)


def exactness(found: Diversity) -> str:
    """p-values deal training and held-out images anew: features must not know which is which."""
    if found.features == PIXELS:
        return ""
    by = named(found.features)
    return (
        f" This p is exact only for features that know neither set, and {by} "
        "may have learned from one: then samples look nearer to it, or farther, than they are."
    )


def levels(m: Memorization) -> str:
    """Which p is small enough for which sentence."""
    if m.sides is None:
        return ""
    tests = 3 if m.copying is not None else 2
    said = (
        "At which level: “It copies” is said where p of “nearest to a training image” is at most "
        f"{level(m.confidence)}; “closer to both” where the smallest p of the other {tests} tests is at most "
        f"{level(m.confidence, tests)}, as {tests} chances to be wrong share {level(m.confidence)}."
    )
    if m.copying is not None:
        said += f" C_T is read as closer or farther where p of that side is at most {level(m.confidence, 2)}."
    return said


def level(confidence: float, parts: int = 1) -> str:
    return f"{100 * (1 - confidence) / parts:.2g} %"


def notices(found: Diversity) -> list[str]:
    """What the reader must know before believing anything."""
    said = []
    if found.broken_total:
        names = ", ".join(named(one) for one in found.broken[:5])
        more = ", …" if found.broken_total > 5 else ""
        left = counted(
            found.broken_total, "picture could not be read and is", "pictures could not be read and are"
        )
        said.append(f"{left} left out: {names}{more}.")
    return said + [plain(note, LONGEST_REASON) for note in found.notes]
