"""Results as commands write them: JSON of format 1."""

from pathlib import Path

from obverse._core import Record, record_text, write_text


def result_text(result: Record) -> str:
    return record_text(result, 1)


def write_result(result: Record, path: Path) -> None:
    write_text(path, result_text(result))
