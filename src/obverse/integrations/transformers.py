"""`AuditCallback` for Hugging Face's Trainer: trainer.add_callback(AuditCallback(trainer))."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._core import ObverseError
from ._hooks import TransformersHooks


def _base() -> Any:
    try:
        return import_module("transformers").TrainerCallback
    except ImportError:
        raise ObverseError(
            "expected the package 'transformers' to be installed; got none; install it with: "
            "pip install transformers"
        ) from None


class AuditCallback(TransformersHooks, _base()):  # type: ignore[misc]
    """Audits the model before training and every so often, on the first process alone.

    Args:
        trainer: with it numbers go through `trainer.log`, to whatever the trainer reports to; without it, to
            the file and `history` alone.
        path: a file to append to, or a directory for audit_history.jsonl; args.output_dir unless given.
        every_n_epochs, every_n_steps: how often; after every epoch unless one is given.
        at_most: the share of the training time that it may take; see `obverse.integrations.Watch`.
        inputs: some inputs, for recovery errors of the layers' shadows, if the model has them.
        seed: of the random numbers of the audit.
    """
