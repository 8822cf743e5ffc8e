"""Is my layer reversible? A sparse h goes down and up again; theory says what random weights would give back.

python examples/layer_reversible.py [weight.npy]    outputs × inputs, as in nn.Linear
"""

import sys

import numpy as np
import torch

from obverse import ShadowLayer
from obverse.shadow import best_threshold, recovery_error


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(300, 2000, generator=generator)
    if sys.argv[1:]:
        weight = torch.from_numpy(np.load(sys.argv[1], allow_pickle=False)).float()
    units, inputs = weight.shape
    print(
        f"{units} units, {inputs} inputs; error ‖ĥ − h‖² / ‖h‖²: 0 if all of h comes back, 1 if nothing does"
    )
    for share in (0.01, 0.03, 0.1, 0.3):
        k = max(1, round(share * units))
        h = torch.zeros(200, units)
        for row in h:
            row[torch.randperm(units, generator=generator)[:k]] = 1.0
        threshold = best_threshold(h, kept=inputs, inputs=inputs)  # from theory alone, one for all units
        predicted = float(recovery_error(h, kept=inputs, threshold=threshold, inputs=inputs).mean())
        x = ShadowLayer(weight, h).sample()  # down: x = r(αWᵀh)
        recovered = (x @ weight.T - threshold.float()[:, None]).relu()  # and up again
        measured = float((recovered - h).square().sum(1).mean()) / k
        print(f"{k:>5} units active: error {measured:.3f}, of random weights {predicted:.3f}")
    print("Reversible as far as the two agree. The more units are active, the less comes back in any layer.")


if __name__ == "__main__":
    main()
