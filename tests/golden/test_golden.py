"""What people and programs are shown stays what it was, to the letter, times and versions aside."""

from __future__ import annotations

import difflib

import pytest

from golden.produce import EXPECTED, claims, command_line, read, results, settled


def compared(items):
    """What differs, as a diff of a few lines each."""
    seen, wrong = set(), []
    for name, text in items:
        seen.add(name)
        expected, got = read(name), settled(text)
        if expected != got:
            lines = difflib.unified_diff(expected.split("\n"), got.split("\n"), lineterm="", n=0)
            wrong.append(f"{name}:\n" + "\n".join(line[:300] for line in list(lines)[:12]))
    assert not wrong, "\n".join(wrong)
    return seen


def test_pages_tables_and_json():
    assert len(compared(results())) > 50


def test_help_and_exit_codes():
    assert len(compared(command_line())) > 20


@pytest.mark.slow
def test_claims_at_quick_settings():
    compared(claims())


def test_nothing_expected_is_left_unmade():
    assert {path.name.removesuffix(".gz") for path in EXPECTED.iterdir()} >= {
        "audit.html",
        "claims-quick.json",
    }
