"""The steps of a net, noted while it runs on an example: for nets whose forward torch.fx cannot follow.

It asks about sizes and types, branches on them, loops over pieces, returns a structure: on an example all
that is known. The net runs twice, on batches of two sizes; where whole numbers among the arguments differ,
they follow the size of the batch, and are written as steps of it. Not for stages (see stages).
"""

from __future__ import annotations

import operator
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from .._core import BadInput
from ._graph import Unfollowed, evaluation, like, tensors_in
from ._reversal import Shape

BATCHES = (2, 3)
MOST = 20_000  # steps of a net
Returned = dict[fx.Node, list[tuple[str, int]]]
# Methods by which an operator with a tensor on its right is computed.
_SWAPPED: dict[str, Any] = {
    "__rsub__": operator.sub,
    "__rdiv__": operator.truediv,
    "__rtruediv__": operator.truediv,
    "__rmatmul__": operator.matmul,
}
_PROPERTIES = {"T": ("t", ()), "mT": ("transpose", (-2, -1)), "data": ("detach", ()), "H": ("t", ())}


class Given:
    """A tensor that is neither a parameter nor a buffer nor computed from the input."""

    def __init__(self, value: Tensor) -> None:
        self.value, self.__name__ = value, "given"

    def __call__(self) -> Tensor:
        return self.value


@dataclass
class _Notes(TorchFunctionMode):
    """Notes every call that returns tensors as a node, and every call of a module that is one step."""

    net: nn.Module
    is_leaf: Callable[[nn.Module, str], bool]
    graph: fx.Graph = field(default_factory=fx.Graph)
    returned: Returned = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.names = {id(module): name for name, module in self.net.named_modules()}
        self.own = {id(tensor): name for name, tensor in self.net.named_parameters()}
        self.own |= {id(tensor): name for name, tensor in self.net.named_buffers()}
        self.found: dict[
            int, Any
        ] = {}  # the node of each tensor, or the node and the place in what it returned
        self.kept: list[Any] = []  # so that no two tensors have one id
        self.calls: dict[str, int] = {}
        self.stack: list[str] = []
        self.inside = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self.inside:
            return result
        name = getattr(func, "__name__", "")
        if name == "__setitem__" and id(args[0]) not in self.own:
            raise Unfollowed(
                "a net that assigns to no part of a tensor",
                got=f"x[…] = …{_here()}",
                do="use torch.cat",
                stack=self.stack,
            )
        if next(tensors_in(result), None) is not None:
            self._note(*_step(func, name, args, kwargs), result)
        return result

    def _note(self, op: str, target: Any, args: Any, kwargs: Any, result: Any) -> fx.Node:
        node = self._create(op, target, self._nodes(args), self._nodes(kwargs))
        if isinstance(result, Tensor):
            self._is(result, node)
        elif isinstance(result, (tuple, list)):
            for place, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._is(part, (node, place))
        return node

    def _is(self, tensor: Tensor, what: Any) -> None:
        self.found[id(tensor)] = what
        self.kept.append(tensor)

    def _create(self, op: str, target: Any, args: Any, kwargs: Any) -> fx.Node:
        if len(self.graph.nodes) >= MOST:
            raise BadInput(f"a net of at most {MOST:,} steps", got="more", do="give a module in it a rule")
        node = self.graph.create_node(op, target, args, kwargs)
        node.meta["nn_module_stack"] = OrderedDict.fromkeys(self.stack)
        node.stack_trace = "".join(traceback.format_stack())
        return node

    def _nodes(self, value: Any) -> Any:
        """Arguments with a node for each tensor."""
        if isinstance(value, Tensor):
            return self._node(value)
        if isinstance(value, tuple):
            return tuple(self._nodes(one) for one in value)
        if isinstance(value, list):
            return [self._nodes(one) for one in value]
        if isinstance(value, Mapping):
            return {key: self._nodes(one) for key, one in value.items()}
        if isinstance(value, slice):
            return slice(*(self._nodes(one) for one in (value.start, value.stop, value.step)))
        return value

    def _node(self, tensor: Tensor) -> fx.Node:
        known = self.found.get(id(tensor))
        if known is None:
            name = self.own.get(id(tensor))
            known = (
                self._create("call_function", Given(tensor.detach()), (), {})
                if name is None
                else self._create("get_attr", name, (), {})
            )
            self._is(tensor, known)
        elif isinstance(known, tuple):
            known = self._create("call_function", operator.getitem, known, {})
            self._is(tensor, known)
        assert isinstance(known, fx.Node)
        return known

    def call(self, original: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any) -> Any:
        """What runs in place of a call of a module."""
        path = self.names.get(id(module))
        if self.inside or path is None:
            return original(module, *args, **kwargs)
        count = self.calls.get(path, 0)
        self.calls[path] = count + 1
        self.stack.append(path)
        try:
            if path and self.is_leaf(module, path):
                self.inside = True
                try:
                    result = original(module, *args, **kwargs)
                finally:
                    self.inside = False
                node = self._note("call_module", path, args, kwargs, result)
                node.meta["pair"] = not isinstance(result, Tensor)
            else:
                result = original(module, *args, **kwargs)
        finally:
            self.stack.pop()
        if isinstance(result, Tensor) and (id(result) in self.found):
            self.returned.setdefault(self._node(result), []).append((path, count))
        return result

    def run(self, x: Tensor) -> None:
        self._is(x, self._create("placeholder", "x", (), {}))
        with _calls(self), self:
            result = self.net(x)
        tensors = [one for one in tensors_in(result) if id(one) in self.found]
        nodes = [self._node(one) for one in tensors]
        self.graph.output(nodes[0] if isinstance(result, Tensor) and nodes else tuple(nodes))


@contextmanager
def _calls(notes: _Notes) -> Iterator[None]:
    """Calls of modules go through the notes."""
    original = nn.Module.__call__

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return notes.call(original, module, args, kwargs)

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = original  # type: ignore[method-assign]


def _step(func: Any, name: str, args: Any, kwargs: Any) -> tuple[str, Any, Any, Any]:
    """A call as torch.fx would write it: (op, target, args, kwargs)."""
    if name == "__get__":  # a property
        own = getattr(getattr(func, "__self__", None), "__name__", "")
        method, more = _PROPERTIES.get(own, (own, ()))
        return "call_method", method, (*args[:1], *more), {}
    if name in _SWAPPED:
        return "call_function", _SWAPPED[name], (args[1], args[0]), {}
    if name == "__getitem__":
        return "call_function", operator.getitem, args, kwargs
    if args and isinstance(args[0], Tensor) and getattr(Tensor, name, None) is func:
        return "call_method", name, args, kwargs
    return "call_function", func, args, {key: one for key, one in kwargs.items() if key != "_stacklevel"}


def _here() -> str:
    from ._stages import place_of

    return place_of("".join(traceback.format_stack()))


def nodes_by_example(
    net: nn.Module, input_shape: Shape, is_leaf: Callable[[nn.Module, str], bool]
) -> tuple[tuple[fx.Node, ...], Returned]:
    """The nodes of a net as it runs on inputs of a shape, in evaluation mode; which calls returned them."""
    notes = []
    for size in BATCHES:
        generator = torch.Generator().manual_seed(size)
        x = torch.rand(size, *input_shape, generator=generator).to(like(net))
        one = _Notes(net, is_leaf)
        with torch.no_grad(), torch.random.fork_rng(devices=[]), evaluation(net):
            torch.manual_seed(0)
            one.run(x)
        notes.append(one)
    first, second = notes
    _follow_batch(first.graph, second.graph)
    return tuple(first.graph.nodes), first.returned


class _Differ(Exception):
    """Two runs differ by more than the size of the batch."""


def _follow_batch(graph: fx.Graph, other: fx.Graph) -> None:
    """Let whole numbers that differ between two runs be computed from the size of the batch."""
    nodes, others = list(graph.nodes), list(other.nodes)
    twins = dict(zip(nodes, others, strict=False))
    sizes: dict[tuple[int, int], fx.Node] = {}

    def size(a: int, b: int) -> Any:
        slope, rest = divmod(b - a, BATCHES[1] - BATCHES[0])
        if rest:
            raise _Differ
        offset = a - slope * BATCHES[0]
        if (slope, offset) not in sizes:
            with graph.inserting_after(nodes[0]):
                one = graph.call_method("size", (nodes[0], 0))
            for function, number, idle in ((operator.mul, slope, 1), (operator.add, offset, 0)):
                if number != idle:
                    with graph.inserting_after(one):
                        one = graph.call_function(function, (one, number))
            sizes[slope, offset] = one
        return sizes[slope, offset]

    def merge(a: Any, b: Any) -> Any:
        if isinstance(a, fx.Node):
            if twins.get(a) is not b:
                raise _Differ
            return a
        if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
            parts = [merge(one, two) for one, two in zip(a, b, strict=True)]
            return parts if isinstance(a, list) else tuple(parts)
        if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
            return {key: merge(a[key], b[key]) for key in a}
        if isinstance(a, slice) and isinstance(b, slice):
            return slice(*(merge(getattr(a, one), getattr(b, one)) for one in ("start", "stop", "step")))
        if type(a) is int and type(b) is int and a != b:
            return size(a, b)
        if type(a) in (int, float, bool, str) and a != b:
            raise _Differ
        return a

    for node, two in zip(nodes, others, strict=False):
        try:
            same = isinstance(node.target, Given) or node.target == two.target
            if node.op != two.op or not same or len(nodes) != len(others):
                raise _Differ
            node.args, node.kwargs = merge(node.args, two.args), merge(node.kwargs, two.kwargs)
        except _Differ:
            raise BadInput(
                "a net whose steps are the same for every batch",
                got=f"others for {BATCHES[1]} inputs than for {BATCHES[0]} at {node.name!r}",
                do="give the module that does so a rule: obverse.shadow.register_rule(ItsClass, Rule(…))",
            ) from None
