"""The public architectures that the coverage table is about: plain data, each with a function that builds it.

Both packages are developer's tools, installed without their dependencies (they would replace torch):

    pip install --no-deps pytorchcv==0.0.74 monai==1.6.1
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

INSTALL = "pip install --no-deps pytorchcv==0.0.74 monai==1.6.1"
CLASSES = 10


@dataclass(frozen=True)
class Architecture:
    """One net: what it is called, whose it is, how it is built with fresh weights, the shape of one input.

    `counted` says whether it belongs to the list of which nine in ten must work. The others are there to show
    where the limits are; `why` says which limit that is.
    """

    name: str
    family: str
    package: str
    build: Callable[[], nn.Module]
    input_shape: tuple[int, ...]
    counted: bool = True
    why: str = ""


def cv(
    file: str,
    factory: str,
    family: str,
    size: int,
    settings: dict[str, Any] | None = None,
    name: str = "",
    **told: Any,
) -> Architecture:
    """A net of pytorchcv for square images, from its own file: `model_provider` would import torchvision."""

    def build() -> nn.Module:
        make = getattr(importlib.import_module(f"pytorchcv.models.{file}"), factory)
        net: nn.Module = make(num_classes=CLASSES, **(settings or {}))
        return net

    return Architecture(name or factory, family, "pytorchcv", build, (3, size, size), **told)


def monai(
    name: str, factory: str, family: str, shape: tuple[int, ...], settings: dict[str, Any], **told: Any
) -> Architecture:
    """A net of MONAI."""

    def build() -> nn.Module:
        net: nn.Module = getattr(importlib.import_module("monai.networks.nets"), factory)(**settings)
        return net

    return Architecture(f"monai {name}", family, "monai", build, shape, **told)


SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": CLASSES,
}


def face(name: str, family: str, settings: dict[str, Any], size: int = 32) -> Architecture:
    """A small net of transformers, from a configuration: nothing is downloaded."""

    def build() -> nn.Module:
        package = importlib.import_module("transformers")
        kind = name.removesuffix("ForImageClassification").removesuffix("Model")
        config = getattr(package, f"{kind}Config")(**settings)
        net: nn.Module = getattr(package, name)(config)
        return net

    return Architecture(name, family, "transformers", build, (3, size, size))


def pyramid(**more: Any) -> dict[str, Any]:
    """Four stages of one block each."""
    return {"hidden_sizes": [8, 16, 20, 32], "depths": [1, 1, 1, 1], "num_labels": CLASSES, **more}


def image(dims: int, planes: int = 1, **more: Any) -> dict[str, Any]:
    return {"spatial_dims": dims, "in_channels": planes, **more}


def volume(dims: int) -> dict[str, Any]:
    return {"spatial_dims": dims, "n_input_channels": 1, "num_classes": CLASSES}


def attention() -> nn.Module:
    """Sixteen tokens, two encoder layers, a linear head."""
    layers = [nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True) for _ in range(2)]
    return nn.Sequential(nn.Unflatten(1, (16, 32)), *layers, nn.Flatten(), nn.Linear(512, CLASSES))


# Two families as they are but for their width: at full width they take as long as all the others.
THIN_VGG = {"channels": [[16], [32], [64, 64], [128, 128], [128, 128]]}
THIN_SENET = {
    "channels": [[64], [128], [256], [512]],
    "init_block_channels": 32,
    "cardinality": 8,
    "bottleneck_width": 16,
}
# The last pool of the ImageNet nets is seven wide: they take nothing smaller than the size named here.
IMAGENET = [
    cv("alexnet", "alexnet", "AlexNet", 224),
    cv("vgg", "VGG", "VGG", 224, THIN_VGG, "vgg11, ¼ width"),
    cv("vgg", "VGG", "VGG", 224, {**THIN_VGG, "use_bn": True, "bias": False}, "bn_vgg11, ¼ width"),
    cv("resnet", "resnet10", "ResNet", 224),
    cv("resnet", "resnetbc14b", "ResNet", 224),
    cv("preresnet", "preresnet10", "PreResNet", 224),
    cv("resnext", "resnext14_16x4d", "ResNeXt", 224),
    cv("seresnet", "seresnet10", "SENet", 224),
    cv("senet", "SENet", "SENet", 224, THIN_SENET, "senet16, ¼ width"),
    cv("densenet", "densenet121", "DenseNet", 224),
    cv("mobilenet", "mobilenet_wd4", "MobileNet", 224),
    cv("mobilenetv2", "mobilenetv2_wd4", "MobileNet", 224),
    cv("mobilenetv3", "mobilenetv3_small_w7d20", "MobileNet", 224),
    cv("squeezenet", "squeezenet_v1_1", "SqueezeNet", 224),
    cv("squeezenet", "squeezeresnet_v1_1", "SqueezeNet", 224),
    cv("squeezenext", "sqnxt23_w1", "SqueezeNet", 224),
    cv("efficientnet", "efficientnet_b0", "EfficientNet", 224),
    cv("shufflenet", "shufflenet_g3_wd4", "ShuffleNet", 224),
    cv("shufflenetv2", "shufflenetv2_wd2", "ShuffleNet", 224),
    cv("bninception", "bninception", "Inception", 224),
    cv("darknet", "darknet_ref", "DarkNet", 224),
    cv("darknet", "darknet_tiny", "DarkNet", 224),
    cv("dpn", "dpn68", "DPN", 224),
    cv("diracnetv2", "diracnet18v2", "DiracNet", 224),
    cv("regnet", "regnetx002", "RegNet", 96),
    cv("regnet", "regnety002", "RegNet", 96),
    cv("mnasnet", "mnasnet_small", "MnasNet", 224),
    cv("vovnet", "vovnet27s", "VoVNet", 224),
    cv("dla", "dla46c", "DLA", 224),
    cv("ghostnet", "ghostnet", "GhostNet", 224),
]
CIFAR = [
    cv("resnet_cifar", "resnet20_cifar10", "ResNet", 32),
    cv("preresnet_cifar", "preresnet20_cifar10", "PreResNet", 32),
    cv("wrn_cifar", "wrn16_10_cifar10", "WRN", 32),
    cv("resnext_cifar", "resnext20_16x4d_cifar10", "ResNeXt", 32),
    cv("seresnet_cifar", "seresnet20_cifar10", "SENet", 32),
    cv("densenet_cifar", "densenet40_k12_bc_cifar10", "DenseNet", 32),
    cv("pyramidnet_cifar", "pyramidnet110_a48_cifar10", "PyramidNet", 32),
    cv("nin_cifar", "nin_cifar10", "NIN", 32),
    cv("ror_cifar", "ror3_56_cifar10", "RoR", 32),
]
MEDICAL = [
    monai("resnet10 2-D", "resnet10", "ResNet", (1, 64, 64), volume(2)),
    monai("resnet10 3-D", "resnet10", "ResNet", (1, 24, 24, 24), volume(3)),
    monai("DenseNet121 2-D", "DenseNet121", "DenseNet", (1, 64, 64), image(2, out_channels=CLASSES)),
    monai(
        "DenseNet 3-D",
        "DenseNet",
        "DenseNet",
        (1, 32, 32, 32),
        image(3, out_channels=CLASSES, init_features=16, growth_rate=8, block_config=(2, 2, 2)),
    ),
    monai("SEResNet50 2-D", "SEResNet50", "SENet", (3, 64, 64), image(2, 3, num_classes=CLASSES)),
    monai(
        "EfficientNetBN",
        "EfficientNetBN",
        "EfficientNet",
        (3, 64, 64),
        image(2, 3, model_name="efficientnet-b0", pretrained=False, num_classes=CLASSES),
    ),
    monai(
        "AutoEncoder",
        "AutoEncoder",
        "AutoEncoder",
        (1, 32, 32),
        image(2, out_channels=1, channels=(8, 16, 32), strides=(2, 2, 2)),
    ),
    monai(
        "FullyConnectedNet",
        "FullyConnectedNet",
        "MLP",
        (64,),
        {"in_channels": 64, "out_channels": CLASSES, "hidden_channels": (128, 64), "dropout": 0.1},
    ),
    monai(
        "Classifier",
        "Classifier",
        "residual units",
        (1, 32, 32),
        {"in_shape": (1, 32, 32), "classes": CLASSES, "channels": (8, 16, 32), "strides": (2, 2, 2)},
    ),
    monai(
        "Discriminator",
        "Discriminator",
        "residual units",
        (1, 32, 32),
        {"in_shape": (1, 32, 32), "channels": (8, 16, 32), "strides": (2, 2, 2)},
    ),
]
FACES = [
    face("ViTForImageClassification", "Vision transformer", SMALL),
    face("DeiTForImageClassification", "Vision transformer", SMALL),
    face("Dinov2ForImageClassification", "Vision transformer", SMALL),
    face("Dinov2WithRegistersForImageClassification", "Vision transformer", SMALL),
    face("BeitForImageClassification", "Vision transformer", SMALL),
    face("CLIPVisionModel", "Vision transformer", SMALL),
    face("SiglipVisionModel", "Vision transformer", SMALL),
    face(
        "SwinForImageClassification",
        "Swin",
        {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
        | {"image_size": 32, "patch_size": 2, "num_labels": CLASSES},
    ),
    face("SegformerForImageClassification", "SegFormer", pyramid(num_attention_heads=[1, 2, 5, 4])),
    face("PvtForImageClassification", "PVT", pyramid(num_attention_heads=[1, 2, 5, 4], image_size=64), 64),
    face("PoolFormerForImageClassification", "PoolFormer", pyramid()),
    face("ConvNextForImageClassification", "ConvNeXt", pyramid(image_size=32)),
    face("ConvNextV2ForImageClassification", "ConvNeXt", pyramid(image_size=32)),
    face(
        "ResNetForImageClassification",
        "ResNet",
        {"embedding_size": 16, "hidden_sizes": [16, 32, 64], "depths": [1, 1, 1], "layer_type": "basic"}
        | {"num_labels": CLASSES},
    ),
]
# Not counted: of another kind, or known beforehand not to pass torch.fx.
HARD = [
    monai(
        "UNet",
        "UNet",
        "U-Net",
        (1, 32, 32),
        image(2, out_channels=2, channels=(8, 16, 32), strides=(2, 2), num_res_units=2),
        counted=False,
        why="an encoder and decoder with skips, not a classifier",
    ),
    monai(
        "BasicUNet",
        "BasicUNet",
        "U-Net",
        (1, 32, 32),
        image(2, out_channels=2, features=(8, 8, 16, 32, 64, 8)),
        counted=False,
        why="asks whether a skip is a tensor, which hides the skip from torch.fx",
    ),
    monai(
        "Generator",
        "Generator",
        "Generator",
        (16,),
        {"latent_shape": (16,), "start_shape": (32, 4, 4), "channels": (16, 8, 1), "strides": (2, 2, 2)},
        counted=False,
        why="makes images of noise: upsampling all the way",
    ),
    cv("cbamresnet", "cbam_resnet18", "CBAM", 224, counted=False, why="attention over channels and places"),
    cv("sknet", "sknet50", "SKNet", 224, counted=False, why="softmax attention between branches"),
    cv(
        "shakeshakeresnet_cifar",
        "shakeshakeresnet20_2x16d_cifar10",
        "Shake-Shake",
        32,
        counted=False,
        why="two branches, one weight of 0.5 each",
    ),
    cv(
        "efficientnet",
        "efficientnet_b0b",
        "EfficientNet",
        224,
        counted=False,
        why="padding from the size it sees",
    ),
    cv("mixnet", "mixnet_s", "MixNet", 224, counted=False, why="a loop over the parts of a split"),
    monai(
        "HighResNet",
        "HighResNet",
        "HighResNet",
        (1, 32, 32),
        image(2, out_channels=2),
        counted=False,
        why="asks its input for its type",
    ),
    Architecture(
        "TransformerEncoderLayer",
        "Transformer",
        "torch",
        attention,
        (512,),
        False,
        "attention between tokens",
    ),
]
ARCHITECTURES = [*IMAGENET, *CIFAR, *MEDICAL, *FACES, *HARD]
