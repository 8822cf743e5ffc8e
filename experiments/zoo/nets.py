"""Public trained nets in plain PyTorch, rebuilt from their tensors' names and shapes; not for measuring.

    net = load("resnet50-imagenet", Path("zoo"))       # as get-zoo lays them out, in evaluation mode
    x, y = images(Path("imagenet-sample"), 100)        # 224 × 224, in [0, 1], and their ImageNet numbers
    labels = net(net.prepare(x)).argmax(1)

Weights are those of the files; what a net was trained to be fed is `net.prepare`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse.weights import open_weights

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preparation:
    """From RGB in [0, 1] to what a net reads: (x · scale − mean) / std, by channel; `swapped`: as BGR."""

    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    scale: float = 1.0
    swapped: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        x = x.flip(1) if self.swapped else x
        mean, std = (torch.tensor(one).reshape(3, 1, 1).to(x) for one in (self.mean, self.std))
        return (x * self.scale - mean) / std

    def back(self, x: Tensor) -> Tensor:
        """From what a net reads to RGB."""
        mean, std = (torch.tensor(one).reshape(3, 1, 1).to(x) for one in (self.mean, self.std))
        x = (x * std + mean) / self.scale
        return x.flip(1) if self.swapped else x


PLAIN = Preparation()


class Net(nn.Module):
    """A net of the zoo: `prepare` makes its inputs out of RGB in [0, 1]; `classifies`: into 1,000 labels."""

    prepare: Preparation = PLAIN
    classifies = True


# MobileNetV2, with the names of torchvision's

_WIDER = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # times wider inside, channels, blocks, stride


def _conv(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU6())


class MobileBlock(nn.Module):
    """Widen, filter each channel, narrow; with a shortcut where the shape stays."""

    def __init__(self, inputs: int, outputs: int, stride: int, wider: int) -> None:
        super().__init__()
        inner = inputs * wider
        layers: list[nn.Module] = [] if wider == 1 else [_conv(inputs, inner, 1)]
        layers += [_conv(inner, inner, 3, stride, inner), nn.Conv2d(inner, outputs, 1, bias=False)]
        self.conv = nn.Sequential(*layers, nn.BatchNorm2d(outputs))
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.conv(x)
        return x + found if self.shortcut else found


class MobileNetV2(Net):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_conv(3, 32, 3, 2)]
        inputs = 32
        for wider, outputs, count, stride in _WIDER:
            for at in range(count):
                layers.append(MobileBlock(inputs, outputs, stride if at == 0 else 1, wider))
                inputs = outputs
        self.features = nn.Sequential(*layers, _conv(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.classifier(self.features(x).mean((2, 3)))
        return found


# EfficientNet-Lite0, with the names of its file; TensorFlow's padding, which is uneven where the stride is 2

_LITE = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)  # kernel, stride, times wider inside, channels, blocks


class SameConv2d(nn.Conv2d):
    """A convolution padded to length / stride places on images of even length, more at the end."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, size, stride, groups=groups, bias=False)
        total = size - stride
        self.border = (total // 2, total - total // 2) * 2

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(F.pad(x, self.border), self.weight, None, self.stride, groups=self.groups)


class LiteBlock(nn.Module):
    def __init__(self, size: int, stride: int, wider: int, inputs: int, outputs: int) -> None:
        super().__init__()
        inner = inputs * wider
        self.widens, self.shortcut = wider > 1, stride == 1 and inputs == outputs
        if self.widens:
            self._expand_conv = nn.Conv2d(inputs, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, 1e-3)
        self._depthwise_conv = SameConv2d(inner, inner, size, stride, inner)
        self._bn1 = nn.BatchNorm2d(inner, 1e-3)
        self._project_conv = nn.Conv2d(inner, outputs, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(outputs, 1e-3)

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu6(self._bn0(self._expand_conv(x))) if self.widens else x
        inner = F.relu6(self._bn1(self._depthwise_conv(inner)))
        found: Tensor = self._bn2(self._project_conv(inner))
        return found + x if self.shortcut else found


class EfficientNetLite0(Net):
    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = SameConv2d(3, 32, 3, 2), nn.BatchNorm2d(32, 1e-3)
        blocks, inputs = [], 32
        for size, stride, wider, outputs, count in _LITE:
            for at in range(count):
                blocks.append(LiteBlock(size, stride if at == 0 else 1, wider, inputs, outputs))
                inputs = outputs
        self._blocks = nn.Sequential(*blocks)
        self._conv_head, self._bn1 = nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280, 1e-3)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self._blocks(F.relu6(self._bn0(self._conv_stem(x))))
        x = F.relu6(self._bn1(self._conv_head(x)))
        found: Tensor = self._fc(x.mean((2, 3)))
        return found


# ResNet-50 of Keras: the stride in the first convolution of a block, biases, another eps


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, inner: int, stride: int, widens: bool) -> None:
        super().__init__()
        outputs = 4 * inner
        self.branch2a, self.bn2a = nn.Conv2d(inputs, inner, 1, stride), nn.BatchNorm2d(inner, 1e-3)
        self.branch2b, self.bn2b = nn.Conv2d(inner, inner, 3, padding=1), nn.BatchNorm2d(inner, 1e-3)
        self.branch2c, self.bn2c = nn.Conv2d(inner, outputs, 1), nn.BatchNorm2d(outputs, 1e-3)
        self.widens = widens
        if widens:
            self.branch1, self.bn1 = nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs, 1e-3)

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.bn2a(self.branch2a(x)))
        inner = F.relu(self.bn2b(self.branch2b(inner)))
        shortcut = self.bn1(self.branch1(x)) if self.widens else x
        return F.relu(self.bn2c(self.branch2c(inner)) + shortcut)


class ResNet50(Net):
    """Returns what stands before the softmax."""

    prepare = Preparation((103.939, 116.779, 123.68), (1.0, 1.0, 1.0), 255.0, swapped=True)

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn_conv1 = nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64, 1e-3)
        self.pool = nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for stage, (count, inner) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), start=2):
            blocks = nn.ModuleDict()
            for at in range(count):
                stride = 2 if at == 0 and stage > 2 else 1
                blocks["abcdef"[at]] = Bottleneck(inputs, inner, stride, at == 0)
                inputs = 4 * inner
            self.add_module(f"res{stage}", nn.Sequential(*blocks.values()))
        self.fc1000 = nn.Linear(inputs, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.bn_conv1(self.conv1(x))))
        for stage in (2, 3, 4, 5):
            x = self.get_submodule(f"res{stage}")(x)
        found: Tensor = self.fc1000(x.mean((2, 3)))
        return found


def _load_resnet(folder: Path) -> ResNet50:
    net, state = ResNet50(), {}
    kinds = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
    kinds |= {"moving_mean": "running_mean", "moving_variance": "running_var"}
    for name, value in _tfjs(folder / "model.json").items():
        module, kind = name.rsplit("/", 1)
        if "_branch" in module:  # res3b_branch2a and bn3b_branch2a
            block, branch = module.split("_branch")
            stage, at = block[-2], "abcdef".index(block[-1])
            module = f"res{stage}.{at}." + (f"bn{branch}" if block.startswith("bn") else f"branch{branch}")
        if kind == "kernel":  # height × width × in × out, or in × out
            value = value.permute(3, 2, 0, 1) if value.dim() == 4 else value.T
        state[f"{module}.{kinds.get(kind, kind)}"] = value
    _fill(net, state)
    return net


def _tfjs(file: Path) -> dict[str, Tensor]:
    """The tensors of a model of TensorFlow.js in float32."""
    found: dict[str, Tensor] = {}
    for group in json.loads(file.read_text(encoding="utf-8"))["weightsManifest"]:
        content = bytearray(b"".join((file.parent / Path(name).name).read_bytes() for name in group["paths"]))
        start = 0
        for entry in group["weights"]:
            count = math.prod(entry["shape"])
            found[entry["name"]] = torch.frombuffer(
                content, dtype=torch.float32, count=count, offset=start
            ).reshape(entry["shape"])
            start += 4 * count
    return found


# Convolutions alone


class Convolutions(Net):
    """The convolutions of AlexNet or VGG with their ReLUs and pools; no classifier."""

    classifies = False

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.features = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.features(x)
        return found


def alexnet() -> Convolutions:
    return Convolutions(
        *(nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU()),
    )


def vgg16(widths: Sequence[int] = (64, 128, 256, 512, 512)) -> Convolutions:
    layers: list[nn.Module] = []
    inputs = 3
    for at, (count, outputs) in enumerate(zip((2, 2, 3, 3, 3), widths, strict=True)):
        layers += [] if at == 0 else [nn.MaxPool2d(2)]
        for _ in range(count):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
            inputs = outputs
    return Convolutions(*layers)


def vgg19() -> Convolutions:
    """As for style transfer: a first step to BGR, mirrored borders, and units rescaled to a mean of 1."""
    layers: list[nn.Module] = [nn.Conv2d(3, 3, 1)]
    inputs = 3
    for at, (count, outputs) in enumerate(((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))):
        layers += [] if at == 0 else [nn.MaxPool2d(2, ceil_mode=True)]
        for _ in range(count):
            layers += [nn.ReflectionPad2d(1), nn.Conv2d(inputs, outputs, 3), nn.ReLU()]
            inputs = outputs
    net = Convolutions(*layers)
    net.prepare = Preparation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    return net


def _load_vgg19(file: Path) -> Convolutions:
    net = vgg19()
    state = torch.load(file, weights_only=True, map_location="cpu")
    _fill(net, {f"features.{name}": value for name, value in state.items()})
    return net


def _load_convolutions(net: Convolutions, file: Path) -> Convolutions:
    """In their order, from a file that also has the layers of a measure of likeness."""
    weights = [one for one in open_weights(file) if not one.name.startswith("NetLinLayer")]
    convs = [one for one in net.features if isinstance(one, nn.Conv2d)]
    for conv, weight in zip(convs, weights, strict=True):
        bias = weight.load_bias()
        assert conv.bias is not None
        assert bias is not None, weight.name
        with torch.no_grad():
            conv.weight.copy_(weight.load().reshape(conv.weight.shape))
            conv.bias.copy_(bias)
    return net


# DINOv2, ViT-S/14 with registers, with the names of its file


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
        found: Tensor = self.proj(x)
        return found


class Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.fc2(self.act(self.fc1(x)))
        return found


class LayerScale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class EncoderBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn, self.ls1 = (
            nn.LayerNorm(width, 1e-6),
            Attention(width, heads),
            LayerScale(width),
        )
        self.norm2, self.mlp, self.ls2 = nn.LayerNorm(width, 1e-6), Mlp(width), LayerScale(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        found: Tensor = x + self.ls2(self.mlp(self.norm2(x)))
        return found


class PatchEmbed(nn.Module):
    def __init__(self, patch: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.proj(x).flatten(2).transpose(1, 2)
        return found


class DinoV2(Net):
    """Returns the class token of images of 224 × 224."""

    classifies = False

    def __init__(self, width: int = 384, heads: int = 6, blocks: int = 12, registers: int = 4) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(14, width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.register_tokens = nn.Parameter(torch.zeros(1, registers, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + 16 * 16, width))
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width, 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), 1) + self.pos_embed
        registers = self.register_tokens.expand(x.shape[0], -1, -1)
        x = torch.cat((x[:, :1], registers, x[:, 1:]), 1)
        found: Tensor = self.norm(self.blocks(x))[:, 0]
        return found


def _load_dino(file: Path) -> DinoV2:
    net = DinoV2()
    state = torch.load(file, weights_only=True, map_location="cpu")
    del state["mask_token"]
    first, places = state["pos_embed"][:, :1], state["pos_embed"][:, 1:]
    side = math.isqrt(places.shape[1])  # 37 of images of 518 × 518
    grid = places.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, size=(16, 16), mode="bicubic", antialias=True)
    state["pos_embed"] = torch.cat((first, grid.flatten(2).transpose(1, 2)), 1)
    _fill(net, state)
    return net


def _fill(net: nn.Module, state: dict[str, Tensor]) -> None:
    """Every tensor of the net from the state, and none of it left over."""
    counters = {name: value for name, value in net.state_dict().items() if name.endswith("batches_tracked")}
    net.load_state_dict(counters | state)


def _state_dict(net: Net, file: Path) -> Net:
    _fill(net, torch.load(file, weights_only=True, map_location="cpu"))
    return net


LOADERS: dict[str, Callable[[Path], Net]] = {
    "alexnet-convolutions": lambda folder: _load_convolutions(alexnet(), folder / "alexnet.ckpt"),
    "vgg16-convolutions": lambda folder: _load_convolutions(vgg16(), folder / "vgg16.ckpt"),
    "vgg19-normalised": lambda folder: _load_vgg19(folder / "vgg_normalized.pth"),
    "mobilenet-v2": lambda folder: _state_dict(MobileNetV2(), folder / "mobilenet_v2-b0353104.pth"),
    "efficientnet-lite0": lambda folder: _lite(folder / "efficientnet-lite0-57934424.pth"),
    "resnet50-imagenet": _load_resnet,
    "dinov2-vit-s14": lambda folder: _load_dino(folder / "dinov2s.pt"),
}
NAMES = tuple(LOADERS)


def _lite(file: Path) -> Net:
    net = _state_dict(EfficientNetLite0(), file)
    net.prepare = Preparation((127 / 255,) * 3, (128 / 255,) * 3)
    return net


def load(name: str, folder: Path | str) -> Net:
    """A net of the zoo by its name, in evaluation mode, from the folder in which get-zoo laid them out."""
    net = LOADERS[name](Path(folder) / name).eval()
    for tensor in net.parameters():
        tensor.requires_grad_(False)
    return net


def images(folder: Path | str, count: int | None = None) -> tuple[Tensor, Tensor]:
    """(N × 3 × 224 × 224 in [0, 1], numbers of their classes), spread evenly over the classes."""
    import numpy as np
    from PIL import Image

    files = sorted(Path(folder).glob("*.jpg"))
    count = len(files) if count is None else min(count, len(files))
    chosen = [files[at * len(files) // count] for at in range(count)]
    x = torch.stack([torch.from_numpy(np.array(Image.open(file).convert("RGB"))) for file in chosen])
    y = torch.tensor([int(file.name.partition("_")[0]) for file in chosen])
    return x.permute(0, 3, 1, 2).float() / 255, y


@torch.no_grad()
def accuracy(net: Net, x: Tensor, y: Tensor, batch: int = 25) -> float:
    """The share of right labels, of a net that classifies."""
    found = torch.cat([net(net.prepare(part)) for part in x.split(batch)])
    return float((found.argmax(1) == y).double().mean())
