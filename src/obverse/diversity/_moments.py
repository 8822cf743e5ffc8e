"""FID, KID and the inception score, computed by torchmetrics from the features of any net.

torchmetrics takes a net and images. Here the net has been run already, in batches and as it wants its input
(see features), so it gets features for images and a net that hands them on. Numbers that stem from different
nets, or different numbers of samples, can't be compared. Not for memorization: a copy of the training set has
the best of all scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._core import BadInput, Progress, Record, or_global, require
from ._distances import BLOCK, centre
from ._estimates import Estimate
from ._features import Features
from ._sources import flat_points

METRICS = "metrics"  # the extra that brings torchmetrics
INCEPTION = "inception"  # the extra that brings torch-fidelity, which has Inception's weights
BLOCKS = 10  # at least, of disjoint samples, for the standard error of KID
SUBSET = 1000  # samples a block of KID, at most
SPLITS = 10  # of the inception score, as usual
WIDEST = 4096  # features: FID takes the eigenvalues of a matrix of this size


@dataclass(frozen=True)
class Moments(Record):
    """`fid`: of all samples and all real data; too high by an amount that falls with the number of points.

    So beside it `floor`: FID of one half of the real data against the other, `size` points each, which would
    be 0 without that bias; and `at_floor`: FID of as many samples against the same half. Only what `at_floor`
    is above `floor` speaks against the generator.

    `kid` has no bias; its standard error is that of the mean over `blocks` disjoint blocks of both sets.
    `inception_score` is None without a classifier; its error is that of the mean over 10 splits.
    """

    samples: int
    real: int
    features: int
    fid: float
    floor: float
    at_floor: float
    size: int
    kid: Estimate
    blocks: int
    inception_score: Estimate | None

    checks: ClassVar[Any] = (("at least two blocks", lambda one: one.blocks >= 2),)

    def __str__(self) -> str:
        score = "" if self.inception_score is None else f", IS {self.inception_score}"
        return (
            f"FID {self.fid:.4g} ({self.at_floor:.4g} with {self.size:,} samples, where real data has "
            f"{self.floor:.4g}), KID {self.kid}{score}"
        )


def moments(
    samples: Tensor,
    real: Tensor,
    *,
    logits: Tensor | None = None,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Moments:
    """All three from n × d features; `logits`: class scores of the samples, for the inception score.

    `generator` (torch's global one if None) draws the halves, blocks and splits.
    """
    samples, real = flat_points(samples, constant=True), flat_points(real, "the real data")
    if samples.shape[1] != real.shape[1] or real.shape[1] > WIDEST:
        raise BadInput(
            f"as many features of both, at most {WIDEST:,}",
            got=f"{samples.shape[1]:,} and {real.shape[1]:,}",
            do="use one net, with a smaller output",
        )
    if min(len(samples), len(real)) < 2 * BLOCKS:
        raise BadInput(
            f"at least {2 * BLOCKS} samples and as much real data",
            got=f"{len(samples)} and {len(real)}",
            do="add some",
        )
    generator = or_global(generator)
    size = min(len(samples), len(real) // 2)
    some = torch.randperm(len(samples), generator=generator)[:size]
    one, other = torch.randperm(len(real), generator=generator)[: 2 * size].split(size)
    tell = _steps(progress, 4)
    fid = frechet_distance(samples, real)
    tell(1)
    floor = frechet_distance(real, real, other, one)
    tell(2)
    at_floor = frechet_distance(samples, real, some, one)
    tell(3)
    kid, blocks = kernel_distance(samples, real, generator)
    found = None if logits is None else inception_score(logits, generator)
    tell(4)
    return Moments(len(samples), len(real), real.shape[1], fid, floor, at_floor, size, kid, blocks, found)


class _HandOn(nn.Module):
    """What torchmetrics takes for the net: features come in and go out."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features  # torchmetrics asks for it, or would send an image to find out

    def forward(self, features: Tensor) -> Tensor:
        return features


def frechet_distance(
    samples: Tensor, real: Tensor, rows: Tensor | None = None, real_rows: Tensor | None = None
) -> float:
    """FID: ‖μ − ν‖² + tr(Σ + T − 2(ΣT)^½) of means and covariances, in float64. `rows`: of these alone."""
    metric = _metric("fid", "FrechetInceptionDistance", feature=_HandOn(real.shape[1]))
    middle = centre(real)  # the distance does not change with it, but sums of squares lose fewer digits
    for points, chosen, is_real in ((real, real_rows, True), (samples, rows, False)):
        for part in (torch.arange(len(points)) if chosen is None else chosen).split(BLOCK):
            metric.update(points[part].double() - middle, real=is_real)
    return max(0.0, float(metric.compute()))


def kernel_distance(samples: Tensor, real: Tensor, generator: torch.Generator) -> tuple[Estimate, int]:
    """(KID, blocks): the unbiased squared MMD with the kernel (a·b/d + 1)³, the mean over disjoint blocks.

    The usual standard deviation, over subsets that overlap, is no standard error; disjoint blocks are
    independent. Which points are in which block is drawn.
    """
    least = min(len(samples), len(real))
    blocks = max(BLOCKS, -(-least // SUBSET))
    size = least // blocks
    orders = [torch.randperm(len(points), generator=generator) for points in (samples, real)]
    metric = _metric(
        "kid", "KernelInceptionDistance", feature=_HandOn(real.shape[1]), subsets=1, subset_size=size
    )
    found = []
    for start in range(0, blocks * size, size):
        mine, theirs = (order[start : start + size] for order in orders)
        metric.update(samples[mine].double(), real=False)
        metric.update(real[theirs].double(), real=True)
        with _seeded(generator):  # it puts the block in a random order
            found.append(metric.compute()[0].double())
        metric.reset()
    values = torch.stack(found)
    return Estimate(float(values.mean()), float(values.std() / blocks**0.5)), blocks


def inception_score(logits: Tensor, generator: torch.Generator) -> Estimate:
    """exp of the mean of KL[p(y|x) ‖ p(y)] over samples, from class scores; the mean over 10 splits."""
    logits = flat_points(logits, "the class scores", constant=True).double()
    if logits.shape[1] < 2 or len(logits) < 2 * SPLITS:
        raise BadInput(
            f"at least two classes and {2 * SPLITS} samples",
            got=f"shape {tuple(logits.shape)}",
            do="give the scores of a classifier",
        )
    # A probability that is 0 in float64 would give 0·∞; below e⁻⁶⁰⁰ nothing changes.
    logits = (logits - logits.max(1, keepdim=True).values).clamp(min=-600)
    metric = _metric("inception", "InceptionScore", feature=_HandOn(logits.shape[1]), splits=SPLITS)
    metric.update(logits)
    with _seeded(generator):
        mean, deviation = metric.compute()
    return Estimate(float(mean), float(deviation) / SPLITS**0.5)


def inception(*, logits: bool = False) -> Features:
    """What real Inception says of images in [0, 1] with 1 or 3 channels: 2,048 features, or class scores.

    The weights come from the package torch-fidelity, which fetches them once: without the package or the
    network the error says so.
    """
    require("torch_fidelity", INCEPTION)
    require("torchmetrics", METRICS)
    from torchmetrics.image.fid import NoTrainInceptionV3

    layer = "logits_unbiased" if logits else "2048"
    try:
        net = NoTrainInceptionV3(name="inception-v3-compat", features_list=[layer])
    except (OSError, RuntimeError) as error:  # URLError is an OSError
        raise BadInput(
            "Inception's weights from the network",
            got=str(error) or type(error).__name__,
            do="try again with a network, or use features of your own net",
        ) from error

    def rows(images: Tensor) -> Tensor:
        if images.ndim != 4 or images.shape[1] not in (1, 3) or not 0 <= images.min() <= images.max() <= 1:
            raise BadInput(
                "images × 1 or 3 channels × height × width in [0, 1] for Inception",
                got=f"shape {tuple(images.shape)}, {float(images.min()):.3g} to {float(images.max()):.3g}",
                do="scale them, or use features of your own net",
            )
        with torch.no_grad():
            found: Tensor = net((images * 255).round().to(torch.uint8).expand(-1, 3, -1, -1))
        return found

    return Features("inception logits" if logits else "inception", rows, batch_size=64)


def _metric(module: str, name: str, **settings: Any) -> Any:
    """A metric of torchmetrics, without its remark that features take memory."""
    import warnings
    from importlib import import_module

    require("torchmetrics", METRICS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Metric `.*` will save all extracted features", UserWarning)
        return getattr(import_module(f"torchmetrics.image.{module}"), name)(**settings)


@contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """torchmetrics draws from the global random state: lend it one, and put the old one back."""
    seed = int(torch.randint(2**62, (), generator=generator))  # outside: it may be the global generator's
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _steps(progress: Progress | None, total: int) -> Any:
    return (lambda done: progress(done, total, "moments")) if progress else (lambda done: None)
