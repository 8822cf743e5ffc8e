"""Which public architectures have a shadow? Builds each with random weights and measures; writes the table.

    python -m experiments.architectures.run [--only NAME ...]

Weights are the package's own initial ones; batch norms get the statistics of one batch of noise and random
gains and offsets, or they would be the identity. Inputs are uniform noise in [0, 1]. Each net has seeds of
its own, so one measured alone gives what it gives among the others. Minutes, on one core. Writes
results/coverage.json and the table of docs/coverage.md; with --only it writes nothing.
"""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from obverse import Shadow
from obverse._core.errors import BadInput
from obverse._core.files import write_text
from obverse._core.records import read_record, record_text
from obverse.shadow import recovery

from .._lab.places import RUNS
from .catalogue import ARCHITECTURES, INSTALL, Architecture
from .page import Coverage, Drawn, Net, page, row, write

SETTLING = 4  # noise images that batch norms take their statistics from
INPUTS = 2  # noise images that recovery is measured on, and as many others to calibrate with
FITTED_INPUTS = 24  # noise images for the fitted reverse
Reverse = Literal["transpose", "fitted"]


PLACE = RUNS / "architectures"


class MissingPackage(BadInput):
    """One of the packages whose nets are covered is not installed."""


class Wrong(Exception):
    """A shadow was drawn, and it is not what it should be."""


def seed_of(name: str) -> int:
    return zlib.crc32(name.encode())


def build(architecture: Architecture) -> nn.Module:
    """The net with the package's own initial weights, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(architecture.name))
        try:
            return architecture.build().eval()
        except ModuleNotFoundError as missing:
            raise MissingPackage(
                "pytorchcv and MONAI, to cover their nets", got=f"no module {missing.name}", do=INSTALL
            ) from missing


@torch.no_grad()
def settle(net: nn.Module, architecture: Architecture) -> tuple[nn.Module, Tensor]:
    """Batch norms with statistics of noise, gains in [0.5, 1.5], offsets N(0, 0.1²); and unseen noise."""
    generator = torch.Generator().manual_seed(seed_of(architecture.name))
    x = torch.rand(SETTLING + 2 * INPUTS, *architecture.input_shape, generator=generator)
    norms = [module for module in net.modules() if isinstance(module, _BatchNorm)]
    for norm in norms:
        norm.momentum = None  # the mean over all batches seen: of this one
        if norm.affine:
            norm.weight.uniform_(0.5, 1.5, generator=generator)
            norm.bias.normal_(0.0, 0.1, generator=generator)
    if norms:
        with torch.random.fork_rng(devices=[]):  # dropout
            torch.manual_seed(seed_of(architecture.name))
            net.train()(x[:SETTLING])
    return net.eval(), x[SETTLING:]


def kinds_of(net: nn.Module) -> dict[str, int]:
    """Leaf modules, functions and methods in the trace of a net, with counts; else its leaf modules."""
    try:
        graph = fx.symbolic_trace(net).graph
    except Exception:  # then by what the net has
        leaves = [type(one).__name__ for one in net.modules() if next(one.children(), None) is None]
        return dict(sorted(Counter(leaves).items()))
    modules = dict(net.named_modules())
    names = []
    for node in graph.nodes:
        if node.op == "call_module":
            names.append(type(modules[str(node.target)]).__name__)
        elif node.op == "call_function":
            names.append(f"{getattr(node.target, '__name__', node.target)}()")
        elif node.op == "call_method":
            names.append(f".{node.target}()")
    return dict(sorted(Counter(names).items()))


def relative(found: Tensor, h: Tensor) -> float:
    return float((found - h).square().sum() / h.square().sum())


class Watch(TorchDispatchMode):
    """Looks for a tensor among the results of every operation that runs."""

    def __init__(self, wanted: Tensor) -> None:
        super().__init__()
        self.wanted, self.seen = wanted, False
        self.slack = 1e-4 * float(wanted.abs().max())  # float32 sums in another order: ~1e-6 an operation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):  # a batch norm returns its statistics too
            if isinstance(one, Tensor) and one.shape == self.wanted.shape and not self.seen:
                self.seen = bool((one - self.wanted).abs().max() <= self.slack)
        return result


@torch.no_grad()
def is_computed(h: Tensor, net: nn.Module, x: Tensor) -> bool:
    """Whether the net itself, run as it is, computes h on the way; no trace is involved."""
    with Watch(h) as watch:
        net(x)
    return watch.seen


@torch.no_grad()
def draw(
    net: nn.Module, shadow: Shadow, x: Tensor, layer: str, theory: float | None, calibrated: float
) -> Drawn:
    """One layer's shadows, and whether they are what shadows must be; scales as they are now."""
    h = shadow.infer(x, layer)
    first = shadow.of(x, layer, 0.5, torch.Generator().manual_seed(1))
    again = shadow.sample(h, layer, 0.5, torch.Generator().manual_seed(1), input_shape=tuple(x.shape[1:]))
    return Drawn(
        layer,
        tuple(h.shape),
        tuple(first.shape),
        bool(first.isfinite().all() and h.isfinite().all()),
        not bool(first.any()),
        torch.equal(first, again),
        is_computed(h, net, x),
        theory,
        calibrated,
        relative(h.roll(1, 0), h),
    )


def check(drawn: Drawn, x: Tensor) -> None:
    if drawn.shadow_shape != tuple(x.shape) or drawn.hidden_shape[0] != len(x):
        raise Wrong(f"shadows from {drawn.layer} are shaped {drawn.shadow_shape}; inputs {tuple(x.shape)}")
    if not drawn.finite:
        raise Wrong(f"shadows from {drawn.layer} have values that are not finite")
    if drawn.zero:
        raise Wrong(f"shadows from {drawn.layer} are zero everywhere")
    if not drawn.repeats:
        raise Wrong(f"shadows from {drawn.layer} are not a function of h and the generator alone")
    if not drawn.computed:
        raise Wrong(f"the net itself computes nothing like the h of {drawn.layer}")
    errors = [one for one in (drawn.theory, drawn.calibrated, drawn.unrelated) if one is not None]
    if not all(torch.tensor(errors).isfinite()):
        raise Wrong(f"the recovery error of {drawn.layer} is not finite")


def middle_layer(shadow: Shadow, x: Tensor) -> str:
    """The layer nearest to the middle of those below the highest hidden one, channel gates left out.

    A gate's layers have one place; they are told by that from the convolutions around them.
    """
    below = shadow.layers[: shadow.layers.index(shadow.default_layer)]
    places = {name: h[0, 0].numel() for name, h in shadow.hidden(x, below).items()}
    wide = [name for name in below if places[name] > 1] or below
    return min(wide, key=lambda name: abs(below.index(name) - len(below) // 2))


def shadows(net: nn.Module, x: Tensor) -> tuple[int, Drawn, Drawn, Reverse]:
    """How many layers were found, and the shadows of the middle one and of the highest hidden one; by the
    fitted reverse where the transpose has no way."""
    fresh, other = x[:INPUTS], x[INPUTS:]
    shape = tuple(x.shape[1:])
    theory: dict[str, float] = {}
    try:
        shadow = Shadow(net, input_shape=shape)
    except BadInput as error:
        if 'reverse="fitted"' not in str(error):
            raise
        shadow = Shadow(net, input_shape=shape, reverse="fitted")
        other = torch.rand(FITTED_INPUTS, *shape, generator=torch.Generator().manual_seed(0))
    names = [middle_layer(shadow, fresh[:1]), shadow.default_layer]
    if shadow.reverse == "transpose":
        theory = recovery(shadow, fresh, layers=names).errors
    shadow.calibrate(other)
    calibrated = recovery(shadow, fresh, layers=names).errors
    drawn = [draw(net, shadow, fresh, name, theory.get(name), calibrated[name]) for name in names]
    for one in drawn:
        check(one, fresh)
    return len(shadow.layers), drawn[0], drawn[1], shadow.reverse


def sentence(error: Exception) -> str:
    """An error as one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, BadInput | Wrong) else f"{type(error).__name__}: {text}"


def cover(architecture: Architecture) -> Net:
    """All there is to say of one architecture. A missing package is an error, anything else a finding."""
    net: nn.Module = nn.Identity()
    found: tuple[int, Drawn | None, Drawn | None, Reverse] = (0, None, None, "transpose")
    error = ""
    try:
        net = build(architecture)
        found = shadows(*settle(net, architecture))
    except MissingPackage:
        raise
    except Exception as raised:
        error = sentence(raised)
    return Net(
        architecture.name,
        architecture.family,
        architecture.package,
        architecture.counted,
        architecture.input_shape,
        sum(parameter.numel() for parameter in net.parameters()),
        kinds_of(net),
        not error,
        error,
        *found,
    )


def kept(architecture: Architecture) -> Net:
    """All there is to say of one architecture, written down when it is found: an interrupted run goes on."""
    file = PLACE / f"{zlib.crc32(architecture.name.encode()):08x}.json"
    if not file.exists():
        write_text(file, record_text(cover(architecture), 1))
    return read_record(file, Net, "net of the coverage table", 1)


def run(only: Sequence[str] | None = None) -> None:
    """All nets into the results and the page; or those named, into the terminal alone."""
    torch.set_num_threads(1)
    nets = []
    for architecture in ARCHITECTURES:
        if only is None or architecture.name in only:
            nets.append(kept(architecture) if only is None else cover(architecture))
            print(" · ".join(cell for cell in row(nets[-1]) if cell), nets[-1].error, flush=True)
    coverage = Coverage(tuple(nets))
    print(coverage)
    if only is None:
        write(coverage)
        page()


def main() -> None:
    parser = argparse.ArgumentParser(description="which public architectures have a shadow?")
    names = [architecture.name for architecture in ARCHITECTURES]
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="NAME", help="these nets; nothing is written"
    )
    run(parser.parse_args().only)


if __name__ == "__main__":
    main()
