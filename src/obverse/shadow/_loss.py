"""The SHADOW loss: real data plus what the net's own shadow generates from it (Sec. 4, App. E).

Not an optimizer and not a training loop: three lines in anyone's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from typing import Any, get_args

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call
from torch.nn import functional as F

from .._core import BadInput, Control, Labels, Source, as_inputs, as_tensor, output_of
from ._controls import Shuffled, noisy
from ._graph import interpret
from ._refit import Refit
from ._shadow import Keep, Reverse, Shadow
from ._trace import trace

Criterion = Callable[[Tensor, Tensor], Tensor]


class _OwnGradient(torch.autograd.Function):
    """The identity. Its gradient is no view of another tensor, so that autograd can add to it in place.

    A linear layer's weight gradient is a transposed view; where a weight is used twice, autograd then adds
    the two gradients into fresh memory of the weight's size: a tenth of a step at the paper's widths.
    """

    @staticmethod
    def forward(parameter: Tensor) -> Tensor:
        return parameter.view_as(parameter)

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        pass

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        # With create_graph the gradient has a history of its own, which .data would cut off.
        return gradient if torch.is_grad_enabled() else gradient.data


def _second_pass(net: nn.Module, x: Tensor) -> Tensor:
    """net(x) whose gradients the engine adds in place to those of the first pass, which it reaches later.

    Buffers are copies, which are thrown away: what x̃ would do to the running statistics of batch norm is not
    to stay.
    """
    alias: Callable[[Tensor], Tensor] = _OwnGradient.apply
    aliases = {name: alias(parameter) for name, parameter in net.named_parameters()}
    aliases |= {name: buffer.clone() for name, buffer in net.named_buffers()}
    # tie_weights would replace the weight of a module used twice twice, and put the alias back for good.
    result: Tensor = output_of(functional_call(net, aliases, (x,), tie_weights=False))
    return result


def _exact(x: Tensor) -> Tensor:
    """Rows, in float32 at least."""
    return x.flatten(1).to(torch.promote_types(x.dtype, torch.float32))


class ShadowLoss(nn.Module):
    """`loss(x, y)` = L(net(x), y) + weight · L(net(x̃), label), x̃ the shadow of x. Ready for backward().

        loss = ShadowLoss(net, weight=1.0)
        for x, y in batches:
            loss(x, y).backward(); optimizer.step(); optimizer.zero_grad()

    x̃ is data: no gradient flows through its making. Its h is read off the pass over x itself, dropout
    included, so that it costs no extra pass.

    Args:
        net: the network, or a Shadow of it that is set up (calibrated, signed) already.
        weight: factor of the shadow's loss (0 switches shadows off). A weight w also multiplies the step
            size by about 1 + w; `normalize` divides it out again.
        layer: the layer to generate from; by default the highest hidden one (h̃2 in the paper).
        keep: ρ, the share of entries kept at each layer (0.5 in eq. 27).
        smooth: 3×3 mean smoothing of image shadows (eq. 28).
        match_norm: give each shadow its original's norm; otherwise the Shadow's scale applies.
        labels: "given" (y), "net" (the class the net gives to x; y may be left out), or "consistency"
            (KL from net(x) to net(x̃), in place of the criterion; y may be left out). "net" can lock a
            fresh net into its first guesses: start it after some epochs, or prefer "consistency".
        normalize: (L + wL') / (1 + w), which keeps the step size; of unlabelled x wL' / (1 + w). What
            `denoise` adds stays as it is.
        control: in place of the shadow "same" (x again), "noise" (norm-matched Gaussian noise) or
            "shuffled" (the shadow of a net with permuted weights): what a shadow has to beat.
        noise: standard deviation of the "noise" control, and of what `denoise` has to take away.
        reverse: "transpose" or "fitted", as for `Shadow`; of a Shadow that is passed its own.
        refit: fitted shadows are fitted anew every so many batches, at the weights of that time, on the last
            256 inputs, and at the first batch, if the Shadow was not calibrated. With 0 the
            fits of `Shadow.calibrate` stay as they are.
        denoise: factor of 1 − cos(x, x̃'), x̃' the shadow of x with noise added: how far the net's own shadow
            is from undoing noise. Here gradients do flow through the shadow; needs no labels.
        generator: randomness of sampling and noise, a torch.Generator or obverse.Streams; by default
            the current streams, and without any torch's own.
    """

    def __init__(
        self,
        net: nn.Module | Shadow,
        weight: float = 1.0,
        *,
        layer: str | int | None = None,
        keep: Keep = 1.0,
        smooth: bool = False,
        match_norm: bool = True,
        criterion: Criterion = F.cross_entropy,
        labels: Labels = "given",
        normalize: bool = False,
        control: Control | None = None,
        noise: float = 0.5,
        denoise: float = 0.0,
        generator: Source = None,
        reverse: Reverse | None = None,
        refit: int = 100,
    ) -> None:
        super().__init__()
        if not 0 <= weight < inf:
            raise BadInput("a finite weight ≥ 0", got=weight, do="use 0 for no shadows")
        if labels not in get_args(Labels):
            raise BadInput(f"labels out of {get_args(Labels)}", got=repr(labels), do="pass one of these")
        if control is not None and control not in get_args(Control):
            raise BadInput(f"control out of {get_args(Control)}", got=repr(control), do="pass one or None")
        if not 0 <= noise < inf:
            raise BadInput("noise ≥ 0", got=noise, do="use 0.5 for pixels in [0, 1]")
        if not 0 <= denoise < inf:
            raise BadInput("a finite denoise ≥ 0", got=denoise, do="use 0 to leave it out")
        self.shadow = net if isinstance(net, Shadow) else Shadow(net, reverse=reverse or "transpose")
        if reverse is not None and self.shadow.reverse != reverse:
            raise BadInput(
                "one reverse, that of the Shadow",
                got=f"reverse={reverse!r} and a Shadow with {self.shadow.reverse!r}",
                do="leave reverse out",
            )
        self.weight = weight
        self.layer = self.shadow.layer(layer).name
        self.keep = self.shadow.check_keep(keep)
        self.smooth = smooth
        self.match_norm = match_norm
        self.criterion = criterion
        self.labels = labels
        self.normalize = normalize
        self.control = control
        self.noise = noise
        self.denoise = denoise
        self.generator = generator
        self._shuffled: Shuffled | None = None
        if control == "shuffled":
            self._shuffled = Shuffled(self.shadow.net)
            self._shuffled_shadow = self.shadow.like(self._shuffled.copy)
        drawn = self.shadow if self._shuffled is None else self._shuffled_shadow
        self._refit = Refit(*(() if control in ("same", "noise") else (drawn,)), every=refit)
        self._first_batch = True

    def extra_repr(self) -> str:
        return f"weight={self.weight}, layer={self.layer!r}, labels={self.labels!r}"

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The whole loss of a batch. Without y (unlabelled x) only what needs no label."""
        x, y = as_inputs(x, self.shadow.net), None if y is None else as_tensor(y, "labels y")
        if self._first_batch and self.weight + self.denoise > 0:
            self._check_inputs(x)
        if y is None and self.denoise > 0 and (self.labels == "given" or self.weight == 0):
            return self.denoise * self.blur(x)
        loss = self._classification(x, y)
        return loss if self.denoise == 0 else loss + self.denoise * self.blur(x)

    def _check_inputs(self, x: Tensor) -> None:
        """Other losses are called as loss(net(x), y): say that this one runs the net itself."""
        try:
            self.shadow.graph.shapes(tuple(x.shape[1:]))
        except BadInput:
            if x.grad_fn is None:  # no output of a net that learns
                raise
            raise BadInput(
                "loss(x, y), with the inputs x: this loss runs the net itself",
                got=f"a tensor of shape {tuple(x.shape)} that was computed with gradients, as net(x) is",
                do="pass x in place of net(x)",
            ) from None

    def blur(self, x: Tensor) -> Tensor:
        """1 − cos between x and the shadow of x with noise added, a mean; 0 if all noise is gone."""
        restored = self.shadow.direction(noisy(x, self.noise, self.generator), self.layer)
        # In float16 the smallest norm that cosine_similarity divides by would be 0.
        return (1 - F.cosine_similarity(_exact(restored), _exact(x))).mean()

    def _classification(self, x: Tensor, y: Tensor | None) -> Tensor:
        if self.weight == 0 and y is not None:
            return self.criterion(output_of(self.shadow.net(x)), y)
        if y is None and self.labels == "given":
            raise BadInput(
                "labels y for labels='given'", got="None", do="pass y, or use labels='net' or 'consistency'"
            )
        if self._first_batch:  # looking at every batch would cost more than it tells
            self._first_batch = False
            self._warn_if_signed(x)
        logits, h = self._forward_with_hidden(x)
        shadow_logits = _second_pass(self.shadow.net, self.twin(x, h))
        shadow = self._shadow_part(shadow_logits, logits, y)
        total = self.weight * shadow
        if y is not None:
            total = self.criterion(logits, y) + total
        return total / (1 + self.weight) if self.normalize else total

    @torch.no_grad()
    def twin(self, x: Tensor, h: Tensor) -> Tensor:
        """The second batch: the shadow of x generated from h, or the chosen control."""
        if self.control == "same":
            return x.detach()
        if self.control == "noise":
            return noisy(x, self.noise, self.generator)
        shadow = self.shadow
        if self._shuffled is not None:
            self._shuffled.refresh()
            shadow = self._shuffled_shadow
        self._refit.see(x)
        return shadow.from_hidden(
            x, h, self.layer, self.keep, self.generator, smooth=self.smooth, match_norm=self.match_norm
        )

    def _warn_if_signed(self, x: Tensor) -> None:
        shadow = self.shadow
        if self.control is None and not shadow.signed and shadow.floor is None and bool((x < 0).any()):
            warnings.warn(
                "expected inputs ≥ 0, as the shadow of a ReLU net is; got negative ones; "
                "use ShadowLoss(Shadow(net, signed=True), …) for standardized data",
                stacklevel=3,
            )

    def _shadow_part(self, shadow_logits: Tensor, logits: Tensor, y: Tensor | None) -> Tensor:
        if self.labels == "consistency":
            target, guess = F.log_softmax(logits.detach(), -1), F.log_softmax(shadow_logits, -1)
            return F.kl_div(guess, target, reduction="batchmean", log_target=True)
        label = logits.argmax(-1) if self.labels == "net" else y
        assert label is not None
        return self.criterion(shadow_logits, label)

    def _forward_with_hidden(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """net(x), and the detached h of the layer as this very pass computed it."""
        node = self.shadow.layer(self.layer).output.node
        calls = self.shadow.graph.outputs.get(node)
        if (
            not calls
        ):  # no module returns h, a function call does: run the trace, which is the same computation
            return self._traced_forward(x)
        name, call = calls[0]
        outputs: list[Tensor] = []

        def remember(module: nn.Module, args: object, output: Tensor) -> None:
            # A copy (small beside the weights): what follows the layer may work in place on its output.
            outputs.append(output.detach().clone())

        handle = self.shadow.graph.net.get_submodule(name).register_forward_hook(remember)
        try:
            logits: Tensor = output_of(self.shadow.net(x))
        finally:
            handle.remove()
        return logits, outputs[call]

    def _traced_forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The same by a trace made in the net's present mode."""
        net = self.shadow.net
        traces = self.shadow.graph.traces
        if net.training not in traces:
            fitted = self.shadow.reverse == "fitted"
            traces[net.training] = trace(net, evaluate=False, fitted=fitted)
        graph = traces[net.training]
        if self.layer not in graph.layers:
            raise BadInput(
                f"a net that has the layer {self.layer!r} in training as in evaluation",
                got="another computation in training mode",
                do="generate from a layer that is the output of a module",
            )
        hidden, end = graph.layers[self.layer].output.node, graph.nodes[-1]
        seen: dict[fx.Node, Any] = {}

        def see(node: fx.Node, value: Any) -> None:
            if node is hidden or node in end.all_input_nodes:
                seen[node] = value

        interpret(net, graph.nodes, x, {hidden, *end.all_input_nodes}, see)
        h: Tensor = seen[hidden].detach().clone()
        return fx.map_arg(end.args[0], seen.__getitem__), h  # type: ignore[return-value]
