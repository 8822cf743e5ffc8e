"""Audits of a net while it is trained, for a bounded share of the time. Not for any one trainer."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._core import BadInput, as_inputs, seconds
from ..shadow import Shadow, recovery
from ..weights import LayerAudit, audit
from .results import NAME, History, LayerPoint, Point, append_point


class Watch:
    """Call it in a loop: every so often it audits the net, and writes down what it found.

    >>> watch = Watch(net, every=5)  # doctest: +SKIP
    >>> for epoch in range(100):  # doctest: +SKIP
    ...     train(net)
    ...     watch(epoch)

    Args:
        net: what is trained; wrappers of DistributedDataParallel and torch.compile are looked through.
        path: a file to append each measurement to, or a directory for audit_history.jsonl; None: none.
        every: measure at steps that this divides; whatever the loop counts, steps or epochs.
        at_most: the share of the training time that measurements may take. One that would exceed it is
            skipped, with a warning the first time; only the first is made whatever it takes, for nothing is
            known of its time. None: no bound.
        inputs: some inputs; with them the recovery errors of the layers' shadows are measured, too.
        log: is called with a dict of numbers and the step after each measurement.

    The audit is a quick one (`audit(net, quick=True)`) with the same random numbers each time, so that what
    differs between two steps is the net; the random numbers of the training are left alone. Of several
    processes only the first measures.
    """

    def __init__(
        self,
        net: nn.Module,
        path: Path | str | None = None,
        *,
        every: int = 1,
        at_most: float | None = 0.05,
        inputs: Any = None,
        seed: int = 0,
        log: Callable[[dict[str, float], int], object] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not isinstance(net, nn.Module):
            raise BadInput("an nn.Module to watch", got=type(net).__name__, do="pass the net")
        if type(every) is not int or every < 1:
            raise BadInput("every ≥ 1 steps", got=every, do="use every=1 for each of them")
        if at_most is not None and not 0 < at_most <= 1:
            raise BadInput("at_most, a share of the time in (0, 1]", got=at_most, do="use 0.05 for 5 %")
        self.net = unwrapped(net)
        self.path = None if path is None else Path(path) / NAME if Path(path).is_dir() else Path(path)
        self.every, self.at_most, self.seed, self.log = every, at_most, seed, log
        self.inputs: Tensor | None = None if inputs is None else as_inputs(inputs, self.net)
        self.note = ""  # why there are no recovery errors, where inputs were given
        self._shadow: Shadow | None = None
        self._clock = clock
        self._began = clock()
        self._spent, self._last = 0.0, 0.0
        self._skipped, self._warned = 0, False
        self._points: list[Point] = []

    def __call__(self, step: int, *, epoch: float | None = None) -> Point | None:
        """Measure, if it is time to and there is time for it; None if not."""
        if step % self.every or not is_first_process():
            return None
        training = self._clock() - self._began - self._spent
        if self._points and self.at_most and self._spent + self._last > self.at_most * training:
            self._skip(step, training, self.at_most)
            return None
        began = self._clock()
        layers = self._measure()
        took = self._clock() - began
        point = Point(step, epoch, took, training, self._skipped, layers)
        self._points.append(point)
        self._skipped = 0
        if self.path is not None:
            append_point(self.path, point)
        if self.log is not None:
            self.log(point.metrics(), step)
        self._last = self._clock() - began  # with what writing it down took
        self._spent += self._last
        return point

    @property
    def history(self) -> History:
        """What this process has measured."""
        return History(tuple(self._points))

    def _skip(self, step: int, training: float, most: float) -> None:
        self._skipped += 1
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the audit at step {step:,} is skipped, and so are others until there is time for them: "
                f"{seconds(self._spent)} s so far and {seconds(self._last)} s for the next one are more than "
                f"{100 * most:g} % of {seconds(training)} s of training (at_most={most:g}); "
                "measure less often (every=…), or allow more",
                stacklevel=3,
            )

    def _measure(self) -> tuple[LayerPoint, ...]:
        generator = torch.Generator().manual_seed(self.seed)
        layers = audit(self.net, quick=True, generator=generator).layers
        errors = self._recovery()
        return tuple(_point(layer, errors.pop(layer.name, None)) for layer in layers) + tuple(
            LayerPoint(name, "", None, False, None, False, error) for name, error in errors.items()
        )

    def _recovery(self) -> dict[str, float]:
        """Recovery errors by layer; none where the net has no shadow, which `note` then says."""
        if self.inputs is None or self.note:
            return {}
        try:
            self._shadow = self._shadow or Shadow(self.net)
            found = recovery(self._shadow, self.inputs).errors
        except BadInput as error:
            self.note = str(error)
            warnings.warn(f"no recovery errors: {error}", stacklevel=5)
            return {}
        return {name: error for name, error in found.items() if error < float("inf")}


def _point(layer: LayerAudit, error: float | None) -> LayerPoint:
    share, parts = layer.random_share, layer.parts
    return LayerPoint(
        layer.name,
        layer.verdict,
        None if parts is None else parts.rank,
        parts is not None and parts.rank_is_bound,
        None if share is None else share.value,
        share is not None and share.is_bound,
        error,
    )


def unwrapped(net: nn.Module) -> nn.Module:
    """The net inside DistributedDataParallel, DataParallel and torch.compile."""
    while True:
        parallel = isinstance(net, nn.DataParallel | nn.parallel.DistributedDataParallel)
        inner = net.module if parallel else getattr(net, "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return net
        net = inner


def is_first_process() -> bool:
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized()) or distributed.get_rank() == 0
