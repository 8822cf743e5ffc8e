"""How much longer the shadow of a batch takes than a forward pass over it; it is a sweep up and one down."""

from __future__ import annotations

import torch
from measure import SIZES, Outcome, alternate, compare, paper_net, publish, random_batch

from obverse.shadow import Shadow

ROWS = 1000


@torch.no_grad()
def of_ratio(repetitions: int) -> Outcome:
    """Shadow.of ÷ forward pass, 784-5000-5000-10, batch 1000."""
    net = paper_net().eval()
    x, _ = random_batch(ROWS)
    shadow = Shadow(net)
    seconds = alternate({"shadow of x": lambda: shadow.of(x), "forward": lambda: net(x)}, repetitions)
    return compare("shadow_of", "Shadow.of ÷ forward pass", 2.1, seconds, sizes=SIZES, batch=ROWS)


if __name__ == "__main__":
    publish(of_ratio, repetitions=31)
