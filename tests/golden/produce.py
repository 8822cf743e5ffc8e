"""Everything a person or a program is shown, made from sample results: pages, tables, JSON, help, exit codes.

`python tests/golden/produce.py` writes expected/; the test beside it makes the same again and compares.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
sys.path.insert(0, str(HERE.parent))
os.environ["COLUMNS"] = "120"
os.environ.pop("FORCE_COLOR", None)

COMMANDS = (
    (),
    ("train",),
    ("compare",),
    ("search",),
    ("sample",),
    ("shadow",),
    ("audit",),
    ("memorize",),
    ("ladder",),
    ("diversity",),
    ("report",),
    ("explore",),
    ("doctor",),
    ("claims",),
    ("claims", "list"),
    ("claims", "show"),
    ("claims", "run"),
    ("generate",),
    ("generate", "train"),
    ("generate", "sample"),
)
WRONG = (
    ("nothing",),
    ("audit",),
    ("audit", "no-such-file.safetensors"),
    ("audit", "--fail-on", "x", "y"),
    ("report", "no-such-run"),
    ("shadow", "no-such-module:net", "--data", "digits"),
    ("claims", "show", "no.such.claim"),
    ("claims", "run", "no.such.claim"),
    ("ladder", "--leaves", "1"),
    ("ladder", "--events", "4"),
    ("memorize", "no-such-data"),
    ("diversity", "no-such-file.npy"),
    ("generate", "sample", "no-such-run"),
    ("sample", "no-such-run"),
    ("train", "--lr", "-1"),
    ("train", "--data", "no-such-data"),
    ("compare", "--seeds", "x"),
    ("search", "--trials", "0"),
    ("explore", "--port", "-1"),
)
_TIMES = (
    (re.compile(r'"seconds": [0-9.e+-]+'), '"seconds": 0'),
    (re.compile(r'"(obverse|torch|numpy|scipy|python)": "[^"]*"'), r'"\1": ""'),
    (re.compile(r"obverse \d+\.\d+\.\d+\S*"), "obverse"),
    (re.compile(r'"key": "[0-9a-f]{64}"'), '"key": ""'),
)


_FLOAT = re.compile(r"-?\d+\.\d{10,}(e-?\d+)?")


def settled(text: str) -> str:
    """The text without times, versions, keys; numbers to the digits on which every BLAS agrees."""
    text = _FLOAT.sub(lambda found: f"{float(found.group()):.10g}", text)
    for pattern, replacement in _TIMES:
        text = pattern.sub(replacement, text)
    return text


def called(words: tuple[str, ...]) -> str:
    """Exit code, stdout and stderr of the command line, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "obverse", *words], capture_output=True, text=True, cwd=tempfile.gettempdir()
    )
    return f"exit {run.returncode}\n{run.stdout}\n--- stderr\n{run.stderr}"


def printed(show: Callable[..., None], *values: Any) -> str:
    text = StringIO()
    with redirect_stdout(text):
        show(*values)
    return text.getvalue()


def results() -> Iterator[tuple[str, str]]:
    """Page, table and JSON of the sample results."""
    import torch

    from claims.sample_sweeps import sample_sweep
    from diversity.sample_diversity import measured
    from identity.sample_memories import sample_memory
    from ladder.sample_ladders import sample_ladder
    from obverse.app import write_report as build
    from obverse.claims.command import print_sweep
    from obverse.diversity.charts import write_pictures
    from obverse.diversity.command import print_diversity
    from obverse.identity.command import print_recall
    from obverse.ladder.command import print_ladder
    from obverse.shadow.command import print_survey
    from obverse.training.command._search import print_search
    from obverse.weights._against import compare_audits
    from obverse.weights.command import print_audit, print_comparison
    from shadow.sample_surveys import sample_survey, surveyed
    from training.sample_searches import sample_search
    from weights.sample_audits import before_training, many_layers, sample_audit

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as place:

        def shown(name: str, file: str, record: Any, table: Callable[..., None]) -> Iterator[tuple[str, str]]:
            folder = Path(place) / name
            folder.mkdir(exist_ok=True)
            text = json.dumps({"format": 1, **record.to_dict()}) + "\n"
            (folder / file).write_text(text)
            yield f"{name}.json", text
            yield f"{name}.html", build(folder / file).read_text(encoding="utf-8")
            yield f"{name}.txt", printed(table, record)

        audit = sample_audit()
        yield from shown("audit", "audit.json", audit, print_audit)
        yield from shown("audit-many", "audit.json", many_layers(60), print_audit)
        comparison = compare_audits(before_training(audit), audit)
        folder = Path(place) / "audit"
        text = json.dumps({"format": 1, **before_training(audit).to_dict()})
        (folder / "against.json").write_text(text)
        yield "audit-against.html", build(folder / "audit.json").read_text(encoding="utf-8")
        yield "audit-against.txt", printed(print_comparison, comparison)
        yield from shown("claims", "claims.json", sample_sweep(), print_sweep)
        for kind in ("full", "few", "plain", "points"):
            found, pictures = measured(kind)
            (Path(place) / f"diversity-{kind}").mkdir()
            write_pictures(Path(place) / f"diversity-{kind}", pictures)
            yield from shown(f"diversity-{kind}", "diversity.json", found, print_diversity)
        for kind in ("exact", "lossy", "broad", "net"):
            yield from shown(f"ladder-{kind}", "ladder.json", sample_ladder(kind), print_ladder)
        for labels in ("own", "random"):
            yield from shown(f"memorize-{labels}", "memorize.json", sample_memory(labels), print_recall)
        for sampler in ("grid", "tpe"):
            yield from shown(f"search-{sampler}", "trials.json", sample_search(sampler), print_search)
        yield from shown("shadow", "shadow.json", sample_survey(), print_survey)
        (Path(place) / "pictures").mkdir()
        survey, _ = surveyed(Path(place) / "pictures", seconds=0.25, versions={})
        yield "shadow-pictures.html", build(Path(place) / "pictures").read_text(encoding="utf-8")
        yield "shadow-pictures.txt", printed(print_survey, survey)


def command_line() -> Iterator[tuple[str, str]]:
    for words in COMMANDS:
        yield f"help-{'-'.join(words) or 'obverse'}.txt", called((*words, "--help"))
    yield "wrong.txt", "\n".join(f"$ obverse {' '.join(words)}\n{called(words)}" for words in WRONG)
    yield "claims-list.txt", called(("claims", "list"))


def claims() -> Iterator[tuple[str, str]]:
    """Every claim at its quick settings: more than a minute."""
    jobs = str(os.cpu_count() or 1)
    text = called(("claims", "run", "--all", "--quick", "--seed", "0", "--json", "--jobs", jobs))
    yield "claims-quick.json", text.partition("--- stderr")[0]


def write(items: Iterator[tuple[str, str]]) -> None:
    EXPECTED.mkdir(exist_ok=True)
    for name, text in items:
        (EXPECTED / f"{name}.gz").write_bytes(gzip.compress(settled(text).encode(), mtime=0))


def read(name: str) -> str:
    return settled(gzip.decompress((EXPECTED / f"{name}.gz").read_bytes()).decode())


if __name__ == "__main__":
    for part in (results, command_line, claims):
        write(part())
