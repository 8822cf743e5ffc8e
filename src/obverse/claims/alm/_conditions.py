"""The conditions under which the theorems of the reversibility paper speak. Nothing is measured here."""

from __future__ import annotations

from torch import Tensor

from ..._core import BadInput
from ..results import Setting


def check_layer(setting: Setting) -> None:
    """n inputs, m units, k of them active, t inputs kept: what of these `setting` names must fit together."""
    for name, meaning in (
        ("n", "inputs"),
        ("m", "units"),
        ("k", "non-zeros of h: its support must not be empty (eq. 8)"),
        ("t", "inputs kept on average, t = ρn"),
    ):
        value = setting.get(name, 1)
        if not isinstance(value, int | float) or not value > 0:
            raise BadInput(f"{name} > 0, the number of {meaning}", got=value, do=f"raise {name}")
    if "k" in setting and "m" in setting and setting["k"] > setting["m"]:
        raise BadInput(
            "k ≤ m: h has m coordinates, at most k of them not zero (eq. 8)",
            got=f"k = {setting['k']}, m = {setting['m']}",
            do="lower k or raise m",
        )
    if "t" in setting and "n" in setting and setting["t"] > setting["n"]:
        raise BadInput(
            "ρ = t/n in (0, 1]: the mask keeps t of n inputs (eq. 2)",
            got=f"t = {setting['t']}, n = {setting['n']}",
            do="lower t or raise n",
        )


def check_keep(keep: float) -> None:
    if not 0 < keep <= 1:
        raise BadInput(
            "ρ in (0, 1], the share of inputs that the mask keeps (eq. 2)", got=keep, do="change ρ"
        )


def check_hidden(h: Tensor) -> None:
    """h ≥ 0 and not zero, row by row (eq. 8)."""
    if h.numel() and bool((h < 0).any()):
        raise BadInput("h ≥ 0: it stands behind a ReLU (eq. 8)", got=f"{float(h.min()):.3g}", do="clip it")
    if h.numel() == 0 or not bool((h > 0).any(-1).all()):
        raise BadInput("h with a support (eq. 8): not all zero", got="an h of zeros", do="leave it out")
