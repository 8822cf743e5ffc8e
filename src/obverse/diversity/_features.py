"""What pictures are compared by: their pixels, what a net makes of them, or a small encoder trained here.

Each is a function of images (n × shape) that gives one row of float32 features an image, with a `name`. Not
for distances between features, nor for real Inception: see moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import cos, pi

import torch
from torch import Tensor, nn

from .._core import BadInput, Progress, or_global
from ._distances import BLOCK
from ._sources import checked_samples, flat_points

BATCH = 256  # images at a time
WIDTH = 32  # features of the encoder
STEPS = 1500  # of its training: under a minute for pictures of MNIST's size, and later ones change little
PICTURES = 128  # a step
RATE = 2e-3
NOISE = 0.5  # standard deviation of what is added to pixels, in standard deviations of the pixels
LARGEST = 32  # side of the pictures that the encoder sees; larger ones are averaged down
SMALLEST = 8  # side up to which what is given is no picture for convolutions
SEEN = 10_000  # images by which the features are standardized


@dataclass(frozen=True)
class Features:
    """A function of images with a name; `rows` gets a batch at a time, or with None all at once."""

    name: str
    rows: Callable[[Tensor], Tensor]
    batch_size: int | None = BATCH

    def __call__(self, images: Tensor, progress: Progress | None = None) -> Tensor:
        """n × d features in float32, on the CPU."""
        if not isinstance(images, Tensor) or images.ndim < 1 or len(images) < 1:
            got = f"shape {tuple(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
            raise BadInput("a tensor of images", got=got, do="give one image a row")
        images = checked_samples(images, "the images")
        if self.batch_size is None:
            whole = self._checked(self.rows(images), images)
            if progress:
                progress(1, 1, "features")
            return whole
        batches = images.split(self.batch_size)
        found: Tensor | None = None
        for done, batch in enumerate(batches, start=1):
            rows = self._checked(self.rows(batch), batch)
            if found is None:  # filled in place: a list of parts would need the memory twice
                found = torch.empty(len(images), rows.shape[1])
            elif rows.shape[1] != found.shape[1]:
                raise BadInput(
                    f"as many features for each image from {self.name}",
                    got=f"{found.shape[1]} and {rows.shape[1]}",
                    do="give a net with an output of one size",
                )
            start = (done - 1) * self.batch_size
            found[start : start + len(rows)] = rows
            if progress:
                progress(done, len(batches), "features")
        assert found is not None
        return found

    def _checked(self, rows: object, batch: Tensor) -> Tensor:
        if not isinstance(rows, Tensor) or rows.ndim < 1 or len(rows) != len(batch):
            got = f"shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise BadInput(
                f"a tensor with a row for each of {len(batch)} images from {self.name}",
                got=got,
                do="give a net that returns one",
            )
        if rows.is_complex() or rows[:1].numel() == 0:
            raise BadInput(
                f"real features from {self.name}",
                got=f"{rows.dtype} of shape {tuple(rows.shape)}",
                do="check it",
            )
        flat = rows.detach().flatten(1) if rows.ndim > 1 else rows.detach()[:, None]
        flat = flat.to("cpu", torch.float32)
        # in blocks: isfinite makes a copy of what it is given
        if not all(bool(part.isfinite().all()) for part in flat.split(BLOCK)):
            raise BadInput(
                f"finite features from {self.name}", got="NaN or infinity", do="check the net and its input"
            )
        return flat


def pixels() -> Features:
    """The images themselves, not copied if they are in float32."""
    return Features("pixels", lambda images: images, batch_size=None)


def of_module(net: nn.Module, *, batch_size: int = BATCH, name: str | None = None) -> Features:
    """What a net returns, flattened. It runs in eval mode without gradients, and keeps the mode it had."""
    if not isinstance(net, nn.Module):
        raise BadInput("an nn.Module", got=type(net).__name__, do="wrap a function: nn.Module with forward")
    if batch_size < 1:
        raise BadInput("batches of at least one image", got=batch_size, do=f"use {BATCH}")
    title = name or type(net).__name__

    def rows(images: Tensor) -> Tensor:
        like = next((one for one in net.parameters() if one.is_floating_point()), None)
        try:
            with _evaluated(net), torch.no_grad():
                found: Tensor = net(images if like is None else images.to(like))
        except (RuntimeError, ValueError, TypeError) as error:
            raise BadInput(
                f"images that {title} takes",
                got=f"shape {tuple(images.shape)}, at which it says: {str(error).splitlines()[0][:200]}",
                do="give a net for images of this shape",
            ) from error
        return found

    return Features(title, rows, batch_size)


@contextmanager
def _evaluated(net: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in net.modules()]
    net.eval()
    try:
        yield
    finally:
        for module, training in modes:  # each its own: parts of a net may be frozen
            module.training = training


class Encoder(nn.Module):
    """Images to `width` features, which have mean 0 and deviation 1 over the images it was trained on.

    Two convolutions with stride 2 and a linear layer; for what is no picture two linear layers.
    """

    def __init__(self, shape: torch.Size, width: int) -> None:
        super().__init__()
        self.shape, self.width = shape, width
        self.picture = len(shape) == 3 and min(shape[1:]) >= SMALLEST
        layers: list[nn.Module]
        if self.picture:
            # a multiple of 4, as there are two halvings
            self.side = (min(LARGEST, shape[1]) // 4 * 4, min(LARGEST, shape[2]) // 4 * 4)
            height, breadth = (side // 4 for side in self.side)
            layers = [
                nn.Conv2d(shape[0], 16, 3, stride=2, padding=1),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, stride=2, padding=1),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(32 * height * breadth, width),
            ]
        else:
            layers = [nn.Flatten(), nn.Linear(shape.numel(), 256), nn.ReLU(), nn.Linear(256, width)]
        self.layers = nn.Sequential(*layers)
        for name in ("shift", "scale"):  # of the pixels
            self.register_buffer(name, torch.zeros(()))
        for name in ("centre", "spread"):  # of the features
            self.register_buffer(name, torch.zeros(width))

    shift: Tensor
    scale: Tensor
    centre: Tensor
    spread: Tensor

    def prepare(self, images: Tensor) -> Tensor:
        """The images as the layers see them: standardized, and no larger than 32 × 32."""
        if self.picture and tuple(images.shape[2:]) != self.side:
            images = nn.functional.adaptive_avg_pool2d(images, self.side)
        return (images - self.shift) / self.scale

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = (self.layers(self.prepare(images)) - self.centre) / self.spread
        return found


def _decoder(encoder: Encoder) -> nn.Sequential:
    """The way back, for training alone."""
    if not encoder.picture:
        size = encoder.shape.numel()
        return nn.Sequential(nn.Linear(encoder.width, 256), nn.ReLU(), nn.Linear(256, size))
    height, breadth = (side // 4 for side in encoder.side)
    return nn.Sequential(
        nn.Linear(encoder.width, 32 * height * breadth),
        nn.ReLU(),
        nn.Unflatten(1, (32, height, breadth)),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, encoder.shape[0], 4, stride=2, padding=1),
    )


def train_encoder(
    images: Tensor,
    *,
    width: int = WIDTH,
    steps: int = STEPS,
    batch_size: int = PICTURES,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Features:
    """A small autoencoder that removes noise from these images; its middle layer, standardized.

    Train it on real data that no sample is judged against one by one, or on the training set: features made
    by the samples themselves would look at what these do well. `generator` (torch's global one if None)
    settles every weight and every batch.
    """
    images = checked_samples(images, "the images").to(torch.float32)
    flat_points(images, "the images")  # at least two, and they differ
    for value, what in ((width, "features"), (steps, "steps"), (batch_size, "images a step")):
        if type(value) is not int or value < 1:
            raise BadInput(f"at least one of the {what}", got=value, do="use the default")
    if not 0 <= noise < float("inf"):
        raise BadInput("noise of at least 0", got=noise, do=f"use {NOISE}")
    generator = or_global(generator)
    with torch.device("meta"):  # so that no weight is drawn from the global random state
        encoder = Encoder(images.shape[1:], width)
        net = nn.ModuleList([encoder, _decoder(encoder)])
    net.to_empty(device="cpu")
    _start(net, generator)
    some = images[torch.randperm(len(images), generator=generator)[:SEEN]]
    encoder.shift, encoder.scale = torch.zeros(()), torch.ones(())
    deviation, mean = torch.std_mean(encoder.prepare(some).double())
    encoder.shift, encoder.scale = mean.float(), deviation.float().clamp(min=torch.finfo(torch.float32).tiny)
    encoder.centre, encoder.spread = torch.zeros(width), torch.ones(width)
    _fit(encoder, net[1], images, steps, batch_size, noise, generator, progress)
    rows = torch.cat([_plain(encoder, part) for part in some.split(BATCH)]).double()
    spread, centre = torch.std_mean(rows, dim=0)
    encoder.centre, encoder.spread = centre.float(), torch.where(spread > 0, spread, 1.0).float()
    encoder.requires_grad_(False).eval()
    return of_module(encoder, name="encoder")


def _plain(encoder: Encoder, images: Tensor) -> Tensor:
    with torch.no_grad():
        found: Tensor = encoder(images)
    return found


def _start(net: nn.Module, generator: torch.Generator) -> None:
    """Gaussian weights N(0, 2/fan_in), biases 0."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            fan = module.weight[0].numel()
        elif isinstance(module, nn.ConvTranspose2d):
            fan = module.weight[:, 0].numel() // 4  # stride 2: of 4 × 4 weights 2 × 2 meet at a pixel
        else:
            continue
        nn.init.normal_(module.weight, std=(2 / fan) ** 0.5, generator=generator)
        assert module.bias is not None
        nn.init.zeros_(module.bias)


def _fit(
    encoder: Encoder,
    decoder: nn.Module,
    images: Tensor,
    steps: int,
    batch_size: int,
    noise: float,
    generator: torch.Generator,
    progress: Progress | None,
) -> None:
    """Adam on the squared error of the clean image, the lr falling to 0 along a cosine."""
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(weights, lr=RATE)
    for step in range(steps):
        rows = torch.randint(len(images), (batch_size,), generator=generator)
        clean = encoder.prepare(images[rows])
        noisy = clean + noise * torch.randn(clean.shape, generator=generator)
        with torch.enable_grad():
            made = decoder(encoder.layers(noisy))
            loss = (made.flatten(1) - clean.flatten(1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 + cos(pi * step / steps)) / 2
        optimizer.step()
        if progress:
            progress(step + 1, steps, "training the encoder")
