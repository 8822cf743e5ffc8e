"""`obverse generate`: train a generator into a run directory, and draw samples from it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import training
from ..._core import TEMPORARY, BadInput, explained, quoted, replace_atomically
from ...present import (
    CACHE,
    DATA,
    ROOT,
    SEED,
    Command,
    Commands,
    Json,
    Report,
    Seed,
    check_seed,
    complete,
    echo_page,
    echo_quick,
    layer_progress,
    options,
    print_json,
)
from .._generators.settings import HIDDEN, LATENT, LR, GeneratorSettings
from ._flags import Flags, with_settings
from ._quick import EPOCHS, POINTS, fewer_points
from ._train import both, new_place, use_threads

if TYPE_CHECKING:
    from torch import Tensor

generate_app = typer.Typer(
    cls=Commands,
    help="Generators: train a VAE, a Wasserstein GAN or a mixture of them, and draw samples.\n\n"
    "Example: obverse generate train --model vae --data mnist --out runs/vae",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
BLOCK = 1000  # samples at a time
REFRESH = 0.1  # seconds between two drawings of the bar: a step may take a hundredth of it
SAMPLE = "sample-{:06d}.png"


def _by_model(usual: Mapping[Any, object]) -> str:
    """The defaults of a setting, for the help: "vae 20, wgan 64"."""
    shown: dict[str, list[str]] = {}
    for model, value in usual.items():
        text = ",".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"
        shown.setdefault(text, []).append(model)
    return "; ".join(f"{' and '.join(models)} {text}" for text, models in shown.items())


FLAGS: Flags = {
    "model": ("Model", "vae, wgan or mixture, several generators and critics with trained weights.", "WHICH"),
    "data": ("Data", f"{DATA}.", "NAME"),
    "data_root": ("Data", f"{ROOT} [{CACHE}].", "DIR"),
    "train_size": ("Data", "Train on so many points, drawn with the seed [all].", "N"),
    "validation": ("Data", "Hold out so many training points in place of the test set.", "N"),
    "body": ("Model", "mlp, fully connected, or conv, convolutions and then these.", "WHICH"),
    "hidden": ("Model", f"Widths of the fully connected layers [{_by_model(HIDDEN)}].", "N,N,…"),
    "latent": ("Model", f"Numbers in a seed [{_by_model(LATENT)}].", "N"),
    "decoder": ("Model", "vae: bernoulli, or gaussian, as in the notes.", "WHICH"),
    "sigma": ("Model", "vae: standard deviation of the gaussian decoder.", "STD"),
    "binarize": ("Model", "vae: draw pixels as 0 or 1, with their grey level as the chance.", None),
    "penalty": ("Model", "wgan, mixture: weight of the gradient penalty.", "W"),
    "critic_steps": ("Model", "wgan, mixture: steps of the critic for one of the generator.", "N"),
    "components": ("Model", "mixture: generators, and critics.", "N"),
    "entropy": ("Model", "mixture: weight of the term that keeps weights from going to 0.", "W"),
    "epochs": ("Training", "Passes over the training points [as many as the model needs].", "N"),
    "batch_size": ("Training", "Points a step.", "N"),
    "lr": ("Training", f"Learning rate of Adam [{_by_model(LR)}].", "LR"),
    "seed": ("Run", f"{SEED}.", "N"),
    "evaluate_every": ("Run", "Evaluate every so many epochs [about 50 times].", "N"),
    "checkpoint_every": ("Run", "Save every so many steps [at each evaluation].", "N"),
}


@generate_app.command(cls=Command)
@with_settings(GeneratorSettings, FLAGS)
def train(
    values: dict[str, Any],
    out: Annotated[Path | None, options.out_at("the run", "runs/MODEL-DATA-N")] = None,
    resume: Annotated[Path | None, options.resume("run")] = None,
    quick: Annotated[bool, options.quick(f"{EPOCHS} epochs on at most {POINTS:,} points")] = False,
    report: Report = True,
    as_json: Json = False,
) -> None:
    """Train one generator.

    Example: obverse generate train --model wgan --data mnist --out runs/wgan
    """
    from .._distributed import refuse_several
    from .._generators.charts import keep_stages
    from .._generators.fit import fit_generator, generator_task
    from .._generators.page import RESULT

    refuse_several("obverse generate train")
    if resume is None:
        given = fewer_points(values, GeneratorSettings) if quick else values
        settings = GeneratorSettings.from_mapping(given, "the flags and the settings file")
        task = generator_task(settings)  # before the directory is made: it may refuse the settings
        shape = tuple(task.train_x.shape[1:])
        with new_place(out, f"{settings.model}-{Path(settings.data).stem}") as path:
            training.create_generator_run(path, task.settings, shape)
    else:
        if values or out or quick:
            raise BadInput(
                "--resume alone: a run keeps its settings",
                got=", ".join(values) or ("--out" if out else "--quick"),
                do="leave them out",
            )
        path, run = resume, training.read_generator_run(resume)
        if run.finished:
            _say(path, run.settings, run.metrics[-1] if run.metrics else {}, as_json, finished=True)
            if report and not (path / RESULT.html).exists():
                echo_page(RESULT, path, as_json)
            return
        use_threads(run.environment.get("threads"))
        task = generator_task(run.settings)
        shape = run.input_shape
    settings = task.settings
    assert settings.epochs is not None
    try:
        with training_bar(path.name or str(path)) as display:
            if len(shape) == 3 and shape[0] in (1, 3):
                keep = keep_stages(task.net, settings.epochs, path, settings.seed)
                display["on_record"] = both(display.get("on_record"), keep)
            records = fit_generator(task, path, **display)
    except training.Interrupted:
        typer.echo(f"resume with: obverse generate train --resume {quoted(path)}", err=True)
        raise
    if quick:
        echo_quick(f"{settings.epochs} epochs on {len(task.train_x):,} points", as_json)
    _say(path, settings, records[-1], as_json)
    if report:
        echo_page(RESULT, path, as_json)


def _say(
    path: Path, settings: GeneratorSettings, final: Mapping[str, Any], as_json: bool, finished: bool = False
) -> None:
    if as_json:
        print_json({"run": path, "settings": settings.to_dict(), "final": final})
    else:
        typer.echo(f"{path}{' is finished already' if finished else ''}: {describe(final)}")


def describe(record: Mapping[str, Any]) -> str:
    """The numbers of a record in a line. A record may come from a file: that they are numbers is checked."""
    if isinstance(record.get("test_elbo"), float):
        bound, reconstruction, kl = _numbers(record, "test_elbo", "test_reconstruction", "test_kl")
        return f"test ELBO {bound:.2f} nats per image (reconstruction {reconstruction:.2f}, KL {kl:.2f})"
    if isinstance(record.get("test_gap"), float):
        test, train = _numbers(record, "test_gap", "train_gap")
        return f"critic's gap {test:.3f} to test images, {train:.3f} to training images"
    return "nothing measured yet"


def _numbers(record: Mapping[str, Any], *names: str) -> list[float]:
    for name in names:
        if not isinstance(record.get(name), int | float):
            raise BadInput(
                f"a number for {name} in the last record of the run",
                got=record.get(name),
                do="restore its metrics.jsonl",
            )
    return [record[name] for name in names]


@contextmanager
def training_bar(title: str) -> Iterator[dict[str, Any]]:
    """Yields the display callbacks that `fit` takes: one bar, with the loss and what was last measured."""
    with layer_progress(title) as on_layer:
        measured, drawn = "", 0.0

        def on_step(step: int, total: int, loss: float) -> None:
            nonlocal drawn
            if time.monotonic() - drawn > REFRESH or step == total:
                on_layer(step, total, f"loss {loss:.3f}{measured}")
                drawn = time.monotonic()

        def on_record(record: Mapping[str, Any]) -> None:
            nonlocal measured
            for name, title in (("test_elbo", "ELBO"), ("test_gap", "gap")):
                if isinstance(record.get(name), float):
                    measured = f" · {title} {record[name]:.2f}"

        yield {"on_step": on_step, "on_record": on_record}


@generate_app.command(cls=Command)
def sample(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Run directory of `obverse generate train`, finished.",
            autocompletion=complete.run,
        ),
    ],
    count: Annotated[
        int, typer.Option(metavar="N", show_default=False, help="How many samples \\[1000].")
    ] = 1000,
    out: Annotated[
        Path | None,
        options.out_at(
            "the samples (to FILE.npz or FILE.npy as numbers, to FILE.png as one image, to a folder as "
            "images)",
            "RUN/samples.npz",
            "PLACE",
        ),
    ] = None,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace samples that are there already.")] = False,
    as_json: Json = False,
) -> None:
    """Draw samples from a trained generator: an .npz or .npy, one image, or a folder of images.

    Example: obverse generate sample runs/vae --count 5000 --out samples.npz
    """
    import torch

    from ...data import check_room
    from .._generators.charts import check_pictures
    from .._generators.fit import load_generator

    if count < 1:
        raise BadInput("--count ≥ 1", got=count, do="ask for at least one sample")
    check_seed(seed)
    place = run / "samples.npz" if out is None else out
    net = load_generator(run)
    if place.suffix not in (".npz", ".npy"):
        check_pictures(net.input_shape)
    check_room(count * torch.Size(net.input_shape).numel(), "the samples")
    check_place(place, force)
    generator = torch.Generator().manual_seed(seed)
    parts: list[Tensor] = []
    with layer_progress("samples") as on_layer:
        for done in range(0, count, BLOCK):
            on_layer(done, count, "")
            parts.append(net.sample(min(BLOCK, count - done), generator))
    write_samples(torch.cat(parts), place)
    if as_json:
        print_json({"samples": place, "run": run, "count": count, "seed": seed})
    else:
        typer.echo(f"samples: {place}")


def check_place(place: Path, force: bool) -> None:
    """Refuse what is there already; with `force`, all but samples that were written by this command."""
    if place.suffix not in ("", ".npz", ".npy", ".png") and not place.is_dir():
        raise BadInput(
            "--out as a .npz, .npy or .png file, or a folder", got=place.name, do="use one of these"
        )
    if not place.exists():
        return
    is_file = place.suffix in (".npz", ".npy", ".png")
    if place.is_dir() == is_file:
        raise BadInput(
            f"a {'file' if is_file else 'folder'} in {place}",
            got=f"a {'folder' if is_file else 'file'}",
            do="choose another --out",
        )
    if is_file:
        free = force
    else:
        names = [entry.name for entry in place.iterdir()]
        ours = all(name.startswith("sample-") and name.endswith(".png") for name in names)
        free = not names or (ours and force)
    if not free:
        raise BadInput(
            f"nothing in {place} yet",
            got="what may be wanted",
            do="choose another --out, or add --force to replace samples",
        )


def write_samples(samples: Tensor, place: Path) -> None:
    """By the name of the place; whole or not at all."""
    import numpy as np

    from .._generators.charts import levels, sheet, write_png

    with explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    numbers = samples.numpy()
    if place.suffix in (".npz", ".npy"):

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                if place.suffix == ".npz":
                    np.savez(file, x=numbers)
                else:
                    np.save(file, numbers)

        replace_atomically(place, write)
    elif place.suffix == ".png":
        height, width = samples.shape[2:]
        factor = max(1, 32 // max(height, width))
        write_png(place, sheet(levels(samples), max(1, round(len(samples) ** 0.5))), factor)
    else:
        _write_folder(levels(samples), place)


def _write_folder(pixels: Any, place: Path) -> None:
    from PIL import Image

    with explained(place):
        temporary = Path(tempfile.mkdtemp(prefix=f".{place.name[:40]}.", suffix=TEMPORARY, dir=place.parent))
        try:
            new = temporary / "new"
            new.mkdir()  # with the permissions that folders have here: those of `temporary` are narrower
            for number, one in enumerate(pixels):
                Image.fromarray(one).save(new / SAMPLE.format(number))
            if place.exists():
                os.replace(place, temporary / "old")
            os.replace(new, place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
