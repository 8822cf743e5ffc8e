"""Run many small trainings side by side and keep each result the moment it is there.

Shared by the experiment scripts. A trial is a Settings value; its result is one line of a JSON-lines
file, keyed by the settings, so an interrupted experiment goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from obverse.data import Dataset, load
from obverse.training import ClassifierTask, Diverged, Settings, fit_classifier

Key = str
_data: dict[tuple[str, str | None], Dataset] = {}  # one load a process


def key_of(settings: Settings) -> Key:
    """The settings as text, without the place of the data."""
    return json.dumps(replace(settings, data_root=None).to_dict(), sort_keys=True)


def run_trial(settings: Settings) -> dict[str, Any]:
    """Train one net on one thread; a run that diverges counts as guessing."""
    import torch

    torch.set_num_threads(1)
    place = (settings.data, settings.data_root)
    if place not in _data:
        _data[place] = load(*place)
    record: dict[str, Any] = {"settings": replace(settings, data_root=None).to_dict()}
    try:
        final = fit_classifier(ClassifierTask(settings, _data[place]))[-1]
    except Diverged:
        classes = len(_data[place].classes)
        return record | {"diverged": True, "test_error": 1 - 1 / classes}
    return record | {"diverged": False} | final


def run_all(trials: Iterable[Settings], file: Path, jobs: int = 2) -> dict[Key, dict[str, Any]]:
    """Results of all trials by key; those already in `file` are not run again."""
    from joblib import Parallel, delayed

    done = read_results(file)
    todo = [trial for trial in trials if key_of(trial) not in done]
    print(f"{file.stem}: {len(done)} trials done before, {len(todo)} to do", flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(run_trial)(t) for t in todo)
    with file.open("a", encoding="utf-8") as lines:
        for count, result in enumerate(results, start=1):
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            if count % 10 == 0:
                print(f"  {count} of {len(todo)}", flush=True)
    return read_results(file)


def read_results(file: Path) -> dict[Key, dict[str, Any]]:
    if not file.exists():
        return {}
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    # Settings that came later have their defaults: those were not to be chosen then. Names are today's.
    settings = [Settings.from_mapping(record["settings"], str(file)) for record in records]
    return {
        key_of(one): record | {"settings": one.to_dict()}
        for one, record in zip(settings, records, strict=True)
    }
