"""Hostile run directories, result files and settings in TOML, made from sound ones."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from .case import OUTSIDE, SECRET, Case, Content, Link, Sparse
from .mutate import FLOATS, changed_json, dump, json_bytes, json_value, number, some_bytes, text
from .weights import safetensors_bytes

Files = dict[str, bytes]


def made(make: Callable[[Path], object]) -> Files:
    """The files that `make` leaves; in a process of its own, so that this one stays without threads."""
    import_module("torch._dynamo")  # an optimizer imports it, which takes seconds: once, not in every process
    with tempfile.TemporaryDirectory() as name:
        if (process := os.fork()) == 0:
            code = 1
            try:
                make(Path(name))
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(process, 0)[1] == 0
        found = sorted(path for path in Path(name).rglob("*") if path.is_file() and path.name != ".lock")
        return {str(path.relative_to(name)): path.read_bytes() for path in found}


def _comparison(path: Path) -> None:
    from obverse.training import Settings, compare

    small = Settings(hidden=(6,), epochs=2, train_size=60, batch_size=20)
    compare(small, ("backprop", "shadow"), (0, 1), path)


def _generator(path: Path) -> None:
    from training.sample_generators import generator_run

    generator_run(path, "vae", epochs=1, train_size=60)


def _results(path: Path) -> None:
    from claims.sample_sweeps import sample_sweep
    from diversity.sample_diversity import sample_diversity
    from identity.sample_memories import sample_memory
    from ladder.sample_ladders import sample_ladder
    from saved import write_result
    from shadow.sample_surveys import sample_survey
    from training.sample_searches import sample_search
    from weights.sample_adapters import sample_adapter
    from weights.sample_audits import sample_audit

    write_result(sample_adapter(), path / "adapter.json")
    write_result(sample_audit(), path / "audit.json")
    write_result(sample_sweep(), path / "claims.json")
    write_result(sample_survey(), path / "shadow.json")
    write_result(sample_memory(), path / "memorize.json")
    write_result(sample_ladder(), path / "ladder.json")
    write_result(sample_diversity(), path / "diversity.json")
    write_result(sample_search(), path / "trials.json")


@cache
def comparison() -> Files:
    return made(_comparison)


@cache
def classifier() -> Files:
    start = "runs/shadow/seed-0/"
    return {
        name.removeprefix(start): content for name, content in comparison().items() if name.startswith(start)
    }


@cache
def generator() -> Files:
    return made(_generator)


@cache
def results() -> dict[str, Any]:
    return {name: json.loads(content) for name, content in made(_results).items()}


OF_CLASSIFIER = (
    *(
        ("report", "run"),
        ("report", "run"),
        ("sample", "run", "--out", "samples"),
        ("audit", "run", "--samples", "2"),
    ),
    *(("train", "--resume", "run"), ("shadow", "run", "--quick", "--out", "made")),
    *(
        ("audit", "run", "--against", "initial", "--samples", "2"),
        ("audit", "run", "--data", "own", "--samples", "2"),
    ),
)
OF_GENERATOR = (
    *(("report", "run"), ("generate", "sample", "run", "--count", "8", "--out", "s.npy")),
    *(("generate", "train", "--resume", "run"), ("diversity", "run", "--quick")),
)


def run(random: Random) -> Case:
    """The run of a net or a generator, or a comparison, with one file of it changed."""
    kind = random.choice(("net", "net", "net", "generator", "generator", "comparison"))
    base = {"net": classifier, "generator": generator, "comparison": comparison}[kind]()
    words = {
        "net": OF_CLASSIFIER,
        "generator": OF_GENERATOR,
        "comparison": (("report", "run"), ("compare", "--resume", "run")),
    }[kind]
    files: dict[str, Content] = {f"run/{name}": content for name, content in base.items()}
    likely = [name for name in base if name in ("config.json", "metrics.jsonl", "comparison.json")]
    name = random.choice(likely) if likely and random.random() < 0.65 else random.choice(list(base))
    files[f"run/{name}"] = _changed(name, base[name], random)
    files[OUTSIDE] = SECRET.encode()
    planted = random.random()
    if planted < 0.06:
        target = random.choice(
            (
                ".lock",
                "metrics.jsonl",
                "model.safetensors",
                "report.html",
                "config.json",
                "images",
                "checkpoint",
            )
        )
        files.pop(f"run/{target}", None)
        if not any(other.startswith(f"run/{target}/") for other in files):
            files[f"run/{target}"] = Link("../../outside" if random.random() < 0.8 else target)
    return Case(files, random.choice(words))


def _changed(name: str, content: bytes, random: Random) -> Content:
    if random.random() < 0.04:
        return Sparse(content, random.choice((2**27, 2**31)))
    if random.random() < 0.15:
        return some_bytes(content, random)
    if name.endswith(".json"):
        return _settings_bytes(json.loads(content), random)
    if name.endswith(".jsonl"):
        lines = [json.loads(line) for line in content.decode().splitlines()]
        return (
            "".join(f"{dump(line)}\n" for line in changed_json(lines, random) if True).encode()
            if random.random() < 0.8
            else json_bytes(lines, random)
        )
    if name.endswith(".safetensors"):
        return _weights(content, random)
    return some_bytes(content, random)


def _settings_bytes(value: Any, random: Random) -> bytes:
    """Half of the time a setting gets another value of its own kind: those get further than others."""
    settings = value.get("settings", value)
    if not isinstance(settings, dict) or random.random() < 0.5:
        return json_bytes(value, random)
    for _ in range(random.choice((1, 1, 2))):
        key = random.choice(list(settings))
        old = settings[key]
        if isinstance(old, list):
            settings[key] = random.choice(
                ([], [number(random)], [*old, number(random)], old * 50, [2**20] * 3, [1] * 1000)
            )
        elif isinstance(old, bool):
            settings[key] = not old
        elif isinstance(old, int):
            settings[key] = number(random)
        elif isinstance(old, float):
            settings[key] = random.choice((0.0, 1.0, -1.0, 1e-300, 1e300, 0.999))
        else:
            settings[key] = random.choice(
                (text(random), "allconv", "mlp", "conv", "mnist", "h1", "wgan", "adam", "cuda", "tpe")
            )
    return dump(value).encode()


def _weights(content: bytes, random: Random) -> bytes:
    """The tensors of a sound file under changed names, types and shapes."""
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    header.pop("__metadata__", None)
    tensors = {
        name: (entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
    name = random.choice(list(tensors))
    dtype, shape, values = tensors[name]
    kind = random.randrange(6)
    if kind == 0:
        tensors[text(random)] = tensors.pop(name)
    elif kind == 1:
        tensors[name] = (dtype, shape[::-1], values)
    elif kind == 2:
        tensors[name] = (dtype, shape, b"\xff" * len(values))
    elif kind == 3:
        tensors[name] = ("F16", shape, values[: len(values) // 2]) if dtype == "F32" else ("F32", (0,), b"")
    elif kind == 4:
        del tensors[name]
    return safetensors_bytes(tensors, random if kind == 5 or not tensors else None)


def result(random: Random) -> Case:
    """A result file, or the directory it is in."""
    name = random.choice(list(results()))
    content: Content = json_bytes(results()[name], random)
    if random.random() < 0.02:
        content = Sparse(json.dumps(results()[name]).encode(), random.choice((2**25, 2**31)))
    files: dict[str, Content] = {name: content, OUTSIDE: SECRET.encode()}
    if random.random() < 0.03:
        page = name.replace("trials.json", "report.html").replace(".json", ".html")
        files[page] = Link(OUTSIDE)
    if name == "audit.json" and random.random() < 0.1:
        files["against.json"] = json_bytes(results()[name], random)
        return Case(files, ("report", "."))
    if name in ("audit.json",) and random.random() < 0.3:
        return Case(
            files,
            random.choice((("audit", name), ("audit", name, "--json"), ("audit", name, "--against", name))),
        )
    return Case(files, ("report", random.choice((name, "."))))


TABLES = (
    {
        "net": "mlp",
        "hidden": [8],
        "epochs": 1,
        "lr": 0.05,
        "weight": 1.0,
        "data": "digits",
        "labels": "given",
        "keep": 0.5,
    },
    {
        "net": "allconv",
        "stem": [4, 3, 1],
        "widths": [4, 8],
        "blocks": 1,
        "milestones": [3, 5],
        "device": "cpu",
        "seed": 1,
    },
    {"model": "vae", "hidden": [8], "latent": 3, "epochs": 1, "decoder": "bernoulli"},
    {"rate": 0.1, "batch": 10, "decay": 0.0, "drops": [1]},
)


def toml(random: Random) -> Case:
    table: dict[str, Any] = dict(random.choice(TABLES))
    lines = []
    for _ in range(random.choice((1, 1, 2))):
        key = random.choice(list(table))
        table[key] = random.choice(
            (number(random), text(random), json_value(random), [number(random)], random.random())
        )
    for key, value in table.items():
        lines.append(f"{key} = {toml_value(value)}")
    if random.random() < 0.2:
        key = text(random)
        lines.append(
            random.choice(
                (
                    f"{json.dumps(key)} = 1",
                    f"[{json.dumps(key)}]",
                    "[[a]]",
                    "a.b.c = 1",
                    f"{key} = 1",
                    "lr = 1",
                    "a = " + "[" * 3000,
                )
            )
        )
    if random.random() < 0.1:
        random.shuffle(lines)
    content: Content = "\n".join(lines).encode("utf-8", random.choice(("surrogatepass", "replace")))
    assert isinstance(content, bytes)
    if random.random() < 0.2:
        content = some_bytes(content, random)
    elif random.random() < 0.02:
        content = Sparse(content, 2**31)
    return Case(
        {"settings.toml": content}, (random.choice(("settings", "generator settings")), "settings.toml")
    )


def toml_value(value: Any) -> str:
    if value is None or isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str) and value in FLOATS:
        return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(value, value)
    return dump(value)
