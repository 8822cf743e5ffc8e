"""Nets of tokens: the fitted reverse goes through attention; the transpose says that it has no way."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse import BadInput, Shadow, ShadowLoss
from obverse.shadow import recovery


class Fused(nn.Module):
    """qkv in one map, the batch moved away and back, as timm and DINOv2 write it."""

    def __init__(self, width: int, heads: int, call: bool) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.call = heads, call

    def forward(self, x: Tensor) -> Tensor:
        count, tokens, width = x.shape
        qkv = self.qkv(x).reshape(count, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.call:
            q, k, v = qkv[0], qkv[1], qkv[2]
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            q, k, v = qkv[0], qkv[1], qkv[2]
            y = ((q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5).softmax(-1) @ v
        result: Tensor = self.proj(y.transpose(1, 2).reshape(count, tokens, width))
        return result


class Module(nn.Module):
    """nn.MultiheadAttention, of which the first of a pair is taken."""

    def __init__(self, width: int, heads: int, call: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return result


class Block(nn.Module):
    def __init__(self, kind: type[nn.Module], width: int, heads: int, call: bool) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), kind(width, heads, call)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        result: Tensor = x + self.mlp(self.norm2(x))
        return result


class Vision(nn.Module):
    """Patches, a class token, positions, blocks, a head on the class token."""

    def __init__(self, blocks: nn.Module, width: int = 16) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.blocks, self.norm, self.head = blocks, nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.places
        result: Tensor = self.head(self.norm(self.blocks(x))[:, 0])
        return result


def blocks(name: str) -> nn.Module:
    if name == "encoder layers":
        layers = [nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0) for _ in range(2)]
        return nn.Sequential(*layers)
    kind, call = {"by hand": (Fused, False), "call": (Fused, True), "module": (Module, False)}[name]
    return nn.Sequential(*(Block(kind, 16, 2, call) for _ in range(2)))


def digits(count: int = 120) -> Tensor:
    from sklearn.datasets import load_digits

    return torch.tensor(load_digits().images[:count, None] / 16, dtype=torch.float32)


@pytest.mark.parametrize("name", ["by hand", "call", "module", "encoder layers"])
def test_tokens_come_back_through_blocks(name: str) -> None:
    """From every layer of the second block that sees the sum of all paths, on inputs that were not fitted on:
    far below the error of the mean of h. What attention alone returns hardly varies in a fresh net."""
    torch.manual_seed(0)
    net, x = Vision(blocks(name)).eval(), digits()
    with pytest.raises(BadInput, match="steps that can be reversed below every layer"):
        Shadow(net)
    shadow = Shadow(net, reverse="fitted")
    shadow.calibrate(x[:80])
    names = [one for one in shadow.layers if one.startswith("blocks.1") and "attention" not in one]
    assert names
    errors = recovery(shadow, x[80:], layers=names).errors
    for layer, h in shadow.hidden(x[80:], names).items():
        mean = float((h.mean(0) - h).square().sum() / h.square().sum())
        assert errors[layer] < 0.1 * mean, layer


def test_from_the_class_token_alone() -> None:
    """16 numbers of one token say something of 64 pixels."""
    torch.manual_seed(0)
    shadow = Shadow(Vision(blocks("call")).eval(), reverse="fitted")
    x = digits()
    shadow.calibrate(x[:80])
    twin = shadow.of(x[80:], "head")
    mean = x[:80].mean(0)
    assert bool(twin.isfinite().all())
    assert float((twin - x[80:]).square().sum()) < 0.95 * float((mean - x[80:]).square().sum())


def test_a_step_without_a_rule_is_named_with_its_line() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.layer(x.sort(1).values)
            return result

    line = Odd.forward.__code__.co_firstlineno + 1
    with pytest.raises(BadInput, match=rf"in test_attention\.py, line {line}"):
        Shadow(Odd())


def test_what_cannot_be_traced_is_named_with_its_line() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                x = -x
            result: Tensor = self.layer(x)
            return result

    line = Branch.forward.__code__.co_firstlineno + 1
    with pytest.raises(BadInput, match=rf"in test_attention\.py, line {line}"):
        Shadow(Branch())


def test_training_with_it() -> None:
    torch.manual_seed(0)
    net, x = Vision(blocks("call")), digits(60)
    shadow = Shadow(net, reverse="fitted")
    shadow.calibrate(x)
    loss = ShadowLoss(shadow, layer="blocks.1")
    loss(x[:10], torch.arange(10)).backward()
    assert net.patches.weight.grad is not None
    assert bool(net.patches.weight.grad.isfinite().all())
