"""Does the net need the signal of its layers, or their bulk? Ablation of the nets for which inputs exist.

    python -m experiments.zoo.function --folder DIR --images DIR       (files of nets; photographs)
    python -m experiments.zoo.function stories15m --folder DIR         (one of them)
    python -m experiments.zoo.function --seconds 300                   (stop then; the same command goes on)

Image nets answer photographs, with labels where they have classes, or with their own features as what is
right; the Llama reads texts that it has sampled itself, MiniLM docstrings of the standard library. Each layer
is written down when it is done.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from obverse.weights import Treatment, weights_of
from obverse.weights._ablation.ablate import Bench, TakenApart, _taken_apart
from obverse.weights._ablation.scores import Loss, evaluating, test_of
from obverse.weights._ablation.treatments import TREATMENTS
from obverse.weights.results import ALPHA

from .._lab.result_files import measure
from . import language, nets
from .layers import Clock
from .manifest import named
from .run import FILES, RESULTS, UNFINISHED

SEED = 0
ALONE: tuple[Treatment, ...] = (
    "bulk resampled",
    "signal removed",
    "random directions removed",
    "rounded",
)
TEXTS, LENGTH = 24, 64  # that the Llama samples
SENTENCES, PIECES = 64, 48
MOST = 12  # layers that are treated alone; of more, so many evenly spaced


@dataclass(frozen=True)
class Subject:
    """A net with inputs, and what is right on them."""

    net: nn.Module
    x: Tensor
    measured: str
    y: Tensor | None = None
    loss: Loss | None = None
    unlabelled: Tensor | None = None
    batch: int = 64
    alone: int = MOST


class TimeOver(Exception):
    """The rest is for the next call."""


def llama(folder: Path, images: Path) -> Subject:
    net = language.load_llama(folder / "llama2.data")
    tokens = language.sampled(net, TEXTS, LENGTH, torch.Generator().manual_seed(SEED))
    measured = f"nats per token on {TEXTS} texts of {LENGTH} tokens that it sampled itself"
    return Subject(net, tokens, measured, tokens, language.surprise, batch=16)


def minilm(folder: Path, images: Path) -> Subject:
    net = language.load_encoder(folder / "model.safetensors")
    known = language.vocabulary(next(folder.glob("tokenizer.json"), folder / "vocab.txt"))
    texts = language.spread(language.docstrings(), SENTENCES)
    x = language.padded([language.pieces_of(text, known, PIECES) for text in texts])
    measured = f"cosine with its own embedding of {SENTENCES} docstrings of the standard library"
    return of_features(net, x, measured)


def of_features(net: nn.Module, x: Tensor, measured: str, **more: Any) -> Subject:
    """What is right are the features of the untreated net."""
    batch = more.get("batch", 64)
    with evaluating(net):
        y = torch.cat([net(part) for part in x.split(batch)])
    return Subject(net, x, measured, y, cosine, **more)


def cosine(outputs: Tensor, y: Tensor) -> Tensor:
    return torch.cosine_similarity(outputs, y, dim=1)


def photographs(images: Path, count: int, spare: int) -> tuple[Tensor, Tensor, Tensor]:
    """(images, their classes, others without labels), each evenly over the classes; in [0, 1]."""
    x, y = nets.images(images, count + spare)
    others = torch.linspace(0, len(x) - 1, spare).round().long()
    rest = torch.ones(len(x), dtype=torch.bool)
    rest[others] = False
    return x[rest], y[rest], x[~rest]


def classifier(name: str, count: int, spare: int, alone: int) -> Callable[[Path, Path], Subject]:
    def subject(folder: Path, images: Path) -> Subject:
        net = nets.load(name, folder.parent)
        x, y, others = photographs(images, count, spare)
        measured = f"accuracy on {len(x)} photographs"
        unlabelled = net.prepare(others) if spare else None
        return Subject(net, net.prepare(x), measured, y, unlabelled=unlabelled, batch=20, alone=alone)

    return subject


def features(name: str, count: int, alone: int) -> Callable[[Path, Path], Subject]:
    def subject(folder: Path, images: Path) -> Subject:
        net = nets.load(name, folder.parent)
        x, _, _ = photographs(images, count, 0)
        measured = f"cosine with its own features of {len(x)} photographs"
        return of_features(Flat(net), net.prepare(x), measured, batch=20, alone=alone)

    return subject


class Flat(nn.Module):
    """A net whose outputs are one row for each input."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.net(x).flatten(1)
        return found


SUBJECTS: Mapping[str, Callable[[Path, Path], Subject]] = {
    "stories15m": llama,
    "minilm-l6": minilm,
    "alexnet-convolutions": features("alexnet-convolutions", 40, MOST),
    "mobilenet-v2": classifier("mobilenet-v2", 50, 25, 8),
    "efficientnet-lite0": classifier("efficientnet-lite0", 50, 25, 8),
    "resnet50-imagenet": classifier("resnet50-imagenet", 30, 0, 4),
    "dinov2-vit-s14": features("dinov2-vit-s14", 16, 4),
}


def treated(subject: Subject, clock: Clock, file: Path) -> None:
    """All layers at once under every treatment, then one at a time."""
    with evaluating(subject.net):
        test = test_of(subject.net, subject.x, subject.y, subject.loss, subject.batch)
        bench = Bench(subject.net, test, subject.unlabelled, SEED)
        apart: dict[str, TakenApart] = {}

        def taken(name: str) -> TakenApart:
            if name not in apart:
                apart[name] = _taken_apart(subject.net, weights[name], ALPHA, SEED)
            return apart[name]

        weights = {weight.name: weight for weight in weights_of(subject.net)}
        settings = {
            "measured": subject.measured,
            "inputs": len(subject.x),
            "untreated": round(float(test.untreated.mean()), 6),
            "alpha": ALPHA,
            "seed": SEED,
        }

        def able() -> list[TakenApart]:
            return [one for one in map(taken, weights) if one.parts.grade != "cannot tell"]

        def together(treatment: Treatment) -> dict[str, Any]:
            return in_time(clock, lambda: effects(bench, able(), (treatment,))[treatment])

        def alone(name: str) -> dict[str, Any]:
            def run() -> dict[str, Any]:
                one = taken(name)
                if one.parts.grade == "cannot tell":
                    return {"sentence": one.parts.sentence}
                about = {
                    "rank": one.parts.rank,
                    "shape": list(one.parts.matrix.shape),
                    "kind": one.weight.kind,
                }
                return about | {"effects": effects(bench, [one], ALONE)}

            return in_time(clock, run)

        entries: dict[str, Callable[[], Any]] = {
            "layers": lambda: in_time(clock, lambda: [one.weight.name for one in able()])
        }
        entries |= {f"together|{one}": partial(together, one) for one in TREATMENTS}
        names = list(weights)
        if len(names) > subject.alone:
            names = [names[at * (len(names) - 1) // (subject.alone - 1)] for at in range(subject.alone)]
        entries |= {f"layer|{name}": partial(alone, name) for name in names}
        measure(file, settings, entries)


def effects(bench: Bench, layers: Sequence[TakenApart], treatments: Sequence[Treatment]) -> dict[str, Any]:
    return {one.treatment: one.to_dict() for one in bench.effects(layers, treatments)}


def in_time(clock: Clock, run: Callable[[], Any]) -> Any:
    if clock.over:
        raise TimeOver
    return run()


def run(
    names: Sequence[str] = (),
    folder: Path = FILES,
    images: Path = Path("imagenet-sample"),
    out: Path = RESULTS,
    seconds: float = float("inf"),
) -> None:
    torch.set_num_threads(1)
    clock = Clock(seconds)
    for net in named(list(names) or list(SUBJECTS)):
        try:
            if clock.over:
                raise TimeOver
            treated(
                SUBJECTS[net.name](folder / net.name, images), clock, out / "function" / f"{net.name}.json"
            )
        except TimeOver:
            print("the time is over: the same command goes on", flush=True)
            sys.exit(UNFINISHED)
    print("all of them are done", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"out of {', '.join(SUBJECTS)} [all]")
    parser.add_argument("--folder", type=Path, default=FILES, help="of the nets' files")
    parser.add_argument("--images", type=Path, default=Path("imagenet-sample"), help="of photographs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so long")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
