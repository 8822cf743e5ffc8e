"""From any feedforward module to a Graph of stages, by torch.fx. Not for running it (see graph, generate)."""

from __future__ import annotations

import inspect
import traceback
from collections import OrderedDict
from contextlib import nullcontext
from typing import Any

import torch
from torch import fx, nn

from .._core import BadInput
from ._example import nodes_by_example
from ._graph import PLAIN, Graph, Unfollowed, evaluation
from ._reversal import Shape, find_rule
from ._stages import Builder, Returned, place_of


class _Tracer(fx.Tracer):
    """Stops at modules that have a rule, and remembers which module call returned which node."""

    def __init__(self) -> None:
        super().__init__()
        self.returned: Returned = {}
        self.record_stack_traces = True  # errors name the line
        self._calls: dict[str, int] = {}

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        if find_rule(module) is not None:
            return True
        overrides = any(isinstance(module, kind) for kind in (nn.Linear, nn.modules.conv._ConvNd))
        return False if overrides else super().is_leaf_module(module, name)

    def call_module(self, module: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        path = self.path_of_module(module)
        call = self._calls.get(path, 0)
        self._calls[path] = call + 1
        result = super().call_module(module, forward, args, kwargs)
        if isinstance(result, fx.Proxy):
            self.returned.setdefault(result.node, []).append((path, call))
        return result


def trace(
    net: nn.Module, *, evaluate: bool = True, fitted: bool = False, input_shape: Shape | None = None
) -> Graph:
    """The graph of a net in evaluation mode, or in the mode it is in; an error names the first step below a
    layer that cannot be reversed, by the transpose or by the `fitted` reverse.

    Where torch.fx cannot follow the net's code, and the shape of one input is known, the net is run on an
    example instead, and its steps are noted.
    """
    if any(hasattr(module, "_orig_mod") for module in net.modules()):
        raise BadInput(
            "a module that torch.compile has not replaced",
            got=type(net).__name__,
            do="make the Shadow or ShadowLoss of the module itself, and compile after that",
        )
    root = net
    if find_rule(net) is not None:  # a single layer: give it a name and something to be in
        root = nn.Sequential(OrderedDict({type(net).__name__: net}))
        root.training = net.training
    graph: Graph | None = None
    try:
        tracer = _Tracer()
        nodes = _fx_nodes(root, tracer, evaluate)
        graph = Builder(root, nodes, tracer.returned, fitted).graph()
        if evaluate and input_shape is not None:
            graph.shapes(tuple(input_shape))  # finds out a trace that is not the net
        return graph
    except BadInput as error:
        found = None if not evaluate or input_shape is None else _by_example(root, input_shape, fitted)
        if isinstance(found, Graph):
            return found
        if graph is not None:  # of another shape it may be right
            return graph
        raise found if isinstance(found, BadInput) and isinstance(error, _NoTrace) else error from None


class _NoTrace(BadInput):
    """torch.fx cannot follow the code."""


def _by_example(net: nn.Module, input_shape: Shape, fitted: bool) -> Graph | BadInput | None:
    """The graph of a net that was run on an example; the error, or nothing where it does not run."""
    tracer = _Tracer()
    blocks: set[str] = set()

    def is_leaf(module: nn.Module, path: str) -> bool:
        return path in blocks or tracer.is_leaf_module(module, path)

    first: BadInput | None = None
    while True:
        try:
            nodes, returned = nodes_by_example(net, tuple(input_shape), is_leaf)
            _undo_stacks(nodes)
            graph = Builder(net, tuple(nodes[0].graph.nodes), returned, fitted, blocks).graph()
            graph.shapes(tuple(input_shape))
        except BadInput as error:
            first = first or error
            more = _block_around(net, error, blocks) if fitted and isinstance(error, Unfollowed) else set()
            if not more:
                return first
            blocks |= more
        except Exception:  # the net's own code runs here: what it says of the shape, running the net will say
            return first
        else:
            return graph


def _block_around(net: nn.Module, error: Unfollowed, blocks: set[str]) -> set[str]:
    """The innermost module around a step that the fitted reverse cannot take, and all of its kind, to be
    fitted as a whole; none that has more than half of the net's weights."""
    path = next((one for one in reversed(error.stack) if one and one not in blocks), "")
    if not path:
        return set()
    block = net.get_submodule(path)
    own, whole = (sum(one.numel() for one in module.parameters()) for module in (block, net))
    if 2 * own > whole:
        return set()
    if isinstance(block, nn.Sequential | nn.ModuleList | nn.ModuleDict):
        return {path}
    return {path} | {name for name, one in net.named_modules() if name and type(one) is type(block)}


def _fx_nodes(net: nn.Module, tracer: _Tracer, evaluate: bool) -> tuple[fx.Node, ...]:
    fixed = {
        name: parameter.default
        for name, parameter in list(inspect.signature(net.forward).parameters.items())[1:]
        if parameter.default is not inspect.Parameter.empty
    }
    try:
        with evaluation(net) if evaluate else nullcontext():
            nodes = tuple(tracer.trace(net, concrete_args=fixed or None).nodes)
    except BadInput:
        raise
    except Exception as error:  # the net's own code runs here: anything can come out of it
        where = next(reversed(tracer.module_stack), "") if getattr(tracer, "module_stack", None) else ""
        inside = f" in {where!r}" if where else ""
        raise _NoTrace(
            "a net that torch.fx can trace",
            got=f"{type(error).__name__}{inside}{_place(error)}: {_first_sentence(error)}",
            do="say the shape of one input, Shadow(net, input_shape=…), with which it is run on an example "
            "instead; or give the module that branches on its input a rule, which makes it one step: "
            "obverse.shadow.register_rule(ItsClass, Rule(reverse=…))",
        ) from error

    _undo_in_place(net, nodes)
    _undo_stacks(nodes)
    return tuple(nodes[0].graph.nodes) if nodes else nodes


def _undo_stacks(nodes: tuple[fx.Node, ...]) -> None:
    """torch.stack as a concatenation of tensors with a dimension more."""
    for node in nodes:
        if node.op != "call_function" or node.target is not torch.stack:
            continue
        parts: Any = node.args[0] if node.args else node.kwargs.get("tensors")
        dimension = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else 0)
        if not isinstance(parts, list | tuple):
            continue
        with node.graph.inserting_before(node):
            longer = [node.graph.call_method("unsqueeze", (part, dimension)) for part in parts]
        for one in longer:
            one.stack_trace, one.meta = node.stack_trace, dict(node.meta)
        node.target, node.args, node.kwargs = torch.cat, (longer, dimension), {}


def _place(error: Exception) -> str:
    return place_of("".join(traceback.format_tb(error.__traceback__)))


def _first_sentence(error: Exception) -> str:
    return str(error).split("\n")[0].split(". ")[0][:200]


def _undo_in_place(net: nn.Module, nodes: tuple[fx.Node, ...]) -> None:
    """Let what reads a tensor after a step has changed it in place read that step: the same computation, with
    nothing in place."""
    order = {node: index for index, node in enumerate(nodes)}
    for node in nodes:
        source = node.args[0] if node.args else None
        if not isinstance(source, fx.Node) or not _works_in_place(net, node):
            continue
        for user in list(source.users):
            if order[user] > order[node]:
                user.replace_input_with(source, node)


def _works_in_place(net: nn.Module, node: fx.Node) -> bool:
    if node.op == "call_module":
        return getattr(net.get_submodule(str(node.target)), "inplace", False) is True
    if node.op == "call_method":
        name = str(node.target)
        return name.endswith("_") and not name.endswith("__")
    return node.op == "call_function" and (node.kwargs.get("inplace") is True or node.target in PLAIN)
