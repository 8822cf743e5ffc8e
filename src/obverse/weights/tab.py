"""The Audit tab: one layer of the net against random numbers of its shape, with pictures. Not verdicts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from ..present import Fields, Subject, Tab
from . import charts as small
from ._audit import audit
from ._verdict import Thresholds
from .page import card
from .results import LayerAudit

LARGEST = 2**23  # entries of a layer


def audit_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """One layer: verdict, sentence, random share, and the small charts as SVG."""
    names = [one.name for one in subject.weights]
    name = fields.choice("layer", names)
    keep = fields.number("keep", 0.05, 1.0)
    weight = subject.weight(name)
    if weight.rows * weight.columns > LARGEST:
        sentence = (
            f"too large to audit while you wait ({weight.rows:,} × {weight.columns:,}): use obverse audit"
        )
        layer = LayerAudit(name, weight.kind, weight.rows, weight.columns, "not judged", sentence)
    else:
        generator = torch.Generator().manual_seed(0)  # the same answer whenever it is asked
        (layer,) = audit((weight,), keep=keep, generator=generator).layers
    shown = card(layer, asdict(Thresholds()))
    worst, share = layer.worst(), layer.random_share
    return {
        "name": name,
        "shape": f"{weight.rows:,} × {weight.columns:,}",
        "kind": weight.kind,
        "verdict": layer.verdict,
        "tone": shown.tone,
        "sentence": layer.sentence,
        "random_share": None if share is None else [share.value, share.low, share.high],
        "random_is_bound": share is not None and share.is_bound,
        "rank": None if layer.parts is None else layer.parts.rank,
        "ratio": None if worst is None else worst.ratio.value,
        "recovery": None if worst is None else worst.layer.error.value,
        "predicted": None if worst is None else worst.predicted.error.value,
        "cells": [
            {
                "title": cell.title,
                "picture": None if cell.picture is None else str(cell.picture),
                "missing": cell.missing,
                "keys": [[key.label, key.value] for key in cell.keys],
            }
            for cell in shown.cells
        ],
    }


def shared() -> str:
    """What all pictures have in common, as SVG."""
    return small.shared()


TABS = (Tab("audit.js", "weights/tab.js", {"audit": audit_answer}, lambda subject: {"shared": shared()}),)
