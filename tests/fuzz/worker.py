"""Judges cases, one per line of JSON: {"format", "seed", "number"}, {"kept": name} or {"probe": kind}. A process of its own, one thread."""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Mapping
from random import Random
from typing import Any

from .case import OUTSIDE, SECRET, Case
from .corpus import KEPT
from .datasets import cifar, idx, images
from .pickles import pt
from .runs import result, run, toml
from .weights import npy, npz, onnx, safetensors, shards

# How many cases of each, and who makes them.
FORMATS = {
    "safetensors": (3300, safetensors),
    "shards": (1700, shards),
    "pt": (3300, pt),
    "npz": (2200, npz),
    "npy": (1600, npy),
    "onnx": (2200, onnx),
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

    from obverse.app import main as _  # the command line and all it imports

    from .judge import judge

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        try:
            case = wanted(job)
        except Exception:  # a fault of the fuzzer's own, which is told like any other
            answer = {"outcome": "not made", "detail": traceback.format_exc()[-400:], "processor": 0, "megabytes": 0}
        else:
            answer = judge(case)
        answers.write(json.dumps(job | answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
