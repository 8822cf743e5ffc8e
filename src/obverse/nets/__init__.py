"""Networks as plain nn.Modules. Not for training them: see obverse.training."""

from .allconv import allconv_residual
from .local import LocalNet, local
from .memory import ResidualMemory
from .relu_mlp import UniformBiasLinear, relu_mlp
from .residual import LinearResidual
from .small_conv import ResidualBlock, small_cnn, small_resnet

__all__ = [
    "LinearResidual",
    "LocalNet",
    "ResidualBlock",
    "ResidualMemory",
    "UniformBiasLinear",
    "allconv_residual",
    "local",
    "relu_mlp",
    "small_cnn",
    "small_resnet",
]
