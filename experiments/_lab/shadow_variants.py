"""Second batches that obverse itself does not offer, as losses, and the task that trains with one of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse._core.random import Streams, current_streams, noise_like, use_streams
from obverse.data import Dataset
from obverse.shadow import Shadow, ShadowLoss
from obverse.shadow._controls import noisy
from obverse.training import ClassifierTask, Settings


class FromNoisy(ShadowLoss):
    """The shadow of x with noise added."""

    def twin(self, x: Tensor, h: Tensor) -> Tensor:
        with torch.no_grad():
            return super().twin(x, self.shadow.infer(noisy(x, self.noise), self.layer))


class FromNoisyHidden(ShadowLoss):
    """The shadow of h with noise added, as large as a half of h."""

    def twin(self, x: Tensor, h: Tensor) -> Tensor:
        size = h.square().mean(1, keepdim=True).sqrt()
        return super().twin(x, torch.relu(h + size * noise_like(h, self.noise)))


class FromEitherLayer(ShadowLoss):
    """The shadow from h2 or from h1, by turns."""

    turn = 0

    def twin(self, x: Tensor, h: Tensor) -> Tensor:
        self.turn += 1
        if self.turn % 2:
            return super().twin(x, h)
        with torch.no_grad():
            return self.shadow.from_hidden(x, self.shadow.infer(x, "h1"), "h1", match_norm=True)


class UntiedDecoder(ShadowLoss):
    """Denoising by a decoder with weights of its own in place of the shadow: is it the transposed weights?"""

    def __init__(self, net: Shadow, weight: float, **more: Any) -> None:
        super().__init__(net, weight, **more)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            first = self.shadow.net.h1
            assert isinstance(first, nn.Linear)
            width, size = first.out_features, first.in_features
            self.decoder = nn.Sequential(
                nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size), nn.ReLU()
            )

    def blur(self, x: Tensor) -> Tensor:
        restored = self.decoder(self.shadow.infer(noisy(x, self.noise), self.layer))
        return (1 - F.cosine_similarity(restored, x.flatten(1))).mean()


class HalfTheBatch(ShadowLoss):
    """Shadows for the first half of the batch alone, which is in random order."""

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        half = len(x) // 2
        streams = current_streams()
        assert y is not None
        assert streams is not None
        rest = self.criterion(self.shadow.net(x[half:]), y[half:])
        with use_streams(Streams(streams.integers(2**31 - 1, (1,)).flatten()[:half])):
            return (super().forward(x[:half], y[:half]) + rest) / 2


class Rising(ShadowLoss):
    """A weight that rises from 0 to its full size over the first `rise` steps."""

    rise, done = 500, 0

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        full, self.done = self.weight, self.done + 1
        self.weight = full * min(1.0, self.done / self.rise)
        try:
            return super().forward(x, y)
        finally:
            self.weight = full


class LateDenoise(ShadowLoss):
    """The loss of denoising from the middle of training on; `progress` runs from 0 to 1."""

    progress = 0.0

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        full = self.denoise
        self.denoise = full if self.progress >= 0.5 else 0.0
        try:
            return super().forward(x, y)
        finally:
            self.denoise = full


class Variant(ClassifierTask):
    """A ClassifierTask with one of these losses."""

    def __init__(self, settings: Settings, data: Dataset, kind: type[ShadowLoss]) -> None:
        super().__init__(settings, data)
        if kind is ShadowLoss:
            return
        self.loss = kind(
            self.shadow,
            settings.weight,
            layer=settings.layer,
            keep=settings.keep,
            labels=settings.labels,
            normalize=settings.normalize,
            control=settings.control,
            noise=settings.noise,
            denoise=settings.denoise,
        )
        if isinstance(self.loss, UntiedDecoder):
            self.optimizer.param_groups[0]["params"].extend(self.loss.decoder.parameters())

    def step(self, epoch: int, index: int) -> float:
        if isinstance(self.loss, LateDenoise):
            number = epoch * self.steps_per_epoch + index
            self.loss.progress = number / (self.settings.epochs * self.steps_per_epoch)
        return super().step(epoch, index)
