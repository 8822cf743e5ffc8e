"""The updates of an adapter, layer by layer. Not for audits of whole weights: see _nets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core import NONE, named, number, plain
from ...present import Look, Panel, Table, plots, show
from .._adapters.results import AdaptedLayer, AdapterAudit
from .._adapters.words import remark

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _ranks(found: AdapterAudit, axes: Axes, ink: plots.Ink) -> None:
    """How much of its rank each update uses; the bound by construction beside it."""
    rows = [
        (one.name, [plots.Mark(one.effective_rank), plots.Mark(float(one.rank), hollow=True, series=1)])
        for one in found.layers
    ]
    plots.interval_rows(axes, ink, rows, "effective rank (filled), rank by construction (hollow)", "layers")
    axes.set_xlim(left=0)


def _line(one: AdaptedLayer) -> tuple[str, ...]:
    return (
        named(one.name, "(no name)"),
        f"{one.rows} × {one.columns}",
        str(one.rank),
        NONE if one.for_90 is None else str(one.for_90),
        NONE if one.effective_rank is None else f"{one.effective_rank:.1f}",
        number(one.norm),
        plain(remark(one), 300),
    )


def _rows(found: AdapterAudit) -> list[dict[str, Any]]:
    """Without the singular values, which are no single number."""
    simple = (one.to_dict() for one in found.layers)
    return [
        {name: value for name, value in one.items() if name not in ("values", "on_base")}
        | {f"on_base_{name}": value for name, value in (one["on_base"] or {}).items()}
        for one in simple
    ]


show(
    Look(
        AdapterAudit,
        (
            Panel(
                "rank",
                _ranks,
                lambda it: plots.rows_size(len(it.layers), 5.6),
                lambda it: any(not one.is_zero for one in it.layers),
            ),
        ),
        lambda it: Table(
            ("layer", "size", "rank", "90 %", "effective", "norm", "remark"),
            [_line(one) for one in it.layers],
        ),
        _rows,
        lambda it: it.summary,
    )
)
