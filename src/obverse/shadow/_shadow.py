"""The shadow of a whole net: infer upwards, generate downwards. Not for training: see loss.

Stacked layers can be sampled but have no closed density (eq. 14); for one layer's exact distribution
see distribution.ShadowLayer. With reverse="fitted" the way down is not the theory's: see fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Literal, get_args

import torch
from torch import Tensor, fx, nn

from .._core import BadInput, Source, as_inputs
from . import _adjust as adjust
from ._calibrate import Calibration, calibrate_layer, channel_means, input_floor
from ._fitted import FEWEST_INPUTS, MOST_INPUTS, Fits, Fitted
from ._generate import Generation
from ._graph import Graph, Layer, like
from ._level import Level, WayDown, calibrate_level
from ._maps import LinearCall
from ._refine import refine_towards
from ._reversal import Shape, check_keep
from ._statistics import REFERENCES, Statistics
from ._switches import infer_with_switches
from ._trace import trace

Scale = Literal["theory"] | float | Mapping[str, float]
Keep = float | Mapping[str, float]
Reverse = Literal["transpose", "fitted"]
LEVEL_ROWS = 20  # inputs on which the level of a layer is found: it is one number


class Shadow:
    """The generative twin of a net: x̃ = r(α₁W₁ r(α₂W₂ ⋯ h)) with transposed weights.

    The net's parameters are read at every call, so a Shadow made before training follows the training; what
    `calibrate` found belongs to the weights of that time. The net is never changed, nor its mode.

    Args:
        net: any feedforward module that torch.fx can trace: linear layers, convolutions, pooling, norms,
            activations, residual additions, concatenations, gates, and whatever `register_rule` has added.
        input_shape: shape of one input, e.g. (1, 28, 28). `of` takes it from x; `sample` needs it, except in
            nets that begin with a linear layer: there it returns flat vectors without it. So do nets that ask
            about the sizes of their input, or branch on it: they are followed as they run on an example.
        signed: whether inputs may be negative; then the last ReLU of the generation is left out. By default
            they may not, until `calibrate` finds that they are.
        floor: the least value that an input can have, one number or one a channel (−mean/std for normalised
            pixels): the normalisation treated as a layer and reversed. In place of `signed`.
        scale: α at keep = 1, divided by keep where something is dropped: "theory" (2/(n s²)), one
            number, or a number for each of `maps`. `calibrate` replaces it.
        reverse: "transpose" is the theory's, and what "the shadow" means. "fitted" is another generative
            model: each step down is a linear map that ridge regression found on the inputs of `calibrate`,
            which has to be called first. It shows what h contains, not what the weights generate: nets with
            random or shuffled weights give good images, too.
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        input_shape: Sequence[int] | None = None,
        signed: bool | None = None,
        floor: float | Sequence[float] | None = None,
        scale: Scale = "theory",
        reverse: Reverse = "transpose",
    ) -> None:
        if reverse not in get_args(Reverse):
            raise BadInput(f"reverse out of {get_args(Reverse)}", got=repr(reverse), do="pass one of these")
        if signed is not None and floor is not None:
            raise BadInput("signed or floor", got="both", do="give floor alone for inputs with a least value")
        self.net = net
        self.reverse = reverse
        self.input_shape = None if input_shape is None else tuple(input_shape)
        self.graph: Graph = trace(net, fitted=reverse == "fitted", input_shape=self.input_shape)
        self.signed = bool(signed)
        self.floor = None if floor is None else torch.as_tensor(floor, dtype=torch.float64)
        self._input_is_given = signed is not None or floor is not None
        self._statistics = Statistics(self.graph)
        self.scale = scale

    @property
    def scale(self) -> Scale:
        return self._scale

    @scale.setter
    def scale(self, scale: Scale) -> None:
        """Also forgets the levels that `calibrate` found for other scales, and the fits."""
        if self.reverse == "fitted" and scale != "theory":
            raise BadInput(
                "no scale for the fitted reverse, which has none", got=repr(scale), do="leave it out"
            )
        self._scale = self._check_scale(scale)
        self._fits = Fits()
        self._levels: dict[str, Level] = {}
        self._level_inputs: Tensor | None = None
        self._mean = torch.zeros(())

    def __repr__(self) -> str:
        how = "Fitted shadow" if self.reverse == "fitted" else "Shadow"
        return f"{how} of {type(self.net).__name__} with layers {', '.join(self.layers)}"

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the trace, which is made again from the net, so that copies and pickles work; fits
        are made again from the calibration inputs."""
        left_out = ("graph", "_statistics", "_fits")
        kept = {name: value for name, value in vars(self).items() if name not in left_out}
        return kept | {"reference": self._statistics.reference, "inputs": self._fits.inputs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        reference, inputs = state.pop("reference"), state.pop("inputs")
        vars(self).update(state)
        self._fits = Fits(inputs)
        self.graph = trace(self.net, fitted=self.reverse == "fitted", input_shape=self.input_shape)
        self._statistics = Statistics(self.graph, reference)

    @property
    def is_calibrated(self) -> bool:
        """Whether `calibrate` has found scales, or inputs to fit on."""
        return self._level_inputs is not None or self._fits.inputs is not None

    def like(self, net: nn.Module) -> Shadow:
        """A Shadow of another net of the same form, set up as this one is."""
        other = Shadow(net, input_shape=self.input_shape, scale=self.scale, reverse=self.reverse)
        other._fits = Fits(self._fits.inputs)
        other.signed, other.floor, other._input_is_given = self.signed, self.floor, self._input_is_given
        other._statistics.reference = self._statistics.reference
        other._levels, other._level_inputs, other._mean = dict(self._levels), self._level_inputs, self._mean
        return other

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers it can generate from, hidden and output, in forward order."""
        return tuple(self.graph.layers)

    @property
    def maps(self) -> tuple[str, ...]:
        """Those layers that have weights, and so a scale; the others are joins (sums, concatenations)."""
        return tuple(name for name, layer in self.graph.layers.items() if layer.is_map)

    @property
    def default_layer(self) -> str:
        """The highest hidden layer (the paper's h̃2); the output in a net without hidden layers."""
        *others, last = self.graph.layers.values()
        below = self.graph.below(last.stage)
        return next((layer.name for layer in reversed(others) if layer.output.index in below), last.name)

    def layer(self, name: str | int | None = None) -> Layer:
        """One layer by its name or by that of a module that returns the same, the default layer for None."""
        name = self.default_layer if name is None else str(name)  # a number: of a Sequential
        found = self.graph.layers.get(self.graph.aliases.get(name, name))
        if found is None:
            raise BadInput(f"a layer out of {', '.join(self.layers)}", got=repr(name), do="pass one of these")
        return found

    def infer(self, x: Tensor, layer: str | int | None = None) -> Tensor:
        """h of a layer for inputs x, as in evaluation mode: behind norm and activation, without dropout."""
        node = self.layer(layer).output.node
        x = as_inputs(x, self.net)
        self.graph.shapes(tuple(x.shape[1:]))  # the first time this finds out a trace that is not the net
        return self.graph.infer_with_gradient(x, {node})[node]

    @torch.no_grad()
    def hidden(self, x: Tensor, layers: Sequence[str | int] | None = None) -> dict[Any, Tensor]:
        """h of several layers (all by default) from one pass over x."""
        chosen = {name: self.layer(name).output.node for name in (self.layers if layers is None else layers)}
        x = as_inputs(x, self.net)
        self.graph.shapes(tuple(x.shape[1:]))
        found = self.graph.infer(x, set(chosen.values()))
        return {name: found[node] for name, node in chosen.items()}

    @torch.no_grad()
    def sample(
        self,
        h: Tensor,
        layer: str | int | None = None,
        keep: Keep = 1.0,
        generator: Source = None,
        *,
        input_shape: Sequence[int] | None = None,
        refine: int = 0,
    ) -> Tensor:
        """One input x̃ for each row of h, generated from a layer down (eq. 14).

        A function of h, the weights and fresh randomness only. `keep` is ρ, one for all layers or one a
        layer, by the name of the layer generated *from*. `refine` steps then lower ‖h(x̃) − h‖² by gradient.
        """
        top = self.layer(layer)
        h = as_inputs(h, self.net, "h")
        shadow = self._sample(h, top, keep, generator, self._shape_for(input_shape))
        return self._refined(shadow, h, top, refine)

    def _sample(
        self,
        h: Tensor,
        top: Layer,
        keep: Keep,
        generator: Source,
        input_shape: Shape,
        scaled: bool = True,
        switches: Mapping[int, Tensor] | None = None,
    ) -> Tensor:
        _check_hidden(h, top, self.graph.shapes(input_shape)[top.output.node])
        keep = self.check_keep(keep)
        if self.reverse == "fitted":
            if switches is not None:
                raise BadInput(
                    "no switches with the fitted reverse",
                    got="switches=True",
                    do="use the transpose, or none",
                )
            x = self.fitted(top.name, input_shape).down(h, partial(_keep_of, keep), generator)
            return self._at_input(x)
        level = self.level(top.name) if scaled else Level()
        x = self._generation(input_shape, keep, generator, scaled, switches, level.theory).down(top, h)
        if level != Level():
            x = level.factor * x + (_by_channel(self._mean, x) if level.centred else 0.0)
        return self._at_input(x)

    def _refined(self, x: Tensor, h: Tensor, top: Layer, steps: int) -> Tensor:
        if steps < 0:
            raise BadInput("refine ≥ 0 steps", got=steps, do="use 0 for the shadow as it is")
        if steps == 0:
            return x
        node = top.output.node
        return refine_towards(
            lambda z: self.graph.infer_with_gradient(z, {node})[node], x, h, steps, self._at_input
        )

    @torch.no_grad()
    def of(
        self,
        x: Tensor,
        layer: str | int | None = None,
        keep: Keep = 1.0,
        generator: Source = None,
        *,
        smooth: bool | int = False,
        match_norm: bool = False,
        refine: int = 0,
        switches: bool = False,
    ) -> Tensor:
        """The shadow of x: x → h → x̃, shaped like x.

        `smooth` takes 3×3 means, once or as often as it says. `match_norm` gives each x̃ the norm of its x.
        `refine` steps then lower ‖h(x̃) − h‖² by gradient. `switches` puts the maxima of max pooling back
        where x had them: clearer pictures, but no longer a function of h.
        """
        top = self.layer(layer)
        x = as_inputs(x, self.net)
        self.graph.shapes(tuple(x.shape[1:]))  # first: an x that does not fit gets a sentence
        h, positions = infer_with_switches(self.graph, x, top) if switches else (self.infer(x, layer), None)
        return self._from_hidden(x, h, layer, keep, generator, smooth, match_norm, refine, positions)

    @torch.no_grad()
    def from_hidden(
        self,
        x: Tensor,
        h: Tensor,
        layer: str | int | None = None,
        keep: Keep = 1.0,
        generator: Source = None,
        *,
        smooth: bool | int = False,
        match_norm: bool = False,
        refine: int = 0,
    ) -> Tensor:
        """`of` for a known h; of x only the shape and, with match_norm, the norms are used."""
        x, h = as_inputs(x, self.net), as_inputs(h, self.net, "h")
        return self._from_hidden(x, h, layer, keep, generator, smooth, match_norm, refine, None)

    def direction(self, x: Tensor, layer: str | int | None = None) -> Tensor:
        """The shadow of x up to a positive factor a row, with gradients to the weights and to x.

        The other methods give data; this one is for losses on the shadow itself: ShadowLoss(denoise=…). For
        chains alone: where branches join, scales that depend on the weights decide how much of each is taken,
        and these have no gradients here.
        """
        if self.reverse == "fitted":
            raise BadInput(
                "the transpose for a loss on the shadow itself",
                got="reverse='fitted', whose maps are data",
                do="leave denoise out, or use reverse='transpose'",
            )
        if not self.graph.is_chain:
            raise BadInput(
                "a net without branches for a loss on the shadow itself",
                got="one with branches",
                do="leave denoise out, or use a chain of layers",
            )
        x = as_inputs(x, self.net)
        h = self.infer(x, layer)
        return self._sample(h, self.layer(layer), 1.0, None, tuple(x.shape[1:]), scaled=False)

    def _from_hidden(
        self,
        x: Tensor,
        h: Tensor,
        layer: str | int | None,
        keep: Keep,
        generator: Source,
        smooth: bool | int,
        match_norm: bool,
        refine: int,
        switches: Mapping[int, Tensor] | None,
    ) -> Tensor:
        top = self.layer(layer)
        if len(h) != len(x):
            raise BadInput("one h for each x", got=f"{len(h)} and {len(x)}", do="pass them in the same order")
        shadow = self._sample(
            h, top, keep, generator, tuple(x.shape[1:]), scaled=not match_norm, switches=switches
        )
        if smooth:
            image = self.input_shape if self.input_shape is not None else x.shape[1:]
            shadow = shadow.reshape(len(x), *image)
            for _ in range(int(smooth)):
                shadow = adjust.smooth(shadow)
            shadow = shadow.reshape(x.shape)
        if match_norm:
            shadow = adjust.match_norm(shadow, x)
            shadow = shadow if self.floor is None else self._at_input(shadow)  # a floor does not scale
        return self._refined(shadow, h, top, refine)

    @torch.no_grad()
    def calibrate(self, x: Tensor) -> Calibration:
        """Choose each layer's scale so that inference of the shadow gives h back; keeps and returns it.

        Map by map on the h that x gives, at keep = 1. Also reports the best *uniform* threshold, the
        one number that the theory puts in place of the net's offsets (Theorem 2.3). Where x has negative
        values and neither `signed` nor `floor` was given, chooses between them: a floor where each channel
        has a least value that comes up again and again (normalised pixels), else signed. Norms and gates
        that need statistics get them from x from now on.

        With reverse="fitted" it fits the way down from the default layer, and says how well each step does on
        held-out inputs; the ways from other layers are fitted on the same x at first use (`fitted`).
        """
        x = as_inputs(x, self.net)
        if len(x) == 0:
            raise BadInput("inputs to calibrate on", got="an empty batch", do="pass some training data")
        if not bool(x.isfinite().all()):
            raise BadInput(
                "finite inputs to calibrate on", got="NaN or infinity among them", do="look at them"
            )
        self.input_shape = self.input_shape or tuple(x.shape[1:])
        if not self._input_is_given:
            self.signed, self.floor = bool((x < 0).any()), None
            if self.signed and (floor := input_floor(x)) is not None:
                self.signed, self.floor = False, floor
        self._statistics.reference = x[: 2 * REFERENCES].detach().clone()
        floors = None if self.floor is None else tuple(self.floor.flatten().tolist())
        if self.reverse == "fitted":
            if len(x) < FEWEST_INPUTS:
                raise BadInput(
                    f"at least {FEWEST_INPUTS} inputs to fit the way down on, better 50 or more",
                    got=f"{len(x)}",
                    do="pass more of the training data",
                )
            self._fits = Fits(x[:MOST_INPUTS].detach().clone())
            found = self.fitted()
            return Calibration((), self.signed, floors, found.steps, found.adjoint, found.inputs)
        generation = self._generation(tuple(x.shape[1:]))
        hidden = self.hidden(x, self.maps)
        for name, h in hidden.items():
            if not bool(h.isfinite().all()):
                raise BadInput(
                    "finite activations to calibrate on",
                    got=f"NaN or infinity at {name!r}",
                    do="look at the weights and the inputs",
                )
        results = [calibrate_layer(self.layer(name), h, generation) for name, h in hidden.items()]
        self.scale = {result.layer: result.scale for result in results}
        self._level_inputs, self._mean = x[:LEVEL_ROWS].detach().clone(), channel_means(x.detach())
        return Calibration(tuple(results), self.signed, floors)

    def fitted(self, layer: str | int | None = None, input_shape: Shape | None = None) -> Fitted:
        """The fitted way down from a layer; made on the calibration inputs when it is first asked for."""
        shape = self._shape_for(None) if input_shape is None else input_shape
        return self._fits.way(self.graph, self.layer(layer), shape)

    def _value(self, node: fx.Node, x: Tensor) -> Tensor:
        return self.graph.infer(x, {node})[node]

    def level(self, layer: str | int | None = None) -> Level:
        """What the way down from a layer ends with: nothing before `calibrate`, then found at first use.

        The best scales of single layers shrink what they cannot recover, and shrunk things add up; and
        biases, which generation leaves out, are missed where the data has a mean far from 0. Hence one
        factor, and the mean of each channel where that helps.
        """
        top = self.layer(layer)
        if self._level_inputs is None:
            return Level()
        if top.name not in self._levels:
            x, node = self._level_inputs.to(like(self.net)), top.output.node
            h = self._value(node, x)

            def way(theory: bool) -> WayDown:
                down = self._generation(tuple(x.shape[1:]), theory=theory).down(top, h)
                mean = _by_channel(self._mean, x)
                return WayDown(partial(self._value, node), down, h, x, self._at_input, mean, theory)

            own, theory = way(False), way(True)
            # In a chain other scales differ by a factor alone, which is what the level finds.
            ways = (own,) if self.graph.is_chain_below(top.output) else (own, theory)
            self._levels[top.name] = calibrate_level(ways, theory)
        return self._levels[top.name]

    def _generation(
        self,
        input_shape: Shape,
        keep: Keep = 1.0,
        generator: Source = None,
        scaled: bool = True,
        switches: Mapping[int, Tensor] | None = None,
        theory: bool = False,
    ) -> Generation:
        def scale_of(layer: Layer) -> float | None:
            # Without joins every scale cancels if the norm is matched afterwards: do not compute it.
            if not scaled and self.graph.is_homogeneous and self.floor is None:
                return None
            if theory or isinstance(self.scale, str):
                return generation.theory_scale(layer)
            return self.scale[layer.name] if isinstance(self.scale, Mapping) else self.scale

        generation = Generation(
            self.graph,
            self._statistics,
            input_shape,
            scale=scale_of,
            keep=partial(_keep_of, keep),
            at_input=self._at_input,
            input_slope=1.0 if self.signed or self.floor is not None else 0.0,
            generator=generator,
            switches=switches,
        )
        return generation

    def _at_input(self, x: Tensor) -> Tensor:
        """What the last step down ends with: ReLU, floor or nothing."""
        if self.floor is not None:
            return torch.maximum(x, _by_channel(self.floor, x))
        return x if self.signed else x.relu()

    def _shape_for(self, input_shape: Sequence[int] | None) -> Shape:
        """The shape of one input: as given, or flat where the net begins with a linear layer."""
        shape = input_shape or self.input_shape
        if shape is not None:
            return tuple(shape)
        first = next(layer.stage for layer in self.graph.layers.values() if layer.is_map)
        if isinstance(first.module, nn.Linear | LinearCall):
            return (first.module.weight.shape[1],)
        raise BadInput(
            "the shape of one input, to generate without one",
            got="none",
            do="Shadow(net, input_shape=(3, 32, 32)) or sample(…, input_shape=…)",
        )

    def check_keep(self, keep: Keep) -> Keep:
        """keep unchanged, or an error that says what is wrong with it."""
        for one in keep.values() if isinstance(keep, Mapping) else [keep]:
            check_keep(one)
        unknown = set(keep) - set(self.maps) if isinstance(keep, Mapping) else set()
        if unknown:
            raise BadInput(
                f"keep for layers out of {', '.join(self.maps)}", got=sorted(unknown), do="check the names"
            )
        return keep

    def _check_scale(self, scale: Scale) -> Scale:
        numbers = scale.values() if isinstance(scale, Mapping) else [scale]
        if scale != "theory" and not all(isinstance(a, (int, float)) and 0 < a < inf for a in numbers):
            raise BadInput("scale 'theory' or numbers > 0", got=repr(scale), do="leave it out or calibrate")
        if isinstance(scale, Mapping) and set(scale) != set(self.maps):
            raise BadInput(
                f"a scale for each of {', '.join(self.maps)}",
                got=sorted(scale),
                do="name each layer once",
            )
        return scale


def _keep_of(keep: Keep, name: str) -> float:
    return keep.get(name, 1.0) if isinstance(keep, Mapping) else keep


def _by_channel(values: Tensor, x: Tensor) -> Tensor:
    """One number, or one a channel, shaped to meet x."""
    flat = values.flatten().to(x)
    if flat.numel() == 1:
        return flat[0]
    if x.dim() < 3 or x.shape[1] != flat.numel():
        raise BadInput(
            f"inputs with {flat.numel()} channels, as there are floors or means",
            got=f"shape {tuple(x.shape)}",
            do="pass images as N × channels × …, or one floor for all",
        )
    return flat.reshape(-1, *[1] * (x.dim() - 2))


def _check_hidden(h: Tensor, layer: Layer, shape: Shape) -> None:
    if h.dim() == 0 or tuple(h.shape[1:]) != shape:
        one = f"with {shape[0]} entries a row" if len(shape) == 1 else f"of shape {('N', *shape)}"
        raise BadInput(
            f"a batch of h {one} for layer {layer.name!r}".replace("'N'", "N"),
            got=f"shape {tuple(h.shape)}",
            do=f"take h from infer(x, {layer.name!r}) or name another layer",
        )
