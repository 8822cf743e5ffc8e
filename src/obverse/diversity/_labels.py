"""A linear softmax classifier of pictures, fitted here: it finds directions for labels. Not a good one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._core import BadInput, Progress

MOST = 5000  # pictures to fit on; more change little for a linear classifier
RIDGE = 1e-3  # of ½‖W‖², beside the mean log-loss: keeps the fit unique and its scores moderate
ROUNDS = 100  # of L-BFGS


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores of pictures by label; their softmax is the probability. `accuracy` is on pictures left out."""

    weight: Tensor  # labels × pixels
    offset: Tensor
    accuracy: float | None

    def __call__(self, pictures: Tensor) -> Tensor:
        return pictures.flatten(1) @ self.weight.T.to(pictures) + self.offset.to(pictures)


def fit_scores(
    x: Tensor,
    y: Tensor,
    labels: int,
    *,
    most: int = MOST,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> LinearScores:
    """Multinomial logistic regression on pixels, by L-BFGS, on at most `most` pictures drawn at random.

    The accuracy is that on as many others, or None if there are fewer than 100.
    """
    if y.shape != (len(x),) or len(x) < 2:
        raise BadInput(
            "a label for each of at least 2 pictures", got=f"{len(x)} and {tuple(y.shape)}", do="pair"
        )
    if labels < 2 or int(y.min()) < 0 or int(y.max()) >= labels:
        raise BadInput(
            f"labels from 0 to {labels - 1}, at least two", got=f"{int(y.max())}", do="number them"
        )
    order = torch.randperm(len(x), generator=generator)
    kept, others = order[:most], order[most : 2 * most]
    inputs, targets = x[kept].flatten(1).float(), y[kept]
    centre = inputs.mean(0)
    weight = torch.zeros(labels, inputs.shape[1], requires_grad=True)
    offset = torch.zeros(labels, requires_grad=True)
    search = torch.optim.LBFGS(
        [weight, offset], max_iter=ROUNDS, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )
    steps = 0

    def loss() -> Tensor:
        nonlocal steps
        steps += 1
        if progress is not None:
            progress(min(steps, ROUNDS), ROUNDS, "label scores")
        search.zero_grad()
        with torch.enable_grad():
            scores = (inputs - centre) @ weight.T + offset
            found = torch.nn.functional.cross_entropy(scores, targets) + RIDGE / 2 * weight.square().sum()
        found.backward()
        return found

    search.step(loss)
    with torch.no_grad():
        fitted = LinearScores(weight.detach(), (offset - weight @ centre).detach(), None)
        if len(others) < 100:
            return fitted
        right = (fitted(x[others].float()).argmax(1) == y[others]).double().mean()
    return LinearScores(fitted.weight, fitted.offset, float(right))
