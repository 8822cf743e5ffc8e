"""A traced net: its stages, the layers one can generate from, and running it up to any of them.

Not for tracing (see trace) nor for running backwards (see generate).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, fx, nn

from .._core import BadInput
from ._attention import PAIRS
from ._reversal import Activation, AnyRule, Rule, Shape
from ._structure import KNOWN


class Unfollowed(BadInput):
    """A step that cannot be reversed; `stack` names the modules that it is in, from the outside in."""

    def __init__(self, expected: str, *, got: object, do: str, stack: Iterable[str] = ()) -> None:
        super().__init__(expected, got=got, do=do)
        self.stack = tuple(stack)


@dataclass(frozen=True)
class Stage:
    """One step of the net: a module, its own or one that stands for a function call, and what it reads.

    `inputs` are the positions of the stages whose tensors enter; for a Gate only the gated value.
    """

    index: int
    name: str
    node: fx.Node
    module: nn.Module
    rule: AnyRule | None
    inputs: tuple[int, ...]
    gate: int | None = None

    @property
    def is_map(self) -> bool:
        return isinstance(self.rule, Rule) and self.rule.energy is not None

    @property
    def known(self) -> bool:
        """Whether it can be run backwards."""
        return self.rule is not None or isinstance(self.module, KNOWN)


@dataclass(frozen=True)
class Layer:
    """Something to generate from: a map with its norm and activation, or a join with its activation.

    `stage` is the map or the join, `norms` are folded into it, `output` is the stage whose tensor is h.
    """

    name: str
    stage: Stage
    norms: tuple[Stage, ...]
    output: Stage

    @property
    def activation(self) -> Stage | None:
        return self.output if isinstance(self.output.rule, Activation) else None

    @property
    def is_map(self) -> bool:
        return self.stage.is_map


@dataclass(frozen=True)
class Graph:
    """The stages of a net in forward order; stage 0 is its input.

    `outputs` names, for each node, the module calls that returned it, as (name, how often called before).
    `traces` has room for graphs of the net in its own mode (training or not), as ShadowLoss needs them.
    """

    net: nn.Module
    nodes: tuple[fx.Node, ...]
    stages: tuple[Stage, ...]
    layers: Mapping[str, Layer]
    aliases: Mapping[str, str]
    outputs: Mapping[fx.Node, tuple[tuple[str, int], ...]]
    traces: dict[bool, Graph] = field(default_factory=dict)
    _shapes: dict[Shape, dict[fx.Node, Shape]] = field(default_factory=dict)
    _energies: dict[tuple[int, Shape], float] = field(default_factory=dict)

    @cached_property
    def is_chain(self) -> bool:
        """Whether every stage reads one tensor and nothing is read twice."""
        read = [source for stage in self.stages for source in stage.inputs]
        return len(set(read)) == len(read) and all(len(stage.inputs) <= 1 for stage in self.stages)

    def is_chain_below(self, stage: Stage) -> bool:
        """The same of what a stage is computed from."""
        found = [self.stages[index] for index in self.below(stage)] + [stage]
        read = [source for one in found for source in one.inputs]
        return len(set(read)) == len(read) and all(len(one.inputs) <= 1 for one in found)

    @cached_property
    def is_homogeneous(self) -> bool:
        """Whether generation from c·h is c times that from h: a chain of ReLUs and their like."""
        bent = [stage.module for stage in self.stages if isinstance(stage.rule, Activation)]
        return self.is_chain and all(isinstance(one, nn.ReLU | nn.LeakyReLU | nn.PReLU) for one in bent)

    def below(self, stage: Stage) -> set[int]:
        """The stages that a stage is computed from, gates aside."""
        return with_sources(self.stages, stage.inputs)

    @cached_property
    def map_of(self) -> Mapping[int, Layer]:
        """The layer of each map, and of each norm that is folded into one, by stage."""
        maps = [layer for layer in self.layers.values() if layer.is_map]
        return {stage.index: layer for layer in maps for stage in (layer.stage, *layer.norms)}

    def shapes(self, input_shape: Shape) -> dict[fx.Node, Shape]:
        """The shape of one element of every stage's output, for inputs of a shape; found by running two.

        The first time this also checks that the trace computes what the net does: torch.fx follows only one
        branch of a forward that asks about its input.
        """
        if input_shape not in self._shapes:
            x = torch.rand(2, *input_shape, generator=torch.Generator().manual_seed(0)).to(like(self.net))
            found: dict[fx.Node, Shape] = {}
            stages = {stage.node: stage for stage in self.stages}
            results = self.nodes[-1].all_input_nodes
            traced: dict[fx.Node, Any] = {}

            def note(node: fx.Node, value: Any) -> None:
                if node in stages and isinstance(stages[node].module, PAIRS):
                    value = value[0]  # and not the weights of attention
                if node in stages and (stages[node].known or isinstance(value, Tensor)):
                    found[node] = self._one_shape(stages[node], value)
                if node in results:
                    traced[node] = value

            try:
                with torch.no_grad(), torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)  # twice: a net may drop out even in evaluation
                    self.run(x, None, note)
                    torch.manual_seed(0)
                    with evaluation(self.net, in_place=True):
                        own = self.net.forward(x.clone())  # without hooks of its own
            except BadInput:
                raise
            except Exception as error:  # the net's own code runs here: anything can come out of it
                message = str(error).split("\n")[0][:200]
                raise self._wrong_trace(input_shape, f"{type(error).__name__}: {message}") from error
            # The same operations in the same order; the margin is for kernels that choose by memory layout.
            theirs, ours = list(tensors_in(own)), list(tensors_in([traced.get(one) for one in results]))
            known = len(theirs) == len(ours)
            if known and not all(_close(*pair) for pair in zip(theirs, ours, strict=True)):
                raise self._wrong_trace(input_shape, "another result from the trace than from the net")
            self._shapes[input_shape] = found
        return self._shapes[input_shape]

    @staticmethod
    def _wrong_trace(input_shape: Shape, got: str) -> BadInput:
        return BadInput(
            f"a net that runs on inputs of shape {input_shape} as torch.fx traced it",
            got=got,
            do="check the shape, say it beforehand, Shadow(net, input_shape=…), or give the module whose "
            "forward asks about its input a rule: obverse.shadow.register_rule(ItsClass, Rule(reverse=…))",
        )

    @staticmethod
    def _one_shape(stage: Stage, value: Any) -> Shape:
        if not isinstance(value, Tensor) or value.dim() == 0 or len(value) != 2:
            raise Unfollowed(
                f"{stage.name!r} ({describe(stage)}) to keep the batch as its first dimension",
                got=f"shape {tuple(value.shape)} from two inputs"
                if isinstance(value, Tensor)
                else type(value).__name__,
                do="keep the batch first in every layer of the net",
                stack=stage.node.meta.get("nn_module_stack", ()),
            )
        return tuple(value.shape[1:])

    def probed(self, stage: Stage, input_shape: Shape, measure: Callable[[], float]) -> float:
        """The energy of a step without weights; measured once where nothing can change it: in a user's own
        module anything can."""
        ours = type(stage.module).__module__.startswith(("torch.nn.", f"{__package__}."))
        if not ours or next(stage.module.parameters(), None) is not None:
            return measure()
        key = (stage.index, input_shape)
        if key not in self._energies:
            self._energies[key] = measure()
        return self._energies[key]

    @torch.no_grad()
    def infer(self, x: Tensor, nodes: set[fx.Node]) -> dict[fx.Node, Tensor]:
        """The values of some nodes for inputs x, in evaluation mode."""
        return self.infer_with_gradient(x, nodes)

    def infer_with_gradient(self, x: Tensor, nodes: set[fx.Node]) -> dict[fx.Node, Tensor]:
        found: dict[fx.Node, Tensor] = {}

        def keep(node: fx.Node, value: Any) -> None:
            if node in nodes:
                found[node] = value

        self.run(x, nodes, keep)
        return found

    def run(self, x: Tensor, wanted: set[fx.Node] | None, see: Callable[[fx.Node, Any], None]) -> None:
        """Run what some nodes need (None: everything) in evaluation mode, showing each value; nothing is
        changed in place."""
        with evaluation(self.net):
            interpret(self.net, self.nodes, x, wanted, see)


def _close(own: Tensor, traced: Tensor) -> bool:
    if own.shape != traced.shape:
        return False
    own, traced = (one.float() if not one.dtype.is_complex else one for one in (own, traced))
    return torch.allclose(own, traced, rtol=1e-3, atol=1e-5, equal_nan=True)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of a structure that a net returns, in their order: of lists, mappings, dataclasses."""
    if isinstance(value, Tensor):
        yield value
        return
    if isinstance(value, Mapping):
        value = value.values()
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, one.name) for one in fields(value)]
    elif not isinstance(value, tuple | list):
        return
    for one in value:
        yield from tensors_in(one)


def describe(stage: Stage) -> str:
    """What a stage is, as its author wrote it."""
    node = stage.node
    if node.op == "call_module":
        return type(stage.module).__name__
    return f"call of {getattr(node.target, '__name__', node.target)}"


@contextmanager
def evaluation(net: nn.Module, *, in_place: bool = False) -> Iterator[None]:
    """The net in evaluation mode; every module is as before afterwards.

    Unless `in_place`, nothing is done in place: what reads a tensor again then reads another value, so that
    this is for running a trace (which has been corrected for it), not for running the net.
    """
    modules = list(net.modules())
    training = [module.training for module in modules]
    inplace = [one for one in modules if not in_place and getattr(one, "inplace", False) is True]
    for module in modules:
        module.training = False
    _set_inplace(inplace, False)
    try:
        yield
    finally:
        for module, mode in zip(modules, training, strict=True):
            module.training = mode
        _set_inplace(inplace, True)


def _set_inplace(modules: list[Any], value: bool) -> None:
    for module in modules:
        module.inplace = value


def interpret(
    net: nn.Module,
    nodes: tuple[fx.Node, ...],
    x: Tensor,
    wanted: set[fx.Node] | None,
    see: Callable[[fx.Node, Any], None],
) -> None:
    """Run in order those nodes of a trace that some need; values are let go after their last use."""
    needed = set(nodes) if wanted is None else with_ancestors(wanted)
    uses = {node: sum(user in needed for user in node.users) for node in needed}
    values: dict[fx.Node, Any] = {}
    given = False
    for node in nodes:
        if node not in needed:
            continue
        if node.op == "placeholder":
            values[node] = (node.args[0] if node.args else None) if given else x
            given = True
        elif node.op == "output":
            values[node] = None
        elif node.op == "get_attr":
            values[node] = attribute(net, str(node.target))
        else:
            values[node] = call_node(net, node, values.__getitem__)
        see(node, values[node])
        for source in node.all_input_nodes:
            uses[source] -= 1
            if uses[source] == 0:
                del values[source]


def with_sources(stages: Sequence[Stage], start: Iterable[int]) -> set[int]:
    """Some stages and all that they are computed from, gates aside."""
    found: set[int] = set()
    open_stages = list(start)
    while open_stages:
        index = open_stages.pop()
        if index not in found:
            found.add(index)
            open_stages.extend(stages[index].inputs)
    return found


def with_ancestors(nodes: set[fx.Node]) -> set[fx.Node]:
    """Some nodes of a trace and all that they are computed from."""
    found, open_nodes = set(nodes), list(nodes)
    while open_nodes:
        for source in open_nodes.pop().all_input_nodes:
            if source not in found:
                found.add(source)
                open_nodes.append(source)
    return found


def call_node(net: nn.Module, node: fx.Node, value: Callable[[fx.Node], Any]) -> Any:
    """What a node computes from the values of those before it; in-place forms are run as the plain ones."""
    args = fx.map_arg(node.args, value)
    kwargs = fx.map_arg(node.kwargs, value)
    if kwargs.get("inplace") is True:
        kwargs = {**kwargs, "inplace": False}
    if node.op == "call_module":
        return net.get_submodule(str(node.target))(*args, **kwargs)
    if node.op == "call_method":
        name = str(node.target)
        plain = name.removesuffix("_") if not name.endswith("__") else name
        return getattr(args[0], plain)(*args[1:], **kwargs)
    assert callable(node.target)
    return PLAIN.get(node.target, node.target)(*args, **kwargs)


# What works in place, and what does the same without.
PLAIN: dict[Any, Any] = {
    torch.relu_: torch.relu,
    torch.sigmoid_: torch.sigmoid,
    torch.tanh_: torch.tanh,
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
}


def like(net: nn.Module) -> Tensor:
    """A tensor with the device and type that a net computes with."""
    tensors = [*net.parameters(), *net.buffers()]
    return next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0))


def attribute(net: nn.Module, path: str) -> Any:
    for name in path.split("."):
        net = getattr(net, name)
    return net
