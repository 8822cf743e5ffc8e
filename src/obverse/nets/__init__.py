"""Networks as plain nn.Modules. Not for training them: see obverse.training."""

from .relu_mlp import UniformBiasLinear, relu_mlp

__all__ = ["UniformBiasLinear", "relu_mlp"]
