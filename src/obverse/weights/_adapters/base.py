"""The base layer of an adapted one: found by its name, and the update measured against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..._core import BadInput, listed
from .._decomposition.marchenko_pastur import threshold_strength
from .._decomposition.parts import Parts, decompose
from .._readers.stored import Weight, finite
from .files import Factors
from .product import singular_values
from .results import OnBase

_NOTES = {
    "cannot tell": "what in the base layer is random cannot be told",
    "structured otherwise": "the base layer has no bulk like random numbers to stand out of",
}
_SOLID = ("untouched", "signal in a random bulk", "mostly signal")


class Base:
    """The weights of a base by the names of their modules: one matrix, or the parts of a fused weight."""

    def __init__(self, weights: Sequence[Weight], origin: str) -> None:
        self.origin = origin
        self.fused_inputs_first = any(one.tensor.endswith("c_attn.weight") for one in weights)
        self._stems: dict[str, list[Weight]] = {}
        self._ends: dict[str, set[str]] = {}
        for weight in weights:
            stem = (weight.tensor or weight.name).removesuffix("weight").rstrip("._")
            self._stems.setdefault(stem, []).append(weight)
            for end in _ends(stem):
                self._ends.setdefault(end, set()).add(stem)

    def layers(self, module: str) -> tuple[Weight, ...]:
        """Those of a module; in one of the two its name may have more before it (`model.`)."""
        if module in self._stems:
            return tuple(self._stems[module])
        longer = self._ends.get(module, set())
        if len(longer) == 1:
            return tuple(self._stems[next(iter(longer))])
        shorter = next((end for end in _ends(module) if end in self._stems), None)
        return tuple(self._stems[shorter]) if shorter is not None and not longer else ()

    def check(self, factors: Sequence[Factors]) -> None:
        """Whether every adapted layer is there in its shape; says which ones are not."""
        missing, wrong = [], []
        for one in factors:
            found = self.layers(one.module)
            if not found:
                missing.append(one.name)
            elif not _fits(found, one):
                sides = " + ".join(f"{weight.rows}×{weight.columns}" for weight in found[:4])
                wrong.append(f"{one.name} ({sides} in place of {one.rows}×{one.columns})")
        if missing or wrong:
            got = [f"no {listed(missing, 5)}"] if missing else []
            got += [listed(wrong, 5)] if wrong else []
            raise BadInput(
                f"the layers that the adapter changes in {self.origin}",
                got="; ".join(got),
                do="name the base that it was trained on",
            )


def _ends(name: str) -> Iterator[str]:
    """`b.c` and `c` of `a.b.c`."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def _fits(found: Sequence[Weight], factors: Factors) -> bool:
    if all(weight.left_out for weight in found):
        return True  # packed: said elsewhere
    rows = sum(weight.rows for weight in found)
    same = {weight.columns for weight in found} == {factors.columns} and rows == factors.rows
    turned = len(found) == 1 and (found[0].columns, found[0].rows) == (factors.rows, factors.columns)
    return same or turned


def beside_base(
    factors: Factors,
    left: Tensor,
    right: Tensor,
    scaling: float,
    base: Base,
    alpha: float,
    generator: torch.Generator,
) -> OnBase | None:
    """Size and strength of an update beside its base layer, and the sum of both taken apart."""
    found = base.layers(factors.module)
    if any(one.left_out for one in found):
        return None
    whole = found[0].load() if len(found) == 1 else torch.cat([one.load() for one in found])
    if whole.shape != (factors.rows, factors.columns):
        whole = whole.T.contiguous()
    norm = float(torch.linalg.vector_norm(whole.double()))
    if norm == 0:
        return None
    size = float((singular_values(left, right, scaling) ** 2).sum() ** 0.5)
    before = decompose(whole, alpha=alpha, generator=generator)
    threshold, above = _above(before, left, right, scaling)
    both = torch.addmm(whole, left.float(), right.float(), alpha=scaling)
    finite(both, f"base + adapter of {factors.name}")
    after = decompose(both, alpha=alpha, generator=generator)
    return OnBase(
        relative=size / norm,
        threshold=threshold,
        above=above,
        before=before.rank,
        after=after.rank,
        is_bound=before.summary.rank_is_bound or after.summary.rank_is_bound,
        grade_before=before.grade,
        grade_after=after.grade,
        note="" if threshold is not None else _NOTES.get(before.grade, ""),
    )


def _above(base: Parts, left: Tensor, right: Tensor, scaling: float) -> tuple[float | None, int | None]:
    """The least strength that shows in the base's bulk, and how many directions have it; without profile."""
    if base.grade not in _SOLID or base.summary.scale <= 0:
        return None, None
    rows, columns = base.row_scales > 0, base.column_scales > 0
    left, right = left[rows] / base.row_scales[rows, None], right[:, columns] / base.column_scales[columns]
    threshold = threshold_strength(len(left), right.shape[1], base.summary.scale)
    return threshold, int((singular_values(left, right, scaling) > threshold).sum())
