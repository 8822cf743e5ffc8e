"""Runs the example of each command's help, with an installed obverse: python .ci/try_examples.py BIN [FOLDER]

BIN is the folder of `obverse` and of its Python. Commands and examples are read from the help itself. Data
that would be downloaded are replaced by the embedded digits, and long work is made short by `--quick` or few
epochs; all other words are those of the help. Prints one line for each example, and ends with status 1 if one
fails.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

SECONDS = 600  # of one example, on a slow machine
DATA = {"mnist": "digits", "cifar10": "digits"}
SHORT = {  # what makes the work short; these take the place of the example's own
    "train": ["--epochs", "1"],
    "compare": ["--seeds", "2", "--quick"],
    "search": ["--epochs", "1", "--trials", "2"],
    "shadow": ["--quick"],
    "memorize": ["--quick"],
    "ladder": ["--quick"],
    "diversity": ["--quick"],
    "generate train": ["--epochs", "1"],
    "generate sample": ["--count", "50"],
    "claims run": ["--quick"],
    "explore": ["--no-browser"],
}
LARGE = {"--train-size", "--hidden"}  # more than the embedded digits have, or than is quick
EXTRA = "pip install 'obverse["  # what a command says that needs one
FOUND = {"audit": (0, 3)}  # --fail-on has found what it looks for, or not
PREPARE = """
import numpy as np, torch
from pathlib import Path
from PIL import Image
from torch import nn
from safetensors.torch import save_file
from obverse.data import load
digits = load("digits")
sets = {"samples": digits.test_x[:150], "training": digits.train_x[:200], "heldout": digits.test_x[150:350]}
for name, images in sets.items():
    Path(name).mkdir()
    for number, image in enumerate(images):
        Image.fromarray((255 * image[0]).byte().numpy()).save(f"{name}/{number:03}.png")
Path("mynets.py").write_text('''
from torch import nn
def resnet():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
''')
torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
for file in ("resnet.safetensors", "model.safetensors"):
    save_file(net.state_dict(), file)
"""


def call(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def helps(program: str, folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(command, its help) of the program and of everything below it."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        path = waiting.pop(0)
        done = call([program, *path, "--help"], folder, environment)
        if done.returncode:
            sys.exit(f"expected help of {' '.join(path) or 'obverse'}; got\n{done.stdout}{done.stderr}")
        yield " ".join(path), done.stdout
        _, _, listed = done.stdout.partition(" Commands ")
        waiting += [(*path, name) for name in re.findall(r"^│ (\w+) ", listed, re.MULTILINE)]


def examples(text: str) -> list[list[str]]:
    """The lines after "Example:", as words without `obverse`."""
    return [
        shlex.split(found)[1:] for found in re.findall(r"Example:\s+(obverse .+?)\s*$", text, re.MULTILINE)
    ]


def in_small(words: list[str]) -> list[str]:
    """The same words with embedded data and little work."""
    more = next((SHORT[name] for name in (" ".join(words[:2]), words[0]) if name in SHORT), [])
    kept: list[str] = []
    given = iter(words)
    for word in given:
        if word in LARGE or (word in more and word.startswith("--") and word != "--quick"):
            next(given)
        elif word != "--quick" or word not in more:
            kept.append(DATA.get(word, word))
    return kept + more


def look(program: str, words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """`explore`: its page answers, and Ctrl-C ends it."""
    with subprocess.Popen(
        [program, *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/\S*", line)
            if address is None:
                running.kill()
                return f"no address: {line}{running.communicate()[1]}"
            with urllib.request.urlopen(address[0], timeout=60) as page:
                seen = page.read().decode()
        finally:
            running.terminate()
            status = running.wait(60)
        return (
            "" if status == 0 and "<html" in seen.lower() else f"status {status}, {len(seen)} letters of page"
        )


def main() -> None:
    place = Path(sys.argv[1]).absolute()
    folder = Path(sys.argv[2] if sys.argv[2:] else tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    program = str(place / "obverse")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OBVERSE"))},
        "COLUMNS": "400",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    where = call(
        [str(place / "python"), "-c", "import obverse; print(obverse.__file__)"], folder, environment
    )
    if not Path(where.stdout.strip()).is_relative_to(place.parent):
        sys.exit(f"expected obverse inside of {place.parent}; got {where.stdout}{where.stderr}")
    prepared = call([str(place / "python"), "-c", PREPARE], folder, environment)
    if prepared.returncode:
        sys.exit(prepared.stderr)
    found: dict[str, list[list[str]]] = {}
    for command, text in helps(program, folder, environment):
        lines = examples(text)
        if not lines:
            sys.exit(f"expected an example in the help of {command or 'obverse'}; got\n{text}")
        found[command] = lines
    failed, began = 0, time.monotonic()
    ran: set[tuple[str, ...]] = set()
    # What others look at is made first.
    for command in sorted(found, key=lambda name: (name not in ("train", "generate"), name)):
        for line in found[command]:
            words = in_small(line)
            if tuple(words) in ran:
                continue
            ran.add(tuple(words))
            said = "ran"
            if words[0] == "explore":
                wrong = look(program, words, folder, environment)
            else:
                done = call([program, *words], folder, environment)
                wrong = (
                    ""
                    if done.returncode in FOUND.get(words[0], (0,))
                    else f"status {done.returncode}\n{done.stderr}"
                )
                if done.returncode == 2 and EXTRA in done.stderr:
                    said, wrong = "asked for its extra", ""
            failed += bool(wrong)
            print(
                f"{'FAILED' if wrong else said}: {shlex.join(['obverse', *words])} {wrong}".strip(),
                flush=True,
            )
    print(f"{len(ran)} examples, {failed} failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
