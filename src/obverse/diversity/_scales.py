"""Whether pictures and what they are compared with are on one scale: bytes beside shares look like failure.

Not for judging: a generator may leave the range of the data, so this says what it saw and refuses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

REACH = 0.5  # of the width of the data, by which samples may leave it
WIDER = 3.0  # times its width
UNIT = 0.01  # by which values that fill [0, 1] may miss its ends


def scale_notes(samples: Tensor, data: Mapping[str, Tensor | None]) -> tuple[str, ...]:
    """A sentence where samples can't be on the scale of the data, by name; none where they may be.

    Samples that reach far beyond the data are on another scale; those of a smaller range may be collapsed,
    and are so only where they fill [0, 1] and the data does not.
    """
    own = _range(samples)
    ranges = {name: _range(x) for name, x in data.items() if x is not None}
    apart = {name: other for name, other in ranges.items() if differ(own, other)}
    if not apart:
        return ()
    others = ", ".join(f"those of the {name} data {_said(other)}" for name, other in apart.items())
    return (
        f"The values of the samples run {_said(own)}, {others}. If these are two scales, nothing that "
        "compares them means anything: bring both to one, such as [0, 1].",
    )


def differ(own: tuple[float, float], other: tuple[float, float]) -> bool:
    """Ranges (low, high) of samples and data that can't well be of one scale."""
    width = other[1] - other[0]
    beyond = max(other[0] - own[0], own[1] - other[1])
    if beyond > REACH * width or own[1] - own[0] > WIDER * width:
        return True
    unit = abs(own[0]) <= UNIT and abs(own[1] - 1) <= UNIT
    return unit and max(own[0] - other[0], other[1] - own[1]) > REACH


def _range(x: Tensor) -> tuple[float, float]:
    low, high = x.aminmax()
    return float(low), float(high)


def _said(ends: tuple[float, float]) -> str:
    return f"from {ends[0]:.3g} to {ends[1]:.3g}".replace("-", "−")
