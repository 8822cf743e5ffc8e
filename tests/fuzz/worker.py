"""Judges cases, a list per line of JSON. A process of its own, with one thread, so that it can fork.

Each is {"format", "seed", "number"}, {"kept": name} or {"probe": kind}.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Mapping
from random import Random
from typing import Any

from .adapters import adapter, packed
from .case import OUTSIDE, SECRET, Case
from .corpus import KEPT
from .datasets import cifar, idx, images
from .hub import hub
from .models import gguf, keras, llama2c, pickled, script, tfjs
from .pickles import pt
from .runs import result, run, toml
from .weights import npy, npz, onnx, safetensors, shards

# How many cases of each, and who makes them.
FORMATS = {
    "safetensors": (3300, safetensors),
    "shards": (1700, shards),
    "hub": (1200, hub),
    "pt": (3300, pt),
    "npz": (2200, npz),
    "npy": (1600, npy),
    "onnx": (2200, onnx),
    "gguf": (1500, gguf),
    "keras": (1500, keras),
    "tfjs": (1000, tfjs),
    "llama2c": (500, llama2c),
    "script": (600, script),
    "pickled": (1100, pickled),
    "adapter": (1200, adapter),
    "packed": (1200, packed),
    "idx": (1100, idx),
    "cifar": (600, cifar),
    "images": (1600, images),
    "run": (900, run),
    "result": (2400, result),
    "toml": (1500, toml),
}


def make(kind: str, seed: int, number: int) -> Case:
    return FORMATS[kind][1](Random(f"{seed} {kind} {number}"))


def wanted(job: Mapping[str, Any]) -> Case:
    if "kept" in job:
        return KEPT[job["kept"]]()
    if "probe" in job:
        return Case({OUTSIDE: SECRET.encode()}, ("probe", job["probe"]))
    return make(job["format"], job["seed"], job["number"])


def main() -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        answers.write(json.dumps(answered(json.loads(line))) + "\n")
        answers.flush()


def answered(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from .judge import judge_all

    made, unmade = [], []
    for job in jobs:
        try:
            made.append((job, wanted(job)))
        except Exception:  # a fault of the fuzzer's own, which is told like any other
            detail = traceback.format_exc()[-400:]
            unmade.append(job | {"outcome": "not made", "detail": detail, "processor": 0, "megabytes": 0})
    found = judge_all([case for _, case in made])
    return unmade + [job | answer for (job, _), answer in zip(made, found, strict=True)]


if __name__ == "__main__":
    main()
