"""Every metric of a draw: a number that is larger the worse, and a p-value where the metric has one.

Ours come from the library; the others are written here from their papers and checked against their packages
in tests/lab/test_metric_bench.py. A metric that says "worse" by a rule of its own has a p, or 0 and 1 where
the rule is a comparison; one that only gives a number has None, and is judged by draws of real data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from time import process_time
from zlib import crc32

import torch
from torch import Tensor

from obverse.diversity import discrepancy, memorization, quality, quality_test
from obverse.diversity._assessment import p_lower
from obverse.diversity._birthday import birthday_test
from obverse.diversity._duplicates import duplicates

from .spaces import Dealt, Space

K = 5
SHUFFLES = 399  # of ours: of the smallest p-value, corrected for seven tests, 0.02 is left
OTHERS = 99  # of the others
Found = tuple[float, float | None]  # larger is worse; p


@dataclass(frozen=True, eq=False)
class Draw:
    """Samples beside the sets of a deal, in points."""

    images: Tensor
    samples: Tensor
    training: Tensor
    reference: Tensor
    other: Tensor
    real_images: Tensor
    scores: Callable[[Tensor], Tensor] | None
    generator: torch.Generator


def draw_of(space: Space, images: Tensor, dealt: Dealt, generator: torch.Generator) -> Draw:
    held_out = torch.cat([dealt.reference, dealt.other])
    return Draw(
        images,
        space.features(images),
        space.points[dealt.training],
        space.points[dealt.reference],
        space.points[dealt.other],
        space.images[held_out],
        space.scores,
        generator,
    )


def measured(draw: Draw, groups: Collection[str]) -> tuple[dict[str, Found], dict[str, float]]:
    """The metrics of these groups, and the seconds of processor time of each group.

    Each has random numbers of its own: what a group finds does not depend on which others are measured.
    """
    found: dict[str, Found] = {}
    seconds, seed = {}, draw.generator.initial_seed()
    for name in groups:
        draw.generator.manual_seed(seed ^ crc32(name.encode()))
        start = process_time()
        found.update(GROUPS[name](draw))
        seconds[name] = process_time() - start
    return found, seconds


# --- ours ---


def repeats(draw: Draw) -> Iterator[tuple[str, Found]]:
    real = torch.cat([draw.reference, draw.other])
    found = birthday_test(draw.samples, real=real, generator=draw.generator, show=1)
    assert found.p_real is not None
    support = found.effective.value
    yield "birthday test", (0.0 if support is None else 1 / support, found.p_real)
    equal = duplicates(draw.images, draw.real_images, generator=draw.generator)
    yield "equal samples", (float(equal.examined - equal.distinct), 1.0 if equal.p is None else equal.p)


def copying(draw: Draw) -> Iterator[tuple[str, Found]]:
    real = torch.cat([draw.reference, draw.other])
    found = memorization(draw.samples, draw.training, real, shuffles=SHUFFLES, generator=draw.generator)
    assert found.sides is not None
    assert found.close is not None
    yield "nearest to training", (found.sides.weighted, found.sides.p)
    yield "AuthPct, Fisher", (-found.authentic.share, found.authentic.p)
    yield "very close share", (found.close.share, found.close.p)
    if found.copying is not None:
        yield "C_T, permutation", (-found.copying.value, found.copying.p_closer)
        yield "C_T, normal law", (-found.copying.value, found.copying.p_normal)
    yield "AuthPct", (-found.authentic.share, None)


def marks(draw: Draw) -> Iterator[tuple[str, Found]]:
    own, real = quality(draw.samples, draw.reference, K), quality(draw.other, draw.reference, K)
    for name in ("recall", "coverage", "precision", "density"):
        mine, theirs = getattr(own, name), getattr(real, name)
        error = (mine.error**2 + theirs.error**2) ** 0.5
        yield f"{name}, jackknife", (-mine.value, p_lower(mine.value, theirs.value, error))
        yield f"{name}, number", (-mine.value, None)
        # what is done with a number beside that of real data: lower is worse
        yield f"{name} below real", (theirs.value - mine.value, 0.0 if mine.value < theirs.value else 1.0)


def beside_real(draw: Draw) -> Iterator[tuple[str, Found]]:
    tests = quality_test(
        draw.samples, draw.other, draw.reference, K, shuffles=SHUFFLES, generator=draw.generator
    )
    for name in ("recall", "coverage", "precision", "density"):
        p = getattr(tests, name).p
        yield f"{name}, permutation", (1 - p, p)


# --- of moments and kernels ---


def frechet(a: Tensor, b: Tensor) -> float:
    """‖μ − ν‖² + tr Σ + tr T − 2 tr (ΣT)^½, by the eigenvalues of the product."""
    a, b = a.double(), b.double()
    one, two = torch.cov(a.T), torch.cov(b.T)
    values, vectors = torch.linalg.eigh(one)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    inner = torch.linalg.eigvalsh(root @ two @ root).clamp(min=0).sqrt().sum()
    return float((a.mean(0) - b.mean(0)).square().sum() + one.trace() + two.trace() - 2 * inner)


def moments(draw: Draw) -> Iterator[tuple[str, Found]]:
    own, real = frechet(draw.samples, draw.reference), frechet(draw.other, draw.reference)
    yield "FID, number", (own, None)
    yield "FID above real", (own - real, 0.0 if own > real else 1.0)


def polynomial(a: Tensor, b: Tensor) -> Tensor:
    """The kernel of KID."""
    return (a @ b.T / a.shape[1] + 1) ** 3


def gaussian(a: Tensor, b: Tensor, width: float) -> Tensor:
    """That of CMMD; `width` is its standard deviation."""
    return torch.exp(-torch.cdist(a, b).square() / (2 * width**2))


def unbiased(kernel: Tensor, count: int) -> float:
    """The unbiased squared MMD of the first `count` rows and the others."""
    rest = len(kernel) - count
    one, two = kernel[:count, :count], kernel[count:, count:]
    within = (one.sum() - one.trace()) / (count * (count - 1))
    beside = (two.sum() - two.trace()) / (rest * (rest - 1))
    return float(within + beside - 2 * kernel[:count, count:].mean())


def permuted(
    kernel: Tensor, count: int, generator: torch.Generator, shuffles: int = OTHERS
) -> tuple[float, float]:
    """(MMD², p): the rows dealt anew. All dealings in one product: of signs, with the diagonal left out."""
    total = len(kernel)
    kernel = kernel.clone().fill_diagonal_(0)
    signs = torch.zeros(shuffles + 1, total, dtype=kernel.dtype)
    signs[0, :count] = 1
    for row in range(1, shuffles + 1):
        signs[row, torch.randperm(total, generator=generator)[:count]] = 1
    product = signs @ kernel
    within = (product * signs).sum(1)
    across = product.sum(1) - within
    beside = kernel.sum() - within - 2 * across
    rest = total - count
    found = within / (count * (count - 1)) + beside / (rest * (rest - 1)) - 2 * across / (count * rest)
    as_far = int((found[1:] >= found[0] - 1e-9 * found[0].abs()).sum())
    return float(found[0]), (1 + as_far) / (1 + shuffles)


def kernels(draw: Draw) -> Iterator[tuple[str, Found]]:
    both = torch.cat([draw.samples, draw.reference])
    both = both - draw.reference.mean(0)
    count = len(draw.samples)
    value, p = permuted(polynomial(both, both), count, draw.generator)
    yield "KID, permutation", (value, p)
    yield "KID, blocks", blocks(draw.samples, draw.reference, draw.generator)
    width = float(torch.pdist(both[:: max(1, len(both) // 500)]).median())
    value, p = permuted(gaussian(both, both, width), count, draw.generator)
    yield "CMMD kernel, permutation", (value, p)
    yield "CMMD kernel, number", (value, None)


def two_sample(draw: Draw) -> Iterator[tuple[str, Found]]:
    real = torch.cat([draw.reference, draw.other])
    found = discrepancy(draw.samples, real, shuffles=SHUFFLES, generator=draw.generator)
    yield "two-sample test", (found.value, found.p)


def blocks(samples: Tensor, real: Tensor, generator: torch.Generator) -> Found:
    """KID over ten disjoint blocks, and Student's t of their mean."""
    from scipy import stats

    size = len(samples) // 10
    one = samples[torch.randperm(len(samples), generator=generator)[: 10 * size]].split(size)
    two = real[torch.randperm(len(real), generator=generator)[: 10 * size]].split(size)
    values = torch.tensor(
        [
            unbiased(polynomial(both, both), size)
            for a, b in zip(one, two, strict=True)
            for both in [torch.cat([a, b])]
        ]
    )
    error = float(values.std()) / 10**0.5
    return float(values.mean()), float(stats.t.sf(float(values.mean()) / error, 9))


def classifier(draw: Draw) -> Iterator[tuple[str, Found]]:
    """The inception score, by the class scores of the net whose features these are."""
    if draw.scores is None:
        return
    own, real = inception_score(draw.scores(draw.samples)), inception_score(draw.scores(draw.other))
    yield "inception score, number", (-own, None)
    yield "inception score below real", (real - own, 0.0 if own < real else 1.0)


def inception_score(logits: Tensor) -> float:
    """exp of the mean of KL[p(y|x) ‖ p(y)], in one piece."""
    log = logits.double().log_softmax(1)
    mean = log.exp().mean(0, keepdim=True)
    return float((log.exp() * (log - mean.log())).sum(1).mean().exp())


# --- of neighbours ---


def radii(points: Tensor, k: int = K) -> Tensor:
    """Distance to the k-th nearest other point."""
    return torch.cdist(points, points).topk(k + 1, largest=False).values[:, -1]


def clipped(draw: Draw) -> Iterator[tuple[str, Found]]:
    """Clipped density and coverage (Salvy, Talbot and Thirion 2025), before their calibration.

    What calibrates them is a function of the number alone, which changes no decision by a threshold.
    """
    reach = radii(draw.reference)
    between = torch.cdist(draw.samples, draw.reference)
    short = reach.clamp(max=float(reach.median()))
    density = ((between <= short).sum(1) / K).clamp(max=1).mean()
    coverage = ((between <= reach).sum(0) / K).clamp(max=1).mean()
    yield "clipped density, number", (-float(density), None)
    yield "clipped coverage, number", (-float(coverage), None)


def vendi(draw: Draw) -> Iterator[tuple[str, Found]]:
    own = vendi_score(draw.samples)
    yield "Vendi, number", (-own, None)
    real = vendi_score(draw.other)
    yield "Vendi below real", (real - own, 0.0 if own < real else 1.0)


def vendi_score(points: Tensor) -> float:
    """exp of the entropy of the eigenvalues of the cosines ÷ n, by the smaller of the two matrices."""
    unit = torch.nn.functional.normalize(points, dim=1)
    matrix = (unit.T @ unit if unit.shape[1] < len(unit) else unit @ unit.T).double() / len(unit)
    values = torch.linalg.eigvalsh(matrix).clamp(min=0)
    return float(torch.special.entr(values).sum().exp())


GROUPS: dict[str, Callable[[Draw], Iterator[tuple[str, Found]]]] = {
    "birthday test, equal samples": repeats,
    "copies": copying,
    "precision, recall, density, coverage": marks,
    "the same by permutation": beside_real,
    "FID": moments,
    "two-sample test": two_sample,
    "KID, CMMD kernel": kernels,
    "inception score": classifier,
    "clipped density and coverage": clipped,
    "Vendi": vendi,
}
