"""Networks as plain nn.Modules. Not for training them: see obverse.training."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._allconv import allconv_residual
    from ._dropout import SampleDropout
    from ._factory import errors_as_sentences, load_weights_file, make_net, parse_arguments
    from ._local import LocalLevel, LocalNet, Norm, local
    from ._memory import ResidualMemory
    from ._relu_mlp import UniformBiasLinear, relu_mlp
    from ._residual import LinearResidual
    from ._small_conv import ResidualBlock, small_cnn, small_resnet

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "LinearResidual",
    "LocalLevel",
    "LocalNet",
    "Norm",
    "ResidualBlock",
    "ResidualMemory",
    "SampleDropout",
    "UniformBiasLinear",
    "allconv_residual",
    "errors_as_sentences",
    "load_weights_file",
    "local",
    "make_net",
    "parse_arguments",
    "relu_mlp",
    "small_cnn",
    "small_resnet",
]
