"""The shadow of a whole net: infer upwards, generate downwards. Not for training: see loss.

Stacked layers can be sampled but have no closed density (eq. 14); for one layer's exact distribution
see distribution.ShadowLayer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import BadInput
from . import adjust
from .calibrate import Calibration, calibrate_layer
from .reversal import check_keep, finish_reverse, theory_scale
from .trace import Layer, trace

Scale = Literal["theory"] | float | Mapping[str, float]
Keep = float | Mapping[str, float]


class Shadow:
    """The generative twin of a net: x̃ = r(α₁W₁ r(α₂W₂ ⋯ h)) with transposed weights.

    The net's parameters are read at every call, so a Shadow made before training follows the training.

    Args:
        net: a chain (nn.Sequential, nested or not) of linear layers, ReLU, dropout, flatten, and
            whatever `register_rule` has added.
        input_shape: shape of one input, e.g. (1, 28, 28). `of` takes it from x; `sample` returns flat
            vectors without it when the net begins with a flatten.
        signed: whether inputs may be negative; then the last ReLU of the generation is left out.
        scale: α at keep = 1, divided by keep where something is dropped: "theory" (2/(n s²)), one
            number, or a number a layer. `calibrate` replaces it.
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        input_shape: Sequence[int] | None = None,
        signed: bool = False,
        scale: Scale = "theory",
    ) -> None:
        self.net = net
        self.input_shape = None if input_shape is None else tuple(input_shape)
        self.signed = signed
        self._layers = {layer.name: layer for layer in trace(net)}
        self.scale = self._check_scale(scale)

    def __repr__(self) -> str:
        return f"Shadow of {type(self.net).__name__} with layers {', '.join(self.layers)}"

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers it can generate from, hidden and output, in forward order."""
        return tuple(self._layers)

    @property
    def default_layer(self) -> str:
        """The highest hidden layer (the paper's h̃2); the output in a net without hidden layers."""
        return self.layers[-2] if len(self.layers) > 1 else self.layers[-1]

    def layer(self, name: str | None = None) -> Layer:
        """One traced layer by its name, the default layer for None."""
        name = self.default_layer if name is None else name
        if name not in self._layers:
            raise BadInput(f"a layer out of {', '.join(self.layers)}", got=repr(name), do="pass one of these")
        return self._layers[name]

    def infer(self, x: Tensor, layer: str | None = None) -> Tensor:
        """h of a layer for inputs x, as in evaluation mode: behind the ReLU, without dropout."""
        for step in self._up_to(self.layer(layer)):
            x = step.infer(x)
        return x

    @torch.no_grad()
    def sample(
        self,
        h: Tensor,
        layer: str | None = None,
        keep: Keep = 1.0,
        generator: torch.Generator | None = None,
        *,
        input_shape: Sequence[int] | None = None,
    ) -> Tensor:
        """One input x̃ for each row of h, generated from a layer down (eq. 14).

        A function of h, the weights and fresh randomness only. `keep` is ρ, one for all layers or one a
        layer, by the name of the layer generated *from*.
        """
        return self._sample(h, self.layer(layer), keep, generator, input_shape or self.input_shape)

    def _sample(
        self,
        h: Tensor,
        top: Layer,
        keep: Keep,
        generator: torch.Generator | None,
        input_shape: Sequence[int] | None,
        scaled: bool = True,
    ) -> Tensor:
        width = getattr(top.map.module, "out_features", h.shape[-1] if h.dim() else None)
        if h.dim() < 2 or h.shape[-1] != width:
            raise BadInput(
                f"a batch of h with {width} entries a row for layer {top.name!r}",
                got=f"shape {tuple(h.shape)}",
                do=f"take h from infer(x, {top.name!r}) or name another layer",
            )
        keep = self.check_keep(keep)
        shape = None if input_shape is None else tuple(input_shape)
        for layer in reversed(self._up_to(top)):
            rho = keep.get(layer.name, 1.0) if isinstance(keep, Mapping) else keep
            adjoint = layer.map.rule.reverse(layer.map.module, h, None)
            if adjoint.untyped_storage().data_ptr() == h.untyped_storage().data_ptr():
                adjoint = adjoint.clone()  # what follows works in place; h belongs to the caller
            h = finish_reverse(
                adjoint,
                scale=self._scale(layer, rho) if scaled else adjust.unit_peak(adjoint),
                keep=rho,
                relu=self._is_nonnegative_below(layer),
                generator=generator,
            )
            for stage in reversed(layer.before):
                h = stage.rule.reverse(stage.module, h, shape if layer.name == self.layers[0] else None)
        return h

    @torch.no_grad()
    def of(
        self,
        x: Tensor,
        layer: str | None = None,
        keep: Keep = 1.0,
        generator: torch.Generator | None = None,
        *,
        smooth: bool = False,
        match_norm: bool = False,
    ) -> Tensor:
        """The shadow of x: x → h → x̃, shaped like x. `match_norm` gives each x̃ the norm of its x."""
        return self.from_hidden(
            x, self.infer(x, layer), layer, keep, generator, smooth=smooth, match_norm=match_norm
        )

    @torch.no_grad()
    def from_hidden(
        self,
        x: Tensor,
        h: Tensor,
        layer: str | None = None,
        keep: Keep = 1.0,
        generator: torch.Generator | None = None,
        *,
        smooth: bool = False,
        match_norm: bool = False,
    ) -> Tensor:
        """`of` for a known h; of x only the shape and, with match_norm, the norms are used."""
        # With match_norm every scale cancels (the ReLU is homogeneous): do not compute them.
        shadow = self._sample(h, self.layer(layer), keep, generator, x.shape[1:], scaled=not match_norm)
        if smooth:
            image = self.input_shape if self.input_shape is not None else x.shape[1:]
            shadow = adjust.smooth(shadow.reshape(len(x), *image)).reshape(x.shape)
        return adjust.match_norm(shadow, x) if match_norm else shadow

    @torch.no_grad()
    def calibrate(self, x: Tensor) -> Calibration:
        """Choose each layer's scale so that inference of the shadow gives h back; keeps and returns it.

        Layer by layer on the h that x gives, at keep = 1. Also reports the best *uniform* threshold, the
        one number that the theory puts in place of the net's offsets (Theorem 2.3).
        """
        if len(x) == 0:
            raise BadInput("inputs to calibrate on", got="an empty batch", do="pass some training data")
        results = []
        below = x
        for layer in self._layers.values():
            below = layer.infer(below)
            results.append(calibrate_layer(layer, below, relu_below=self._is_nonnegative_below(layer)))
        self.scale = {result.layer: result.scale for result in results}
        return Calibration(tuple(results))

    def _is_nonnegative_below(self, layer: Layer) -> bool:
        """Whether what this layer generates stands behind a ReLU, or is an input that is never negative."""
        depth = self.layers.index(layer.name)
        return not self.signed if depth == 0 else self._layers[self.layers[depth - 1]].activation is not None

    def _up_to(self, top: Layer) -> list[Layer]:
        return [self._layers[name] for name in self.layers[: self.layers.index(top.name) + 1]]

    def check_keep(self, keep: Keep) -> Keep:
        """keep unchanged, or an error that says what is wrong with it."""
        for one in keep.values() if isinstance(keep, Mapping) else [keep]:
            check_keep(one)
        unknown = set(keep) - set(self.layers) if isinstance(keep, Mapping) else set()
        if unknown:
            raise BadInput(
                f"keep for layers out of {', '.join(self.layers)}", got=sorted(unknown), do="check the names"
            )
        return keep

    def _check_scale(self, scale: Scale) -> Scale:
        numbers = scale.values() if isinstance(scale, Mapping) else [scale]
        if scale != "theory" and not all(isinstance(a, (int, float)) and 0 < a < inf for a in numbers):
            raise BadInput("scale 'theory' or numbers > 0", got=repr(scale), do="leave it out or calibrate")
        if isinstance(scale, Mapping) and set(scale) != set(self.layers):
            raise BadInput(
                f"a scale for each of {', '.join(self.layers)}",
                got=sorted(scale),
                do="name each layer once",
            )
        return scale

    def _scale(self, layer: Layer, keep: float) -> float | Tensor:
        if isinstance(self.scale, str):
            assert layer.map.rule.energy is not None
            return theory_scale(layer.map.rule.energy(layer.map.module), keep)
        if isinstance(self.scale, Mapping):
            return self.scale[layer.name] / keep
        return self.scale / keep
