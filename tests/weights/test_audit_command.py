"""`obverse audit`: what is measured, printed and written, and the exit status."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from obverse.weights._verdict import Thresholds
from obverse.weights.results import Audit, Finding, Interval, Number, Offsets, read_audit, write_audit
from present.test_progress import on_a_terminal
from training.helpers import files_below
from training.helpers import obverse as obverse_process
from weights.made_audits import HISTOGRAM, made_audit, made_layer, made_parts, unmeasured

LONG = "model.layers.31.self_attn.q_proj"
AUDIT = made_audit(
    made_layer(LONG),
    made_layer("h2", "signal in a random bulk", rank=12, rows=11008, columns=4096, wanting=("recovery",)),
    made_layer(
        "h3",
        "structured otherwise",
        ratio=1.53,
        distance=0.08,
        rank=3,
        findings=(Finding("parts", False, "off", decides=True), Finding("recovery", False, "off")),
    ),
    unmeasured(),
)
FINE = made_audit(made_layer("h1"), made_layer(LONG), model="fine")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_audit(AUDIT, tmp_path / "audit.json")
    return tmp_path / "audit.json"


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    write_audit(FINE, tmp_path / "fine.json")
    return tmp_path / "fine.json"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A random matrix, one with unequal rows, one with a signal, one that is too small."""
    random = np.random.default_rng(3)
    gaussian = random.standard_normal((64, 96)).astype(np.float32)
    scales = np.linspace(0.1, 3, 64, dtype=np.float32)[:, None]
    path = tmp_path / "weights.npz"
    taught = (
        gaussian + 2 * np.outer(random.standard_normal(64), random.standard_normal(96)).astype(np.float32) / 4
    )
    np.savez(path, fine=gaussian, uneven=gaussian * scales, taught=taught, small=gaussian[:8, :9])
    return path


class Asked(dict[str, Any]):
    """What the audit was asked for, instead of measuring."""

    def __call__(self, net: Any, **options: Any) -> Audit:
        self.update(options, net=net)
        named = isinstance(net, tuple)
        return made_audit(*(made_layer(one.name) for one in net if named), model=options["model"])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr("obverse.weights._audit.audit", made)
    return made


# What is printed


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, "layer random signal verdict"),
        (120, "layer shape random 95 % signal bulk law KS offsets ratio verdict"),
    ],
)
def test_the_table_fits_and_says_what_matters(obverse, monkeypatch, file, width, titles):
    monkeypatch.setenv("COLUMNS", str(width))
    done = obverse("audit", file)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"h2: {AUDIT.layers[1].parts.sentence}"
    assert lines[1] == "h3: off"  # the deciding finding, which knows of blocks too
    assert set(lines[2].split()) >= set(titles.split())
    assert all(len(line) <= width for line in lines[2:7])
    rows = {line.split()[0]: line for line in lines[4:7]}
    assert re.search(
        r" 100% .* 0/64 .*untouched$",
        next(row for name, row in rows.items() if name.endswith("q_proj")).rstrip(),
    )
    assert re.search(r" 76% .* 12/4096 .*signal in a random bulk$", rows["h2"].rstrip())
    assert re.search(r" 94% .* 3/64\* .*structured otherwise$", rows["h3"].rstrip())
    assert "not judged: out: smaller than 32 on a side" in lines
    assert "*: more than noise shows: what the verdict rests on" in " ".join(done.out.split())
    assert (
        "3 layers: 1 untouched, 1 signal in a random bulk, 1 structured otherwise (1 not judged)"
        in " ".join(done.out.split())
    )
    assert "2 of 3 layers show more than noise does" in " ".join(lines[-3:])


def test_a_wide_table_has_the_interval_and_the_distance(obverse, monkeypatch, file):
    monkeypatch.setenv("COLUMNS", "160")
    done = obverse("audit", file)
    assert re.search(r"^h3 .* 94% +93–95% +3/64\* +0\.072 +t +0\.004 +5\.00", done.out, re.MULTILINE)


def test_offsets_that_are_all_alike_and_estimated_spectra(obverse, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    offsets = Offsets(64, -0.5, 0.0, Number(1e9), 1.0, HISTOGRAM)
    layer = made_layer(offsets=offsets, parts=made_parts(method="krylov", rank_is_bound=True, below=(0.1,)))
    write_audit(made_audit(layer), tmp_path / "a.json")
    assert re.search(
        r"^h1 .* ≥0/64 −1 +≈0\.002 .* ∞ ", obverse("audit", tmp_path / "a.json").out, re.MULTILINE
    )


def test_piped_output_has_no_escape_codes_and_100_columns(file):
    done = obverse_process("audit", file, COLUMNS="")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    titles = next(line for line in done.stdout.splitlines() if line.startswith("layer"))
    assert "95 %" in titles
    assert 80 < len(titles) <= 100


@pytest.mark.parametrize("name", ["[red]h[/red]", "\x1b[2Jh", "h\nnext", "h\r\x07", "=h", ":smile:", "汉字"])
def test_a_layer_may_be_called_anything(obverse, tmp_path, name):
    write_audit(made_audit(made_layer(name, "structured otherwise", sentence=name)), tmp_path / "a.json")
    for words in ([], ["--against", tmp_path / "a.json"]):
        done = obverse("audit", tmp_path / "a.json", *words)
        assert (done.code, done.err) == (0, "")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.out)
        shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)
        assert any(line.startswith(shown) for line in done.out.splitlines())


def test_a_net_of_300_layers_is_one_table(obverse, tmp_path):
    layers = [made_layer(f"model.layers.{at}.mlp.down_proj") for at in range(300)]
    write_audit(made_audit(*layers), tmp_path / "a.json")
    out = obverse("audit", tmp_path / "a.json").out
    assert len(re.findall(r"^model\.layers\.\d+\.mlp\.down_proj ", out, re.MULTILINE)) in (0, 300)
    assert len(re.findall(r"untouched *$", out, re.MULTILINE)) == 301


# What is measured


def test_weights_are_measured_and_judged(obverse, weights, tmp_path):
    done = obverse("audit", weights, "--out", tmp_path / "out", "--fail-on", "signal")
    assert done.code == 3, done
    assert done.err == "obverse: --fail-on signal: 1 of 4 layers\n"
    assert re.search(r"^fine .*untouched *$", done.out, re.MULTILINE)
    assert re.search(r"^uneven .*untouched *$", done.out, re.MULTILINE)
    assert "not judged: small: too small to judge (a side of 8, at least 32 needed)" in done.out.splitlines()
    found = read_audit(tmp_path / "out")
    assert found.model == str(weights)
    assert {layer.name: layer.verdict for layer in found} == {
        "fine": "untouched",
        "uneven": "untouched",
        "taught": "signal in a random bulk",
        "small": "not judged",
    }
    assert f"taught: {found.layers[2].parts.sentence}" in done.out.splitlines()
    assert "norms" in {one.aspect for one in found.layers[1].findings if one.random_like is False}


def test_the_same_seed_gives_the_same_audit(obverse, weights):
    words = ("audit", weights, "--layers", "fine", "--samples", "4", "--json", "--seed", "5")
    first, second = (json.loads(obverse(*words).out) for _ in range(2))
    for one in (first, second):
        del one["seconds"], one["layers"][0]["seconds"]
    assert first == second


def test_the_flags_reach_the_audit(obverse, weights, asked):
    words = ("--keep", "0.5", "--samples", "7", "--exact", "--seed", "11", "--layers", "f*")
    limits = ("--threshold", "level=0.01", "--threshold", "min_side=8")
    assert obverse("audit", weights, *words, *limits).code == 0
    assert [one.name for one in asked["net"]] == ["fine"]
    assert {name: asked[name] for name in ("keep", "samples", "exact", "model", "data")} == {
        "keep": 0.5,
        "samples": 7,
        "exact": True,
        "model": str(weights),
        "data": None,
    }
    assert asked["generator"].initial_seed() == 11
    assert asked["thresholds"] == Thresholds(level=0.01, min_side=8)


def test_without_flags_the_audit_has_its_own_defaults(obverse, weights, asked):
    assert obverse("audit", weights).code == 0
    assert asked.keys() == {"net", "model", "data", "progress", "thresholds", "generator"}
    assert asked["generator"].initial_seed() == 0
    assert asked["thresholds"] == Thresholds()


def test_the_help_tells_defaults_and_thresholds(obverse):
    text = re.sub(r"[\s│]+", " ", obverse("audit", "--help").out)
    for shown in ("kept [1].", "sparsity [32].", "random [0].", "[never]", "status 3"):
        assert shown in text, shown
    assert "level=0.001, min_side=32," in text


def test_a_terminal_shows_a_bar_for_the_layers(weights):
    code, shown = on_a_terminal("audit", str(weights), "--samples", "4")
    assert code == 0, shown
    assert re.search(r"weights\.npz .* 4/4 ", shown)
    assert re.search(r" [0-3]/4 .* uneven", shown)


# A run and its data


@pytest.fixture
def run(obverse, data: Path, tmp_path: Path) -> Path:
    words = ["--data", data, "--hidden", "48,40", "--epochs", "1", "--batch-size", "20", "--no-report"]
    assert obverse("train", *words, "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


def test_a_run_is_audited_with_its_own_data(obverse, run, data):
    words = ("audit", run, "--json", "--samples", "4", "--threshold", "min_side=16")
    without = json.loads(obverse(*words).out)
    assert [layer["name"] for layer in without["layers"]] == ["h1", "h2", "h3"]
    assert {one["source"] for layer in without["layers"] for one in layer["reversal"]} == {"random"}
    for name in ("own", data):
        found = json.loads(obverse(*words, "--data", name).out)
        assert [layer["name"] for layer in found["layers"]] == ["h1", "h2", "h3"]
        assert found["layers"][1]["reversal"][-1]["source"] == "data"
        assert found["layers"][1]["entries"] == without["layers"][1]["entries"]


def test_other_data_of_the_same_shape_will_do(obverse, run, tmp_path, asked):
    x = np.full((10, 1, 4, 4), 0.25, dtype=np.float32)
    np.savez(tmp_path / "same.npz", x=x, y=np.arange(10) % 3)
    assert obverse("audit", run, "--data", tmp_path / "same.npz").code == 0
    assert torch.equal(asked["data"], torch.full((2, 1, 4, 4), 0.25))
    np.savez(tmp_path / "other.npz", x=x[..., :3], y=np.arange(10) % 3)
    done = obverse("audit", run, "--data", tmp_path / "other.npz")
    assert done.code == 2
    assert "expected inputs of shape (1, 4, 4)" in done.err
    assert "got (1, 4, 3)" in done.err


def test_a_run_against_its_own_beginning(obverse, run):
    done = obverse("audit", run, "--against", "initial", "--json", "--threshold", "min_side=16")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["before"], found["after"]) == (f"{run} before training", str(run))
    assert [layer["name"] for layer in found["layers"]] == ["h1", "h2", "h3"]
    assert found["only_before"] == found["only_after"] == found["notes"] == []
    moved = found["layers"][1]["ks"]
    assert moved["before"] != moved["after"], "training changed the entries"


# Files


def test_out_takes_json_csv_and_the_page(obverse, file, tmp_path):
    out = tmp_path / "a" / "b"
    done = obverse("audit", file, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"page: {out / 'audit.html'}\n")
    assert files_below(out) == {"audit.json", "audit.csv", "audit.html"}
    assert read_audit(out) == AUDIT
    with (out / "audit.csv").open(newline="") as stream:
        assert [row["layer"] for row in csv.DictReader(stream)] == [LONG, "h2", "h3", "out"]
    assert "<html" in (out / "audit.html").read_text()
    assert read_audit(out) == AUDIT
    assert re.search("^layer ", obverse("audit", out).out, re.MULTILINE), "a directory with an audit"


def test_without_out_nothing_is_written(obverse, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = files_below(tmp_path)
    assert obverse("audit", file).code == 0
    assert files_below(tmp_path) == before


def test_json_is_all_of_stdout(obverse, file, tmp_path):
    assert json.loads(obverse("audit", file, "--json").out) == json.loads(file.read_text())
    done = obverse("audit", file, "--json", "--out", tmp_path / "out")
    assert json.loads(done.out) == json.loads(file.read_text())
    assert done.err == f"page: {tmp_path / 'out' / 'audit.html'}\n"


# One against another


def test_against_says_what_changed(obverse, file, fine, tmp_path):
    done = obverse("audit", file, "--against", fine, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "the audits, from fine to net.safetensors"
    assert lines[1].split() == ["layer", "verdict", "random", "signal", "ratio", "bulk", "KS"]
    assert "only in base: h1" in lines
    assert "only in tuned: h2, h3, out" in lines
    assert "1 layer in both: no verdict changed; random share clearly changed in none; " in lines[-2]
    assert files_below(tmp_path / "out") == {"audit.json", "audit.csv", "audit.html", "against.json"}
    assert read_audit(tmp_path / "out" / "against.json") == FINE
    assert obverse("audit", file, "--out", tmp_path / "out").code == 0
    assert files_below(tmp_path / "out") == {"audit.json", "audit.csv", "audit.html"}, "no longer compared"


@pytest.mark.parametrize("width", [80, 120])
def test_changes_are_marked_and_fit(obverse, monkeypatch, tmp_path, width):
    monkeypatch.setenv("COLUMNS", str(width))
    before = made_audit(made_layer(LONG), made_layer("h3"), model="a", keep=0.5)
    after = made_audit(made_layer(LONG), AUDIT.layers[2], model="b")
    write_audit(before, tmp_path / "a.json")
    write_audit(after, tmp_path / "b.json")
    lines = obverse("audit", tmp_path / "b.json", "--against", tmp_path / "a.json").out.splitlines()
    assert all(len(line) <= width for line in lines[:8])
    row = next(line for line in lines if line.startswith("h3"))
    assert re.search(r"untouched → structured +1\.00 → 0\.94\* +0 → 3\*", row)
    assert "note: measured with different settings: keep" in lines
    assert lines[-1].startswith("2 layers in both: 1 verdict changed (1 untouched → structured otherwise)")


def test_a_model_is_measured_against_an_audit_made_before(obverse, weights, tmp_path):
    words = ("--samples", "4", "--layers", "[fs]*")
    assert obverse("audit", weights, *words, "--out", tmp_path / "out").code == 0
    done = obverse("audit", weights, *words, "--against", tmp_path / "out", "--json")
    found = json.loads(done.out)
    assert [layer["name"] for layer in found["layers"]] == ["fine", "small"]
    assert found["notes"] == []
    same = found["layers"][0]["ratio"]
    assert same["before"] == same["after"]


def test_nothing_in_common_is_said_too(obverse, fine, tmp_path):
    write_audit(made_audit(made_layer("other")), tmp_path / "a.json")
    done = obverse("audit", fine, "--against", tmp_path / "a.json")
    assert done.code == 0
    assert "no layer is in both; 1 only in base; 2 only in tuned" in done.out


# Exit status


@pytest.mark.parametrize(
    ("name", "when", "code"),
    [
        ("audit.json", "never", 0),
        ("audit.json", "structured", 3),
        ("audit.json", "signal", 3),
        ("fine.json", "structured", 0),
        ("fine.json", "signal", 0),
        ("spiked.json", "structured", 0),
        ("spiked.json", "mostly-signal", 0),
        ("spiked.json", "signal", 3),
        ("structured.json", "mostly-signal", 3),
    ],
)
def test_fail_on(obverse, file, fine, tmp_path, name, when, code):
    write_audit(made_audit(AUDIT.layers[1]), tmp_path / "spiked.json")
    write_audit(made_audit(AUDIT.layers[2]), tmp_path / "structured.json")
    done = obverse("audit", tmp_path / name, "--fail-on", when)
    assert done.code == code
    assert bool(done.err) == (code == 3)


def test_what_fails_is_the_model_and_not_the_other(obverse, file, fine, tmp_path):
    words = ("--fail-on", "signal", "--out", tmp_path / "out")
    assert obverse("audit", fine, "--against", file, *words).code == 0
    assert obverse("audit", file, "--against", fine, *words).code == 3
    assert (tmp_path / "out" / "audit.json").exists(), "written all the same"


WRONG = [
    (["broken.json"], "an audit in JSON; got broken.json"),
    (["odd.json"], r"expected the field model for the audit in odd\.json"),
    (["text.npz"], "text.npz"),
    (["empty"], "empty"),
    (
        ["good.json", "--fail-on", "always"],
        "--fail-on out of never, structured, mostly-signal, signal; got 'always'",
    ),
    (["good.json", "--layers", "x*"], r"--layers to match at least one layer; got 'x\*'; names are h1, m"),
    (["good.json", "--seed", "3"], "good.json, which is measured already; leave out --seed"),
    (["good.json", "--threshold", "level=0.1", "--data", "own"], "leave out --data, --threshold"),
    (["good.json", "--against", "initial"], "the directory of a run for --against initial"),
    (["good.json", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
    (["good.json", "--out", "broken.json"], "expected to write broken.json"),
    (["good.npz", "--data", "digits"], r"the directory of a run for --data.*obverse\.audit\(net, data=x\)"),
    (["good.npz", "--threshold", "levle=0.1"], "--threshold out of level, .*; got 'levle=0.1'"),
    (["good.npz", "--threshold", "level"], "a number for the threshold level; got ''"),
    (["good.npz", "--threshold", "level=nan"], "a number for the threshold level; got 'nan'"),
    (["good.npz", "--threshold", "level=1e999"], "a number for the threshold level"),
    (["good.npz", "--threshold", "min_side=2.5"], "a whole number for the threshold min_side; got '2.5'"),
    (["good.npz", "--threshold", "level=-1"], "a number > 0 for the threshold level; got -1"),
    (["good.npz", "--threshold", "level=2"], "level < 1"),
    (["good.npz", "--keep", "0"], "keep in"),
    (["good.npz", "--keep", "nan"], "keep in"),
    (["good.npz", "--samples", "1"], "at least 2 samples"),
    (["good.npz", "--exact", "--quick"], "--exact or --quick; got both"),
    (["old.json"], "an audit of format 2; got format 1 in old.json"),
    (["good.npz", "--seed", "-1"], "--seed from 0 to"),
    (["good.npz", "--seed", str(2**70)], "--seed from 0 to"),
    (["nan.npz"], "nan.npz"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words)[:60] for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    write_audit(FINE, tmp_path / "good.json")
    matrix = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    np.savez(tmp_path / "good.npz", h1=matrix)
    np.savez(tmp_path / "nan.npz", h1=np.where(matrix > 2, np.nan, matrix))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "odd.json").write_text('{"format": 2}')
    (tmp_path / "old.json").write_text('{"format": 1}')
    (tmp_path / "text.npz").write_text("not a zip")
    (tmp_path / "empty").mkdir()
    before = files_below(tmp_path)
    done = obverse("audit", *words)
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("obverse: expected ")
    assert done.err.count("\n") == 1, "one line"
    assert done.err.count("; ") >= 2, "what was expected, what came, what to do"
    assert re.search(said, done.err), done.err
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("words", [["audit"], ["audit", "a", "--samples", "many"], ["audit", "a", "--nope"]])
def test_words_that_are_no_flags_are_refused_without_a_traceback(obverse, words):
    done = obverse(*words)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"obverse: expected [^\n]*; got [^\n]*; [^\n]*\n", done.err), done.err


def test_a_run_that_is_not_finished_is_refused(obverse, run):
    (run / "model.safetensors").unlink()
    for words in ([], ["--data", "own"]):
        done = obverse("audit", run, *words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done


def test_which_file_of_a_folder_is_audited_is_said_and_kept(
    obverse: Any, asked: Asked, weights: Path
) -> None:
    """On stderr, so that --json stays JSON; the record names the file, not the folder."""
    ran = obverse("audit", weights.parent, "--json")
    assert ran.err == f"{weights.parent}: weights.npz is audited\n"
    assert asked["model"] == str(weights)
    (weights.parent / "other.npy").write_bytes(weights.read_bytes())
    ran = obverse("audit", weights.parent)
    assert ran.code == 2
    assert "other.npy, weights.npz" in ran.err


def test_what_the_terminal_says_first_is_what_the_verdict_rests_on(obverse, tmp_path, monkeypatch):
    """The spectrum of blocks, or of what a mean leaves, is that of noise: alone, that would be false."""
    monkeypatch.setenv("COLUMNS", "100")
    random = np.random.default_rng(5)
    blocks = np.zeros((128, 128), np.float32)
    for start in (0, 64):
        blocks[start : start + 64, start : start + 64] = random.standard_normal((64, 64))
    shifted = random.standard_normal((64, 64)).astype(np.float32) + 5
    np.savez(tmp_path / "w.npz", blocks=blocks, shifted=shifted)
    said = " ".join(obverse("audit", tmp_path / "w.npz", "--samples", "4").out.split())
    assert re.search(r"blocks: no direction [^*]*, but blocks have different scales \(spread \d", said)
    assert re.search(r"shifted: the mean of the entries \(\S+ standard deviations\) holds 9", said)
    assert re.search(r"blocks 128×128 \S+ \S+ 0/128 .{0,60} structured otherwise\*", said)
    assert re.search(r"shifted 64×64 \S+ \S+ 0/64 .{0,60} mostly signal\*", said)


def test_of_many_layers_only_the_extremes_get_a_sentence(obverse, tmp_path):
    layers = [made_layer(f"h{at}", "signal in a random bulk", rank=at + 1) for at in range(12)]
    odd = made_layer("odd", "structured otherwise", parts=made_parts("structured otherwise"))
    write_audit(made_audit(*layers, odd, unmeasured("a"), unmeasured("b")), tmp_path / "a.json")
    lines = obverse("audit", tmp_path / "a.json").out.splitlines()
    assert [line.partition(":")[0] for line in lines[:6]] == ["h7", "h8", "h9", "h10", "h11", "odd"]
    assert lines[6] == "7 more layers show more than noise does: --out DIR writes a sentence about each"
    assert "not judged: a and b: smaller than 32 on a side" in lines
    assert not any(re.match(r"[ab] ", line) for line in lines)


def test_a_bound_is_called_one_and_the_foot_explains_what_is_shown(obverse, monkeypatch, tmp_path):
    parts = made_parts("structured otherwise", random_share=Interval.at_most(0.4))
    write_audit(made_audit(made_layer("h1", "structured otherwise", parts=parts)), tmp_path / "a.json")
    for width, shown in ((160, True), (70, False)):
        monkeypatch.setenv("COLUMNS", str(width))
        said = " ".join(obverse("audit", tmp_path / "a.json").out.split())
        assert re.search(r"h1 (64×100 )?≤40% ", said)
        assert "≤ where only a bound is known" in said
        assert ("95 %: interval of that share" in said) == shown == ("95 %" in said)
        assert "−n where" not in said
