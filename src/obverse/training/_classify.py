"""The classifier of a Settings value as a Task: net, ShadowLoss, data, SGD, and what is measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._core import (
    EVALUATION,
    INITIAL,
    SAMPLES,
    SPLIT,
    UNLABELLED,
    BadInput,
    Streams,
    bounded_weights,
    check_tensors,
    derive_generator,
    derive_seed,
    load_weights,
    parse_tensors,
    read_file,
    use_streams,
)
from ..data import Dataset, load, pad_crop_flip
from ..nets import allconv_residual, relu_mlp
from ..shadow import Shadow, ShadowLoss, recovery
from ._batches import Batches, fingerprint, refuse_other_data
from ._device import autocast, choose_device, gradient_scaler
from ._distributed import share, size, summed, total
from ._fit import fit
from ._optimizers import make_optimizer, optimizer_tensors, restore_optimizer
from ._settings import Settings, refuse_foreign

RECOVERY_POINTS = 1000  # enough for two digits of a relative error; every layer needs three passes
EVALUATION_BATCH = 1000
SCALER = ("scale", "_growth_tracker")  # what moves in the state of torch's GradScaler
CONV_BATCH = 200  # images at a time: the feature maps of one take a hundred times the memory of the image


def initial_net(settings: Settings, data: Dataset, stored: int | None = None) -> nn.Sequential:
    """The net a run starts from: a function of its settings, so it need not be stored.

    `stored` is the size of the file of its weights, where the settings come from an untrusted run.
    """
    refuse_foreign(settings)
    generator = derive_generator(settings.seed, INITIAL)
    name = "hidden" if settings.net == "mlp" else "widths"
    sizes = getattr(settings, name)
    try:
        # layers draw weights of their own before ours replace them
        with torch.random.fork_rng(devices=[]), bounded_weights(stored, f"{name} widths", sizes):
            if settings.net == "allconv":
                return allconv_residual(
                    len(data.classes),
                    data.input_shape,
                    settings.widths,
                    settings.blocks,
                    stem=settings.stem,
                    norm=settings.norm,
                    shortcut=settings.shortcut,
                    init=settings.init,
                    mean=data.train_x.mean((0, 2, 3)).tolist() if len(data.input_shape) == 3 else None,
                    generator=generator,
                )
            return relu_mlp(
                data.input_shape,
                settings.hidden,
                len(data.classes),
                dropout=settings.dropout,
                uniform_bias=settings.uniform_bias,
                generator=generator,
            )
    except RuntimeError as error:  # how torch says that memory is short
        raise BadInput(
            f"{name} widths whose weights fit into memory", got=sizes, do="use smaller ones"
        ) from error


def split(settings: Settings, data: Dataset) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(train x, train y, evaluation x, evaluation y): `train_size` training points drawn with the
    seed and the test set, or, with `validation`, so many of those points held out in its place."""
    size = len(data.train_x) if settings.train_size is None else settings.train_size
    if size > len(data.train_x) or settings.validation >= size:
        raise BadInput(
            f"train_size ≤ {len(data.train_x)} and validation < train_size for {data.name}",
            got=f"train_size {size}, validation {settings.validation}",
            do="ask for fewer",
        )
    if size == len(data.train_x) and settings.validation == 0:
        return data.train_x, data.train_y, data.test_x, data.test_y
    order = _order(settings, data)[:size]
    held, rest = order[: settings.validation], order[settings.validation :]
    x, y = data.train_x[rest], data.train_y[rest]
    if settings.validation == 0:
        return x, y, data.test_x, data.test_y
    return x, y, data.train_x[held], data.train_y[held]


def _order(settings: Settings, data: Dataset) -> Tensor:
    """The training points as the seed draws them; balanced: one of each class, again and again."""
    order = torch.randperm(len(data.train_x), generator=derive_generator(settings.seed, SPLIT))
    if not settings.balanced:
        return order
    places = torch.empty_like(order)  # the how-maniest of its class a point is
    classes = data.train_y[order]
    for label in classes.unique():
        mine = classes == label
        places[mine] = torch.arange(int(mine.sum()))
    return order[torch.argsort(places, stable=True)]


def unlabelled(settings: Settings, data: Dataset) -> Tensor:
    """The training points that `train_size` leaves out; none where nothing asks for them.

    With weight 0 training is plain whatever the labels of a shadow would be, and they are left aside: it is
    what the other weights are compared with.
    """
    if settings.denoise == 0 and settings.labels == "given" and settings.unlabelled:
        raise BadInput(
            "a loss that needs no labels for unlabelled points",
            got=f"weight {settings.weight:g}, labels 'given' and denoise 0",
            do="set labels to consistency or net, or denoise to a weight",
        )
    if settings.unlabelled == 0 or (settings.weight == 0 and settings.denoise == 0):
        return data.train_x[:0]
    left = _order(settings, data)[settings.train_size :] if settings.train_size else data.train_x[:0]
    if len(left) == 0:
        raise BadInput(
            "training points left for unlabelled",
            got=f"train_size {settings.train_size} of {len(data.train_x)}",
            do="set train_size to the number of labels",
        )
    return data.train_x[left]


@dataclass(frozen=True)
class _Part:
    """What one process has of a step: labelled points, or unlabelled ones, and their share of the whole."""

    x: Tensor
    y: Tensor | None
    streams: Streams
    share: float

    def __len__(self) -> int:
        return len(self.x)


class ClassifierTask:
    """Trains the net of the settings with `ShadowLoss` (weight 0: plain backpropagation) by SGD or Adam."""

    def __init__(self, settings: Settings, data: Dataset | None = None) -> None:
        self.settings = settings
        data = load(settings.data, settings.data_root) if data is None else data
        for name in ("smooth", "augment"):
            if getattr(settings, name) and len(data.input_shape) != 3:
                raise BadInput(
                    f"images for {name}", got=f"inputs of shape {data.input_shape}", do=f"leave {name} off"
                )
        self.train_x, self.train_y, self.test_x, self.test_y = split(settings, data)
        self.device = choose_device(settings.device)
        self.net = initial_net(settings, data).to(self.device)
        signed = bool((self.train_x < 0).any())
        self.shadow = Shadow(self.net, input_shape=data.input_shape, signed=signed)
        self.loss = ShadowLoss(
            self.shadow,
            settings.weight,
            layer=settings.layer,
            keep=settings.keep,
            smooth=settings.smooth,
            match_norm=settings.match_norm,
            labels=settings.labels,
            normalize=settings.normalize,
            control=settings.control,
            noise=settings.noise,
            denoise=settings.denoise,
        )
        self.optimizer = make_optimizer(settings, self.net)
        self.scaler = gradient_scaler(self.device, settings.precision)
        # A method kept by its own object is a cycle, and data sets would wait for the garbage collector.
        self._shared_loss = summed(self.net, self._loss) if size() > 1 else None
        self._batches = Batches(len(self.train_x), settings.batch_size, settings.seed)
        self.more_x = unlabelled(settings, data)
        self._more: Batches | None = None
        if len(self.more_x) > 0:
            seed = derive_seed(settings.seed, UNLABELLED)
            self._more = Batches(len(self.more_x), settings.unlabelled, seed)
        self._digest: Tensor | None = None

    @property
    def steps_per_epoch(self) -> int:
        return len(self._batches)

    def step(self, epoch: int, index: int) -> float:
        """Of several processes each takes its share of the batch; the loss is that of the whole."""
        number = epoch * self.steps_per_epoch + index
        rows = self._batches.rows(epoch, index)
        parts = [self._part(number, self.train_x[rows], self.train_y[rows], 0)]
        if self._more is not None:
            more = self._more.rows(*divmod(number, len(self._more)))
            parts.append(self._part(number, self.more_x[more], None, len(rows)))
        self.optimizer.param_groups[0]["lr"] = self.settings.lr_at(number)
        self.net.train()
        with autocast(self.device, self.settings.precision):
            loss = (self._shared_loss or self._loss)(parts)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return total(loss.item())

    def _part(self, number: int, x: Tensor, y: Tensor | None, first: int) -> _Part:
        """This process's share of the points of a step, which stand in its batch from place `first` on."""
        start, stop = share(len(x))
        return _Part(
            x[start:stop].to(self.device),
            None if y is None else y[start:stop].to(self.device),
            self.streams(number, first + start, first + stop),
            (stop - start) / len(x),
        )

    def streams(self, number: int, start: int, stop: int) -> Streams:
        """The random numbers of step `number` for the places `start` to `stop` of its whole batch.

        By the place in the batch, not by the point: seed and step fix which point stands where, and a place
        is something that any batch has.
        """
        first = derive_seed(self.settings.seed, SAMPLES, number)
        return Streams(first + torch.arange(start, stop, device=self.device))

    def _loss(self, parts: Sequence[_Part]) -> Tensor:
        """Each part's loss is a mean over its points; together they are the mean over the whole batch."""
        losses = [part.share * self.batch_loss(part.x, part.y, part.streams) for part in parts]
        return torch.stack(losses).sum()

    def batch_loss(self, x: Tensor, y: Tensor | None, streams: Streams) -> Tensor:
        """The loss of these training points, with what is random in it from their streams."""
        if self.settings.augment:
            x = pad_crop_flip(x, streams)
        with use_streams(streams):
            loss: Tensor = self.loss(x, y)
        return loss

    @torch.no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Errors as fractions: on the test set, on its shadows; how often both get the same label.

        A convolutional net has too many layers to recover all: there it is the one that shadows come from.
        """
        self.net.eval()
        wrong = shadow_wrong = agree = 0
        seeds = derive_seed(self.settings.seed, EVALUATION) + torch.arange(len(self.test_y))
        seeds = seeds.to(self.device)
        convolves = self.settings.net == "allconv"
        batch = CONV_BATCH if convolves else EVALUATION_BATCH
        for start in range(0, len(self.test_y), batch):
            rows = slice(start, start + batch)
            x, y = self.test_x[rows].to(self.device), self.test_y[rows].to(self.device)
            label = self.net(x).argmax(-1)
            wrong += int((label != y).sum())
            if self.settings.has_shadows:
                twin = self._twin(x, self.shadow.infer(x, self.loss.layer), Streams(seeds[rows]))
                twin_label = self.net(twin).argmax(-1)
                shadow_wrong += int((twin_label != y).sum())
                agree += int((label == twin_label).sum())
        total = len(self.test_y)
        if not self.settings.has_shadows:
            return {"test_error": wrong / total}
        rows = slice(CONV_BATCH if convolves else RECOVERY_POINTS)
        recovered = recovery(
            self.shadow,
            self.test_x[rows].to(self.device),
            layers=[self.loss.layer] if convolves else None,
            keep=self.settings.keep,
            generator=Streams(seeds[rows]),
            smooth=self.settings.smooth,
            match_norm=self.settings.match_norm,
        )
        return {
            "test_error": wrong / total,
            "shadow_error": shadow_wrong / total,
            "label_agreement": agree / total,
            "recovery_error": dict(recovered.errors),
        }

    def _twin(self, x: Tensor, h: Tensor, streams: Streams) -> Tensor:
        """The true shadow, also where training used a control."""
        s = self.settings
        return self.shadow.from_hidden(
            x, h, self.loss.layer, s.keep, streams, smooth=s.smooth, match_norm=s.match_norm
        )

    def model(self) -> dict[str, Tensor]:
        return dict(self.net.state_dict())

    def tensors(self) -> dict[str, Tensor]:
        """Weights, momentum, the scale of fp16, and what tells whether a resumed run sees the same data."""
        result = {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        result |= optimizer_tensors(self.optimizer, self.net)
        if self.scaler.is_enabled():
            state = self.scaler.state_dict()
            numbers = [state[name] for name in SCALER]
            result["scaler"] = torch.tensor(numbers, dtype=torch.float64)
        return result | {"data": self.data_digest()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        own = self.tensors()
        check_tensors(own, tensors, "the checkpoint")
        refuse_other_data(own["data"], tensors["data"], self.settings.data)
        self.net.load_state_dict({name: tensors[f"net.{name}"] for name in self.net.state_dict()})
        restore_optimizer(self.optimizer, self.net, tensors)
        if self.scaler.is_enabled():
            scale, tracker = tensors["scaler"].tolist()
            if not (0 < scale < inf and 0 <= tracker < 2**31):
                raise BadInput("the scale of fp16 in the checkpoint", got=(scale, tracker), do="restore it")
            self.scaler.load_state_dict(
                self.scaler.state_dict() | dict(zip(SCALER, (scale, int(tracker)), strict=True))
            )

    def data_digest(self) -> Tensor:
        """What tells these training points from others."""
        if self._digest is None:
            self._digest = fingerprint(self.train_x, self.train_y, *[self.more_x] * (len(self.more_x) > 0))
        return self._digest


def fit_classifier(task: ClassifierTask, run: Path | None = None, **display: Any) -> list[dict[str, Any]]:
    """`fit` with what the task's own settings say; `display` are its callbacks."""
    settings = task.settings
    return fit(
        task,
        settings.epochs,
        seed=settings.seed,
        run=run,
        evaluate_every=settings.evaluate_every,
        checkpoint_every=settings.checkpoint_every,
        **display,
    )


def load_trained(settings: Settings, data: Dataset, model_path: str | Path) -> nn.Sequential:
    """The trained net of a run directory, in evaluation mode."""
    path = Path(model_path)
    try:
        content = read_file(path, "the weights of a run")
    except OSError as error:
        raise BadInput(
            f"the weights of a finished run in {path}", got=error.strerror, do="resume the run"
        ) from None
    net = initial_net(settings, data, len(content))
    load_weights(net, parse_tensors(content, path), str(path))
    return net.eval()
