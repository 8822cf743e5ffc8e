"""kill −9 at every write of every command that writes: what is left is whole or can be taken up again.

The process dies before and after each file is put in its place, with half of it written, before each removal.
A command is killed in an empty folder, and in one that holds the result of the same command with other
numbers: there must never be a mixture of the two, nor a page or a file that is not whole. Then it is run to
its end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from obverse.app.main import COMMANDS, GROUPS
from training.helpers import Crasher

# Small enough to be killed dozens of times. {out} is the folder, {seed} differs between old result and new.
TRAIN = ("--hidden", "6", "--epochs", "2", "--train-size", "60", "--batch-size", "20")
WRITING: dict[str, tuple[str, ...]] = {
    "audit": ("audit", "{in}/{seed}.safetensors", "--samples", "2", "--seed", "{seed}", "--out", "{out}"),
    "audit against": (
        "audit",
        "{in}/{seed}.safetensors",
        "--against",
        "{in}/2.safetensors",
        "--samples",
        "2",
        "--out",
        "{out}",
    ),
    "report": ("report", "{in}/audit{seed}/audit.json", "--out", "{out}"),
    "memorize": ("memorize", "digits", "--points", "40", "--seed", "{seed}", "--out", "{out}"),
    "ladder": ("ladder", "--leaves", "4", "--steps", "0", "--seed", "{seed}", "--out", "{out}"),
    "claims": (
        "claims",
        "run",
        "alm.lemmaB.2",
        "--quick",
        "--jobs",
        "1",
        "--seed",
        "{seed}",
        "--out",
        "{out}",
    ),
    "shadow": ("shadow", "{in}/run", "--samples", "20", "--seed", "{seed}", "--out", "{out}"),
    "sample": ("sample", "{in}/run", "--per-class", "1", "--seed", "{seed}", "--out", "{out}/shadows.png"),
    "generate sample": (
        "generate",
        "sample",
        "{in}/generator",
        "--count",
        "3",
        "--seed",
        "{seed}",
        "--force",
        "--out",
        "{out}/s.npz",
    ),
    "generate sample folder": (
        "generate",
        "sample",
        "{in}/generator",
        "--count",
        "3",
        "--seed",
        "{seed}",
        "--force",
        "--out",
        "{out}/s",
    ),
    "diversity": ("diversity", "{in}/generator", "--quick", "--seed", "{seed}", "--out", "{out}"),
}
# These refuse a folder that holds a run already; a run that was cut off is resumed.
RESUMED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "train": (("train", *TRAIN, "--out", "{out}"), ("train", "--resume", "{out}")),
    "compare": (
        ("compare", *TRAIN, "--variants", "backprop,shadow", "--seeds", "2", "--out", "{out}"),
        ("compare", "--resume", "{out}"),
    ),
    "search": (
        (
            "search",
            *TRAIN,
            "--lrs",
            "0.05,0.1",
            "--weights",
            "0,1",
            "--validation",
            "20",
            "--jobs",
            "1",
            "--out",
            "{out}",
        ),
        ("search", "--resume", "{out}", "--jobs", "1"),
    ),
    "generate train": (
        (
            "generate",
            "train",
            "--model",
            "vae",
            "--hidden",
            "6",
            "--latent",
            "3",
            "--epochs",
            "2",
            "--train-size",
            "60",
            "--out",
            "{out}",
        ),
        ("generate", "train", "--resume", "{out}"),
    ),
}
READING = {"explore", "doctor"}  # nothing that a later command reads
UNFINISHED = {"audit.jsonl", "against.jsonl"}  # go when the result is whole; what is in them is resumed
POINTS = 40  # more writes than any of these does; a command that is through before is killed no more


@pytest.fixture(scope="module")
def jobs() -> Iterator[Crasher]:
    crasher = Crasher()
    yield crasher
    crasher.close()


@pytest.fixture(scope="module")
def given(jobs: Crasher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("given")
    for seed in range(3):
        made = torch.Generator().manual_seed(seed)
        save_file({"fc.weight": torch.randn(12, 20, generator=made)}, folder / f"{seed}.safetensors")
    return folder


@pytest.fixture(scope="module")
def trained(jobs: Crasher, given: Path) -> Path:
    """The same, with a run of a net, of a generator, and two audits."""
    generator = ("generate", "train", "--model", "vae", "--hidden", "6", "--latent", "3", "--epochs", "1")
    done = jobs(
        {"words": ["train", *TRAIN, "--out", str(given / "run")]},
        {"words": [*generator, "--train-size", "60", "--out", str(given / "generator")]},
        *({"words": filled(WRITING["audit"], given, given / f"audit{seed}", seed)} for seed in (0, 1)),
    )
    assert [one["code"] for one in done] == [0] * 4, done
    return given


def filled(words: tuple[str, ...], given: Path, out: Path, seed: int) -> list[str]:
    return [
        word.replace("{in}", str(given)).replace("{out}", str(out)).replace("{seed}", str(seed))
        for word in words
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """What is there, but for locks and what a killed process left of a file that it had not finished.

    JSON without the times in it, which differ from run to run, and to 12 digits: of sums in float64 the last
    bits differ once in hundreds of runs (seen on a busy machine), and those of two seeds long before that.
    """
    return {
        str(path.relative_to(folder)): timeless(path) if path.suffix == ".json" else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def timeless(path: Path) -> bytes:
    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(one) for one in value]
        if isinstance(value, dict):
            return {name: without(one) for name, one in value.items() if "seconds" not in name}
        return float(f"{value:.12g}") if isinstance(value, float) else value

    return json.dumps(without(json.loads(path.read_text(encoding="utf-8")))).encode()


@dataclass(frozen=True)
class Whole:
    """The files of a result that was not disturbed; `varying` show times, which differ from run to run."""

    files: dict[str, bytes]
    varying: frozenset[str]


def whole(
    jobs: Crasher, words: tuple[str, ...], given: Path, tmp_path: Path, seed: int, may_exist: bool = True
) -> Whole:
    found = []
    for turn in range(2):
        out = tmp_path / f"whole{seed}{turn}" / "out"
        (out if may_exist else out.parent).mkdir(parents=True)
        (done,) = jobs({"words": filled(words, given, out, seed)})
        assert done["code"] == 0, done
        found.append(contents(out))
    assert found[0].keys() == found[1].keys() != set()
    differing = {name for name in found[0] if found[0][name] != found[1][name]}
    return Whole(found[0], frozenset(differing | {name for name in found[0] if name.endswith(".html")}))


def check_file(path: Path) -> None:
    """A file that is there can be read to its end."""
    if path.suffix == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    elif path.suffix == ".html":
        assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    elif path.suffix == ".png":
        with Image.open(path) as image:
            image.load()
    elif path.suffix == ".safetensors":
        load_file(path)


def check_left(folder: Path, old: Whole, new: Whole) -> None:
    """Whole files of the old result, or whole files of the new one."""
    left = {name: content for name, content in contents(folder).items() if name not in UNFINISHED}
    for name in left:
        check_file(folder / name)
    shown = {name for name in left if Path(name).suffix != ".png" or not name.startswith("images/")}
    shown |= {name for name in left if any(other.endswith("-pictures.json") for other in left)}
    fixed = {
        name
        for name in shown
        if name not in old.varying | new.varying and name in old.files.keys() & new.files.keys()
    }
    from_old = {name for name in fixed if left[name] == old.files[name] != new.files[name]}
    from_new = {name for name in fixed if left[name] == new.files[name] != old.files[name]}
    assert from_old | from_new | {name for name in fixed if old.files[name] == new.files[name]} == fixed
    assert not (from_old and from_new), (from_old, from_new)
    assert shown <= old.files.keys() | new.files.keys()


def survives(jobs: Crasher, name: str, given: Path, tmp_path: Path, points: Sequence[int]) -> None:
    words = WRITING[name]
    old, new = (whole(jobs, words, given, tmp_path, seed) for seed in (0, 1))
    assert any(old.files[name] != new.files.get(name) for name in old.files)
    empty, full = tmp_path / "empty" / "out", tmp_path / "full" / "out"
    killed = 0
    for out in (empty, full):
        before: dict[str, bytes] = {}
        command = filled(words, given, out, 1)
        for point in points:
            shutil.rmtree(out, ignore_errors=True)
            if out is full:
                shutil.copytree(tmp_path / "whole00" / "out", out)
                before = old.files
            else:
                out.mkdir(parents=True)
            (done,) = jobs({"words": command, "kill": ("any", point)})
            assert done["code"] in (-9, 0), done
            if done["code"] == 0:
                break
            killed += 1
            check_left(out, old if before else new, new)
            check_report(jobs, out)
        (done,) = jobs({"words": command})
        assert done["code"] == 0, done
        left = contents(out)
        # what was measured under other settings stays for a sweep that asks for it again
        kept = {one for one in left.keys() & before.keys() if one.startswith("points/")} - new.files.keys()
        assert left.keys() - kept == new.files.keys()
        assert {one: left[one] for one in kept} == {one: before[one] for one in kept}
        assert {one for one in new.files if left[one] != new.files[one]} <= new.varying
    assert killed >= 2


def check_report(jobs: Crasher, out: Path) -> None:
    """What looks like a result is one: its page can be made. Where there is none, that is said."""
    names = [path.name for path in out.glob("*.json") if path.name not in ("against.json", "difference.json")]
    if not names:
        return
    copy = out.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(out, copy)
    (done,) = jobs({"words": ["report", str(copy)]})
    assert done["code"] == 0, (names, done)
    for page in out.glob("*.html"):  # one that is there is of the result beside it
        assert page.read_bytes() == (copy / page.name).read_bytes()


@pytest.mark.parametrize("name", ["audit against"])
def test_a_command_that_is_killed_at_a_write_leaves_one_result_or_none(name, jobs, given, tmp_path):
    survives(jobs, name, given, tmp_path, (2, 8))  # more of them, and every command: make test-all


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITING)
def test_every_command_that_is_killed_at_a_write_leaves_one_result_or_none(name, jobs, trained, tmp_path):
    survives(jobs, name, trained, tmp_path, range(1, POINTS, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMED)
def test_a_run_that_is_killed_again_and_again_is_resumed_and_does_not_look_finished_before(
    name, jobs, given, tmp_path
):
    """Each process gets a few writes further than the last one, and dies."""
    start, resume = RESUMED[name]
    expected = whole(jobs, start, given, tmp_path, 0, may_exist=False)
    out = tmp_path / "killed" / "out"
    out.parent.mkdir()
    marker = {"search": "plan.json", "compare": "comparison.json"}.get(name, "config.json")
    job: dict[str, Any] = {
        "words": filled(resume, given, out, 0),
        "or_else": {"unless": str(out / marker), "words": filled(start, given, out, 0)},
    }
    killed = 0
    for point in (3, 5, 8, 11, 14, 17, 21, 27, 33, 40):
        (done,) = jobs(job | {"kill": ("any", point)})
        assert done["code"] in (-9, 0), done
        if done["code"] == 0:
            break
        killed += 1
        for path in out.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                check_file(path)
    assert killed >= 3
    (done,) = jobs(job)
    assert done["code"] == 0, done
    assert contents(out).keys() == expected.files.keys()


def test_every_command_is_in_one_of_these_lists():
    written = {words[0] for words in WRITING.values()} | {start[0] for start, _ in RESUMED.values()}
    assert written | READING == {name for _, name in (*COMMANDS, *GROUPS)}
