"""How well a net does, input by input, so that two nets can be compared on the same inputs. Not for charts.

A net is run in evaluation mode; the modes of its modules come back afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..._core import BadInput, output_of
from .results import Measure, Score

Loss = Callable[..., Tensor]
BATCH = 256


@dataclass(frozen=True, eq=False)
class Test:
    """Inputs and what counts as doing well on them; `untreated` is how the net itself does, per input."""

    __test__ = False  # for pytest
    x: Tensor
    y: Tensor | None
    loss: Loss | None
    measure: Measure
    batch_size: int
    untreated: Tensor = field(default_factory=lambda: torch.zeros(0))

    def scores(self, net: nn.Module) -> Tensor:
        """One float64 number per input."""
        found = []
        for start in range(0, len(self.x), self.batch_size):
            rows = slice(start, start + self.batch_size)
            y = None if self.y is None else self.y[rows]
            found.append(self._of_batch(outputs_of(net, self.x[rows]), y))
        return torch.cat(found)

    def _of_batch(self, outputs: Tensor, y: Tensor | None) -> Tensor:
        if self.loss is None:
            assert y is not None
            return (outputs.argmax(1) == y.to(outputs.device)).double().cpu()
        values = self.loss(outputs) if y is None else self.loss(outputs, y.to(outputs.device))
        if not isinstance(values, Tensor) or values.shape != (len(outputs),):
            got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise BadInput(
                f"a loss that gives one number per input, here {len(outputs)}",
                got=f"shape {got}" if isinstance(got, tuple) else got,
                do='use reduction="none", and the mean over what one input has several of',
            )
        return values.detach().double().cpu()

    def score(self, net: nn.Module) -> Score:
        """The mean, and how it differs from the untreated net's on the same inputs."""
        return compare(self.scores(net), self.untreated)


def compare(treated: Tensor, untreated: Tensor) -> Score:
    """Means, and the paired standard error of their difference; None where a loss is not finite."""
    change = treated - untreated
    if not bool(torch.isfinite(change).all()):
        return Score(None, None, None)
    error = float(change.std() / math.sqrt(len(change))) if len(change) > 1 else None
    return Score(float(treated.mean()), float(change.mean()), error)


def test_of(net: nn.Module, x: Tensor, y: Tensor | None, loss: Loss | None, batch_size: int) -> Test:
    """The test with the untreated net's scores; the net must be in evaluation mode."""
    _check(x, y, loss, batch_size)
    measure: Measure = "loss" if loss is not None else "agreement" if y is None else "accuracy"
    if loss is None:
        answers = [
            _answers(outputs_of(net, x[start : start + batch_size])) for start in range(0, len(x), batch_size)
        ]
        y = torch.cat(answers) if y is None else y
    test = Test(x, y, loss, measure, batch_size)
    scores = test.scores(net)
    if not bool(torch.isfinite(scores).all()):
        raise BadInput("a finite loss of the untreated net", got="NaN or infinity", do="check net, x and y")
    return Test(x, y, loss, measure, batch_size, scores)


test_of.__test__ = False  # type: ignore[attr-defined]


def outputs_of(net: nn.Module, x: Tensor) -> Tensor:
    outputs: object = output_of(net(x))
    if not isinstance(outputs, Tensor) or outputs.ndim < 1 or len(outputs) != len(x):
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise BadInput(
            f"a net that gives one tensor with a row for each of {len(x)} inputs",
            got=got,
            do="wrap it in a module that does",
        )
    return outputs


def _answers(outputs: Tensor) -> Tensor:
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise BadInput(
            "outputs of shape inputs × classes, for accuracy or agreement",
            got=f"shape {tuple(outputs.shape)}",
            do="pass a loss of (outputs, y) that gives one number per input",
        )
    return outputs.argmax(1).cpu()


def _check(x: Tensor, y: Tensor | None, loss: Loss | None, batch_size: int) -> None:
    if not isinstance(x, Tensor) or x.ndim < 1 or len(x) < 2:
        got = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise BadInput("inputs as a tensor, at least 2", got=got, do="pass a batch of test inputs")
    if y is not None and (not isinstance(y, Tensor) or y.ndim < 1 or len(y) != len(x)):
        got = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise BadInput(f"y for each of {len(x)} inputs", got=got, do="pass the labels of x, in its order")
    if y is not None and loss is None and (y.ndim != 1 or y.is_floating_point()):
        raise BadInput(
            "labels as whole numbers, one per input",
            got=f"{str(y.dtype).removeprefix('torch.')} of shape {tuple(y.shape)}",
            do="pass a loss for targets of another kind",
        )
    if batch_size < 1:
        raise BadInput("batch_size ≥ 1", got=batch_size, do=f"{BATCH} is the default")


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; every module's own mode comes back."""
    modes = [(module, module.training) for module in net.modules()]
    try:
        net.eval()
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def batch_norms(net: nn.Module) -> list[_BatchNorm]:
    """Those whose statistics are kept and can be estimated anew."""
    return [one for one in net.modules() if isinstance(one, _BatchNorm) and one.running_mean is not None]


@contextmanager
def reestimated(net: nn.Module, x: Tensor, batch_size: int) -> Iterator[None]:
    """Inside, batch norms have the statistics of the net as it is now on `x`; afterwards their own again."""
    norms = batch_norms(net)
    kept = [(norm, norm.momentum, norm.training, _copies(norm)) for norm in norms]
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the average of all batches
            norm.train()
        for part in x.tensor_split(-(-len(x) // batch_size)):
            net(part)
        for norm in norms:
            norm.eval()
        yield
    finally:
        for norm, momentum, training, buffers in kept:
            norm.momentum, norm.training = momentum, training
            for buffer, copy in buffers:
                buffer.copy_(copy)


def _copies(norm: _BatchNorm) -> Sequence[tuple[Tensor, Tensor]]:
    found = (norm.running_mean, norm.running_var, norm.num_batches_tracked)
    return [(buffer, buffer.clone()) for buffer in found if buffer is not None]
