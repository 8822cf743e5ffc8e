"""What the settings that are words may be: names alone, so that flags can offer them at no cost."""

from __future__ import annotations

import re
from typing import Literal

Net = Literal["mlp", "allconv"]
Init = Literal["identity", "he"]  # how the blocks of an allconv begin: see obverse.nets
Optimizer = Literal["sgd", "adam"]
Labels = Literal["given", "net", "consistency"]  # of a shadow: see obverse.shadow.ShadowLoss
Control = Literal["same", "noise", "shuffled"]  # in place of shadows: see obverse.shadow._controls
Precision = Literal["float32", "bf16", "fp16"]
Kind = Literal["vae", "wgan", "mixture"]  # of a generator
Body = Literal["mlp", "conv"]  # of its networks
Decoder = Literal["bernoulli", "gaussian"]  # of a VAE
SUMMARIES = ("full", "and", "or", "xor", "majority")  # what a region tells of its children
DEVICES = "auto, cpu, cuda or cuda:N"


def is_device_name(name: str) -> bool:
    """Whether it is one of those that a run may be asked to use, there or not."""
    return re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", name) is not None


# Of the data sets that `data.load` knows by name; digits are embedded.
NAMES = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")
