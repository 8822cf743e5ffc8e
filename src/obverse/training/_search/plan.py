"""What a search sets out to do: its space, its trials, the held-out points. Not for running it: see search.

The paper's protocol: lrs 4^a·0.001 (a = −2…2), weights 2^b (b = −3…3), 10,000 held-out points, the best
at the end, then trained again on everything.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from ..._core import BadInput, derive_generator, derive_seed, read_json, write_json
from ...data import NAMES, Dataset, load
from .._batches import fingerprint
from .._classify import ClassifierTask
from .._settings import MAX_PLAN, RENAMED, Settings, check, with_new_names

FORMAT = 1
NAME = "search.json"
LRS = tuple(0.001 * 4.0**a for a in range(-2, 3))
WEIGHTS = tuple(2.0**b for b in range(-3, 4))
HELD_OUT = 10_000
LEAST_SHARE = 5  # of a smaller data set this part is held out: a fifth
MAX_TRIALS = 10_000  # their directories have four digits
APART = 1 + 1e-6  # largest over smallest: between nearer ones the sampler's logarithms are all rounding
ORDER, SAMPLING = 101, 102  # streams of the search, apart from those of a run
PLAN_RENAMED = {"rates": "lrs"}  # fields of older files
WHERE = ("place", "threads", "shared")  # what two directories of one search may have of their own

Sampler = Literal["grid", "tpe"]
Pruner = Literal["median", "none"]


@dataclass(frozen=True)
class SearchPlan:
    """The content of search.json.

    `base` are the settings of every trial but for lr and weight; its `validation` says how many points are
    held out. The grid is every lr with every weight; "tpe" chooses between the smallest and the largest.
    """

    base: Settings
    lrs: tuple[float, ...]
    weights: tuple[float, ...]
    sampler: Sampler
    pruner: Pruner
    trials: int
    train_points: int  # of a trial
    test_points: int  # for the net that is trained on everything at the end
    threads: int  # of a worker: the last bits of a sum depend on them
    shared: bool  # whether the study is kept elsewhere, and not in study.db beside this
    study: str  # its name: the same in every directory of one search
    place: str  # of this directory, to tell its trials from those of another one

    def __post_init__(self) -> None:
        for name in ("lrs", "weights"):
            values = tuple(sorted(getattr(self, name)))
            object.__setattr__(self, name, values)
            none_twice = 1 <= len(values) == len(set(values)) <= MAX_TRIALS
            check(f"{name}, none twice", f"{values!s:.200}", none_twice)
        check("lrs > 0", f"{self.lrs!s:.200}", all(0 < lr < math.inf for lr in self.lrs))
        check("weights ≥ 0", f"{self.weights!s:.200}", all(0 <= weight < math.inf for weight in self.weights))
        check(
            f"sampler out of {', '.join(get_args(Sampler))}", self.sampler, self.sampler in get_args(Sampler)
        )
        check(f"pruner out of {', '.join(get_args(Pruner))}", self.pruner, self.pruner in get_args(Pruner))
        if self.sampler == "tpe" and len(self.weights) > 1 and self.weights[0] == 0:
            raise BadInput(
                "weights > 0 for the sampler tpe, which searches them on a logarithmic scale",
                got=f"{self.weights!s:.200}",
                do="use the grid, or search plain training alone with the weight 0",
            )
        for name, values in (("lrs", self.lrs), ("weights", self.weights)):
            if self.sampler == "tpe" and len(values) > 1 and values[-1] < values[0] * APART:
                raise BadInput(
                    f"{name} for the sampler tpe from one to another that is larger by a millionth or more",
                    got=f"{values!s:.200}",
                    do="use one value, or two that lie apart",
                )
        cells = len(self.lrs) * len(self.weights)
        check(f"at most {MAX_TRIALS} pairs of an lr and a weight", cells, cells <= MAX_TRIALS)
        most = cells if self.sampler == "grid" else MAX_TRIALS
        check(f"trials from 1 to {most}", self.trials, 1 <= self.trials <= most)
        check("validation ≥ 1", self.base.validation, self.base.validation >= 1)
        check("train_points ≥ 1", self.train_points, self.train_points >= 1)
        check("threads from 1 to 1024", self.threads, 1 <= self.threads <= 1024)

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lists = {name: list(values[name]) for name in ("lrs", "weights")}
        return values | lists | {"base": self.base.to_dict()}

    def settings(self, lr: float, weight: float) -> Settings:
        """Of a trial."""
        return replace(self.base, lr=lr, weight=weight)

    def final_settings(self, lr: float, weight: float) -> Settings:
        """Of the net that is trained on everything."""
        return replace(self.settings(lr, weight), validation=0)

    def same_search(self, other: SearchPlan) -> bool:
        return all(
            getattr(self, name) == getattr(other, name)
            for name in self.__dataclass_fields__
            if name not in WHERE
        )


def held_out(points: int) -> int:
    """How many of so many training points are held out: the paper's 10,000, at most a fifth."""
    return min(HELD_OUT, points // LEAST_SHARE)


def make_plan(
    base: Settings,
    *,
    lrs: Sequence[float] = LRS,
    weights: Sequence[float] = WEIGHTS,
    sampler: Sampler = "grid",
    pruner: Pruner = "none",
    trials: int | None = None,
    threads: int | None = None,
    shared: bool = False,
    data: Dataset | None = None,
) -> SearchPlan:
    """A plan with what is left open filled in; refuses what no trial could run with.

    Where `base.validation` is 0 it is chosen. `trials`: of the grid so many cells, drawn with the seed, in
    place of all; of "tpe" as many as the grid has by default. `threads` of a worker: torch's by default.
    """
    data = load(base.data, base.data_root) if data is None else data
    size = len(data.train_x) if base.train_size is None else base.train_size
    if base.validation == 0:
        if size < LEAST_SHARE:
            raise BadInput(
                f"at least {LEAST_SHARE} training points, of which a fifth is held out",
                got=size,
                do="pass --validation, or use more points",
            )
        base = replace(base, validation=held_out(size))
    check(f"validation from 1 to {size - 1}", base.validation, 1 <= base.validation < size)
    base = replace(base, lr=Settings.lr, weight=0.0)  # of each trial its own
    cells = len(lrs) * len(weights)
    plan = SearchPlan(
        base,
        tuple(map(float, lrs)),
        tuple(map(float, weights)),
        sampler,
        pruner,
        cells if trials is None else trials,
        size - base.validation,
        len(data.test_x),
        torch.get_num_threads() if threads is None else threads,
        shared,
        "",
        uuid.uuid4().hex,
    )
    for weight in sorted({plan.weights[0], plan.weights[-1]}):  # plain training may need what others do not
        ClassifierTask(plan.settings(plan.lrs[0], weight), data)  # refuses the rest
    return replace(plan, study=_study_name(plan, data))


def load_planned(plan: SearchPlan) -> Dataset:
    """The data that the plan was made for; others, or a plan that somebody changed, are refused."""
    data = load(plan.base.data, plan.base.data_root)
    if _study_name(plan, data) != plan.study:
        raise BadInput(
            "the data and the settings that the search began with",
            got=f"other points in {data_name(plan.base.data)}, or a {NAME} that was changed",
            do="restore them, or start a new search",
        )
    return data


def _study_name(plan: SearchPlan, data: Dataset) -> str:
    """A function of everything that decides the numbers, and of nothing that names a machine."""
    # Under the names that settings had when format 1 began: searches from then can be resumed.
    old = {new: old for old, new in (RENAMED | PLAN_RENAMED).items()}
    values = {
        old.get(key, key): value for key, value in plan.to_dict().items() if key not in ("study", *WHERE)
    }
    values["base"] = {
        old.get(key, key): value for key, value in values["base"].items() if key not in ("data", "data_root")
    }
    values["data"] = bytes(fingerprint(data.train_x, data.train_y, data.test_x, data.test_y).tolist()).hex()
    return f"obverse-{hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]}"


def cell(plan: SearchPlan, number: int) -> tuple[float, float]:
    """(lr, weight) of a trial of the grid: in an order drawn with the seed, so that a search that is cut
    short, or cut down to fewer trials, has looked everywhere."""
    place = _order(len(plan.lrs) * len(plan.weights), plan.base.seed)[number]
    lr, weight = divmod(place, len(plan.weights))
    return plan.lrs[lr], plan.weights[weight]


@lru_cache(maxsize=4)
def _order(cells: int, seed: int) -> tuple[int, ...]:
    return tuple(torch.randperm(cells, generator=derive_generator(seed, ORDER)).tolist())


def sampling_seed(plan: SearchPlan, number: int) -> int:
    """Of the sampler for one trial, so that a search that was interrupted goes on as if it had not been."""
    return derive_seed(plan.base.seed, SAMPLING, number) % 2**32


def in_space(plan: SearchPlan, number: int, lr: float, weight: float) -> bool:
    """Whether a trial with this number may have these settings."""
    if plan.sampler == "grid":
        return (lr, weight) == cell(plan, number)
    return (
        plan.lrs[0] <= lr <= plan.lrs[-1] and plan.weights[0] <= weight <= plan.weights[-1]
    )  # false for NaN


def data_name(data: str) -> str:
    """The name of a data set, or the last part of a path: where data lie would name the machine."""
    return data if data in NAMES else Path(data).name


def write_plan(path: Path, plan: SearchPlan) -> None:
    write_json(path / NAME, {"format": FORMAT, **plan.to_dict()})


_STUDY, _PLACE = re.compile(r"obverse-[0-9a-f]{16}"), re.compile(r"[0-9a-f]{32}")


def read_plan(path: Path) -> SearchPlan:
    """The plan in a search directory, every field of it checked."""
    place = path / NAME
    record = read_json(place, f"the {NAME} of a search", MAX_PLAN)
    if record.pop("format", None) != FORMAT or not isinstance(record.get("base"), dict):
        raise BadInput(f"a search of format {FORMAT}", got=str(place), do="start a new one")
    base = Settings.from_mapping(record["base"], str(place))
    record = with_new_names(record, PLAN_RENAMED, str(place))
    for name, kind, holds in _FIELDS:
        if name not in record or not holds(record[name]):
            raise BadInput(f"{name} to be {kind} in {place}", got=_shown(record, name), do="start a new one")
    unknown = record.keys() - SearchPlan.__dataclass_fields__
    if unknown:
        raise BadInput(
            f"the fields of a search in {place}", got=ascii(min(unknown))[:60], do="start a new one"
        )
    lists = {name: tuple(map(float, record[name])) for name in ("lrs", "weights")}
    return SearchPlan(**(record | lists | {"base": base}))


def _shown(record: Mapping[str, Any], name: str) -> str:
    return ascii(record[name])[:60] if name in record else "none"


def _numbers(value: Any) -> bool:
    numbers = isinstance(value, list) and len(value) <= MAX_TRIALS
    return numbers and all(type(one) in (int, float) and abs(one) < 1e300 for one in value)


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


_FIELDS: tuple[tuple[str, str, Any], ...] = (
    ("lrs", "a list of numbers", _numbers),
    ("weights", "a list of numbers", _numbers),
    ("sampler", "text", lambda value: isinstance(value, str)),
    ("pruner", "text", lambda value: isinstance(value, str)),
    ("trials", "a whole number", _whole),
    ("train_points", "a whole number", _whole),
    ("test_points", "a whole number", _whole),
    ("threads", "a whole number", _whole),
    ("shared", "true or false", lambda value: isinstance(value, bool)),
    ("study", "the name of a study", lambda value: isinstance(value, str) and _STUDY.fullmatch(value)),
    ("place", "32 hexadecimal digits", lambda value: isinstance(value, str) and _PLACE.fullmatch(value)),
)
