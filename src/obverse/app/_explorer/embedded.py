"""The net that the page has out of the box: small, trained on digits at the first start, then kept.

Not for nets of the user's own, which are never written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..._core import ObverseError, cache_folder, one_thread
from ...training import ClassifierTask, Settings, create_run, fit_classifier, read_run

# Two hidden layers as in the paper, trained with shadows: some 1.5 s of one core. Evaluating after each epoch
# would take twice as long as all the rest.
EPOCHS = 15
SETTINGS = Settings(
    data="digits", hidden=(200, 200), epochs=EPOCHS, weight=1.0, device="cpu", evaluate_every=EPOCHS
)


def embedded_run(training: Callable[[], dict[str, Any]] | None = None) -> Path:
    """The directory of its run, trained now if it is not there or not whole.

    `training` is called before a training, and gives the display callbacks of `fit`. What is in the cache is
    untrusted like any run: one with other settings or half a run is put aside for a new one.
    """
    from ... import __version__

    place = cache_folder() / "explore" / f"digits-{__version__}"
    if _whole(place):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="digits-", dir=place.parent))
    except OSError:  # no room in the user's home: it lasts as long as the machine keeps temporary files
        made = Path(tempfile.mkdtemp(prefix="obverse-explore-"))
        place = made / "digits"
    run = made / "run"
    create_run(run, SETTINGS)
    with one_thread():  # matrices this small only wait for each other on several
        fit_classifier(ClassifierTask(SETTINGS), run, **(training() if training else {}))
    return _put(run, place)


def _whole(place: Path) -> bool:
    try:
        found = read_run(place)
        return bool(found.finished and found.settings == SETTINGS and (place / "model.safetensors").is_file())
    except ObverseError:
        return False


def _put(run: Path, place: Path) -> Path:
    """In one step, so that two that start at once both end with a whole one."""
    try:
        os.rename(run, place)
    except OSError:
        if _whole(place):  # somebody else was faster
            shutil.rmtree(run.parent, ignore_errors=True)
            return place
        old = place.with_name(f"{run.parent.name}-old")
        os.rename(place, old)
        os.rename(run, place)
        old.unlink() if old.is_file() else shutil.rmtree(old, ignore_errors=True)
    if run.parent != place.parent:
        shutil.rmtree(run.parent, ignore_errors=True)
    return place
