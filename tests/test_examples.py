"""Every example answers the question it asks, as it is, within its forty lines."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

FOLDER = Path(__file__).parent.parent / "examples"
Answer = Callable[..., str]
EXAMPLES = sorted(FOLDER.glob("*.py"))


# These register claims or start processes that import the script: in a process of their own.
ALONE = {"my_claims", "run_a_theorem"}
TRAINING = {"how_far_up", "shadow_loss"}  # train several nets: seconds each


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Answer:
    """What the script prints. Run as a user would, but for the process: each would import torch anew."""

    def call(name: str, *words: object) -> str:
        script = str(FOLDER / f"{name}.py")
        if name in ALONE:
            command = [sys.executable, "-W", "error", script, *map(str, words)]
            done = run(command, capture_output=True, text=True, timeout=300, check=False)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            return done.stdout
        monkeypatch.setattr(sys, "argv", [script, *map(str, words)])
        runpy.run_path(script, run_name="__main__")
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return call


def numbers(pattern: str, text: str) -> list[float]:
    found = [float(one.replace(",", "")) for one in re.findall(pattern, text)]
    assert found, f"{pattern!r} is not in\n{text}"
    return found


def says_which_layers_changed_beyond_chance(text: str) -> None:
    lines = text.splitlines()
    assert re.match(r"2 layers: .*\(1 not judged\)", lines[0])
    # Weight decay and 300 steps: the middle layer is the one that training has moved most.
    [found] = numbers(r"h2 \(200 × 200\): (?:at least )?(\d+) of 200 directions", lines[2])
    assert 0 < found < 200
    [ratio] = numbers(r"recovery error ([\d.]+) × that of its shuffled entries", lines[2])
    assert ratio > 1.5


def finds_the_gradient_exact_or_lossy(text: str) -> None:
    told, lost = numbers(r"over all edges by at most (\S+)", text)
    assert told < 1e-12
    assert lost > 0.1


def bounds_the_known_truth(text: str) -> None:
    truths = numbers(r"1/Σp² of ([\d,]+)", text)
    assert truths == [1000, 4]
    for truth, bound in zip(truths, numbers(r"at most ([\d,]+) pictures", text), strict=True):
        assert truth <= bound < 10 * truth
    for truth, (low, high) in zip(truths, re.findall(r"pairs: ([\d,]+) to ([\d,]+)", text), strict=True):
        assert int(low.replace(",", "")) <= truth <= int(high.replace(",", ""))


def leaves_the_frozen_layer_alone(text: str) -> None:
    lines = {line.split(":")[0].strip(): line for line in text.splitlines()}
    pairs = re.findall(r"(\S+) → (\S+?)(?:,|$)", lines["h1"])
    assert len(pairs) == 5
    assert all(before == after for before, after in pairs)
    assert re.search(r"ratio \S+ → \S+\*", lines["h2"])


def tells_a_collapsed_copier(text: str) -> None:
    [bound] = numbers(r"effectively at most ([\d,]+) pictures", text)
    assert 60 <= bound < 200  # there are 60
    assert "Collapsed? yes" in text
    assert "Copied? training images come back" in text


def draws_from_low_layers_only(text: str) -> None:
    share = {name: (int(own), int(other)) for name, own, other in re.findall(r"(\w+) +(\d+)%.*?(\d+)%", text)}
    assert list(share) == ["conv1", "conv2", "conv3", "output"]
    assert share["conv1"][0] > 90 > share["conv3"][0]
    assert all(own > shuffled for own, shuffled in share.values())
    assert "when drawn from: conv1." in text


def agrees_with_theory(text: str) -> None:
    rows = re.findall(r"(\d+) units active: error ([\d.]+), of random weights ([\d.]+)", text)
    assert [int(units) for units, _, _ in rows] == [3, 9, 30, 90]
    measured = [float(error) for _, error, _ in rows]
    assert measured == sorted(measured)
    for error, (_, _, predicted) in zip(measured, rows, strict=True):
        # 200 draws through one matrix: a few per cent; and both are printed to 0.0005
        assert error == pytest.approx(float(predicted), rel=0.1, abs=0.002)


def knows_by_heart_and_no_more(text: str) -> None:
    assert text.count("1,297 of 1,297 points labelled right (100.00 %)") == 2
    own, dealt = numbers(r"on new points (\d+) % wrong", text)
    assert own < dealt
    assert dealt == pytest.approx(90, abs=5)  # 500 points: a standard error of 1.3


def fails_the_guess_and_holds_the_truth(text: str) -> None:
    guess, truth, first, second = text.splitlines()
    assert guess.startswith("Var r(g) = s²/2")
    assert truth.startswith("Var r(g) = s²(1/2 − 1/(2π))")
    assert first.startswith("mine.relu-variance: failed")
    assert second.startswith("mine.relu-variance-corrected: held")


def keeps_its_guarantee(text: str) -> None:
    rows = re.findall(r"(\d+) layers I \+ A: largest ‖A‖ (\S+), guaranteed (\S+);.* up to (\S+)", text)
    assert [int(layers) for layers, *_ in rows] == [8, 32, 128]
    for _, largest, guaranteed, off in rows:
        assert float(largest) <= float(guaranteed)
        assert float(off) < 1e-12
    [enough] = numbers(r"everywhere (\d+) layers", text)
    assert 32 < enough <= 128


def learns_the_layer(text: str) -> None:
    assert "Before: expected a net that torch.fx can trace; got" in text
    [lost] = numbers(r"comes back all but (\d+) %", text)
    assert 0 < lost < 30  # a random layer of 64 units and 256 inputs without the rule's layer: 10


def tells_printed_from_corrected(text: str) -> None:
    assert "alm.sec2.2.nonzeros, as printed: FAILED" in text
    assert "alm.sec2.2.nonzeros.corrected, corrected: HELD" in text
    assert len(numbers(r"measured ([\d.]+) ±", text)) == 6


def compares_with_a_control(text: str) -> None:
    own, *others = numbers(r"test error ([\d.]+) %", text)
    gaps = [(float(gap), float(spread)) for gap, spread in re.findall(r"differ by (\S+) ± (\S+)", text)]
    assert max(own, *others) < 20  # of ten classes
    for error, (gap, _) in zip(others, gaps, strict=True):
        assert own - error == pytest.approx(gap, abs=0.16)  # three roundings
    helped = all(gap < -2 * spread for gap, spread in gaps)
    assert text.splitlines()[-1].startswith("Here shadows helped" if helped else "Here nothing says")


CHECKS: dict[str, Callable[[str], None]] = {
    "audit_checkpoint": says_which_layers_changed_beyond_chance,
    "backprop_by_events": finds_the_gradient_exact_or_lossy,
    "count_pictures": bounds_the_known_truth,
    "finetuned": leaves_the_frozen_layer_alone,
    "gan_samples": tells_a_collapsed_copier,
    "how_far_up": draws_from_low_layers_only,
    "layer_reversible": agrees_with_theory,
    "memorize_dataset": knows_by_heart_and_no_more,
    "my_claims": fails_the_guess_and_holds_the_truth,
    "near_identity": keeps_its_guarantee,
    "own_layer": learns_the_layer,
    "run_a_theorem": tells_printed_from_corrected,
    "shadow_loss": compares_with_a_control,
}


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in TRAINING))
        for path in EXAMPLES
    ],
)
def test_the_answer(example: Path, answer: Answer) -> None:
    CHECKS[example.stem](answer(example.stem))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_short_asks_a_question_and_has_a_main(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    tree = ast.parse(text)
    question = (ast.get_docstring(tree) or "").splitlines()[0]
    assert "?" in question
    assert any(isinstance(one, ast.FunctionDef) and one.name == "main" for one in tree.body)


def test_there_are_ten_and_the_list_has_them_all() -> None:
    assert len(EXAMPLES) >= 10
    rows = re.findall(
        r"^\| (.*\?) \| \[(.*)\]\((.*)\) \|$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M
    )
    assert sorted(name for _, name, _ in rows) == [path.name for path in EXAMPLES]
    for question, name, target in rows:
        assert name == target
        assert question in (FOLDER / name).read_text(encoding="utf-8")


# With files of one's own


def test_audit_of_a_file(tmp_path: Path, answer: Answer) -> None:
    weight = torch.randn(100, 120, generator=torch.Generator().manual_seed(0))
    save_file({"fc.weight": weight}, tmp_path / "own.safetensors")
    assert "fc (100 × 120): no direction stands out from noise" in answer(
        "audit_checkpoint", tmp_path / "own.safetensors"
    )


def test_two_files_that_are_one(tmp_path: Path, answer: Answer) -> None:
    weight = torch.randn(100, 120, generator=torch.Generator().manual_seed(0))
    save_file({"fc.weight": weight}, tmp_path / "own.safetensors")
    found = answer("finetuned", *2 * [tmp_path / "own.safetensors"])
    assert "no verdict changed; random share clearly changed in none" in found


def test_folders_of_pictures(tmp_path: Path, answer: Answer) -> None:
    """Fresh noise is neither collapsed nor copied."""
    pictures = np.random.default_rng(0).integers(0, 256, (360, 6, 6), dtype=np.uint8)
    for name, some in zip(("samples", "train", "held-out"), np.split(pictures, 3), strict=True):
        (tmp_path / name).mkdir()
        for number, picture in enumerate(some):
            Image.fromarray(picture).save(tmp_path / name / f"{number}.png")
    found = answer("gan_samples", *(tmp_path / name for name in ("samples", "train", "held-out")))
    assert "Collapsed? no sign" in found
    assert "Copied? no sign of copying" in found


def test_a_layer_that_is_not_random(tmp_path: Path, answer: Answer) -> None:
    """Rows that share a direction: what comes back is that direction, not h."""
    draws = np.random.default_rng(0)
    np.save(tmp_path / "weight.npy", draws.normal(size=(100, 800)) + 2 * draws.normal(size=800))
    rows = re.findall(
        r"error ([\d.]+), of random weights ([\d.]+)", answer("layer_reversible", tmp_path / "weight.npy")
    )
    assert len(rows) == 4
    assert all(float(error) > 2 * float(predicted) for error, predicted in rows)


def test_a_matrix_of_ones_own(tmp_path: Path, answer: Answer) -> None:
    np.save(tmp_path / "turn.npy", np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert "a 2 × 2 matrix that stretches or shrinks by up to 1.0" in answer(
        "near_identity", tmp_path / "turn.npy"
    )


def test_data_of_ones_own(tmp_path: Path, answer: Answer) -> None:
    draws = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=draws.normal(size=(100, 5)), y=draws.integers(0, 4, 100))
    found = answer("memorize_dataset", tmp_path / "own.npz")
    assert found.count("80 of 80 points labelled right") == 2
    assert "guessing would be 75 %" in found


@pytest.mark.slow
def test_another_theorem(answer: Answer) -> None:
    assert "alm.eq2, as printed: FAILED" in answer("run_a_theorem", "alm.eq2")
