"""`decide`: an audit as a file that can be pasted."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core import BadInput
from .._difference.results import Difference
from ..results import Audit
from . import axolotl, compress, peft
from .kinds import FORMATS, PREFER, TOP
from .results import Decision


def decide(
    audit: Audit | Difference,
    kind: str,
    *,
    format: str | None = None,
    top: float | None = None,
    prefer: str | None = None,
    max_rank: int | None = None,
) -> Decision:
    """Which layers to train or to compress, and with which ranks: nothing is measured for it.

    `kind` is "lora" or "compress"; the `format` of "lora" is "peft" (the default), with at most `max_rank`
    directions per layer, or "axolotl", with the `top` percent of each kind of matrix, those first that have
    most "signal" or are most "random", as `prefer` says. Of a `Difference` the ranks are those of what
    changed, for "peft" alone. Raises `BadInput` where there is nothing to choose.
    """
    format = check(kind, format, top=top, prefer=prefer, max_rank=max_rank)
    if isinstance(audit, Difference):
        if format != "peft":
            raise BadInput(
                "the audit of one net for this format", got="what changed between two", do="use lora and peft"
            )
        return peft.for_peft(audit, max_rank=max_rank)
    if kind == "compress":
        return compress.for_compress(audit)
    if format == "axolotl":
        return axolotl.for_axolotl(audit, top=TOP if top is None else top, prefer=prefer or PREFER[0])
    return peft.for_peft(audit, max_rank=max_rank)


def check(
    kind: str,
    format: str | None = None,
    *,
    top: float | None = None,
    prefer: str | None = None,
    max_rank: int | None = None,
) -> str:
    """The format, where what was asked for fits together."""
    if kind not in FORMATS:
        raise BadInput(_options("a decision", FORMATS), got=repr(kind), do="choose one of them")
    format = FORMATS[kind][0] if format is None else format
    if format not in FORMATS[kind]:
        raise BadInput(
            _options(f"a format of {kind}", FORMATS[kind]), got=repr(format), do="choose one of them"
        )
    asked = {"top": top, "prefer": prefer, "max_rank": max_rank}
    own = {"axolotl": ("top", "prefer"), "peft": ("max_rank",)}.get(format, ())
    wrong = [name for name, value in asked.items() if value is not None and name not in own]
    if wrong:
        raise BadInput(
            f"settings that the format {format} has: {', '.join(own) or 'none'}",
            got=wrong[0],
            do="leave it out",
        )
    if top is not None and not 0 < top <= 100:
        raise BadInput("top in percent, above 0 and at most 100", got=top, do="25 is the default")
    if prefer is not None and prefer not in PREFER:
        raise BadInput(_options("prefer", PREFER), got=repr(prefer), do="choose one of them")
    if max_rank is not None and max_rank < 1:
        raise BadInput("a largest rank of at least 1", got=max_rank, do="correct it, or leave it out")
    return format


def _options(what: str, names: Sequence[str] | dict[str, tuple[str, ...]]) -> str:
    return f"{what} out of {', '.join(names)}"
