"""`obverse diversity`: has this generator learned the distribution, or a few pictures of it?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core import BadInput, GeneratorRun, NoSuchFile, ObverseError, Progress, looks_like_a_path
from ..present import (
    Column,
    Json,
    Seed,
    check_seed,
    complete,
    deliver,
    layer_progress,
    make_folder,
    open_console,
    options,
    print_grid,
    print_json,
    say,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ._features import Features
    from ._interpolation import Decode
    from ._sources import Source
    from .results import Diversity

FEATURES = ("pixels", "encoder")
FULL: dict[str, int] = {"batches": 50, "samples": 5000, "budget": 100_000, "paths": 512, "steps": 1500}
QUICK: dict[str, int] = {"batches": 20, "samples": 1000, "budget": 20_000, "paths": 128, "steps": 300}


def diversity(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            show_default=False,
            help="Samples: a folder of pictures, a .npy or .npz file; or the run directory of a generator.",
            autocompletion=complete.samples,
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="What the generator was trained on, to look for copies: a folder, a .npy or .npz file, "
            "mnist:train, … \\[of a run its own, else none].",
            autocompletion=complete.split,
        ),
    ] = None,
    real: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Real pictures that it was not trained on, to compare with: as --train, or mnist:test, … "
            "\\[of a run its own, else none].",
            autocompletion=complete.split,
        ),
    ] = None,
    data_root: Annotated[str | None, options.data_root()] = None,
    features: Annotated[
        str,
        options.choice(
            "Compare pictures by their `pixels`, or by an `encoder` that is trained on --train or "
            "--real first; by any other net from Python: obverse.diversity.of_module \\[pixels].",
            *FEATURES,
        ),
    ] = "pixels",
    batch_size: Annotated[
        int | None,
        options.value("Samples of a batch \\[doubled until collisions appear].", panel="Birthday test"),
    ] = None,
    batches: Annotated[
        int | None,
        options.value("Fresh batches that count \\[50, fewer of few samples].", panel="Birthday test"),
    ] = None,
    budget: Annotated[
        int | None,
        options.value("Most samples to draw for it from a generator \\[100000].", panel="Birthday test"),
    ] = None,
    threshold: Annotated[
        float | None,
        options.value(
            "Distance up to which two pictures are the same \\[calibrated on --real; without it 0].",
            metavar="D",
            panel="Birthday test",
        ),
    ] = None,
    confidence: Annotated[
        float,
        options.value("Of all bounds \\[0.95].", metavar="P", panel="Birthday test"),
    ] = 0.95,
    samples: Annotated[
        int | None,
        options.value("Samples for all other tests \\[5000, or as many as there are]."),
    ] = None,
    quick: Annotated[
        bool,
        options.quick(f"{QUICK['batches']} batches, {QUICK['samples']} samples, {QUICK['budget']} to draw"),
    ] = False,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Say how many samples it takes to see copies, repeats, missing modes."),
    ] = False,
    seed: Seed = 0,
    out: Annotated[Path | None, options.out("diversity.json, diversity.html and pictures")] = None,
    as_json: Json = False,
) -> None:
    """Has a generator learned the distribution, or a few thousand pictures?

    The birthday test bounds how many pictures it makes, from how soon it repeats itself; then copies of
    training images, quality, dimension, and what lies between its seeds, as far as the data given allow.

    Example: obverse diversity runs/vae --out tests/vae

    Example: obverse diversity samples/ --train training/ --real heldout/ --out tests/first
    """
    if plan:
        print_plan(source, as_json)
        return
    if source is None:
        raise BadInput("SOURCE, the samples to test", got="none", do="name a folder, a file or a run")
    import torch

    from ._measure import assess
    from .charts import RECORD, write_pictures
    from .page import RESULT

    usual = QUICK if quick else FULL
    asked = {"batches": batches, "budget": budget, "samples": samples}
    _check(features, {**asked, "batch_size": batch_size}, threshold, confidence, seed)
    subject = open_subject(source, train, real, data_root)
    if features == "encoder" and subject.train is None and subject.real is None:
        raise BadInput(
            "--train or --real with --features encoder, which is trained on it",
            got="neither",
            do="give one, or use --features pixels",
        )
    make_folder(out)
    generator = torch.Generator().manual_seed(seed)
    with layer_progress(subject.source.name) as progress:
        counts: dict[str, Any] = {
            name: usual[name] if value is None else value for name, value in asked.items()
        }
        if batches is None:
            counts["batches"] = None if subject.source.left is not None else usual["batches"]
        found, pictures = assess(
            subject.source,
            train=None if subject.train is None else subject.train.x,
            real=None if subject.real is None else subject.real.x,
            features=_features(features, subject, usual["steps"], generator, progress),
            decode=subject.decode,
            latent=subject.latent,
            labelled=_labelled(subject),
            batch_size=batch_size,
            threshold=threshold,
            confidence=confidence,
            paths=usual["paths"],
            generator=generator,
            settings={
                "source": Path(source).expanduser().absolute().name,
                "train": None if subject.train is None else subject.train.name,
                "real": None if subject.real is None else subject.real.name,
                "features": features,
                "batch_size": batch_size,
                "batches": batches,
                "budget": budget,
                "threshold": threshold,
                "confidence": confidence,
                "samples": samples,
                "quick": quick,
                "seed": seed,
            },
            notes=subject.missing + _broken(subject),
            progress=progress,
            **counts,
        )

    def write_beside(out: Path) -> tuple[str, ...]:
        write_pictures(out, pictures)
        return ()

    deliver(
        found,
        RESULT,
        print_diversity,
        out=out,
        as_json=as_json,
        quick=f"{QUICK['batches']} batches and {QUICK['samples']:,} samples at most" if quick else "",
        files=write_beside,
        beside=(RECORD,),
    )


def _check(
    features: str, counts: dict[str, int | None], threshold: float | None, confidence: float, seed: int
) -> None:
    options.check_choice("--features", features, FEATURES)
    least = {"batch_size": 2, "batches": 1, "budget": 4, "samples": 10}
    for name, value in counts.items():
        if value is not None:
            options.check_least(f"--{name.replace('_', '-')}", value, least[name])
    if threshold is not None and not 0 <= threshold < float("inf"):
        raise BadInput("--threshold ≥ 0", got=threshold, do="0 counts exact duplicates")
    if not 0 < confidence < 1:
        raise BadInput("--confidence in (0, 1)", got=confidence, do="0.95 is the default")
    check_seed(seed)


def _features(
    name: str, subject: Subject, steps: int, generator: torch.Generator, progress: Progress | None
) -> Features | None:
    """Trained on the training set where there is one: real data is what samples are judged against."""
    from ._features import train_encoder

    given = subject.train or subject.real
    if name == "pixels" or given is None:
        return None
    return train_encoder(
        given.x,
        steps=steps,
        generator=generator,
        progress=progress,
    )


def _labelled(subject: Subject) -> tuple[torch.Tensor, torch.Tensor, tuple[str, ...]] | None:
    """Pictures with labels, for directions."""
    for given in (subject.train, subject.real):
        if given is not None and given.y is not None and len(given.classes) > 1:
            return given.x, given.y, given.classes
    return None


def _broken(subject: Subject) -> tuple[str, ...]:
    """What of the data could not be read; that of the samples stands in the record."""
    given: list[Given] = [one for one in (subject.train, subject.real) if one is not None and one.broken]
    return tuple(
        f"{len(one.broken):,} unreadable pictures of {one.name}: {', '.join(one.broken[:5])}" for one in given
    )


def print_plan(source: str | None, as_json: bool) -> None:
    """How many samples it takes, as the bench of metrics found."""
    from ._plan import PLAN, plan_rows

    if source is not None:
        raise BadInput("--plan alone", got=f"--plan and {source!r}", do="leave one of them out")
    if as_json:
        print_json({"plan": [one.to_dict() for one in PLAN]})
        return
    console = open_console()
    say(console, "Samples with which 95 % of the generators with a fault were found out:", "bold")
    for fault, samples, test, often in plan_rows():
        say(console, f"{samples}: {fault}; {test}, {often}")
    say(
        console,
        "Copies and modes were looked for in MNIST by features of a net, at the level that is left of 5 % "
        "among seven tests (Holm): other data take other numbers. How they were counted: "
        "docs/metric-bench.md",
        "dim",
    )


def print_diversity(found: Diversity) -> None:
    """The verdict, what belongs to it, all numbers, and what was not tested."""
    from ._verdict import notices, outlook
    from ._words import skipped

    console = open_console()
    say(console, found.verdict, "bold")
    for sentence in outlook(found):
        say(console, sentence)
    for sentence in notices(found):
        say(console, sentence, "yellow")
    console.print()
    print_grid(console, diversity_columns(found), "")
    for what, reason in skipped(found):
        say(console, f"not tested: {what}: {reason}", "dim")


def diversity_columns(found: Diversity) -> list[Column]:
    from ._words import rows

    names, values, meanings = zip(*rows(found), strict=True)
    return [
        Column("", names, left=True, whole=True),
        Column("measured", values, left=True),
        Column("", meanings, left=True, folded=True, drop=1),
    ]


SPLITS = ("train", "test")
NOTHING = "none"


@dataclass(frozen=True, eq=False)
class Given:
    """Pictures to compare with, with their labels where they have some."""

    name: str
    x: Tensor
    y: Tensor | None = None
    classes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Subject:
    """Where samples come from; `decode` and `latent` of a generator, None of mere samples."""

    source: Source
    decode: Decode | None
    latent: int | None
    train: Given | None
    real: Given | None
    missing: tuple[str, ...]  # why data that a run names is not there


def open_subject(
    source: str, train: str | None = None, real: str | None = None, data_root: str | None = None
) -> Subject:
    """SOURCE as the command line names it, with --train and --real; `none` for neither."""
    from .._core import run_access
    from ._sources import open_source

    path = Path(source).expanduser()
    asked = {"train": train, "test": real}
    given = {
        split: open_data(text, split, data_root)
        for split, text in asked.items()
        if text is not None and text != NOTHING
    }
    if not run_access().holds_generator(path):
        if (path / "config.json").is_file():
            raise BadInput(
                "a run of a generator, samples in a .npy or .npz file, or a folder of pictures",
                got=f"{path}, a run of another kind",
                do="make one with: obverse generate train",
            )
        whole = path.absolute()
        opened = open_source(path, name=whole.name if path.is_dir() else whole.stem)
        return Subject(opened, None, None, given.get("train"), given.get("test"), ())
    run = run_access().open_generator(path)
    own, missing = _own_data(run, data_root, [split for split, text in asked.items() if text is None])
    given = own | given
    opened = open_source(run.net.sample, name=path.absolute().name)
    return Subject(opened, run.net.decode, run.net.latent, given.get("train"), given.get("test"), missing)


def _own_data(
    run: GeneratorRun, root: str | None, splits: list[str]
) -> tuple[dict[str, Given], tuple[str, ...]]:
    """The training points of a run and those it was tested on; or why they are not there."""
    from ..data import load

    if not splits:
        return {}, ()
    try:
        data = load(run.data, root or run.data_root)
        train_x, train_y, test_x, test_y = run.split(data)
    except ObverseError:  # its sentence names folders of this machine; --train DATA brings it to light
        name = PurePath(run.data).name
        return {}, (f"{name}, which the run was trained on, could not be read: give --train and --real",)
    found = {
        "train": Given(f"{data.name}:train", train_x, train_y, data.classes),
        "test": Given(f"{data.name}:test", test_x, test_y, data.classes),
    }
    return {name: found[name] for name in splits}, ()


def open_data(text: str, usual: str, root: str | None = None) -> Given:
    """Pictures by name, as mnist:test; or out of a folder, a .npy or .npz file, with :train or :test for one
    that holds a data set. `usual` is the split of a name without one."""
    from ..data import NAMES, load, load_unlabelled

    base, colon, split = text.rpartition(":")
    if not colon or split not in SPLITS:
        base, split = text, ""
    path = Path(base).expanduser()
    if base in NAMES or (split and path.exists()):
        data = load(base, root)
        chosen = split or usual
        train = chosen == "train"
        x, y = (data.train_x, data.train_y) if train else (data.test_x, data.test_y)
        return Given(f"{data.name}:{chosen}", x, y, data.classes)
    if not path.exists():
        if looks_like_a_path(base):
            raise NoSuchFile(base)
        raise BadInput(
            f"a folder of pictures, a .npy or .npz file, or one of {', '.join(NAMES)} with :train or :test",
            got=repr(text),
            do="check the spelling",
        )
    found = load_unlabelled(path)
    return Given(path.name or path.absolute().name, found.x, broken=found.broken)
