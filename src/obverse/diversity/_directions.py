"""Directions in seed space along which a generator's pictures change most, or towards a label.

The principal directions are the eigenvectors of the mean of JᵀJ over seeds, J the Jacobian of the generator:
of a linear one its right singular vectors, exactly. Not for paths between two seeds: see interpolation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import jvp, vjp

from .._core import BadInput, Progress
from ._interpolation import Decode, check_alone, check_seeds, decode_all

SMALL = 256  # seed dimensions up to which JᵀJ is computed whole
SPARE = 8  # directions carried along beyond those asked for, which makes the iteration converge
ROUNDS = 12  # of subspace iteration: the error falls by (σ_{k+9}/σ_k)² a round
NUMBERS = 2**24  # of derivatives held at a time: 64 MB

Classify = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Directions:
    """Unit vectors, the strongest first, with the size of the change for a unit step along them.

    `strengths`: root of the mean over seeds of ‖J v‖². `total`: the same of all directions together, √ of the
    mean of ‖J‖_F²; None where only the strongest were found.
    """

    vectors: Tensor  # count × latent
    strengths: Tensor  # float64
    total: float | None
    seeds: int

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Of the whole squared change, of each direction."""
        if self.total is None:
            return None
        return tuple((self.strengths / self.total).square().tolist())

    def __str__(self) -> str:
        sizes = ", ".join(f"{value:.3g}" for value in self.strengths.tolist())
        return f"{len(self.vectors)} directions at {self.seeds} seeds, of strength {sizes}"


@dataclass(frozen=True, eq=False)
class LabelDirection:
    """A unit vector along which the log-probability of a label grows, on average over seeds.

    `slope`: the mean growth a unit step, `error` its standard error. `agreement`: the share of seeds at which
    it grows along this direction at all, ½ by chance. Every other seed has chosen the direction, and these
    three are of the rest: on the seeds that chose it, it would look good even if there were none.
    """

    vector: Tensor
    slope: float
    error: float
    agreement: float


def principal_directions(
    decode: Decode,
    seeds: Tensor,
    count: int = 5,
    *,
    whole: bool | None = None,
    rounds: int = ROUNDS,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Directions:
    """The directions along which pictures change most, on average over the seeds (or at one seed).

    `whole` computes all of JᵀJ, by default where seeds have at most 256 dimensions; otherwise subspace
    iteration finds the strongest, from a start drawn by `generator`. A vector's largest entry is positive.
    """
    check_seeds(seeds)
    latent = seeds.shape[1]
    if not 1 <= count <= latent:
        raise BadInput(f"from 1 to {latent} directions", got=count, do="ask for fewer")
    check_alone(decode, seeds)
    whole = latent <= SMALL if whole is None else whole
    if whole:
        matrix = _squared_jacobian(decode, seeds, progress)
        values, vectors = torch.linalg.eigh(matrix)
        values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
        total = float(matrix.trace().sqrt())
    else:
        values, vectors = _subspace(decode, seeds, count, rounds, generator, progress)
        total = None
    if not float(values[0]) > 0:
        raise BadInput(
            "a decode that changes with its seed, differentiably",
            got="a Jacobian of 0",
            do="leave out torch.no_grad and rounding inside decode",
        )
    vectors = vectors.T
    largest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))
    vectors = torch.where(largest < 0, -vectors, vectors)
    return Directions(vectors.to(seeds.dtype), values.clamp(min=0).sqrt(), total, len(seeds))


def _change(decode: Decode, seeds: Tensor, tangent: Tensor) -> Tensor:
    """J v at each seed, in the shape of the pictures."""
    with torch.no_grad(), warnings.catch_warnings():
        # torch compiles its own rules at the first call, and warns of how it does it
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        found: Tensor = jvp(decode, (seeds,), (tangent.expand_as(seeds),))[1]
    return found.detach()


def _squared_jacobian(decode: Decode, seeds: Tensor, progress: Progress | None) -> Tensor:
    """The mean of JᵀJ in float64, a block of seeds at a time."""
    latent = seeds.shape[1]
    basis = torch.eye(latent, dtype=seeds.dtype, device=seeds.device)
    pixels = decode_all(decode, seeds[:1])[0].numel()
    blocks = seeds.split(max(1, NUMBERS // (latent * pixels)))
    total = torch.zeros(latent, latent, dtype=torch.float64)
    for done, block in enumerate(blocks, start=1):
        changes = [_change(decode, block, one).flatten() for one in basis]  # seeds and pixels in a row
        flat = torch.stack(changes, dim=1).double()
        total += (flat.T @ flat).cpu()
        if progress is not None:
            progress(done, len(blocks), "directions")
    return total / len(seeds)


def _subspace(
    decode: Decode,
    seeds: Tensor,
    count: int,
    rounds: int,
    generator: torch.Generator | None,
    progress: Progress | None,
) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues of the mean of JᵀJ and their vectors, by products with it alone."""
    if rounds < 1:
        raise BadInput("at least 1 round", got=rounds, do=f"{ROUNDS} is the default")
    latent = seeds.shape[1]
    width = min(latent, count + SPARE)
    basis = torch.randn(latent, width, dtype=torch.float64, generator=generator)
    for done in range(1, rounds + 1):
        basis = torch.linalg.qr(basis).Q
        product = torch.stack([_product(decode, seeds, one) for one in basis.T.to(seeds)], dim=1)
        if done < rounds:
            basis = product
        if progress is not None:
            progress(done, rounds, "directions")
    values, turn = torch.linalg.eigh((basis.T @ product + product.T @ basis) / 2)
    return values.flip(0)[:count], (basis @ turn.flip(1))[:, :count]


def _product(decode: Decode, seeds: Tensor, vector: Tensor) -> Tensor:
    """The mean of JᵀJ times a vector."""
    with torch.no_grad():
        back: Tensor = vjp(decode, seeds)[1](_change(decode, seeds, vector))[0]
    return back.detach().double().mean(0).cpu()


def label_direction(
    decode: Decode, classify: Classify, label: int, seeds: Tensor, *, batch_size: int = 256
) -> LabelDirection:
    """The mean over every other seed of the gradient of log p(label | picture), as a unit vector.

    `classify` gives scores (n × labels), of which the softmax is the probability. Seeds have to be drawn
    independently of each other: the other half says how good the direction is.
    """
    check_seeds(seeds, least=4)
    check_alone(decode, seeds)
    gradients = torch.cat(
        [_climb(decode, classify, label, part) for part in seeds.split(batch_size)]
    ).double()
    return _towards(gradients, seeds)


def _climb(decode: Decode, classify: Classify, label: int, seeds: Tensor) -> Tensor:
    with torch.enable_grad():
        leaves = seeds.detach().clone().requires_grad_()
        scores = classify(decode(leaves))
        if scores.ndim != 2 or len(scores) != len(seeds) or not 0 <= label < scores.shape[1]:
            raise BadInput(
                f"scores of {len(seeds)} pictures by more than {label} labels",
                got=f"shape {tuple(scores.shape)}",
                do="let classify return one row of scores a picture",
            )
        (found,) = torch.autograd.grad(scores.log_softmax(1)[:, label].sum(), leaves)
    return found


def regressed_direction(seeds: Tensor, scores: Tensor) -> LabelDirection:
    """The direction in which a score grows by least squares on every other seed; no derivative is needed.

    For Gaussian seeds it tends to the mean gradient of the score (Stein's lemma). `scores` has a number a
    seed: the log-probability of a label, or anything else that was measured on the pictures. Seeds have to be
    drawn independently of each other: on the other half the score is regressed on the place along it.
    """
    check_seeds(seeds, least=2)
    if scores.shape != (len(seeds),) or not bool(torch.isfinite(scores).all()):
        raise BadInput(
            f"{len(seeds)} finite scores, one a seed", got=f"shape {tuple(scores.shape)}", do="score each"
        )
    x, y = seeds.double(), scores.double()
    count, latent = x.shape
    if count < 2 * (latent + 2):
        raise BadInput(
            f"at least {2 * (latent + 2)} seeds for a regression on {latent} numbers and its test",
            got=count,
            do="draw more",
        )
    design = torch.cat([x[::2], torch.ones(len(x[::2]), 1, dtype=torch.float64)], dim=1)
    solution = torch.linalg.lstsq(design, y[::2].unsqueeze(1)).solution[:-1, 0]
    if not float(solution.norm()) > 0:
        raise BadInput("scores that change with the seed", got="none that do", do="use another label")
    vector = solution / solution.norm()
    along, growth = (x[1::2] - x[1::2].mean(0)) @ vector, y[1::2] - y[1::2].mean()
    slope = float(along @ growth / along.square().sum())
    residual = growth - slope * along
    # the error that holds for residuals of any size here or there: log-probabilities fall off on one side
    error = float((along * residual).square().sum().sqrt() / along.square().sum())
    error *= (len(along) / (len(along) - 2)) ** 0.5
    rising = (growth * along > 0).double().mean()
    return LabelDirection(vector.to(seeds.dtype), slope, error, float(rising))


def _towards(gradients: Tensor, seeds: Tensor) -> LabelDirection:
    mean = gradients[::2].mean(0)
    if not float(mean.norm()) > 0:
        raise BadInput(
            "a label whose probability changes with the seed, differentiably",
            got="a gradient of 0",
            do="leave out torch.no_grad inside decode and classify, or use regressed_direction",
        )
    vector = mean / mean.norm()
    along = gradients[1::2] @ vector
    error = float(along.std() / len(along) ** 0.5)
    return LabelDirection(
        vector.to(seeds.dtype), float(along.mean()), error, float((along > 0).double().mean())
    )


def direction_strips(
    decode: Decode,
    seeds: Tensor,
    direction: Tensor,
    *,
    reach: float = 3.0,
    steps: int = 7,
    batch_size: int = 256,
) -> Tensor:
    """The pictures from −reach to +reach along a direction through each seed: seeds × steps × picture.

    The direction is made a unit vector first.
    """
    check_seeds(seeds)
    if direction.shape != seeds.shape[1:] or not float(direction.norm()) > 0:
        raise BadInput(
            f"a direction of {seeds.shape[1]} numbers that are not all 0",
            got=f"shape {tuple(direction.shape)}",
            do="pass a row of Directions.vectors",
        )
    if steps < 2 or not 0 < reach < float("inf"):
        raise BadInput("at least 2 steps and a reach > 0", got=f"{steps}, {reach}", do="correct it")
    unit = (direction / direction.norm()).to(seeds)
    places = torch.linspace(-reach, reach, steps, dtype=seeds.dtype, device=seeds.device)
    moved = seeds.unsqueeze(1) + places[:, None] * unit
    pictures = decode_all(decode, moved.flatten(0, 1), batch_size)
    return pictures.reshape(*moved.shape[:2], *pictures.shape[1:])
