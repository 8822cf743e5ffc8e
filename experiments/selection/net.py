"""A small transformer over bytes, its training, and the two texts that are on every Python machine."""

from __future__ import annotations

import hashlib
import math
import platform
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, BLOCKS, HEADS, CONTEXT, SYMBOLS = 128, 4, 4, 64, 256
BATCH = 16
KINDS = ("query", "key", "value", "output", "up", "down")  # the matrices of a block
HELD_OUT = 0.1  # the end of each text: tested, never trained on
TESTED = 384  # windows of it


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h = self.before_attention(x)
        parts = [
            layer(h).unflatten(2, (HEADS, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        ]
        query, key, value = parts
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.before_mlp(x))))


class Reader(nn.Module):
    """The next byte from those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS, bias=False)
        for one in (self.symbols, self.places):
            nn.init.normal_(one.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        h = self.symbols(x) + self.places.weight[: x.shape[1]]
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


@dataclass(frozen=True)
class Text:
    """Bytes to train on and bytes to test with."""

    train: Tensor
    test: Tensor
    sha256: str


def text_of(contents: bytes) -> Text:
    values = torch.frombuffer(bytearray(contents), dtype=torch.uint8).long()
    cut = int(len(values) * (1 - HELD_OUT))
    return Text(values[:cut], values[cut:], hashlib.sha256(contents).hexdigest())


def library() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def sources() -> Text:
    """The standard library's modules, its tests and the other text left out, in the order of their paths."""
    root = library()
    apart = {"site-packages", "test", "tests", "pydoc_data", "idlelib", "lib2to3"}
    files = [one for one in sorted(root.rglob("*.py")) if not apart & set(one.relative_to(root).parts)]
    return text_of(b"\n".join(one.read_bytes() for one in files))


def topics() -> Text:
    """The text of the language reference that `help()` prints."""
    from pydoc_data.topics import topics as found

    return text_of("\n\n".join(found[name] for name in sorted(found)).encode())


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "torch": torch.__version__}


def windows(values: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and the next bytes."""
    at = starts[:, None] + torch.arange(CONTEXT + 1)
    found = values[at]
    return found[:, :-1], found[:, 1:]


def loss_of(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(net(x).flatten(0, 1), y.flatten())


def train(
    net: nn.Module, text: Text, parameters: Iterable[nn.Parameter], *, steps: int, lr: float, seed: int
) -> None:
    """AdamW; the learning rate rises over a tenth of the steps and falls as a cosine."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(list(parameters), lr=lr, betas=(0.9, 0.95), weight_decay=0.01)
    net.train()
    for step in range(steps):
        warm = min(1.0, (step + 1) / (0.1 * steps))
        optimizer.param_groups[0]["lr"] = lr * warm * 0.5 * (1 + math.cos(math.pi * step / steps))
        starts = torch.randint(len(text.train) - CONTEXT, (BATCH,), generator=generator)
        loss = loss_of(net, *windows(text.train, starts))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def tested(net: nn.Module, text: Text) -> float:
    """Nats per byte of the held-out text; the same windows for every net."""
    net.eval()
    starts = torch.linspace(0, len(text.test) - CONTEXT - 1, TESTED).long()
    losses = [loss_of(net, *windows(text.test, part)) for part in starts.split(64)]
    return float(torch.stack(losses).mean())


def matrices(net: Reader) -> dict[str, nn.Linear]:
    """What can be chosen, by name: blocks.0.query and so on."""
    return {
        f"blocks.{at}.{kind}": block.get_submodule(kind)  # type: ignore[misc]
        for at, block in enumerate(net.blocks)
        for kind in KINDS
    }


class Adapted(nn.Module):
    """A frozen linear layer with an update of low rank beside it."""

    def __init__(self, layer: nn.Linear, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layer = layer
        rows, columns = layer.weight.shape
        self.down = nn.Parameter(torch.randn(rank, columns, generator=generator) / math.sqrt(columns))
        self.up = nn.Parameter(torch.zeros(rows, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + (x @ self.down.T) @ self.up.T


def unfreeze(net: Reader, names: Sequence[str]) -> list[nn.Parameter]:
    """Only these matrices are trained."""
    net.requires_grad_(False)
    chosen = [matrices(net)[name].get_parameter("weight") for name in names]
    for one in chosen:
        one.requires_grad_(True)
    return chosen


def adapt(net: Reader, ranks: dict[str, int], seed: int) -> list[nn.Parameter]:
    """Updates of these ranks are trained, and nothing else."""
    net.requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    found: list[nn.Parameter] = []
    for name, rank in ranks.items():
        if rank:
            parent, _, child = name.rpartition(".")
            made = Adapted(net.get_submodule(name), rank, generator)  # type: ignore[arg-type]
            setattr(net.get_submodule(parent), child, made)
            found += [made.down, made.up]
    return found
