"""Diversity as metrics of torchmetrics: update, compute, reset, in collections and over several processes.

Each wraps a function of `obverse.diversity` and keeps all features, as a metric of neighbours must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn

from .._core import BadInput, require
from ..diversity import (
    Birthday,
    Features,
    Memorization,
    Quality,
    birthday_test,
    memorization,
    of_module,
    pixels,
    quality,
)

FeatureMap = Callable[[Tensor], Tensor]
Found = TypeVar("Found")

_torchmetrics = require("torchmetrics", "metrics")
_Metric: Any = _torchmetrics.Metric
_cat: Any = require("torchmetrics.utilities.data", "metrics").dim_zero_cat
_gather: Any = require("torchmetrics.utilities.distributed", "metrics").gather_all_tensors


class _OfPoints(_Metric):  # type: ignore[misc]
    """Features of several kinds of images, one list of tensors each; what is real may outlive a reset.

    They are kept in the metric's dtype, float32 unless `set_dtype` says otherwise.
    """

    is_differentiable = False
    full_state_update = False
    kinds: ClassVar[tuple[str, ...]] = ("samples", "real")
    needed: ClassVar[tuple[str, ...]] = ("samples", "real")

    def __init__(
        self,
        features: FeatureMap | None = None,
        *,
        reset_real_features: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        if features is not None and not callable(features):
            raise BadInput(
                "features as a net, a function of images, or None for pixels",
                got=type(features).__name__,
                do="leave it out",
            )
        self.features = features
        self.reset_real_features = reset_real_features
        for kind in self.kinds:
            self.add_state(kind, default=[], dist_reduce_fx="cat")

    def _add(self, kind: str, images: Tensor) -> None:
        if isinstance(images, Tensor) and images.ndim and not len(images):
            return
        found = _as_features(self.features)(images)
        getattr(self, kind).append(found.to(self.device, self.dtype))

    def _has(self, kind: str) -> bool:
        return any(one.numel() for one in getattr(self, kind))

    def _points(self, kind: str) -> Tensor:
        if not self._has(kind):
            name = kind.replace("_", "-")
            raise BadInput(f"{name} images before compute()", got="none", do=f"give some: {HOW[kind]}")
        return cast(Tensor, _cat(getattr(self, kind)))

    def _answer(self, value: float | None) -> Tensor:
        return torch.tensor(float("nan") if value is None else value, device=self.device)

    def _forward_reduce_state_update(self, *args: Any, **kwargs: Any) -> Tensor:
        """`metric(batch)`: add it; its own value beside all real data so far, NaN while some is missing.

        That of the base class would add what outlives a reset once more.
        """
        before, first = {kind: list(getattr(self, kind)) for kind in self.kinds}, self.kinds[0]
        self.update(*args, **kwargs)
        whole = {kind: list(getattr(self, kind)) for kind in self.kinds}
        setattr(self, first, whole[first][len(before[first]) :])
        if not all(map(self._has, self.needed)):
            setattr(self, first, whole[first])
            return self._answer(None)
        self._to_sync = self.dist_sync_on_step
        try:
            return cast(Tensor, self.compute())
        finally:
            for kind, value in whole.items():
                setattr(self, kind, value)
            self._computed, self._to_sync = None, self.sync_on_compute

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        """A process without images of a kind has to say how many features it would have: those of others."""
        gather = args[0] if args else kwargs.get("dist_sync_fn", _gather)
        group = kwargs.get("process_group") or self.process_group
        own = [max((one.shape[1] for one in getattr(self, kind)), default=0) for kind in self.kinds]
        widths = torch.stack(gather(torch.tensor(own, device=self.device), group=group)).amax(0).tolist()
        for kind, width in zip(self.kinds, widths, strict=True):
            if not getattr(self, kind) and width:
                setattr(self, kind, [torch.zeros(0, width, device=self.device, dtype=self.dtype)])
        super()._sync_dist(*args, **kwargs)

    def reset(self) -> None:
        """Forget the samples, and what is real unless `reset_real_features` is False."""
        real = () if self.reset_real_features else self.kinds[1:]
        kept = {kind: list(getattr(self, kind)) for kind in real}
        super().reset()
        for kind, value in kept.items():
            setattr(self, kind, value)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Figure and axes with the value, or with the values of several steps."""
        return self._plot(val, ax)


def _as_features(features: FeatureMap | None) -> Features:
    """Checked, as float32, whatever is given."""
    if features is None:
        return pixels()
    if isinstance(features, nn.Module):
        return of_module(features)
    if isinstance(features, Features):
        return features
    return Features(
        getattr(features, "__name__", type(features).__name__), _without_gradients(features), None
    )


def _without_gradients(function: FeatureMap) -> FeatureMap:
    def rows(images: Tensor) -> Tensor:
        with torch.no_grad():
            return function(images)

    return rows


HOW = {
    "samples": "update(images)",
    "real": "update(images, real=True)",
    "training": 'update(images, kind="training")',
    "held_out": 'update(images, kind="held_out")',
}


class _OfQuality(_OfPoints):
    """One number of `obverse.diversity.quality`."""

    higher_is_better = True
    plot_lower_bound = 0.0
    field: ClassVar[str]

    def __init__(
        self,
        features: FeatureMap | None = None,
        *,
        k: int = 5,
        reset_real_features: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(features, reset_real_features=reset_real_features, **settings)
        self.k = k

    def update(self, images: Tensor, real: bool = False) -> None:
        """Images of the generator, or with `real` those it is compared with."""
        self._add("real" if real else "samples", images)

    def compute(self) -> Tensor:
        """The value, a tensor of one number. `result()` has all four with standard errors."""
        return self._answer(getattr(self._measured(), self.field).value)

    def result(self) -> Quality:
        """Precision, recall, density and coverage with standard errors, of all processes."""
        return _synced(self, self._measured)

    def _measured(self) -> Quality:
        return quality(self._points("samples"), self._points("real"), self.k)


class Precision(_OfQuality):
    """The share of samples that lie where real data does, see `obverse.diversity.quality`.

    Args:
        features: a net, or a function from images to features, one row an image; pixels if None.
        k: the ball around a point reaches to its k-th nearest other point.
        reset_real_features: whether `reset` forgets the real data too.
        settings: those of every metric of torchmetrics, such as dist_sync_on_step.
    """

    plot_upper_bound = 1.0
    field = "precision"


class Recall(_OfQuality):
    """The share of real data that lies where samples do, see `obverse.diversity.quality`.

    Args:
        features: a net, or a function from images to features, one row an image; pixels if None.
        k: the ball around a point reaches to its k-th nearest other point.
        reset_real_features: whether `reset` forgets the real data too.
        settings: those of every metric of torchmetrics, such as dist_sync_on_step.
    """

    plot_upper_bound = 1.0
    field = "recall"


class Density(_OfQuality):
    """In how many balls of real data a sample lies, divided by k: 1 on average of real data itself.

    More than 1 where samples crowd where real data does, see `obverse.diversity.quality`.

    Args:
        features: a net, or a function from images to features, one row an image; pixels if None.
        k: the ball around a point reaches to its k-th nearest other point.
        reset_real_features: whether `reset` forgets the real data too.
        settings: those of every metric of torchmetrics, such as dist_sync_on_step.
    """

    field = "density"


class Coverage(_OfQuality):
    """The share of balls of real data that have a sample in them, see `obverse.diversity.quality`.

    Args:
        features: a net, or a function from images to features, one row an image; pixels if None.
        k: the ball around a point reaches to its k-th nearest other point.
        reset_real_features: whether `reset` forgets the real data too.
        settings: those of every metric of torchmetrics, such as dist_sync_on_step.
    """

    plot_upper_bound = 1.0
    field = "coverage"


class EffectiveSupport(_OfPoints):
    """How many different images a generator makes in effect, 1/Σp², from how many pairs are the same.

    NaN where no two samples are the same: then it cannot be told, and `result().support_at_least` is a
    bound. See `obverse.diversity.birthday_test`; all samples since the last reset are one batch of it.

    Args:
        features: a net, or a function from images to features, one row an image; pixels if None.
        threshold: two images are the same within this distance. Without one it is calibrated on the real
            data there is; without any, only exact duplicates count.
        reset_real_features: whether `reset` forgets the real data too.
        settings: those of every metric of torchmetrics, such as dist_sync_on_step.
    """

    higher_is_better = True
    plot_lower_bound = 0.0
    needed = ("samples",)

    def __init__(
        self,
        features: FeatureMap | None = None,
        *,
        threshold: float | None = None,
        reset_real_features: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(features, reset_real_features=reset_real_features, **settings)
        self.threshold = threshold

    def update(self, images: Tensor, real: bool = False) -> None:
        """Images of the generator, or with `real` held-out ones, on which the threshold is calibrated."""
        self._add("real" if real else "samples", images)

    def compute(self) -> Tensor:
        """The estimate, a tensor of one number; NaN where no two samples are the same."""
        return self._answer(self._measured().effective.value)

    def result(self) -> Birthday:
        """The whole birthday test, with the interval of `effective`, of all processes."""
        return _synced(self, self._measured)

    def _measured(self) -> Birthday:
        points = self._points("samples")
        known = self.threshold is not None or not self._has("real")
        return birthday_test(
            points,
            len(points),
            1,
            self.threshold,
            generator=torch.Generator().manual_seed(0),
            real=None if known else self._points("real"),
            show=0,
        )


class CopiedShare(_OfPoints):
    """The share of samples closer to the training set than nearly all held-out real data is.

    Of samples like real data it is `level` on average, of a copier more; see
    `obverse.diversity.memorization`.

    Args:
        features: a net, or a function from images to features, one row an image; pixels if None.
        level: the share of held-out data that is so close.
        reset_real_features: whether `reset` forgets training and held-out data too.
        settings: those of every metric of torchmetrics, such as dist_sync_on_step.
    """

    higher_is_better = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0
    kinds = needed = ("samples", "training", "held_out")

    def __init__(
        self,
        features: FeatureMap | None = None,
        *,
        level: float = 0.01,
        reset_real_features: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(features, reset_real_features=reset_real_features, **settings)
        self.level = level

    def update(self, images: Tensor, kind: str = "samples") -> None:
        """Images of one kind: "samples" of the generator, its "training" set, or "held_out" real data."""
        if kind not in self.kinds:
            raise BadInput(f"a kind out of {', '.join(self.kinds)}", got=repr(kind), do="use one of them")
        self._add(kind, images)

    def compute(self) -> Tensor:
        """The share, a tensor of one number. `result()` has what is expected, and p-values."""
        found = self._measured(shuffles=1, cells=1).close  # no p-value of the others is asked for
        return self._answer(None if found is None else found.share)

    def result(self) -> Memorization:
        """All tests of copying with their p-values, of all processes."""
        return _synced(self, self._measured)

    def _measured(self, **settings: Any) -> Memorization:
        return memorization(
            *(self._points(kind) for kind in self.kinds),
            level=self.level,
            generator=torch.Generator().manual_seed(0),
            **settings,
        )


def _synced(metric: Any, measure: Callable[[], Found]) -> Found:
    """`measure` with what all processes have, as `compute` sees it."""
    with metric.sync_context(
        dist_sync_fn=metric.dist_sync_fn,
        should_sync=metric.sync_on_compute,
        should_unsync=True,
    ):
        return measure()
