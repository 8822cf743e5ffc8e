"""From a module to the layers a shadow runs through. Not for running them: see shadow.

A layer is one affine map with the ReLU that follows it; what only passes through (flatten, dropout)
belongs to the layer above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from torch import Tensor, nn

from ..errors import BadInput
from .reversal import Rule, rule_for


@dataclass(frozen=True)
class Stage:
    """One module of the chain with its rule. `call` counts earlier uses of the same module object."""

    name: str
    module: nn.Module
    rule: Rule
    call: int

    def infer(self, x: Tensor) -> Tensor:
        if self.rule.infer is not None:
            return self.rule.infer(self.module, x)
        result = self.module(x)
        assert isinstance(result, Tensor)
        return result


@dataclass(frozen=True)
class Layer:
    """One generating step: `before` (flatten, dropout of the layer below), the affine `map`, its ReLU."""

    name: str
    before: tuple[Stage, ...]
    map: Stage
    activation: Stage | None

    @property
    def output(self) -> Stage:
        """The stage whose output is this layer's h."""
        return self.activation or self.map

    def infer(self, x: Tensor) -> Tensor:
        for stage in self.before:
            x = stage.infer(x)
        h = self.map.infer(x)
        return h if self.activation is None else self.activation.infer(h)


def trace(net: nn.Module) -> tuple[Layer, ...]:
    """The layers of a chain, in forward order; an error names the first module that does not fit."""
    layers: list[Layer] = []
    before: list[Stage] = []
    calls: dict[int, int] = {}
    for name, module in _chain(net):
        call = calls.get(id(module), 0)
        calls[id(module)] = call + 1
        stage = Stage(name, module, rule_for(module, name), call)
        if stage.rule.energy is not None:
            layers.append(Layer(name, tuple(before), stage, None))
            before = []
        elif stage.rule.activation:
            if not layers or before or layers[-1].activation is not None:
                raise BadInput(
                    "each ReLU right behind an affine layer",
                    got=f"{type(module).__name__} {name!r} behind something else",
                    do="put it directly after the layer it belongs to",
                )
            top = layers[-1]
            layers[-1] = Layer(top.name, top.before, top.map, stage)
        else:
            before.append(stage)
    if not layers:
        raise BadInput(
            "a net with at least one linear layer", got=type(net).__name__, do="pass the whole net"
        )
    return tuple(layers)


def _runs_in_order(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a module only runs its children one after the other; a subclass may do otherwise."""
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward


def _chain(net: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The modules of nested nn.Sequentials in the order they run, by their dotted names."""
    if not _runs_in_order(net):
        yield name or type(net).__name__, net
        return
    # not named_children(): that leaves out the second use of a module used twice
    for key, child in zip(net._modules, net, strict=True):
        yield from _chain(child, f"{name}.{key}" if name else key)
