"""How long the whole audit of a Llama block takes beside `W @ W.T` of its matrices, tests and controls too.

Once with the settings of `obverse audit`, once with those of `obverse audit --quick`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from decompose import LLAMA_BLOCK, THREADS, short_side_up, trained
from measure import Outcome, alternate, compare, publish

from obverse.weights import audit

SHARE = 0.002  # of the directions carry signal
NAMES = ("q", "o", "k", "v", "gate", "up", "down")
SETTINGS: dict[str, dict[str, Any]] = {
    "audit_block": {},
    "audit_block_quick": {"samples": 8, "exact": False},
}


def against_product(name: str) -> Callable[[int], Outcome]:
    def ratio(repetitions: int) -> Outcome:
        """Audit ÷ W @ W.T, the smaller of the two Gram matrices of each layer."""
        torch.set_num_threads(THREADS)
        layers = [trained(shape, SHARE, seed) for seed, shape in enumerate(LLAMA_BLOCK)]
        net = {f"{layer}.weight": weight for layer, weight in zip(NAMES, layers, strict=True)}
        shares: dict[str, float] = {}

        def measure() -> None:
            shares.update({layer.name: layer.seconds for layer in audit(net, **SETTINGS[name]).layers})

        def multiply() -> None:
            for layer in layers:
                short_side_up(layer) @ short_side_up(layer).T

        seconds = alternate({"audit": measure, "W @ W.T": multiply}, repetitions, warm_up=1)
        settings = ", ".join(f"{key}={value}" for key, value in SETTINGS[name].items()) or "default settings"
        return compare(
            name,
            f"audit ({settings}) ÷ W @ W.T, {len(layers)} matrices of a Llama block",
            1.5,
            seconds,
            shapes=LLAMA_BLOCK,
            seconds_of_layers=shares,
        )

    return ratio


if __name__ == "__main__":
    for one in SETTINGS:
        publish(against_product(one), repetitions=3)
