"""`obverse claims`: what is listed, shown and run, what is refused, and the exit codes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from obverse.claims import Sweep, read_sweep
from obverse.claims import _registry as registry
from obverse.present.progress import BARS, claims_progress
from present.test_progress import on_a_terminal
from training.helpers import obverse as obverse_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_claims.py"
# Verdicts: held; failed as expected; another than expected; too few trials to tell.
FILE = """
from obverse.claims import Along, Claim, Equal, Exponent, grid, register
from obverse.claims.alm._conditions import check_layer

def spread(setting, generator):
    if setting["k"] == 7:
        raise RuntimeError("seven\\nis too much")
    return [setting["k"] - 0.01, setting["k"], setting["k"] + 0.01] * setting["trials"]

def k(setting):
    check_layer(setting)
    return setting["k"]

def claim(id, predict, rule=Equal(), **more):
    settings = dict(m=10, k=(1, 2, 4), law="equal", keep=0.5, relu=True, trials=20)
    return register(
        Claim(
            id, f"about {id}", f"The statement of {id}: k = k", "somewhere, eq. 8", grid(**settings), predict,
            spread, rule, "the size of k", "k", **more
        )
    )

claim("t.held", k, quick=grid(m=10, k=(1, 2), law="equal", keep=0.5, relu=True, trials=10))
claim("t.failed", lambda setting: 2 * k(setting), expected="failed", twin="t.held", remark="known to fail",
      place="“k = 2k”, Section 1, line 7")
claim("t.rate", k, Exponent(Along("k")), reading="beyond the paper")
claim("t.images", k, long=True)
"""
MORE = """
claim("t.surprise", lambda setting: 3 * k(setting), reading="corrected")
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """No claims but those of the test's files."""
    registry.claims()  # now: the files import from a paper, which would register its claims with theirs
    monkeypatch.setattr(registry, "PAPERS", ())
    monkeypatch.setattr(registry, "_CLAIMS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.startswith(registry.PREFIX)]:
        del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.py"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def surprising(file: Path) -> Path:
    file.write_text(FILE + MORE, encoding="utf-8")
    return file


def rows(out: str) -> dict[str, str]:
    """The lines of a table by their first word."""
    return {line.split()[0]: line.rstrip() for line in out.splitlines() if line.strip()}


# list and show


def test_list_says_what_words_mean_and_then_one_line_for_each_claim(obverse, file):
    done = obverse("claims", "list", "--module", file)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "4 claims; more about one: obverse claims show ID"
    legend = lines[1 : lines.index("")]
    assert legend[1:] == [
        "  [beyond]: a statement beyond the paper",
        "  [images]: trains on images, and runs by its id, or with --long",
    ]
    assert lines[len(legend) + 2] == "Claims of your own: 3 held, 1 failed"
    claims = lines[len(legend) + 3 :]
    assert [line.split()[:2] for line in claims] == [
        ["held", "t.held"],
        ["failed", "t.failed"],
        ["held", "t.rate"],
        ["held", "t.images"],
    ]
    assert claims[1].split(maxsplit=2)[2] == "about t.failed"
    assert claims[2].split(maxsplit=2)[2] == "[beyond] about t.rate"
    assert claims[3].split(maxsplit=2)[2] == "[images] about t.images"


def test_list_takes_patterns(obverse, file):
    out = obverse("claims", "list", "t.f*", "t.held", "--module", file).out
    assert re.findall(r"^  (?:held|failed) +(\S+)", out, re.MULTILINE) == ["t.failed", "t.held"]
    assert "[images]" not in out


def test_list_as_json(obverse, file):
    done = obverse("claims", "list", "t.held", "--json", "--module", file)
    (one,) = json.loads(done.out)["claims"]
    assert (one["id"], one["expected"], one["long"]) == ("t.held", "held", False)
    assert one["settings"][2] == {
        "m": 10,
        "k": 4,
        "law": "equal",
        "keep": 0.5,
        "relu": True,
        "trials": 20,
    }
    assert len(one["quick"]) == 2


def test_show_says_everything_about_a_claim(obverse, file):
    done = obverse("claims", "show", "t.failed", "--module", file)
    assert (done.code, done.err) == (0, "")
    for line in (
        "t.failed: about t.failed",
        "The statement of t.failed: k = k",
        "source: somewhere, eq. 8",
        "printed there: “k = 2k”, Section 1, line 7",
        "reading: as printed",
        "twin: t.held, to be read beside it",
        "measured: the size of k",
        "found so far: failed",
        "remark: known to fail",
        "full run: 3 settings, all with m = 10, law = equal, keep = 0.5, relu = True, trials = 20",
    ):
        assert line in done.out.splitlines(), line
    assert "held means: measured mean within 4 standard errors" in done.out
    assert re.search(r"^k +predicted\n─+\n1 +2\n2 +4\n4 +8\n", re.sub(" +\n", "\n", done.out), re.MULTILINE)


def test_show_knows_quick_settings_and_long_claims(obverse, file):
    assert (
        "full run: 3 settings (2 with --quick), all"
        in obverse("claims", "show", "t.held", "--module", file).out
    )
    quick = obverse("claims", "show", "t.held", "--quick", "--module", file).out
    assert (
        "quick run: 2 settings, all with m = 10, law = equal, keep = 0.5, relu = True, trials = 10" in quick
    )
    assert "long: trains on images" in obverse("claims", "show", "t.images", "--module", file).out


def test_show_cuts_a_long_grid(obverse, file):
    file.write_text(FILE.replace("k=(1, 2, 4)", "k=tuple(range(1, 41)), m=40").replace("m=10, k=t", "k=t"))
    out = obverse("claims", "show", "t.failed", "--module", file).out
    assert out.rstrip().endswith("… and 28 more settings")
    assert len(out.splitlines()) < 35


# run


def test_run_prints_verdicts_and_a_summary(obverse, surprising):
    done = obverse("claims", "run", "--all", "--jobs", 1, "--module", surprising)
    assert (done.code, done.err) == (0, ""), "failed is a result, not an error"
    titles = re.split("  +", done.out.splitlines()[0].strip())
    assert titles == ["claim", "reading", "verdict", "seconds", "what was found"]
    found = rows(done.out)
    assert re.fullmatch(
        r"t\.held +as printed +held +\d+\.\d +at every setting; largest .* %", found["t.held"]
    )
    assert re.fullmatch(r"t\.failed +as printed +failed +.* largest deviation −50 %", found["t.failed"])
    assert re.fullmatch(r"t\.rate +beyond +held +.* predicted 1", found["t.rate"])
    assert re.fullmatch(r"t\.surprise +corrected +failed\* +.* −67 %", found["t.surprise"])
    assert "t.images" not in found
    assert "*: another verdict than the one found so far" in done.out
    assert re.fullmatch(
        r"4 claims: 2 held, 2 failed \(1 not as found so far\); full settings, seed 0, \d+\.\d seconds",
        done.out.splitlines()[-1],
    )


def test_quick_seed_and_ids_reach_the_runner(obverse, file, monkeypatch):
    asked: dict = {}

    def run(claims, **options):
        asked.update(options, ids=[claim.id for claim in claims])
        return Sweep((), options["seed"], options["quick"], 0.0, {})

    monkeypatch.setattr("obverse.claims.run", run)
    monkeypatch.setattr("obverse.claims.command.usable_cores", lambda: 5)
    words = ["claims", "run", "t.r*", "t.held", "--module", file]
    assert obverse(*words).code == 0
    assert callable(asked.pop("progress"))  # of the lines of each minute
    assert asked == {
        "ids": ["t.rate", "t.held"],
        "quick": False,
        "seed": 0,
        "jobs": 5,
        "out": None,
        "cluster": None,
    }
    assert obverse(*words, "--quick", "--seed", 7, "--cluster", "tcp://a:1").code == 0
    assert (asked["quick"], asked["seed"], asked["cluster"]) == (True, 7, "tcp://a:1")


@pytest.mark.parametrize(
    ("words", "images"),
    [
        (["--all"], False),
        (["--all", "--long"], True),
        (["t.*"], False),
        (["t.*", "--long"], True),
        (["t.images"], True),
        (["t.held", "t.i*", "--long"], True),
    ],
)
def test_claims_that_train_on_images_run_when_asked_for(obverse, file, monkeypatch, words, images):
    asked: list = []

    def run(claims, **options):
        asked.extend(claim.id for claim in claims)
        return Sweep((), 0, False, 0.0, {})

    monkeypatch.setattr("obverse.claims.run", run)
    assert obverse("claims", "run", *words, "--module", file).code == 0
    assert ("t.images" in asked) == images


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_and_ids_stay_whole(obverse, surprising, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = surprising.read_text().replace("t.surprise", "t.a-claim-with-a-long-name.corrected")
    surprising.write_text(text)
    for words in (["list"], ["run", "--all", "--jobs", 1]):
        done = obverse("claims", *words, "--module", surprising)
        assert done.code == 0
        assert all(len(line) <= width for line in done.out.splitlines()[:-1]), done.out  # … but the summary
        assert "t.a-claim-with-a-long-name.corrected " in done.out
        assert ("failed*" in done.out) == (words[0] == "run")


def test_json_is_the_sweep_and_nothing_else(obverse, surprising, tmp_path):
    words = ["claims", "run", "t.held", "t.surprise", "--jobs", 1, "--module", surprising, "--json"]
    done = obverse(*words)
    assert (done.code, done.err) == (0, "")
    (tmp_path / "a.json").write_text(done.out)
    sweep = read_sweep(tmp_path / "a.json")
    assert [one.verdict for one in sweep] == ["held", "failed"]
    done = obverse(*words, "--check")
    assert done.code == 3
    assert json.loads(done.out)["format"] == 1


def test_out_says_where_the_page_is_and_goes_on_from_there(obverse, file, tmp_path):
    words = ["claims", "run", "t.held", "--jobs", 1, "--module", file, "--out", tmp_path / "a" / "b"]
    done = obverse(*words)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == f"page: {tmp_path / 'a' / 'b' / 'claims.html'}"
    assert "t.held" in (tmp_path / "a" / "b" / "claims.html").read_text(encoding="utf-8")
    assert [one.verdict for one in read_sweep(tmp_path / "a" / "b")] == ["held"]
    first = json.loads((tmp_path / "a" / "b" / "claims.json").read_text(encoding="utf-8"))
    again = obverse(*words, "--json")
    assert again.err == f"page: {tmp_path / 'a' / 'b' / 'claims.html'}\n"
    assert json.loads(again.out)["outcomes"][0]["points"] == first["outcomes"][0]["points"]


# Exit codes


def test_check_names_the_verdicts_that_differ(obverse, surprising):
    words = ["claims", "run", "--jobs", 1, "--check", "--module", surprising]
    assert obverse(*words, "t.held", "t.failed").code == 0
    done = obverse(*words, "t.*")
    assert done.code == 3
    assert done.err == "obverse: --check: t.surprise failed (so far: held)\n"


@pytest.mark.parametrize(("quick", "code"), [(["--quick"], 0), ([], 3)])
def test_too_few_trials_are_no_surprise_in_a_quick_run(obverse, file, quick, code):
    words = ["claims", "run", "t.held", "--set", "trials=1", "--check", "--jobs", 1, "--module", file]
    done = obverse(*words, *quick)
    assert done.code == code
    assert re.search(r"^t\.held .* inconclusive", done.out, re.MULTILINE)


def test_a_crash_exits_with_1_and_tells_its_last_line(obverse, surprising):
    surprising.write_text(surprising.read_text() + "\nclaim('t.crash', k, rule=Exponent(Along('k')))\n")
    text = surprising.read_text().replace('setting["k"] == 7', "setting['k'] == 4")
    surprising.write_text(text)
    for check in ([], ["--check"]):
        done = obverse("claims", "run", "t.held", "--quick", "--jobs", 1, *check, "--module", surprising)
        assert done.code == 0, "the quick settings have no such k"
        done = obverse("claims", "run", "t.crash", "t.failed", "--jobs", 1, *check, "--module", surprising)
        assert done.code == 1
        assert re.search(r"^t\.crash .*crashed\*", done.out, re.MULTILINE)
        assert done.err.splitlines() == [
            "obverse: t.crash crashed: is too much",
            "obverse: t.failed crashed: is too much",
        ]
    assert "2 crashed (2 not as found so far)" in done.out


# --set


def judged(done) -> list[dict[str, object]]:
    (outcome,) = json.loads(done.out)["outcomes"]
    return [point["setting"] for point in outcome["points"]]


def test_set_changes_every_setting_and_merges_those_that_become_alike(obverse, file):
    words = ["claims", "run", "t.held", "--jobs", 1, "--json", "--module", file]
    changed = [*words, "--set", "trials=30", "--set", "law=uniform", "--set", "keep=1", "--set", "relu=False"]
    found = judged(obverse(*changed))
    expected = {"m": 10, "law": "uniform", "keep": 1.0, "relu": False, "trials": 30}
    assert found == [expected | {"k": k} for k in (1, 2, 4)]
    assert [type(found[0][name]) for name in ("trials", "keep", "relu")] == [int, float, bool]
    assert [one["k"] for one in judged(obverse(*words, "--set", "k=3"))] == [3]
    assert [one["k"] for one in judged(obverse(*words, "--set", "trials=30", "--quick"))] == [1, 2]


def test_set_passes_over_claims_that_have_no_such_setting(obverse, file):
    file.write_text(
        FILE + "\nregister(Claim('u.other', 'a', 'b', 'c', ({'n': 1, 'k': 1, 'trials': 30},), k, spread, "
        "Equal(), 'q', 'n'))\n"
    )
    words = ["--jobs", 1, "--json", "--module", file, "--set", "m=20"]
    done = obverse("claims", "run", "t.held", "u.other", *words)
    assert done.code == 0, done.err
    settings = [one["points"][0]["setting"] for one in json.loads(done.out)["outcomes"]]
    assert [one.get("m") for one in settings] == [20, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "expected ids of claims, or --all; got neither; see: obverse claims list"),
        (["run", "--long"], "expected ids of claims, or --all; got neither"),
        (["run", "t.held", "--all"], "expected ids of claims, or --all; got both; leave one out"),
        (["run", "t.hold"], r"got 't\.hold'; did you mean t\.held"),
        (["run", "t.im*"], r"got t\.images; add --long"),
        (
            ["run", "t.held", "--jobs", "0"],
            "expected --jobs ≥ 1, or --cluster in its place; got --jobs 0; correct",
        ),
        (
            ["run", "t.held", "--jobs", "2", "--cluster", "tcp://a:1"],
            "got --jobs 2 and --cluster; leave one out",
        ),
        (["run", "t.held", "--seed", "-1"], "expected --seed from 0 to"),
        (
            ["run", "t.held", "--set", "n=3"],
            "--set out of k, keep, law, m, relu, trials; got 'n=3'; write NAME",
        ),
        (["run", "t.held", "--set", "k"], "got 'k'; write NAME=VALUE"),
        (["run", "t.held", "--set", "k=2.5"], "expected a whole number for k; got '2.5'; correct --set"),
        (["run", "t.held", "--set", "keep=nan"], "expected a number for keep; got 'nan'"),
        (["run", "t.held", "--set", "keep=much"], "expected a number for keep; got 'much'"),
        (["run", "t.held", "--set", "relu=1"], "expected true or false for relu; got '1'"),
        (
            ["run", "t.held", "--set", "k=11"],
            r"^obverse: expected k ≤ m: .* \(eq\. 8\), for t\.held at m = 10, k = 11, .*; got ",
        ),
        (
            ["run", "--all", "--set", "k=0"],
            r"^obverse: expected k > 0, .* its support must not be empty.*, for t\.held at .*k = 0.*; got ",
        ),
        (
            ["run", "t.rate", "--set", "k=2"],
            r"^obverse: expected three different values of a rate's .*, for t\.rate; got ",
        ),
        (["run", "t.held", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
        (["show", "t.*"], r"got 't\.\*', which is 4 of them; choose one: t\.held, t\.failed"),
        (["show", "nothing"], "expected the id of a claim"),
        (["list", "nothing"], "expected the id of a claim"),
        (["list", "--module", "."], r"a Python file with claims; got \."),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, file, monkeypatch, words, said):
    monkeypatch.chdir(file.parent)
    done = obverse("claims", *words, "--module", file)
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("obverse: ")
    assert done.err.count("\n") == 1
    assert re.search(said, done.err), done.err
    assert [path.name for path in file.parent.iterdir()] == ["tiny.py"]


def test_help_of_each_command(obverse):
    for command in ("list", "show", "run"):
        done = obverse("claims", command, "--help")
        assert (done.code, done.err) == (0, "")
        assert f"Example: obverse claims {command} " in done.out
        assert "\\[" not in done.out
    assert "[one for each core]" in done.out
    assert "patterns pass over it without --long" in re.sub(r"[\s│]+", " ", done.out)


# On a terminal, and in processes


def test_there_are_no_bars_where_there_is_no_terminal(capsys):
    with claims_progress({"a": 1}) as progress:
        progress(1, 1, "a")
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_terminal_shows_a_bar_for_all_and_one_for_each_claim_at_work(tmp_path):
    many = "\n".join(f"claim('t.{number}', k)" for number in range(30))
    text = FILE.replace("return [setting", "import time; time.sleep(0.01)\n    return [setting") + many
    # Measurements are told apart by their settings: without this, all claims would share theirs.
    text = text.replace("settings = dict(", "settings = dict(claim=id, ")
    (tmp_path / "many.py").write_text(text)
    words = ["--module", str(tmp_path / "many.py"), "t.[0-9]*", "--jobs", "1"]
    code, shown = on_a_terminal("claims", "run", *words)
    assert code == 0, shown
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", shown)]
    assert re.fullmatch(
        r"30 of 30 claims +━+ 90/90 0?0:\d\d", [line for line in lines if "claims" in line][-1]
    )
    assert any(re.fullmatch(r"t\.7 +[━╸╺]+ 2/3 .*", line) for line in lines)
    # Between two drawings of the first bar stand those of the claims.
    frames = "\n".join(lines).split(" of 30 claims ")
    assert max(len(re.findall(r"^t\.", frame, re.MULTILINE)) for frame in frames) == BARS


@pytest.mark.slow
def test_the_example_runs_as_its_first_lines_say(tmp_path):
    assert "obverse claims run --module examples/my_claims.py 'mine.*'" in EXAMPLE.read_text()
    words = ["claims", "run", "--module", EXAMPLE, "mine.*", "--jobs", 2, "--check"]
    done = obverse_process(*words, COLUMNS="120")
    assert (done.returncode, done.stderr) == (0, ""), done
    found = rows(done.stdout)
    assert "failed" in found["mine.relu-variance"].split()
    assert "held" in found["mine.relu-variance-corrected"].split()
    assert "2 claims: 1 held, 1 failed; full settings" in done.stdout
    assert "\x1b" not in done.stdout


def test_text_of_a_claim_cannot_steer_the_terminal(obverse, file):
    file.write_text(
        FILE.replace("somewhere, eq. 8", r"\x1b[2J[red]:smile:").replace("about {id}", r"\x1b[2J[red]")
    )
    for words in (["list"], ["show", "t.failed"], ["run", "t.failed", "--jobs", 1]):
        done = obverse("claims", *words, "--module", file)
        assert done.code == 0
        assert "\x1b" not in done.out
