"""What Shadow.of costs on a residual net: time and memory against a forward pass without gradients."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch
from measure import Outcome, alternate, compare, publish
from torch import Tensor

from obverse.nets import small_resnet
from obverse.shadow import Shadow

SHAPE, WIDTHS, BLOCKS = (3, 32, 32), (64, 128, 256, 512), 2  # the ResNet-18 of small images
ROWS = 64
NET = {"widths": WIDTHS, "blocks": BLOCKS, "image": SHAPE, "batch": ROWS}
MEGABYTE = 10**6

# One side in a process of its own. A first run on one image loads what is loaded once; then the peak is set
# back (5 into clear_refs) and the batch is run. Prints the resident bytes before that and at the peak. Linux.
MEMORY = """
import sys
from pathlib import Path
import torch
from shadow_of_resnet import batch, sides

def resident(field):
    return 1024 * int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0])

run, x = sides()[sys.argv[1]], batch()
with torch.no_grad():
    run(x[:1])
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    result = run(x)
print(before, resident("VmHWM"))
"""
# Tensors go back to the system as soon as they are freed: else the peak depends on holes in the heap.
RETURNED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def batch() -> Tensor:
    """Pixels in [0, 1]; what they are changes neither time nor memory."""
    return torch.rand(ROWS, *SHAPE, generator=torch.Generator().manual_seed(1))


def sides() -> dict[str, Callable[[Tensor], Tensor]]:
    net = small_resnet(SHAPE, 10, WIDTHS, BLOCKS, generator=torch.Generator().manual_seed(0)).eval()
    return {"shadow of x": Shadow(net, input_shape=SHAPE).of, "forward": net}


@torch.no_grad()
def time_ratio(repetitions: int) -> Outcome:
    """Shadow.of ÷ forward pass without gradients, ResNet-18 of 32 × 32 images, batch 64."""
    x = batch()
    seconds = alternate({name: partial(run, x) for name, run in sides().items()}, repetitions)
    question = "Shadow.of ÷ forward pass, ResNet-18 at 32 × 32"
    return compare("shadow_of_resnet", question, 3.0, seconds, **NET)


def peak(side: str) -> tuple[int, int]:
    """Resident bytes of a new process before it runs one side on a batch, and at the peak of that run."""
    command = [sys.executable, "-c", MEMORY, side]
    place, environment = Path(__file__).parent, {**os.environ, **RETURNED}
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=place, env=environment)
    before, most = map(int, done.stdout.split())
    return before, most


def memory_ratio(repetitions: int) -> Outcome:
    """Memory that a run adds at its peak, Shadow.of ÷ forward pass; medians over fresh processes."""
    runs = {side: [peak(side) for _ in range(min(3, repetitions))] for side in ("shadow of x", "forward")}
    added = {side: median(most - before for before, most in found) for side, found in runs.items()}
    whole = {side: median(most for _, most in found) for side, found in runs.items()}
    return Outcome(
        "shadow_of_resnet_memory",
        "memory added at the peak, Shadow.of ÷ forward pass",
        added["shadow of x"] / added["forward"],
        2.0,
        details={
            **NET,
            "added_megabytes": {side: value / MEGABYTE for side, value in added.items()},
            "whole_process_megabytes": {side: value / MEGABYTE for side, value in whole.items()},
        },
    )


if __name__ == "__main__":
    publish(time_ratio, repetitions=15)
    publish(memory_ratio, repetitions=3)
