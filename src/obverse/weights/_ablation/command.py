"""`obverse audit … --ablate`: what does the net need of its layers? Hands over from the audit's command."""

from __future__ import annotations

from pathlib import Path

from ..._core import NONE, BadInput, NoSuchFile
from ...present import (
    Column,
    check_seed,
    deliver,
    layer_progress,
    make_folder,
    open_console,
    print_grid,
    say,
    select,
)
from .._verdict import Thresholds
from .results import Ablation, LayerAblation, Treatment
from .words import about, bend_of, is_clear, sentences, subject, value

INPUTS, QUICK_INPUTS = 2000, 200  # of the test set, at most
RECALIBRATION = 1000  # training inputs for batch norms, at most
DROP: dict[Treatment, int] = {
    "bulk shuffled": 6,
    "directions random": 4,
    "random directions removed": 3,
    "noise added": 5,
    "rounded": 2,
}
SHORT: dict[Treatment, str] = {
    "random directions removed": "random removed",
    "noise added": "noise",
}


def run_ablation(
    model: str,
    data: str | None,
    data_root: str | None,
    layers: str | None,
    *,
    quick: bool,
    seed: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure on test inputs of the data, print, and write ablation.json and its page."""
    import torch

    from ...shadow import check_runs, open_net
    from .._readers.module import weights_of
    from .ablate import ablate
    from .page import RESULT
    from .scores import batch_norms

    seed = 0 if seed is None else seed
    check_seed(seed)
    if not Path(model).exists() and ":" not in model:
        raise NoSuchFile(model, "a net of your own is named module:factory, e.g. mynets:resnet")
    if not Path(model).is_dir() and ":" not in model:
        raise BadInput(
            "the directory of a run, or module:factory, for --ablate",
            got=model,
            do="weights alone cannot be run: name what makes the net",
        )
    name, net, found = open_net(model, data, data_root, None, [], seed)
    order = torch.randperm(len(found.test_y), generator=torch.Generator().manual_seed(seed))
    order = order[: QUICK_INPUTS if quick else INPUTS]
    x, y = found.test_x[order], found.test_y[order]
    check_runs(net, x[:2], name)
    names = [weight.name for weight in weights_of(net)]
    wanted = select(names, layers)
    make_folder(out)
    with layer_progress(name) as progress:
        result = ablate(
            net,
            x,
            y,
            layers=wanted,
            recalibrate=found.train_x[:RECALIBRATION] if batch_norms(net) else None,
            alpha=Thresholds().level,  # as the audit has it, so that k is the same
            model=name,
            generator=torch.Generator().manual_seed(seed),
            progress=progress,
        )
    quick_note = f"{len(x)} test inputs" if quick else ""
    deliver(result, RESULT, print_ablation, out=out, as_json=as_json, quick=quick_note)


def print_ablation(found: Ablation) -> None:
    """What was measured, the table, what it says, and the summary."""
    console = open_console()
    say(console, subject(found))
    if found.treated:
        print_grid(console, ablation_columns(found), "differs from untreated by more than 3 standard errors")
    for sentence in sentences(found):
        say(console, sentence)
    say(console, found.summary, "bold")


def ablation_columns(found: Ablation) -> list[Column]:
    """All there is to show; `print_grid` leaves out what has no room."""
    rows: list[LayerAblation | None] = [None, *found.treated]  # None: all at once

    def column(treatment: Treatment) -> Column:
        effects = [found.effect(treatment) if row is None else row.effect(treatment) for row in rows]
        scores = [None if effect is None else effect.score for effect in effects]
        return Column(
            SHORT.get(treatment, treatment),
            tuple(value(found.measure, score) for score in scores),
            marked=frozenset(at for at, score in enumerate(scores) if score is not None and is_clear(score)),
            drop=DROP.get(treatment, 0),
        )

    return [
        Column("layer", tuple("all at once" if row is None else row.name for row in rows), left=True),
        Column(
            "k",
            tuple(NONE if row is None else about(row) for row in rows),
            "directions that carry the signal",
            drop=1,
        ),
        Column(
            "bend",
            tuple(NONE if row is None else bend_of(row) for row in rows),
            "directions kept that reach 95 % of what all add",
            drop=7,
        ),
        *(column(one.treatment) for one in found.together),
    ]
