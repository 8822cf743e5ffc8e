"""What a diversity test says first: the verdict, and what belongs to it. Not for tables: see words."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from .._core import counted, named, number, plain, shape
from ._assessment import nearly_none
from ._numbers import about, chance, down_to, percent, sure, times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ._assessment import Check, Fault
    from ._birthday import Birthday
    from ._memorization import Memorization
    from .results import Diversity

LONGEST_REASON = 400
PIXELS = "pixels"


TITLE = "Has this generator learned the distribution?"


def subject(found: Diversity) -> str:
    """Which samples, in a few words."""
    count = "a generator" if found.pool is None else counted(found.pool, "sample")
    return f"{count} of shape {shape(found.shape)}: {named(found.subject, 'without a name')}"


def verdict(found: Diversity) -> str:
    """The one sentence that is asked for: the worst fault that is certain, or what was looked for in vain."""
    judged = found.assessment
    if judged.worst is not None:
        return FAULTS[judged.worst.fault](found, judged.worst)
    count = f"{found.examined:,} samples"
    if not judged.tests:
        within = "none is equal to another"
        if found.birthday.threshold.origin == "given":
            within = "in no batch are two within the distance that was asked for"
        return (
            f"No fault found in {count}, but little was looked for: {within}. Without real data nothing can "
            "be said of near-duplicates, copies or quality."
        )
    tests = f"{counted(judged.tests, 'test')} ({sure(judged.confidence)})"
    return f"No fault found at these sizes: {count}, {tests}."


def _constant(found: Diversity, _: Check) -> str:
    count = found.birthday.batches * found.birthday.batch_size
    return f"This generator makes one image: all {count:,} samples are equal."


def _collapsed(found: Diversity, one: Check) -> str:
    own, real = found.vendi, found.vendi_real
    assert own is not None
    assert real is not None
    return (
        f"This generator has collapsed: {percent(one.value)} of real images lie among its samples"
        f"{within(found, one)}; among as many real ones {percent(one.real)} do ({corrected(found, one)}). "
        f"Its samples vary less than real images (Vendi score {number(own.score)}, real data "
        f"{number(real.score)})."
    )


def _repeats(found: Diversity, one: Check) -> str:
    e = found.birthday.effective
    about_it = ""
    if e.value is not None:
        sides = f"{about(e.low)} to {about(e.high)}, {sure(found.birthday.confidence)}"
        about_it = f"it has effectively about {about(e.value)} images ({sides})"
    if one.test == "equal samples":
        real = ""
        if one.p is not None and found.distinct_real is not None:
            real = f"; {found.distinct_real:,} of {found.real or 0:,} real ones are ({corrected(found, one)})"
        return (
            f"This generator repeats itself: only {found.distinct or 0:,} of {found.examined:,} samples are "
            f"different, the others are exact duplicates{real}."
            + (f" By how often samples collide {about_it}." if about_it else "")
        )
    real = f", real data about {about(one.real)} ({corrected(found, one)})" if one.p is not None else ""
    return f"This generator repeats itself: {about_it or 'samples collide'}{real}."


def _copies(found: Diversity, one: Check) -> str:
    return (
        f"This generator copies its training set: {percent(one.value)} of samples{within(found, one)} are "
        f"nearest to a training image and not to a held-out one, where {percent(one.real)} are expected "
        f"({corrected(found, one)})."
    )


def _misses(found: Diversity, one: Check) -> str:
    part = "nearly all" if nearly_none(one.value, one.real) else "part"
    return (
        f"This generator misses {part} of the data: its {one.test} is {percent(one.value)}"
        f"{within(found, one)}, that of real data {percent(one.real)} ({corrected(found, one)})."
    )


def _implausible(found: Diversity, one: Check) -> str:
    return (
        f"This generator makes implausible samples: {percent(one.value)} of them{within(found, one)} lie "
        f"among real images, of real ones {percent(one.real)} ({corrected(found, one)})."
    )


def within(found: Diversity, one: Check) -> str:
    """The interval of a share, in brackets; nothing without one."""
    if one.low is None or one.high is None:
        return ""
    confidence = sure(found.assessment.confidence)
    return f" ({percent(one.low).removesuffix(' %')} to {percent(one.high)} at {confidence})"


def _differs(found: Diversity, one: Check) -> str:
    d = found.discrepancy
    assert d is not None
    return (
        "The samples of this generator differ from real data: their squared discrepancy is "
        f"{number(d.value)}, by chance it would be 0 ± {number(d.deviation)} ({corrected(found, one)})."
    )


FAULTS: Mapping[Fault, Callable[[Diversity, Check], str]] = {
    "constant": _constant,
    "collapsed": _collapsed,
    "repeats": _repeats,
    "copies": _copies,
    "misses": _misses,
    "implausible": _implausible,
    "differs": _differs,
}


def outlook(found: Diversity) -> list[str]:
    """What else has to be said at once."""
    birthday = f"{seen(found.birthday)} {against_real(found)}".strip()
    rest = [birthday, repeated(found), likeness(found), copying(found)]
    faults = more_faults(found)
    # with nothing to blame, the first question is what could have been seen
    said = [*faults, *rest, missed(found)] if found.assessment.faults else [missed(found), *rest]
    return [sentence for sentence in said if sentence]


def more_faults(found: Diversity) -> list[str]:
    """The other certain faults, each once."""
    faults = found.assessment.faults
    if any(one.fault == "collapsed" for one in faults):  # and so misses nearly all of the data
        faults = tuple(one for one in faults if one.fault != "misses")
    first = {one.fault: one for one in reversed(faults)}
    return [
        FAULTS[kind](found, first[kind])
        for kind in dict.fromkeys(one.fault for one in faults[1:])
        if first[kind] is not faults[0]
    ]


def repeated(found: Diversity) -> str:
    """Equal samples, where the verdict has not said it."""
    if found.distinct is None or found.distinct == found.examined or found.birthday.constant:
        return ""
    if any(one.test == "equal samples" for one in found.assessment.faults):
        return ""
    return f"Exactly equal: {found.distinct:,} of {found.examined:,} samples are different."


def missed(found: Diversity) -> str:
    """How large a fault may be that these tests would not have seen."""
    open_ = [one for one in found.assessment.findings if not one.certain]
    counts = [one for one in open_ if one.fault == "repeats" and one.p is None and one.smallest is not None]
    best = max(
        counts, key=lambda one: one.smallest or 0.0, default=None
    )  # of two counts the one that says more
    small = [overlooked(one) for one in open_ if one not in counts or one is best]
    small = [sentence for sentence in dict.fromkeys(small) if sentence]
    if not small:
        return ""
    return f"These sizes would have shown in 8 of 10 cases: {'; '.join(small)}."


def overlooked(one: Check) -> str:
    """The smallest fault that would have been found; empty where that is not known."""
    size = one.smallest
    if size is None or not size > 0:
        return ""
    if one.fault == "repeats":
        by = ", by exact duplicates" if one.test == "equal samples" else ""
        return f"a generator that makes no more than {down_to(size)} equally likely images{by}"
    if one.fault == "copies":
        return f"exact copies of training images in {percent(size)} of the samples"
    return f"a {one.test} lower by {ceil(100 * min(size, 1.0))} points than that of real data"


def decided(found: Diversity, test: str) -> Check | None:
    return next((one for one in found.assessment.findings if one.test == test and one.p is not None), None)


def seen(b: Birthday) -> str:
    batches = counted(b.batches, "fresh batch", "fresh batches")
    if b.collisions:
        return f"In {b.collisions:,} of {batches} of {b.batch_size:,} samples two were the same."
    return f"In none of {batches} of {b.batch_size:,} samples were two the same."


def against_real(found: Diversity) -> str:
    """What counts as the same, and what real data would have shown."""
    b = found.birthday
    limit = b.threshold
    if limit.origin == "exact":
        bound = ""
        if b.support_at_least is not None:
            bound = (
                f"So there are at least {down_to(b.support_at_least)} different ones ({sure(b.confidence)}), "
                "counting every difference, however small. "
            )
        return bound + (
            "Only exact duplicates count here: without real data nothing says how close two pictures must be "
            "to count as one, so near-duplicates were not looked for. Give held-out data (--real), or a "
            "distance (--threshold)."
        )
    if limit.origin == "given":
        return f"Two pictures count as the same up to the distance {number(limit.distance)}, as was asked."
    judged = decided(found, "collisions")
    if judged is None or b.p_real is None or limit.real_support is None:
        return ""
    if judged.certain:
        return (
            "That is less diverse than the real data, which collides less often "
            f"({corrected(found, judged)}) and has effectively about {about(limit.real_support)}."
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
    judged = decided(found, "nearest to training")
    assert judged is not None
    if judged.certain:
        return (
            "It copies: samples are closer to training images than to held-out ones, more often than chance "
            f"has it ({corrected(found, judged)}).{exactness(found)}"
        )
    if m.copied:
        return (
            "Whether it copies can't be told: samples are closer to training images than to held-out ones "
            f"({chance(m.sides.p)}), but that is not significant among so many tests "
            f"({corrected(found, judged)}).{exactness(found)}"
        )
    said = (
        "No sign of copying: samples are no closer to training images than to held-out ones "
        f"({chance(m.sides.p)})."
    )
    if m.closer:
        said += " They are closer to both than real pictures are, as smooth or typical pictures are."
    return said + exactness(found)


def corrected(found: Diversity, one: Check) -> str:
    """Its p, and over how many tests it was corrected."""
    tests = found.assessment.tests
    return chance(one.adjusted) + (f", corrected for {tests} tests" if tests > 1 else "")


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
        "At which level: “It copies” is said where p of “nearest to a training image”, corrected for all "
        f"tests that can find a fault (Holm), is at most {level(m.confidence)}; “closer "
        f"to both” where the smallest p of the other {tests} tests is at most "
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
