"""The study of a search: which trial a worker takes next, what is known of all. Optuna is used here alone.

Optuna keeps the trials and chooses settings; who works on which trial is decided here, so that none is lost
and none is run twice:

- A trial has a lock of its own in the search directory. The system takes it from a process that dies, however
  it dies; a trial that is running in the study and whose lock is free was left by such a one, and the next
  worker takes it up. (Optuna's heartbeat would need a clock, and a new trial in place of the old one.)
- The settings of a trial of the grid follow from its number, which the study gives out once; those of the
  sampler "tpe" from its number and what was known then.
- Every use of the study is under a lock, because SQLite knows no lock on a row: one in the search directory,
  and beside an SQLite file that lies elsewhere. Other databases have their own.

A study from elsewhere is data: Optuna's relational storage keeps settings, states and values as numbers,
names and JSON, and makes its distributions from a list of names. What unpickles (the journal storage, the
CMA-ES sampler) is not used, and whatever Optuna raises on a broken or foreign file becomes one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..._core import BadInput, ObverseError, explained, make_inside, quoted, require
from .plan import SearchPlan, cell, in_space, sampling_seed
from .results import State, Trial

if TYPE_CHECKING:
    import optuna
    from filelock import BaseFileLock
    from optuna.trial import FrozenTrial

DATABASE = "study.db"
LOCKS = ".locks"
MAX_BYTES = 2**30  # of a database file: a million epochs of trials
BUSY = 60  # seconds that SQLite waits for another process, which never holds it for longer than a moment
STARTUP = 5  # complete trials before the first one is pruned
UNTOUCHED = 3  # no trial is pruned in the first third of its epochs: a small lr begins slowly
PACKAGES = {"psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}  # drivers of another name than theirs
LONGEST_REASON = 500
LR = "rate"  # as a parameter of a study: its name in studies that exist


@dataclass(frozen=True)
class Claim:
    """A trial that this process works on until it lets go of the lock."""

    number: int
    lr: float
    weight: float
    lock: BaseFileLock
    trial: optuna.Trial

    def release(self) -> None:
        self.lock.release()


class Study:
    """The study of one search directory, for one process."""

    def __init__(self, path: Path, plan: SearchPlan, storage: str | None = None) -> None:
        """`storage` is the address of a database, if the study is not in the directory."""
        require("optuna", "search")
        if plan.shared != (storage is not None):
            raise BadInput(
                f"{'the storage' if plan.shared else 'no storage'} of the search in {path}",
                got="none" if storage is None else "one",
                do="pass --storage with the address that it began with"
                if plan.shared
                else f"leave it out: the study is in {path / DATABASE}",
            )
        self.path, self.plan = path, plan
        make_inside(path / LOCKS)
        self._url, self._shown, file = _address(path, storage)
        self._locks = [path / LOCKS / "study"]
        if storage is not None and file is not None:
            self._locks.append(file.with_name(f"{file.name}.lock"))
        self._everybody_locks = file is not None  # an SQLite file: all that use it take its lock
        with self._guarded():
            self._study = self._open(file)

    # --- what a worker does ---

    def claim(self) -> Claim | None:
        """A trial that was left by a process that died, or a new one; None if all are done or under way."""
        with self._guarded():
            found = self._trials()
            for one in found:
                if one.state.name == "RUNNING" and self._may_take(one) and (lock := self._try(one.number)):
                    return self._begin(one.number, lock, one)
            number = len(found)
            if number >= self.plan.trials:
                return None
            self._study.sampler = self._sampler(number)
            trial = self._study.ask()
            if trial.number >= self.plan.trials:  # another machine was faster
                self._study.tell(trial, state=_state("FAIL"))
                return None
            lock = self._try(trial.number)
            if lock is None:
                raise BadInput(
                    f"the trial {trial.number} of {self.path} to be free",
                    got="a process that runs in it",
                    do="end it, and see that no other search works in this directory",
                )
            return self._begin(trial.number, lock, None, trial)

    def _begin(
        self, number: int, lock: BaseFileLock, left: FrozenTrial | None, trial: optuna.Trial | None = None
    ) -> Claim:
        import optuna

        try:
            if trial is None:
                assert left is not None
                self._study.sampler = self._sampler(number)
                trial = optuna.Trial(self._study, left._trial_id)  # its settings stay what they are
            trial.set_user_attr("place", self.plan.place)
            lr, weight = self._settings(number, *self._suggest(trial))
        except BaseException:
            lock.release()
            raise
        return Claim(number, lr, weight, lock, trial)

    def report(self, claim: Claim, epoch: int, error: float) -> None:
        """Tell the error after an epoch, once."""
        _check_share(error, f"trial {claim.number}")
        with self._guarded():
            if epoch not in self._curve(claim):
                claim.trial.report(error, epoch)

    def should_stop(self, claim: Claim, epoch: int) -> bool:
        """Whether the trial should end after this epoch; not where a later one is known, which it came to."""
        with self._guarded():
            return epoch == max(self._curve(claim), default=0) and bool(claim.trial.should_prune())

    def _curve(self, claim: Claim) -> dict[int, float]:
        return self._study.get_trials(deepcopy=False)[claim.number].intermediate_values

    def tell(
        self, claim: Claim, state: State, error: float | None, *, seconds: float, reason: str = ""
    ) -> None:
        """The end of a trial; `error` where it is complete."""
        if error is not None:
            _check_share(error, f"trial {claim.number}")
        with self._guarded():
            claim.trial.set_user_attr("seconds", round(seconds, 3))
            if reason:
                claim.trial.set_user_attr("reason", reason[:LONGEST_REASON])
            name = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}[state]
            self._study.tell(claim.trial, error, state=_state(name))

    def trials(self) -> list[Trial]:
        """All that have settings, in order."""
        with self._guarded():
            found = self._trials()
            return [self._read(one) for one in found if len(one.params) == 2 or one.state.name != "RUNNING"]

    def running(self) -> list[int]:
        """The numbers of trials that have not ended, whether or not they have settings yet."""
        with self._guarded():
            return [one.number for one in self._trials() if one.state.name == "RUNNING"]

    def elsewhere(self) -> list[int]:
        """The numbers of trials that run, as far as the study knows, for another directory."""
        with self._guarded():
            return [
                one.number
                for one in self._trials()
                if one.state.name == "RUNNING" and not self._may_take(one)
            ]

    def take_over(self) -> list[int]:
        """Make trials of elsewhere this directory's: if the machine that ran them will not return."""
        taken = self.elsewhere()
        with self._guarded():
            import optuna

            for one in self._trials():
                if one.number in taken and one.state.name == "RUNNING":
                    optuna.Trial(self._study, one._trial_id).set_user_attr("place", self.plan.place)
        return taken

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For files of the directory that all its workers write."""
        with waiting_lock(self._locks[0]):
            yield

    # --- inside ---

    def _may_take(self, one: FrozenTrial) -> bool:
        """One that is nobody's was left between two calls that `claim` makes under the lock of everybody."""
        place = one.user_attrs.get("place")
        return place == self.plan.place or (place is None and self._everybody_locks)

    def _trials(self) -> list[FrozenTrial]:
        """Those of the plan, from 0: others are left over from a race between machines."""
        found = self._study.get_trials(deepcopy=False)
        if [one.number for one in found] != list(range(len(found))):
            raise self._foreign("trials numbered from 0", "others")
        if any(one.state.name == "WAITING" for one in found):
            raise self._foreign("trials that a search has begun", "one that waits")
        return found[: self.plan.trials]

    def _try(self, number: int) -> BaseFileLock | None:
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCKS / f"{number:04d}", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            return None
        return lock

    def _suggest(self, trial: optuna.Trial) -> tuple[float, float]:
        plan = self.plan
        if plan.sampler == "grid":  # a range of one value needs no sampler
            lr, weight = cell(plan, trial.number)
            return trial.suggest_float(LR, lr, lr), trial.suggest_float("weight", weight, weight)
        return (
            trial.suggest_float(LR, plan.lrs[0], plan.lrs[-1], log=True),
            trial.suggest_float("weight", plan.weights[0], plan.weights[-1], log=plan.weights[0] > 0),
        )

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        import optuna

        if self.plan.sampler == "grid":
            return optuna.samplers.RandomSampler()  # never asked
        return optuna.samplers.TPESampler(seed=sampling_seed(self.plan, number))

    def _open(self, file: Path | None) -> optuna.Study:
        import optuna

        if file is not None:
            with explained(file):
                size = file.stat().st_size if file.exists() else 0
            if size > MAX_BYTES:
                raise BadInput(
                    f"a study of at most {MAX_BYTES} bytes", got=str(file), do="this is not one of ours"
                )
        options = {"connect_args": {"timeout": BUSY}} if file is not None else {}
        epochs = self.plan.base.epochs
        pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
        if self.plan.pruner == "median":
            # Optuna prunes from the step n_warmup_steps on, and a step is an epoch here, from 1.
            pruner = optuna.pruners.MedianPruner(STARTUP, n_warmup_steps=epochs // UNTOUCHED + 1)
        study = optuna.create_study(
            # braces are a template to Optuna
            storage=optuna.storages.RDBStorage(
                self._url.replace("{", "{{").replace("}", "}}"), engine_kwargs=options
            ),
            study_name=self.plan.study,
            pruner=pruner,
            load_if_exists=True,
        )
        if [one.name for one in study.directions] != ["MINIMIZE"]:
            raise self._foreign("an error to make small", "another aim")
        return study

    def _read(self, one: FrozenTrial) -> Trial:
        """A trial of the study as a value of ours, each number checked."""
        number = one.number
        lr, weight = self._settings(number, one.params.get(LR), one.params.get("weight"))
        where = f"trial {number} of the study"
        curve = tuple(sorted(one.intermediate_values.items()))
        for epoch, error in curve:
            _check_share(error, where)
            if not 1 <= epoch <= self.plan.base.epochs:
                raise self._foreign(f"epochs of {where} up to {self.plan.base.epochs}", str(epoch))
        states: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
        state = states.get(one.state.name, "running")
        last = one.value if state == "complete" else curve[-1][1] if curve else None
        if state == "complete":
            _check_share(last, where)
        seconds, reason = one.user_attrs.get("seconds"), one.user_attrs.get("reason")
        return Trial(
            number,
            lr,
            weight,
            state,
            last,
            float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < math.inf else 0.0,
            reason[:LONGEST_REASON] if isinstance(reason, str) else "",
            curve,
        )

    def _settings(self, number: int, lr: Any, weight: Any) -> tuple[float, float]:
        numbers = isinstance(lr, int | float) and isinstance(weight, int | float)
        if not numbers or not in_space(self.plan, number, lr, weight):
            got = f"{lr!r:.40} and {weight!r:.40}"
            raise self._foreign(f"trial {number} to have settings of the plan", got)
        return float(lr), float(weight)

    def _foreign(self, expected: str, got: str) -> BadInput:
        return BadInput(
            f"{expected} in {self._shown}", got=got, do="restore the study from a copy, or start a new search"
        )

    def _missing(self, error: BaseException) -> BadInput:
        name = getattr(error, "name", None) or ""
        package = name.partition(".")[0]
        return BadInput(
            f"the driver of the database {self._shown} to be installed",
            got=f"no module {name!r}" if name else str(error)[:200],
            do=f"install it with: pip install {PACKAGES.get(package, package)}" if name else "install it",
        )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Alone with the study; Optuna says nothing, and what it raises becomes a sentence."""
        import optuna

        with ExitStack() as stack:
            for lock in self._locks:
                stack.enter_context(waiting_lock(lock))
            said = optuna.logging.get_verbosity()
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            try:
                yield
            except ObverseError:
                raise
            except ImportError as error:  # Optuna's, of that of the driver
                raise self._missing(error.__cause__ or error) from error
            except optuna.exceptions.UpdateFinishedTrialError as error:
                raise BadInput(
                    "a trial that is run once",
                    got="one that was taken over, or is run by a copy of this directory, and finished there",
                    do=f"go on with the next one: obverse search --resume {quoted(self.path)}",
                ) from error
            except Exception as error:  # there is no list of what an untrusted file makes it raise
                what = str(error.__cause__ or error).strip().splitlines() or [""]
                raise BadInput(
                    f"a study of Optuna in {self._shown}",
                    got=f"{type(error).__name__}: {what[0][:200]}",
                    do="check that it is there and is one, restore it from a copy, or start a new search",
                ) from error
            finally:
                optuna.logging.set_verbosity(said)


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]


def _check_share(error: Any, where: str) -> None:
    if not isinstance(error, int | float) or not 0 <= error <= 1:  # refuses NaN too
        raise BadInput(f"an error from 0 to 1 in {where}", got=f"{error!r:.40}", do="start a new search")


def _address(path: Path, storage: str | None) -> tuple[str, str, Path | None]:
    """(address, what may be shown of it, the file if it is of SQLite)."""
    import sqlalchemy

    if storage is None:
        file = (path / DATABASE).absolute()
        if file.is_symlink():
            raise BadInput(f"a study of its own in {path}", got=f"a link at {file}", do="remove it")
        return f"sqlite:///{quote(str(file))}", str(path / DATABASE), file
    try:
        url = sqlalchemy.make_url(storage)
    except sqlalchemy.exc.ArgumentError:
        raise BadInput(
            "a storage such as sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME",
            got="another text",
            do="correct --storage",
        ) from None
    shown = url.set(query={}).render_as_string(hide_password=True)  # a password may stand in the query too
    if url.get_backend_name() != "sqlite":
        return storage, shown, None
    if not url.database or url.database.startswith((":memory:", "file:")):
        raise BadInput("a file for the storage", got=shown, do="use e.g. sqlite:///study.db")
    file = Path(url.database).absolute()
    if not file.parent.is_dir():
        raise BadInput(f"a directory for {shown}", got=f"no {file.parent}", do="make it first")
    return storage, shown, file


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Wait for a lock and keep it for the duration."""
    from filelock import FileLock

    lock = FileLock(path)
    with explained(path):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
