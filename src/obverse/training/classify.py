"""The classifier of a Settings value as a Task: net, ShadowLoss, data, SGD, and what is measured on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data import Dataset, load
from ..data.augment import pad_crop_flip
from ..errors import BadInput
from ..nets import relu_mlp
from ..nets.allconv import allconv_residual
from ..shadow import Shadow, ShadowLoss, recovery
from ..tensors import parse_tensors
from .batches import Batches, fingerprint, refuse_other_data
from .fit import fit
from .seeds import AUGMENT, EVALUATION, INITIAL, SPLIT, derive_generator
from .settings import Settings, refuse_foreign

RECOVERY_POINTS = 1000  # enough for two digits of a relative error; every layer needs three passes
EVALUATION_BATCH = 1000
CONV_BATCH = 200  # images at a time: the feature maps of one take a hundred times the memory of the image


def initial_net(settings: Settings, data: Dataset) -> nn.Sequential:
    """The net a run starts from: a function of its settings, so it need not be stored."""
    refuse_foreign(settings)
    generator = derive_generator(settings.seed, INITIAL)
    try:
        with torch.random.fork_rng(devices=[]):  # layers draw weights of their own before ours replace them
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
        name = "hidden widths" if settings.net == "mlp" else "widths"
        raise BadInput(
            f"{name} whose weights fit into memory",
            got=getattr(settings, name.split()[0]),
            do="use smaller ones",
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
    order = torch.randperm(len(data.train_x), generator=derive_generator(settings.seed, SPLIT))[:size]
    held, rest = order[: settings.validation], order[settings.validation :]
    x, y = data.train_x[rest], data.train_y[rest]
    if settings.validation == 0:
        return x, y, data.test_x, data.test_y
    return x, y, data.train_x[held], data.train_y[held]


class ClassifierTask:
    """Trains the net of the settings with `ShadowLoss` (weight 0: plain backpropagation) by SGD."""

    def __init__(self, settings: Settings, data: Dataset | None = None) -> None:
        self.settings = settings
        data = load(settings.data, settings.data_root) if data is None else data
        for name in ("smooth", "augment"):
            if getattr(settings, name) and len(data.input_shape) != 3:
                raise BadInput(
                    f"images for {name}", got=f"inputs of shape {data.input_shape}", do=f"leave {name} off"
                )
        self.train_x, self.train_y, self.test_x, self.test_y = split(settings, data)
        self.net = initial_net(settings, data)
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
        )
        self.optimizer = torch.optim.SGD(
            self.net.parameters(), settings.rate, momentum=settings.momentum, weight_decay=settings.decay
        )
        self._batches = Batches(len(self.train_x), settings.batch, settings.seed)
        self._digest: Tensor | None = None

    @property
    def steps_per_epoch(self) -> int:
        return len(self._batches)

    def step(self, epoch: int, index: int) -> float:
        settings, number = self.settings, epoch * self.steps_per_epoch + index
        rows = self._batches.rows(epoch, index)
        x = self.train_x[rows]
        if settings.augment:
            x = pad_crop_flip(x, derive_generator(settings.seed, AUGMENT, number))
        self.optimizer.param_groups[0]["lr"] = settings.rate_at(number)
        self.net.train()
        loss: Tensor = self.loss(x, self.train_y[rows])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Errors as fractions: on the test set, on its shadows; how often both get the same label.

        A convolutional net has too many layers to recover all: there it is the one that shadows come from.
        """
        self.net.eval()
        wrong = shadow_wrong = agree = 0
        generator = derive_generator(self.settings.seed, EVALUATION)
        convolves = self.settings.net == "allconv"
        batch = CONV_BATCH if convolves else EVALUATION_BATCH
        for x, y in zip(self.test_x.split(batch), self.test_y.split(batch), strict=True):
            label = self.net(x).argmax(-1)
            wrong += int((label != y).sum())
            if self.settings.has_shadows:
                twin = self._twin(x, self.shadow.infer(x, self.loss.layer), generator)
                twin_label = self.net(twin).argmax(-1)
                shadow_wrong += int((twin_label != y).sum())
                agree += int((label == twin_label).sum())
        total = len(self.test_y)
        if not self.settings.has_shadows:
            return {"test_error": wrong / total}
        recovered = recovery(
            self.shadow,
            self.test_x[: CONV_BATCH if convolves else RECOVERY_POINTS],
            layers=[self.loss.layer] if convolves else None,
            keep=self.settings.keep,
            generator=generator,
            smooth=self.settings.smooth,
            match_norm=self.settings.match_norm,
        )
        return {
            "test_error": wrong / total,
            "shadow_error": shadow_wrong / total,
            "label_agreement": agree / total,
            "recovery_error": dict(recovered.errors),
        }

    def _twin(self, x: Tensor, h: Tensor, generator: torch.Generator) -> Tensor:
        """The true shadow, also where training used a control."""
        s = self.settings
        return self.shadow.from_hidden(
            x, h, self.loss.layer, s.keep, generator, smooth=s.smooth, match_norm=s.match_norm
        )

    def model(self) -> dict[str, Tensor]:
        return dict(self.net.state_dict())

    def tensors(self) -> dict[str, Tensor]:
        """Weights, momentum, and what tells whether a resumed run sees the same data."""
        result = {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        for name, parameter in self.net.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    result[f"optimizer.{name}.{key}"] = value
        return result | {"data": self._data_digest()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        own = {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        if self.settings.momentum > 0:
            for name, parameter in self.net.named_parameters():
                own[f"optimizer.{name}.momentum_buffer"] = parameter.detach()
        own["data"] = self._data_digest()
        check_tensors(own, tensors, "the checkpoint")
        refuse_other_data(own["data"], tensors["data"], self.settings.data)
        self.net.load_state_dict({name: tensors[f"net.{name}"] for name in self.net.state_dict()})
        for name, parameter in self.net.named_parameters():
            if (buffer := tensors.get(f"optimizer.{name}.momentum_buffer")) is not None:
                self.optimizer.state[parameter] = {"momentum_buffer": buffer}

    def _data_digest(self) -> Tensor:
        if self._digest is None:
            self._digest = fingerprint(self.train_x, self.train_y)
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


def load_weights(net: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy weights into a net; names, shapes and types must be exactly its own."""
    check_tensors(net.state_dict(), tensors, source)
    net.load_state_dict(dict(tensors))


def check_tensors(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor], source: str) -> None:
    """Refuse tensors from a file unless names, shapes and types are those of `own`."""
    wrong = sorted(set(own) ^ set(tensors)) or [
        f"{name} {tuple(tensor.shape)} {tensor.dtype}"
        for name, tensor in tensors.items()
        if tensor.shape != own[name].shape or tensor.dtype != own[name].dtype
    ]
    if wrong:
        expected = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in own.items())
        raise BadInput(
            f"the tensors {expected} in {source}", got=f"a difference in {', '.join(wrong)}", do="restore it"
        )


def load_trained(settings: Settings, data: Dataset, model_path: str | Path) -> nn.Sequential:
    """The trained net of a run directory, in evaluation mode."""
    path = Path(model_path)
    net = initial_net(settings, data)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"the weights of a finished run in {path}", got=error.strerror, do="resume the run"
        ) from None
    load_weights(net, parse_tensors(content, path), str(path))
    return net.eval()
