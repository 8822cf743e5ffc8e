"""From the nodes of a torch.fx trace to stages and layers: what each is and reads, what belongs together.

A layer is a map with the norm and activation that follow it, or a join (addition, concatenation) with its
activation; what only passes through (flatten, pooling, dropout) belongs to none.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from .._core import BadInput, printable
from . import _products as products
from . import _structure as st
from ._activations import SelfGate
from ._attention import PAIRS, Attention, Block, PairBlock
from ._graph import (
    Graph,
    Layer,
    Stage,
    Unfollowed,
    attribute,
    call_node,
    describe,
    with_ancestors,
    with_sources,
)
from ._maps import ConvCall, LinearCall
from ._norms import GroupNormCall, LayerNormCall, UnitNorm
from ._reversal import Activation, AnyRule, Norm, Rule, Shape, find_rule

Returned = dict[fx.Node, list[tuple[str, int]]]  # the module calls that returned a node, and how often before


class Builder:
    """Turns the nodes of one fx graph into stages, in order."""

    def __init__(
        self,
        net: nn.Module,
        nodes: tuple[fx.Node, ...],
        returned: Returned,
        fitted: bool = False,
        blocks: Collection[str] = (),
    ) -> None:
        self.net = net
        self.fitted = fitted
        self.blocks = blocks
        self.nodes = nodes
        self.returned = returned
        self.stages: list[Stage] = []
        self.of: dict[fx.Node, int] = {}
        self.pieces: set[fx.Node] = set()
        self.shape_like: set[fx.Node] = set()
        self.dependent: set[fx.Node] = set()
        self.names: dict[str, int] = {}
        self.shapes: dict[Shape, dict[fx.Node, Shape]] = {}  # by the shape of one input, as Graph finds them

    def graph(self) -> Graph:
        for node in self.nodes:
            self._visit(node)
        layers = self._layers()
        self._refuse_unknown(layers)
        aliases = {
            path if call == 0 else f"{path}@{call + 1}": layer.name
            for layer in layers.values()
            for path, call in self.returned.get(layer.output.node, [])
        }
        aliases = {name: layer for name, layer in aliases.items() if name not in layers}
        outputs = {node: tuple(calls) for node, calls in self.returned.items()}
        return Graph(self.net, self.nodes, tuple(self.stages), layers, aliases, outputs, _shapes=self.shapes)

    # From nodes to stages

    def _visit(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            if not self.stages:
                self.dependent.add(node)
                self._add(node, st.Input(), ())
            elif not node.args:
                raise BadInput("a net with one input", got=f"a second one, {node.name!r}", do="wrap the net")
            return
        if node.op in ("get_attr", "output"):
            return
        sources = [source for source in node.all_input_nodes if source in self.dependent]
        if not sources:
            return
        self.dependent.add(node)
        if self._is_about_shape(node, sources):
            self.shape_like.add(node)
        elif node.target in st.PIECES or self._moves_batch(node) or self._is_maximum(node):
            self.pieces.add(node)
        else:
            self._stage(node)

    def _is_about_shape(self, node: fx.Node, sources: list[fx.Node]) -> bool:
        if node.op == "call_method" and node.target in st.SHAPES:
            return True
        if node.target is getattr:
            return node.args[1] in st.FACTS
        if node.target in st.LIKE:
            return True
        made = node.op in ("call_function", "call_method")
        return made and all(source in self.shape_like for source in sources)

    @staticmethod
    def _is_maximum(node: fx.Node) -> bool:
        """Whether this is x.max(dimension), of which the values are taken."""
        along = len(node.args) > 1 or "dim" in node.kwargs
        return node.target in st.MAXIMA and along and len(node.all_input_nodes) == 1

    @staticmethod
    def _moves_batch(node: fx.Node) -> bool:
        """Whether this is qkv.permute(2, 0, …), of which pieces are taken that have the batch first again."""
        order = node.args[1:]
        if node.target not in ("permute", torch.permute) or not order:
            return False
        first: Any = order[0][0] if isinstance(order[0], list | tuple) else order[0]
        taken = all(user.target is operator.getitem or user.target in st.PIECES for user in node.users)
        return bool(first != 0) and taken

    def _tensors(self, node: fx.Node) -> list[fx.Node]:
        """The tensors among a node's arguments that the input decides."""
        flat: list[fx.Node] = []
        fx.map_arg((node.args, node.kwargs), flat.append)
        return [n for n in flat if n in self.dependent and n not in self.shape_like]

    def _stage(self, node: fx.Node) -> None:
        tensors = self._tensors(node)
        if node.op == "call_module":
            module = self.net.get_submodule(str(node.target))
            if node.target in self.blocks:
                block = PairBlock if node.meta.get("pair") else Block
                self._add(node, block(module), tensors, known=len(tensors) == 1)
                return
            if isinstance(module, nn.MultiheadAttention):  # of query, key and value
                value = node.args[2] if len(node.args) > 2 else node.kwargs.get("value")
                tensors = [value] if isinstance(value, fx.Node) and value in tensors else tensors
            self._add(node, module, tensors, known=len(tensors) == 1)
            return
        if node.target in st.CONCATENATIONS:
            self._concatenation(node, tensors)
        elif node.target in st.ATTENTIONS:
            self._attention(node, node.args[2] if len(node.args) > 2 else node.kwargs.get("value"))
        elif node.target in st.MATRIX_PRODUCTS and len(tensors) == 2:
            self._matrix_product(node, tensors)
        elif node.target is operator.getitem and self._is_attention(tensors):
            place: Any = node.args[1]
            self._add(node, nn.Identity(), tensors, known=place == 0)
        elif node.target in st.ADDITIONS | st.SUBTRACTIONS | st.PRODUCTS | st.QUOTIENTS:
            self._arithmetic(node, tensors)
        elif len(tensors) != 1 or isinstance(node.args[0] if node.args else None, (list, tuple)):
            self._refuse(node, tensors)
        elif node.target in st.MAP_CALLS:
            self._map_call(node, tensors)
        elif node.target in st.MATRIX_PRODUCTS and node.args[0] is tensors[0]:
            self._times_weight(node, tensors)
        elif node.target in (torch.amax, "amax"):
            along: Any = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else ())
            along = (along,) if isinstance(along, int) else tuple(along)
            self._add(node, st.Maximum(lambda x: self._call(node, tensors[0], x), along), tensors)
        elif node.target in st.NORM_CALLS:
            self._norm_call(node, tensors)
        elif node.target in st.CLAMPS:
            limits: Any = (node.args[1:], node.kwargs)
            self._add(node, st.Clamp(*limits[0], **limits[1]), tensors)
        elif (module_ := st.module_for(node, st.named_arguments(node))) is not None:
            self._add(node, module_, tensors)
        elif tensors[0] in self.pieces:
            self._piece(node, tensors[0])
        elif node.target in st.LINEAR or (node.target is getattr and node.args[1] in st.TURNED):
            self._add(node, st.Call(lambda x: self._call(node, tensors[0], x)), tensors)
        else:
            self._refuse(node, tensors)

    def _attention(self, node: fx.Node, value: Any) -> None:
        """softmax(q kᵀ) v, whole or its last product: a step from v; queries and keys are not asked."""
        known = isinstance(value, fx.Node) and value in self.of
        self._add(node, Attention(), [value] if known else [], known=known)

    def _matrix_product(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        if (value := products.value_of(node, self.of, self.stages)) is not None:
            self._attention(node, value)
        else:
            self._add(node, products.Product(), tensors, known=all(one in self.of for one in tensors))

    def _times_weight(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        """x @ w with a weight: in × out."""
        weight: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("other")
        if isinstance(weight, fx.Node) and weight not in self.dependent:
            self._add(node, LinearCall(lambda: self._constant(weight).mT, None), tensors)
        else:
            self._refuse(node, tensors)

    def _norm_call(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        names = st.NORM_CALLS[node.target]
        settings = dict(zip(names, node.args[1:], strict=False)) | dict(node.kwargs)
        settings.pop("input", None)
        if any(isinstance(one, fx.Node) and one in self.dependent for one in settings.values()):
            self._refuse(node, tensors)
            return
        eps = settings.get("eps", 1e-5)
        fetch: Any = {name: partial(self._constant, settings.get(name)) for name in ("weight", "bias")}
        if node.target is F.layer_norm:
            shape = self._constant(settings["normalized_shape"])
            call: nn.Module = LayerNormCall(fetch, normalized_shape=tuple(shape), eps=eps)
            self._add(node, call, tensors)
        elif node.target is F.group_norm:
            self._add(node, GroupNormCall(fetch, num_groups=settings["num_groups"], eps=eps), tensors)
        else:
            self._add(node, UnitNorm(lambda x: self._call(node, tensors[0], x)), tensors)

    def _is_attention(self, tensors: list[fx.Node]) -> bool:
        """Whether something is taken from the pair that nn.MultiheadAttention returns."""
        known = len(tensors) == 1 and tensors[0] in self.of
        return known and isinstance(self.stages[self.of[tensors[0]]].module, PAIRS)

    def _concatenation(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        parts: Any = node.args[0] if node.args else node.kwargs.get("tensors")
        given = node.kwargs.get("dim", node.kwargs.get("axis", node.args[1] if len(node.args) > 1 else 0))
        dimension: Any = 1 if node.target is torch.hstack else given
        whole = isinstance(parts, list | tuple) and all(part in self.of for part in parts)
        if whole and dimension != 0:
            self._add(node, st.Concatenate(dimension), tensors)
        elif isinstance(parts, list | tuple) and len(tensors) > 1 and dimension != 0:
            for part in parts:  # a constant among them, as register tokens are, is a source of its own
                if isinstance(part, fx.Node) and part not in self.of and part not in tensors:
                    self._add(part, st.Constant(), ())
            known = all(part in self.of for part in parts)
            self._add(node, st.Concatenate(dimension), parts if known else tensors, known=known)
        elif (
            isinstance(parts, list | tuple) and len(tensors) == 1 and tensors[0] in self.of and dimension != 0
        ):
            # beside constants, as a class token is: affine in the one
            self._add(node, st.Call(lambda x: self._call(node, tensors[0], x)), tensors)
        else:  # the batch grows
            self._refuse(node, tensors)

    def _call(self, node: fx.Node, tensor: fx.Node, x: torch.Tensor) -> Any:
        """A node's function of its one tensor; what it reads of shapes is read off this very tensor."""

        def value(source: fx.Node) -> Any:
            if source is tensor:
                return x
            if source in self.shape_like or source in self.pieces:
                return call_node(self.net, source, value)
            if source in self.dependent:
                for shapes in self.shapes.values():  # only a shape is read off it
                    if source in shapes and shapes.get(tensor) == tuple(x.shape[1:]):
                        return x.new_empty(1).expand(len(x), *shapes[source])
                raise BadInput(
                    f"{node.name!r} to depend on the shape of its own input only",
                    got=f"the shape of {source.name!r}",
                    do="write the size as a number",
                )
            return self._constant(source)

        return call_node(self.net, node, value)

    def _constant(self, argument: Any) -> Any:
        if not isinstance(argument, fx.Node):
            return argument
        if argument.op == "get_attr":
            return attribute(self.net, str(argument.target)).detach()
        return call_node(self.net, argument, self._constant)

    def _piece(self, node: fx.Node, source: fx.Node) -> None:
        tensor = self._tensors(source)[0]
        while tensor in self.pieces:
            tensor = self._tensors(tensor)[0]

        def cut(x: torch.Tensor) -> Any:
            pieces = self._call(source, tensor, x)
            return pieces[node.args[1]]

        if source.target in st.MAXIMA:
            along = source.kwargs.get("dim", source.args[1] if len(source.args) > 1 else 0)
            known = isinstance(along, int) and node.args[1] in (0, "values")
            self._add(node, st.Maximum(cut, (along if isinstance(along, int) else 1,)), [tensor], known=known)
        else:
            self._add(node, st.Call(cut), [tensor])

    def _map_call(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        settings = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
        settings.pop("input")
        weight, bias = settings.pop("weight"), settings.pop("bias", None)

        def fetch() -> Any:
            return self._constant(weight)

        offset = None if bias is None else lambda: self._constant(bias)
        if node.target is F.linear:
            self._add(node, LinearCall(fetch, offset), tensors)
        else:
            defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}
            self._add(node, ConvCall(fetch, offset, **(defaults | settings)), tensors)

    def _arithmetic(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        left, right = node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("other")
        if len(tensors) == 1:
            self._with_constant(node, tensors[0], left, right)
        elif node.target in st.ADDITIONS and tensors[0] is tensors[1] and "alpha" not in node.kwargs:
            self._add(node, st.Factor(lambda: 2.0), tensors[:1])
        elif node.target in st.ADDITIONS | st.SUBTRACTIONS and "alpha" not in node.kwargs:
            signs = (1, -1 if node.target in st.SUBTRACTIONS else 1)
            self._add(node, st.Add(signs), tensors)
        elif node.target in st.PRODUCTS:
            self._product(node, tensors)
        else:
            self._refuse(node, tensors)

    def _with_constant(self, node: fx.Node, tensor: fx.Node, left: Any, right: Any) -> None:
        other = right if left is tensor else left
        if isinstance(other, fx.Node) and other in self.dependent:  # a number read off a shape
            scales = node.target in st.PRODUCTS or (node.target in st.QUOTIENTS and left is tensor)
            self._add(node, st.Call(lambda x: self._call(node, tensor, x)), [tensor], known=scales)
            return
        if node.target in st.ADDITIONS or (node.target in st.SUBTRACTIONS and left is tensor):
            sign = -1 if node.target in st.SUBTRACTIONS else 1
            self._add(node, st.Shift(lambda: sign * self._constant(other)), [tensor])
        elif node.target in st.PRODUCTS:
            self._add(node, st.Factor(lambda: self._constant(other)), [tensor])
        elif node.target in st.QUOTIENTS and left is tensor and "rounding_mode" not in node.kwargs:
            self._add(node, st.Factor(lambda: 1 / self._constant(other)), [tensor])
        else:
            self._refuse(node, [tensor])

    def _product(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        """x·g(x) entry by entry is an activation; else the factor computed from the other is the gate."""
        for value, gate in (tensors, tensors[::-1]):
            chain = products.entrywise(value, gate, self.of, self.stages)
            if chain is not None:
                self._add(node, SelfGate(chain), [value])
                return
        pairs = (tensors, tensors[::-1])
        computed = [(v, g) for v, g in pairs if g is not v and v in with_ancestors({g})]
        gates = [(v, g) for v, g in pairs if products.is_gate(g, self.of, self.stages)]
        active = [(v, g) for v, g in pairs if products.is_activated(g, self.of, self.stages)]
        for value, gate in (*computed, *gates, *active):
            if value in self.of and gate in self.of:
                self._add(node, st.Gate(), [value], gate=self.of[gate])
                return
        self._add(node, products.Product(), tensors, known=all(one in self.of for one in tensors))

    def _refuse(self, node: fx.Node, tensors: list[fx.Node]) -> None:
        """A step that nobody knows how to reverse; an error only if a layer stands above it."""
        self._add(node, nn.Identity(), tensors, known=False)

    def _add(
        self, node: fx.Node, module: nn.Module, tensors: Any, known: bool = True, gate: int | None = None
    ) -> None:
        rule: AnyRule | None = find_rule(module) if known else None
        inputs = tuple(self.of[tensor] for tensor in tensors if tensor in self.of)
        name = self._name(node)
        self.of[node] = len(self.stages)
        self.stages.append(Stage(len(self.stages), name, node, module, rule, inputs, gate))

    def _name(self, node: fx.Node) -> str:
        """The module's own name; of a function call that of its node. Later uses get a number."""
        name = str(node.target) if node.op == "call_module" else node.name
        if node.op == "call_function" and node.target in st.MAP_CALLS:
            owner = next(reversed(node.meta.get("nn_module_stack", {})), "")
            name = owner if owner and owner not in self.names else name
        self.names[name] = self.names.get(name, 0) + 1
        return name if self.names[name] == 1 else f"{name}@{self.names[name]}"

    # From stages to layers

    def _layers(self) -> dict[str, Layer]:
        live = self._live()
        users: dict[int, list[Stage]] = {}
        for stage in live:
            for source in stage.inputs:
                users.setdefault(source, []).append(stage)
        layers: dict[str, Layer] = {}
        for stage in live:
            joins = isinstance(stage.module, st.Add | st.Concatenate) and len(stage.inputs) > 1
            if not stage.is_map and not joins:
                continue
            norms: list[Stage] = []
            output = stage
            while len(users.get(output.index, [])) == 1:
                above = users[output.index][0]
                belongs = Activation if joins else (Norm, Activation)
                if not isinstance(above.rule, belongs) and not isinstance(above.module, st.Shift):
                    break
                output = above
                if isinstance(above.rule, Activation):
                    break
                norms.append(above)
            name = stage.name if stage.is_map else self._join_name(output, layers)
            layers[name] = Layer(name, stage, tuple(norms), output)
        if not any(layer.is_map for layer in layers.values()):
            raise BadInput(
                "a net with at least one linear layer or convolution",
                got=type(self.net).__name__,
                do="pass the whole net",
            )
        return layers

    def _live(self) -> list[Stage]:
        """The stages between input and output, without those that only compute gates or nothing."""
        results = [self.of[node] for node in self.nodes[-1].all_input_nodes if node in self.of]
        found = with_sources(self.stages, results)
        return [self.stages[index] for index in sorted(found)]

    def _join_name(self, output: Stage, taken: dict[str, Layer]) -> str:
        """The innermost module that is no leaf and returns this, else the node."""
        leaf = {str(node.target) for node in self.nodes if node.op == "call_module"}
        for path, call in self.returned.get(output.node, []):
            name = path if call == 0 else f"{path}@{call + 1}"
            if path and path not in leaf and name not in taken:
                return name
        return output.name if output.name not in taken else output.node.name

    def _refuse_unknown(self, layers: dict[str, Layer]) -> None:
        top = max(layer.output.index for layer in layers.values())
        for stage in self._live():
            if stage.index > top:
                break
            lacks = isinstance(stage.rule, Rule) and not stage.rule.adjoint and not self.fitted
            if not stage.known or lacks:
                raise _unknown(stage)


def place_of(stack: str | None) -> str:
    """Where in the net's code a step was written, as " in file.py, line 3"; empty where that is not known."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', stack or "")
    own = [(file, line) for file, line in frames if not _LIBRARY.search(file)]
    return f" in {printable(Path(own[-1][0]).name)}, line {own[-1][1]}" if own else ""


_LIBRARY = re.compile(r"[/\\](torch|obverse[/\\]shadow)[/\\]|^<")


def _unknown(stage: Stage) -> Unfollowed:
    if stage.node.op == "call_module":
        kind = type(stage.module).__name__
        way = f"obverse.shadow.register_rule({kind}, Rule(reverse=…))"
    else:
        way = "put it into a module, say Mine, and obverse.shadow.register_rule(Mine, Rule(reverse=…))"
    return Unfollowed(
        "steps that can be reversed below every layer",
        got=f"{stage.name!r}, a {describe(stage)}{place_of(stage.node.stack_trace)}"
        if stage.node.op == "call_module"
        else f"{stage.name!r}, a {describe(stage)} (torch.fx node {stage.node.name})"
        + place_of(stage.node.stack_trace),
        do=(
            'use Shadow(net, reverse="fitted"), which has a rule for it'
            if isinstance(stage.rule, Rule)
            else f"register a rule for it: {way}"
        ),
        stack=stage.node.meta.get("nn_module_stack", ()),
    )
