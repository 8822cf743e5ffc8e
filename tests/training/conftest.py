from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from obverse.app import write_report as build
from obverse.training import ClassifierTask, Settings, compare, create_run, fit
from training.helpers import SEVERAL, Crasher


@pytest.fixture(scope="session")
def jobs() -> Iterator[Crasher]:
    crasher = Crasher()
    yield crasher
    crasher.close()


@pytest.fixture(scope="session")
def several() -> Iterator[Crasher]:
    crasher = Crasher(SEVERAL)
    yield crasher
    crasher.close()


@pytest.fixture(scope="session")
def migrations_read_once() -> Iterator[None]:
    """Optuna's migration scripts are run as Python four times for each new study; here once a session."""
    from alembic.script import ScriptDirectory

    read = ScriptDirectory.from_config
    known: dict[str | None, ScriptDirectory] = {}

    def from_config(config: Any) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in known:
            known[place] = read(config)
        return known[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", from_config)
        yield


VARIANTS = ("backprop", "dropout", "shadow")


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three variants with three seeds, finished; not to be changed, see `copied`."""
    path = tmp_path_factory.mktemp("report") / "comparison"
    compare(Settings(hidden=(24, 24), epochs=2, train_size=300, batch_size=50), VARIANTS, (0, 1, 2), path)
    return path


@pytest.fixture(scope="session")
def page(comparison: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole comparison."""
    return build(comparison, tmp_path_factory.mktemp("page") / "comparison.html")


@pytest.fixture
def copied(comparison: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(comparison, tmp_path / "copy"))


@pytest.fixture
def single(comparison: Path, tmp_path: Path) -> Path:
    """One finished run."""
    return Path(shutil.copytree(comparison / "runs" / "shadow" / "seed-1", tmp_path / "single"))


@pytest.fixture
def train_on(tmp_path: Path) -> Callable[..., Path]:
    """Trains one small net on a data set of the test's own."""

    def train(data: Path, **changes: Any) -> Path:
        settings = Settings(data=str(data), hidden=(8,), epochs=1, batch_size=10, weight=1.0, **changes)
        create_run(tmp_path / "run", settings)
        fit(ClassifierTask(settings), settings.epochs, run=tmp_path / "run")
        return tmp_path / "run"

    return train
