"""`obverse audit`: what in each layer is signal, what is random? One model, or one against another."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core import NONE, BadInput, NetRun, explained, named, run_access, write_text
from ..present import (
    Column,
    GivenSeed,
    Json,
    Layers,
    check_seed,
    complete,
    echo_quick,
    layer_progress,
    make_folder,
    open_console,
    options,
    print_grid,
    print_result,
    say,
    select,
    write_result,
)
from ..shadow import OWN
from ._against import CLEAR, Change, Comparison, LayerChange
from ._verdict import KEEP, SAMPLES, Thresholds
from .results import AGAINST, NAME, Audit, Verdict, read_audit, rows

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..data import Dataset
    from ._readers.module import Weight

FAILED = 3
FAIL_ON: dict[str, tuple[Verdict, ...]] = {
    "never": (),
    "structured": ("structured otherwise",),
    "mostly-signal": ("structured otherwise", "mostly signal"),
    "signal": ("structured otherwise", "mostly signal", "signal in a random bulk"),
}
QUICK: dict[str, Any] = {"samples": 8, "exact": False}


def audit(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Weight file (.safetensors, .pt, .npz, .npy, .onnx), folder of shards, run directory, "
            "or an audit.json made before.",
            autocompletion=complete.model,
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="Say what changed from OTHER to MODEL: anything MODEL can be, or `initial`, "
            "a run's net before training.",
            autocompletion=complete.model,
        ),
    ] = None,
    data: Annotated[
        str | None,
        options.data(
            "none",
            lead="Measure recovery on the layers' own activations too, of a run: `own`, its test set; ",
        ),
    ] = None,
    data_root: Annotated[str | None, options.data_root("that of the run")] = None,
    layers: Layers = None,
    fail_on: Annotated[
        str,
        options.choice(
            "Exit with status 3: `never`; for layers `structured` otherwise than by a signal in random "
            "numbers; for `mostly-signal` too; or for any `signal` \\[never].",
            *FAIL_ON,
            metavar="WHEN",
        ),
    ] = "never",
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="From which size on a deviation counts; repeat for more. "
            + ", ".join(f"{field.name}={field.default:g}" for field in fields(Thresholds))
            + ".",
        ),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(metavar="P", help=f"Share of a layer's inputs kept \\[{KEEP:g}]."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"Draws of h for each sparsity \\[{SAMPLES:g}]."),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Compute all singular values of large layers too (1,536 rows and columns or more).",
        ),
    ] = False,
    quick: Annotated[
        bool,
        options.quick(f"{QUICK['samples']} draws of h, the largest singular values only"),
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Instead: does the net need each layer's signal and bulk? MODEL is then a run, or "
            "module:factory ([bold]this runs your code[/bold]) with --data.",
        ),
    ] = False,
    seed: GivenSeed = None,
    out: Annotated[Path | None, options.out("audit.json, audit.csv and audit.html")] = None,
    as_json: Json = False,
) -> None:
    """What in each layer is signal, what is like random numbers, and how much of each?

    Exit status: 0 done, 2 something to put right, 3 what --fail-on names was found.

    Example: obverse audit model.safetensors --out audits/first --fail-on structured
    """
    options.check_choice("--fail-on", fail_on, FAIL_ON)
    if ablate:
        from ._ablation.command import run_ablation

        if against is not None or threshold or fail_on != "never" or exact or (keep, samples) != (None,) * 2:
            raise BadInput(
                "--ablate with --data, --data-root, --layers, --quick, --seed, --out or --json",
                got="a flag of the audit's own tests",
                do="leave it out",
            )
        run_ablation(str(model), data, data_root, layers, quick=quick, seed=seed, out=out, as_json=as_json)
        return
    from ._against import compare_audits
    from .page import RESULT

    if seed is not None:
        check_seed(seed)
    if exact and quick:
        raise BadInput("--exact or --quick", got="both", do="leave one out")
    given = {"keep": keep, "samples": samples, "exact": exact or None, "seed": seed}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if quick:
        settings = QUICK | settings
    thresholds = parse_thresholds(threshold or [])
    subjects = [open_subject(model, data, data_root)]
    if against is not None:
        subjects.append(open_other(against, model, data, data_root))
    useless = [*(["data"] if data else []), *(["threshold"] if threshold else []), *settings]
    if useless and all(isinstance(one.net, Audit) for one in subjects):
        raise BadInput(
            "a model to measure with these settings",
            got=f"{model}, which is measured already",
            do=f"leave out {', '.join(f'--{name}' for name in useless)}",
        )
    make_folder(out)
    found, *others = [measure(one, layers, thresholds=thresholds, **settings) for one in subjects]
    other = others[0] if others else None
    comparison = None if other is None else compare_audits(other, found)
    small = f"{settings['samples']} draws of h for each sparsity" if quick else ""
    if comparison is None:
        print_result(found, RESULT, print_audit, as_json=as_json, quick=small)
    else:
        if quick:
            echo_quick(small, as_json)
        if as_json:
            typer.echo(json.dumps(comparison.to_dict(), allow_nan=False))
        else:
            print_comparison(comparison)
    if out is not None:
        write_result(
            found,
            RESULT,
            out,
            as_json=as_json,
            files=partial(write_beside, found, other),
            beside=("audit.csv", AGAINST),
        )
    failing = [layer.name for layer in found.layers if layer.verdict in FAIL_ON[fail_on]]
    if failing:
        typer.echo(f"obverse: --fail-on {fail_on}: {len(failing)} of {len(found.layers)} layers", err=True)
        raise typer.Exit(FAILED)


def parse_thresholds(words: list[str]) -> Thresholds:
    """Thresholds from NAME=VALUE words."""
    kinds: dict[str, Callable[[str], float]] = {
        field.name: int if isinstance(field.default, int) else float for field in fields(Thresholds)
    }
    values: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in kinds:
            raise BadInput(f"--threshold out of {', '.join(kinds)}", got=repr(word), do="write NAME=VALUE")
        try:
            values[name] = kinds[name](text)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]):
            kind = "a whole number" if kinds[name] is int else "a number"
            raise BadInput(f"{kind} for the threshold {name}", got=repr(text), do="correct --threshold")
    return Thresholds(**values)


def write_beside(found: Audit, other: Audit | None, out: Path) -> tuple[str, ...]:
    """audit.csv, and against.json for what it is compared with."""
    from .results import to_csv, write_audit

    if other is not None:
        write_audit(other, out / AGAINST)
    else:  # one that lies there is not about this audit
        with explained(out):
            (out / AGAINST).unlink(missing_ok=True)
    write_text(out / "audit.csv", to_csv(found))
    return ()


COLOURS: dict[Verdict, str] = {
    "untouched": "green",
    "signal in a random bulk": "cyan",
    "mostly signal": "magenta",
    "structured otherwise": "red",
    "cannot tell": "yellow",
    "not judged": "dim",
}
SHORT: dict[Verdict, str] = {
    "untouched": "untouched",
    "signal in a random bulk": "signal",
    "mostly signal": "mostly signal",
    "structured otherwise": "structured",
    "cannot tell": "cannot tell",
    "not judged": "not judged",
}
CONSTANT = 1e6  # |mean| / std of offsets that are all the same but for rounding
NORMAL = "distance of the entries to a normal law"
LAW = "distance of the bulk to the law of random numbers"
SHARE = "share of the energy that is like random numbers, its 95 % interval"
RANK = "directions that carry the signal, of all there are"
RATIO = "recovery error ÷ that of the same entries shuffled, at the sparsity where it is surely largest"


def print_audit(audit: Audit) -> None:
    """A sentence about each layer in which there is something to say, the table, the summary."""
    console = open_console()
    for layer in audit.layers:
        if layer.verdict not in ("untouched", "not judged"):
            say(console, f"{layer.name}: {layer.parts.sentence if layer.parts else layer.sentence}")
    print_grid(console, audit_columns(audit), "more than noise shows: what the verdict rests on")
    say(console, audit.summary, "bold")
    if audit.family:
        say(console, audit.family)


def print_comparison(comparison: Comparison) -> None:
    """The table of what changed, the layers that only one audit has, the summary."""
    console = open_console()
    say(console, f"{comparison.before} → {comparison.after}")
    if comparison.layers:
        print_grid(console, comparison_columns(comparison), f"changed by more than {CLEAR:g} standard errors")
    for side, names in (("before", comparison.only_before), ("after", comparison.only_after)):
        if names:
            say(console, f"only {side}: {', '.join(names)}")
    for note in comparison.notes:
        say(console, f"note: {note}")
    say(console, comparison.summary, "bold")


def audit_columns(audit: Audit) -> list[Column]:
    """All there is to show; `grid` leaves out what has no room."""
    table = rows(audit)

    def column(
        title: str,
        cell: Callable[[dict[str, Any]], str],
        meaning: str = "",
        *,
        needs: str = "layer",
        aspect: str = "",
        **look: Any,
    ) -> Column:
        """`cell` of rows with a value in the column `needs`; a deciding finding about `aspect` marks it."""
        cells = tuple(NONE if row[needs] is None else cell(row) for row in table)
        marked = frozenset(
            at for at, layer in enumerate(audit.layers) if cells[at] != NONE and aspect in layer.off
        )
        return Column(title, cells, meaning, marked, **look)

    return [
        column("layer", lambda row: str(row["layer"]), left=True),
        column("shape", lambda row: f"{row['rows']}×{row['columns']}", drop=1),
        column("random", lambda row: f"{row['random_share']:.0%}", SHARE, needs="random_share"),
        column(
            "95 %",
            lambda row: f"{100 * row['random_share_low']:.0f}–{row['random_share_high']:.0%}",
            needs="random_share",
            drop=4,
        ),
        column("signal", _rank, RANK, needs="rank", aspect="parts"),
        column("bulk", _distance, LAW, needs="distance", drop=3),
        column(
            "law",
            lambda row: str(row["entries_best_law"]).removeprefix("Student "),
            "that fits the entries best",
            needs="entries_best_law",
            left=True,
            drop=7,
        ),
        column(
            "KS",
            lambda row: f"{row['entries_ks']:.3f}",
            NORMAL,
            needs="entries_ks",
            drop=5,
        ),
        column(
            "offsets",
            lambda row: _ratio(row["offsets_ratio"]),
            "|mean|/std of the biases",
            needs="offsets_ratio",
            drop=8,
        ),
        column(
            "norms",
            lambda row: f"{max(row['row_norms'], row['column_norms']):.2f}",
            "spread of the squared norms of rows or columns",
            needs="row_norms",
            drop=9,
        ),
        column(
            "cosine",
            _cosine,
            "between rows or columns, over chance",
            drop=10,
        ),
        column(
            "ratio",
            lambda row: _ratio(row["recovery_ratio"]),
            RATIO,
            needs="recovery_ratio",
            drop=2,
        ),
        column(
            "verdict",
            lambda row: str(row["verdict"]),
            left=True,
            styles=tuple(COLOURS[layer.verdict] for layer in audit.layers),
        ),
    ]


def comparison_columns(comparison: Comparison) -> list[Column]:
    layers = comparison.layers

    def column(
        title: str, changes: list[Change | None], digits: int, meaning: str = "", drop: int = 0
    ) -> Column:
        cells = tuple(
            NONE if one is None else f"{one.before:.{digits}f} → {one.after:.{digits}f}" for one in changes
        )
        marked = frozenset(at for at, one in enumerate(changes) if one is not None and one.clear)
        return Column(title, cells, meaning, marked, drop)

    return [
        Column("layer", tuple(one.name for one in layers), left=True),
        Column(
            "verdict",
            tuple(_turn(one) for one in layers),
            left=True,
            styles=tuple(
                COLOURS[one.verdict_after] if one.verdict_before != one.verdict_after else ""
                for one in layers
            ),
        ),
        column("random", [one.random_share for one in layers], 2, "share of the energy"),
        column("signal", [one.rank for one in layers], 0, "directions"),
        column("ratio", [one.ratio for one in layers], 2, RATIO, drop=1),
        column("bulk", [one.distance for one in layers], 3, LAW, drop=2),
        column("KS", [one.ks for one in layers], 3, NORMAL, drop=3),
    ]


def _ratio(value: float) -> str:
    if value >= CONSTANT:
        return "∞"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _rank(row: dict[str, Any]) -> str:
    """Of how many, with ≥ where there may be more; and the number of values below the bulk."""
    size = min(row["rows"] - row["dead_rows"], row["columns"] - row["dead_columns"])
    least = "≥" if row["rank_is_bound"] else ""
    below = f" −{row['values_below']}" if row["values_below"] else ""
    return f"{least}{row['rank']}/{size}{below}"


def _distance(row: dict[str, Any]) -> str:
    """With ≈ where it is that of an estimated density."""
    return f"{'≈' if row['method'] == 'krylov' else ''}{row['distance']:.3f}"


def _cosine(row: dict[str, Any]) -> str:
    found = [row[name] for name in ("row_cosine_rms", "column_cosine_rms") if row[name] is not None]
    return f"{max(found):.2f}" if found else NONE


def _turn(one: LayerChange) -> str:
    if one.verdict_before == one.verdict_after:
        return SHORT[one.verdict_after]
    return f"{SHORT[one.verdict_before]} → {SHORT[one.verdict_after]}"


INITIAL = "initial"


@dataclass(frozen=True)
class Subject:
    """What is to be audited, opened but not measured; an audit that is read needs no measuring."""

    name: str
    net: nn.Module | tuple[Weight, ...] | Audit
    data: Tensor | None = None


def open_subject(path: Path, data: str | None, data_root: str | None) -> Subject:
    """An audit, the net of a run with its data, or weights."""
    from ._readers.open import open_weights

    if is_audit(path):
        return Subject(str(path), read_audit(path))
    if data is None:
        file = taken(path)
        return Subject(str(file), open_weights(file))
    run, own = open_run(path, data_root)
    return Subject(str(path), run.trained(own), inputs(path, run, own, data, data_root))


def taken(path: Path) -> Path:
    """A file or a run as it is; of another folder the file in it, which is said, as nobody has named it."""
    from ._readers.open import file_in, is_run

    if not path.is_dir() or is_run(path):
        return path
    file = file_in(path)
    typer.echo(f"{named(str(path))}: {named(file.name)} is audited", err=True)
    return file


def open_other(against: str, model: Path, data: str | None, data_root: str | None) -> Subject:
    """The same for what it is compared with."""
    if against != INITIAL or Path(against).exists():
        return open_subject(Path(against), data, data_root)
    run, own = open_run(model, data_root, "--against initial")
    x = None if data is None else inputs(model, run, own, data, data_root)
    return Subject(f"{model} before training", run.initial(own).eval(), x)


def is_audit(path: Path) -> bool:
    """A JSON file other than the index of a folder of shards, or a directory with an audit and no weights."""
    if path.is_dir():
        return (path / NAME).is_file() and not any(path.glob("*.safetensors*"))
    return path.suffix == ".json" and not path.name.endswith(".index.json")


def open_run(path: Path, data_root: str | None, flag: str = "--data") -> tuple[NetRun, Dataset]:
    """A run, and the data it was trained on: they say what shape its net has."""
    from ..data import load

    if not (path / "config.json").is_file():
        raise BadInput(
            f"the directory of a run for {flag}: weights alone cannot be run",
            got=path,
            do="leave it out, or use Python: obverse.audit(net, data=x)",
        )
    run = run_access().open_net(path)
    return run, load(run.data, data_root or run.data_root)


def inputs(path: Path, run: NetRun, own: Dataset, name: str, data_root: str | None) -> Tensor:
    """The test set of the run, or of another data set of the same shape."""
    from ..data import load

    if name in (OWN, own.name, run.data):
        return own.test_x
    other = load(name, data_root or run.data_root)
    if other.input_shape != own.input_shape:
        raise BadInput(
            f"inputs of shape {own.input_shape}, as {path} takes them",
            got=f"{other.input_shape} in {name}",
            do="use --data own",
        )
    return other.test_x


def measure(subject: Subject, pattern: str | None, **options: Any) -> Audit:
    """The audit of the layers whose names match the pattern."""
    from ._audit import audit as measured

    net = subject.net
    if isinstance(net, Audit):
        return matching(net, pattern)
    if isinstance(net, tuple):
        names = select([one.name for one in net], pattern)
        net = tuple(one for one in net if one.name in names)
    with layer_progress(Path(subject.name).name) as progress:
        found = measured(net, model=subject.name, data=subject.data, progress=progress, **options)
    return matching(found, pattern)


def matching(whole: Audit, pattern: str | None) -> Audit:
    names = select([layer.name for layer in whole.layers], pattern)
    return replace(whole, layers=tuple(layer for layer in whole.layers if layer.name in names))
