"""Are the weights of the checkpoint that I downloaded still like random numbers, and where are they not?

python examples/audit_checkpoint.py [model.safetensors | model.pt | model.npz | folder of shards]
"""

import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file

import obverse
from obverse.data import load
from obverse.nets import relu_mlp


def make_checkpoint(path: Path) -> Path:
    """A stand-in: a small net trained for a second or two, with weight decay."""
    data, generator = load("digits"), torch.Generator().manual_seed(0)
    net = relu_mlp(data.input_shape, hidden=(200, 200), classes=10, generator=generator)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(data.train_x), data.train_y).backward()
        optimizer.step()
    save_file(net.state_dict(), path)
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if sys.argv[1:] else make_checkpoint(Path(folder) / "model.safetensors")
        print(obverse.audit(path))  # the file is read as data: nothing in it runs


if __name__ == "__main__":
    main()
