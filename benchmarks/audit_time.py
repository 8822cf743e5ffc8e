"""How much longer an audit takes than the singular values of the same layers alone, as torch gives them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from measure import Outcome, alternate, compare, publish
from torch import Tensor, nn

from obverse.nets import relu_mlp
from obverse.weights import Thresholds, audit

# The paper's net on CIFAR-10, and the first two fully connected layers of AlexNet (9216 × 4096, 4096 × 4096).
SIZES = {"mlp": (3072, 5000, 5000, 10), "pair": (9216, 4096, 4096)}


def seeded_net(name: str) -> nn.Sequential:
    """A ReLU net of these sizes with He's weights."""
    first, *hidden, last = SIZES[name]
    return relu_mlp((first,), hidden, last, generator=torch.Generator().manual_seed(0)).eval()


def judged_layers(net: nn.Module) -> list[Tensor]:
    """The weights that the audit judges: small ones are only listed."""
    weights = (layer.weight.detach() for layer in net.modules() if isinstance(layer, nn.Linear))
    return [weight for weight in weights if min(weight.shape) >= Thresholds().min_side]


def tall(layer: Tensor) -> Tensor:
    return layer if layer.shape[0] >= layer.shape[1] else layer.T


def audit_ratio(name: str) -> Callable[[int], Outcome]:
    def ratio(repetitions: int) -> Outcome:
        """Audit ÷ float32 singular values of the judged layers."""
        net = seeded_net(name)
        layers = judged_layers(net)
        sides = {
            "audit": lambda: audit(net),
            "singular values": lambda: [torch.linalg.svdvals(layer) for layer in layers],
            "singular values, tall": lambda: [torch.linalg.svdvals(tall(layer)) for layer in layers],
        }
        seconds = alternate(sides, repetitions, warm_up=1)
        # LAPACK takes longer over a wide matrix than over its transpose: the ratio to the faster of the two
        # says what the audit costs, and not what it gains by that.
        fastest = compare("", "", 1.6, {side: seconds[side] for side in ("audit", "singular values, tall")})
        return compare(
            f"audit_time_{name}",
            f"audit ÷ svdvals, {shape(name)}",
            1.6,
            {side: seconds[side] for side in ("audit", "singular values")},
            sizes=SIZES[name],
            to_tall_layers={"ratio": fastest.ratio, **fastest.range},
        )

    return ratio


def shape(name: str) -> str:
    """The sizes as people write them: a net by its widths, loose layers one by one."""
    if name == "mlp":
        return "-".join(map(str, SIZES[name]))
    return " + ".join(f"{columns} × {rows}" for columns, rows in pairwise(SIZES[name]))


if __name__ == "__main__":
    for net_name in SIZES:
        publish(audit_ratio(net_name), repetitions=7)
