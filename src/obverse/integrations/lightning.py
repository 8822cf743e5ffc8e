"""`AuditCallback` for Lightning: Trainer(callbacks=[AuditCallback(every_n_epochs=5)])."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._core import ObverseError
from ._hooks import LightningHooks


def _base() -> Any:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    raise ObverseError(
        "expected the package 'lightning' to be installed; got none; install it with: pip install lightning"
    )


class AuditCallback(LightningHooks, _base()):  # type: ignore[misc]
    """Audits the module before training and every so often, on the first process alone.

    Args:
        path: a file to append to, or a directory for audit_history.jsonl; the trainer's root unless given.
        every_n_epochs, every_n_steps: how often; after every epoch unless one is given.
        at_most: the share of the training time that it may take; see `obverse.integrations.Watch`.
        inputs: some inputs, for recovery errors of the layers' shadows.
        seed: of the random numbers of the audit.

    Numbers go to every logger of the trainer, as obverse/rank/LAYER, obverse/random_share/LAYER and
    obverse/recovery/LAYER; `history` has them all.
    """
