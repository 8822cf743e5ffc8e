"""Networks as plain nn.Modules. Not for training them: see obverse.training."""

from ._allconv import allconv_residual
from ._local import LocalNet, local
from ._memory import ResidualMemory
from ._relu_mlp import UniformBiasLinear, relu_mlp
from ._residual import LinearResidual
from ._small_conv import ResidualBlock, small_cnn, small_resnet

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
