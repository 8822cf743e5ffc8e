"""Networks as plain nn.Modules. Not for training them: see obverse.training."""

from .relu_mlp import UniformBiasLinear, relu_mlp
from .small_conv import ResidualBlock, small_cnn, small_resnet

__all__ = ["ResidualBlock", "UniformBiasLinear", "relu_mlp", "small_cnn", "small_resnet"]
