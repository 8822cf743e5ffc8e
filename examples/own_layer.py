"""My net has a layer that obverse does not know. How do I teach it to run that layer backwards?"""

import torch
from torch import Tensor, nn

from obverse import BadInput, Shadow
from obverse.shadow import Rule, register_rule


class Hadamard(nn.Module):
    """Sums and differences of all inputs, by recursion: control flow that torch.fx cannot trace."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == 1:
            return x
        left, right = (self.forward(half) for half in x.chunk(2, 1))
        return torch.cat((left + right, left - right), 1) / 2**0.5


def main() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(Hadamard(), nn.Linear(256, 64), nn.ReLU())
    try:
        Shadow(net)
        print("Known already.")
    except BadInput as error:
        print(f"Before: {error}")
    # The rule: the adjoint of the layer's linear part. This matrix is symmetric, so it is its own adjoint.
    register_rule(Hadamard, Rule(reverse=lambda module, h, input_shape: module(h), exact=True))
    shadow = Shadow(net, signed=True)  # the inputs may be negative
    x = torch.randn(500, 256)
    shadow.calibrate(x)
    h, again = shadow.infer(x), shadow.infer(shadow.of(x))
    error = (again - h).square().sum() / h.square().sum()
    print(f"After: shadows from layer {shadow.layers[-1]!r}; of h comes back all but {100 * error:.0f} %.")


if __name__ == "__main__":
    main()
