"""audit.json, written and read back. Not for measuring, nor for other files."""

from __future__ import annotations

from pathlib import Path

from .._core.files import write_text
from .._core.records import read_record, record_text
from .results import Audit

FORMAT = 1
NAME = "audit.json"


def audit_text(audit: Audit) -> str:
    return record_text(audit, FORMAT)


def write_audit(audit: Audit, path: Path) -> None:
    """Write audit.json, whole or not at all."""
    write_text(path, audit_text(audit))


def read_audit(path: Path) -> Audit:
    """The audit in a file, or in the audit.json of a directory."""
    file = Path(path)
    return read_record(file / NAME if file.is_dir() else file, Audit, "audit", FORMAT)
