"""The curves of a generator's training, each an inline SVG with its caption. Not for reading results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

from ...present.palette import marker
from ...present.svg import INK, drawing, sentinel
from .._rundir import GeneratorRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (400, 280)
MOST_LINES = 7  # as many as there are colours
Pick = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class Line:
    """One number a record, with the place of its colour and marker."""

    name: str
    pick: Pick
    place: int
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A figure of the page: its SVG, and (place, name) of each line for the legend."""

    title: str
    caption: str
    svg: str
    legend: tuple[tuple[int, str], ...]


def key(name: str, sign: float = 1.0) -> Pick:
    def pick(record: Mapping[str, Any]) -> float | None:
        value = record.get(name)
        return None if value is None else sign * float(value)

    return pick


def item(name: str, index: int) -> Pick:
    return lambda record: record[name][index] if name in record else None


def charts(run: GeneratorRecord) -> list[Chart]:
    """Every part of the loss, in reading order."""
    held = "held out" if run.settings.validation else "test"
    return _game(run, held) if run.settings.is_game else _vae(run, held)


def _vae(run: GeneratorRecord, held: str) -> list[Chart]:
    bound = [Line(held, key("test_elbo"), 0), Line("training", key("train_loss", -1.0), 1, True)]
    if "test_elbo_binarized" in run.metrics[-1]:
        bound.append(Line(f"{held}, pixels 0 or 1", key("test_elbo_binarized"), 2))
    return [
        _chart(
            run,
            "bound",
            "The bound",
            bound,
            "nats a picture",
            "The ELBO: reconstruction less KL, a bound from below of log p(x). Higher is better.",
        ),
        _chart(
            run,
            "reconstruction",
            "Reconstruction",
            [
                Line(held, key("test_reconstruction"), 0),
                Line("training", key("train_reconstruction"), 1, True),
            ],
            "nats a picture",
            "log p(x|z) of a picture, its z drawn by the encoder. Higher is better.",
        ),
        _chart(
            run,
            "kl",
            "KL of the code",
            [Line(held, key("test_kl"), 0), Line("training", key("train_kl"), 1, True)],
            "nats a picture",
            "What the code z says about its picture: KL[q(z|x) ‖ N(0, I)]. At 0 it says nothing.",
        ),
    ]


def _game(run: GeneratorRecord, held: str) -> list[Chart]:
    made = [
        _chart(
            run,
            "gap",
            "The critic’s gap",
            [
                Line(f"{held} pictures", key("test_gap"), 0),
                Line("training pictures", key("train_gap"), 1, True),
            ],
            "gap",
            "Mean score of real pictures less that of samples, after the epoch. At 0 the critic sees no "
            "difference. Where the lines part, it knows the training pictures.",
        ),
        _chart(
            run,
            "critic",
            "In training",
            [
                Line("gap", key("critic_gap"), 0),
                Line("generator’s loss", key("generator_loss"), 2),
            ],
            "mean over the epoch",
            "The critic raises the gap, the generator lowers its part of it. The level of the generator’s "
            "loss alone means nothing: scores have no zero.",
        ),
        _chart(
            run,
            "penalty",
            "Gradient penalty",
            [Line("penalty", key("penalty"), 3)],
            "mean over the epoch",
            "(slope − 1)² of the critic between real pictures and samples: near 0 it has the slope that the "
            "Wasserstein distance asks for.",
        ),
    ]
    if run.settings.model == "mixture":
        made += _weights(run)
    return made


def _weights(run: GeneratorRecord) -> list[Chart]:
    count = run.settings.components
    shown = min(count, MOST_LINES)
    more = f" The first {shown} of {count}." if shown < count else ""
    made = [
        _chart(
            run,
            name,
            title,
            [Line(f"{index + 1}", item(name, index), index) for index in range(shown)],
            "weight",
            f"{about}{more}",
            zero=True,
            level=1 / count,
        )
        for name, title, about in (
            ("weights", "Weights of the generators", "Dotted: all alike. How often each is drawn."),
            ("critic_weights", "Weights of the critics", "Dotted: all alike. How much each counts."),
        )
    ]
    entropy = _chart(
        run,
        "entropy",
        "Entropy of the weights",
        [
            Line("generators", key("weights_entropy"), 0),
            Line("critics", key("critic_weights_entropy"), 1, True),
        ],
        "nats",
        f"Dotted: log {count}, all alike. At 0 one alone is left.",
        level=log(count),
    )
    return [*made, entropy]


def _chart(
    run: GeneratorRecord,
    name: str,
    title: str,
    lines: Sequence[Line],
    label: str,
    caption: str,
    *,
    zero: bool = False,
    level: float | None = None,
) -> Chart:
    """One point an evaluation. The untrained net is left out where there is more to see: it would flatten
    everything else."""
    from matplotlib.ticker import MaxNLocator

    first = 1 if run.metrics[-1]["epoch"] > 0 and not zero else 0
    measured = "test_gap" if run.settings.is_game else "test_elbo"
    drawn = []
    with drawing(name, f"{title} by epoch", SIZE) as figure:
        for line in lines:
            points = [
                (int(record["epoch"]), value)
                for record in run.metrics
                if measured in record
                and record["epoch"] >= first
                and (value := line.pick(record)) is not None
            ]
            if points:
                _draw(figure.axes, points, line)
                drawn.append((line.place, line.name))
        if level is not None:
            figure.axes.axhline(level, color=INK, linewidth=1, linestyle=(0, (1, 2)))
        if zero:
            figure.axes.set_ylim(bottom=0)
        figure.axes.set_xlabel("epoch")
        figure.axes.set_ylabel(label)
        figure.axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
        figure.axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    return Chart(title, caption, figure.svg, tuple(drawn))


def _draw(axes: Axes, points: Sequence[tuple[int, float]], line: Line) -> None:
    colour, step = sentinel(line.place), max(1, round(len(points) / 7))
    axes.plot(
        [epoch for epoch, _ in points],
        [value for _, value in points],
        color=colour,
        linestyle=(0, (4, 2)) if line.dashed else "-",
        marker=marker(line.place),
        markevery=(line.place % step, step),  # about seven a line, and not on top of one another
        markeredgewidth=0,
    )
