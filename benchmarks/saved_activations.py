"""How much more a SHADOW step keeps for its backward pass than a plain step. Counted, not timed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from measure import BATCH, SIZES, Outcome, paper_net, publish, random_batch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse.shadow import ShadowLoss


def saved_bytes(loss: Callable[[], Tensor], net: nn.Module) -> int:
    """Bytes of the distinct storages saved for backward, those of the net's parameters left out."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in net.parameters()}
    saved: dict[int, int] = {}
    alive: list[Tensor] = []  # a storage that was freed could come back at the same address

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss()
    return sum(saved.values())


def saved_ratio(repetitions: int) -> Outcome:
    """Bytes saved for backward, SHADOW ÷ plain, 784-5000-5000-10. Exact: repetitions play no role."""
    net = paper_net()
    x, y = random_batch(BATCH)
    shadow_loss = ShadowLoss(net)
    shadow = saved_bytes(lambda: shadow_loss(x, y), net)
    plain = saved_bytes(lambda: F.cross_entropy(net(x), y), net)
    return Outcome(
        "saved_activations",
        "bytes saved for backward, SHADOW ÷ plain",
        shadow / plain,
        2.1,
        details={"shadow_bytes": shadow, "plain_bytes": plain, "sizes": SIZES, "batch": BATCH},
    )


if __name__ == "__main__":
    publish(saved_ratio, repetitions=2)
