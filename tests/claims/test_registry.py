"""Which claims there are: names and patterns, users' files, and everything that can be wrong with those."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from obverse._core.errors import BadInput
from obverse.claims import Claim, Equal
from obverse.claims import _registry as registry

FILE = """
from obverse.claims import Claim, Equal, register

def measure(setting, generator):
    return [1.0, 1.0]

def claim(id, **more):
    return register(
        Claim(id, "title", "statement", "source", ({"n": 1},), lambda setting: 1.0, measure, Equal(),
              "quantity", "n", **more)
    )
"""


def measure_here(setting, generator):
    return [1.0]


def made(id: str, **more: object) -> Claim:
    claim = Claim(
        id, "title", "statement", "source", ({"n": 1},), lambda setting: 1.0, measure_here, Equal(), "q", "n"
    )
    return replace(claim, **more)


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """A registry without claims; what users' files leave in the interpreter goes with the test."""
    monkeypatch.setattr(registry, "PAPERS", ())
    monkeypatch.setattr(registry, "_CLAIMS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.startswith(registry.PREFIX)]:
        del sys.modules[name]


def written(path: Path, *lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([FILE, *lines]), encoding="utf-8")
    return path


def ids(claims) -> list[str]:
    return [claim.id for claim in claims]


# Names and patterns


def test_names_and_patterns_give_each_claim_once():
    for id in ("a.lemma1", "a.lemma2", "a.thm1", "b.lemma1"):
        registry.register(made(id))
    assert ids(registry.find(["a.thm1", "a.lemma*", "a.lemma2", "a.*"])) == ["a.thm1", "a.lemma1", "a.lemma2"]
    assert ids(registry.find(["?.lemma1"])) == ["a.lemma1", "b.lemma1"]
    assert list(registry.claims()) == ["a.lemma1", "a.lemma2", "a.thm1", "b.lemma1"]
    assert registry.find([]) == []


def test_a_name_that_is_none_gets_the_ones_like_it():
    registry.register(made("alm.thm2.3"))
    with pytest.raises(
        BadInput, match=r"got 'alm\.thm23'; did you mean alm\.thm2\.3\? see: obverse claims list"
    ):
        registry.find(["alm.thm23"])
    with pytest.raises(BadInput, match=r"got 'x\*'; see: obverse claims list"):
        registry.find(["alm.*", "x*"])


def test_patterns_pass_over_claims_that_train_on_images():
    registry.register(made("a.short"))
    registry.register(made("a.images", long=True))
    assert ids(registry.find(["a.*"])) == ["a.short", "a.images"]
    assert ids(registry.find(["a.*"], long=False)) == ["a.short"]
    assert ids(registry.find(["a.*", "a.images"], long=False)) == ["a.short", "a.images"]
    with pytest.raises(
        BadInput, match=r"'a\.im\*' to name claims that train on no images; got a\.images; add --long"
    ):
        registry.find(["a.short", "a.im*"], long=False)


def test_a_module_imported_anew_replaces_its_claims_and_no_others():
    registry.register(made("a.one", title="before"))
    registry.register(made("a.one", title="after"))
    assert registry.claims()["a.one"].title == "after"
    elsewhere = made("a.one", measure=Path.exists)
    with pytest.raises(
        BadInput, match=r"an id that no other claim has; got 'a\.one', which is one of obverse"
    ):
        registry.register(elsewhere)


# Users' files


def test_a_file_adds_its_claims_behind_the_library(tmp_path):
    registry.register(made("a.one"))
    found = registry.load_module(written(tmp_path / "my_claims.py", "claim('my.one')", "claim('my.two')"))
    assert ids(found) == ["my.one", "my.two"]
    assert list(registry.claims()) == ["a.one", "my.one", "my.two"]
    assert found[0].measure({}, None) == [1.0, 1.0]
    assert found[0].measure.__module__ == "obverse_claims_my_claims"
    name, text, origin = sys.modules["obverse_claims_my_claims"].__dict__["__claims_source__"]
    assert (name, origin) == ("my_claims", str(tmp_path / "my_claims.py"))
    assert text == (tmp_path / "my_claims.py").read_text()


def test_a_file_loaded_again_has_what_stands_in_it_now(tmp_path):
    file = written(tmp_path / "mine.py", "claim('my.one')", "claim('my.two')")
    first = registry.load_module(file)
    assert ids(registry.load_module(file)) == ids(first)
    written(file, "claim('my.two')", "claim('my.three')")
    assert ids(registry.load_module(file)) == ["my.two", "my.three"]
    assert list(registry.claims()) == ["my.two", "my.three"]


def test_a_file_can_use_its_neighbours_and_a_measurement_of_the_library(tmp_path):
    registry.register(made("a.one"))
    (tmp_path / "neighbour_of_claims.py").write_text("ONE = 1")
    lines = [
        "from dataclasses import replace",
        "from neighbour_of_claims import ONE",
        "from obverse.claims import _registry as registry",
        "register(replace(registry.claims()['a.one'], id=f'my.{ONE}'))",
    ]
    file = written(tmp_path / "mine.py", *lines)
    for _ in range(2):
        assert ids(registry.load_module(file)) == ["my.1"]
    assert registry.claims()["my.1"].measure is measure_here


def test_an_id_of_the_library_or_of_another_file_is_refused(tmp_path):
    library = registry.register(made("a.one"))
    lines = ["from obverse.claims import _registry as registry", "register(registry.claims()['a.one'])"]
    for clash in (["claim('a.one')"], lines):
        with pytest.raises(BadInput, match=r"got 'a\.one', which is one of obverse; rename it"):
            registry.load_module(written(tmp_path / "mine.py", "claim('my.first')", *clash))
        assert registry.claims() == {"a.one": library}, "nothing of a file that is refused"
    registry.load_module(written(tmp_path / "other.py", "claim('my.one')"))
    with pytest.raises(BadInput, match=r"got 'my\.one', which is one of .*other\.py; rename it"):
        registry.load_module(written(tmp_path / "mine.py", "claim('my.one')"))


def test_an_id_twice_in_one_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"got 'my\.one', which is one of .*mine\.py; rename it"):
        registry.load_module(written(tmp_path / "mine.py", "claim('my.one')", "claim('my.one', long=True)"))
    assert registry.claims() == {}


def test_two_files_of_one_name_are_refused(tmp_path):
    # Processes look measurements up by the file's name.
    registry.load_module(written(tmp_path / "a" / "mine.py", "claim('my.one')"))
    with pytest.raises(BadInput, match=r"names of their own; got .*a/mine\.py and .*b/mine\.py; rename one"):
        registry.load_module(written(tmp_path / "b" / "mine.py", "claim('my.two')"))
    assert list(registry.claims()) == ["my.one"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 / 0", r"ZeroDivisionError: division by zero \(line 14\)"),
        ("import no_such_module", r"ModuleNotFoundError: No module named 'no_such_module' \(line 14\)"),
        ("claim('my.two'", r"SyntaxError: .*line 14\)"),
        ("raise SystemExit(0)", r"SystemExit: 0 \(line 14\)"),
        ("raise ValueError('two\\nlines')", r"ValueError: two lines \(line 14\)"),
        ("claim('my.two', axis='m')", r"multiple values for argument 'axis' \(line 9\)"),
        ("claim('not an id')", "expected an id of letters, digits, dots and dashes; got 'not an id'"),
    ],
)
def test_a_file_that_raises_gets_a_sentence_and_leaves_nothing(tmp_path, line, said):
    file = written(tmp_path / "mine.py", "claim('my.one')", line)
    with pytest.raises(BadInput, match=said) as caught:
        registry.load_module(file)
    assert "\n" not in str(caught.value)
    assert registry.claims() == {}
    assert "obverse_claims_mine" not in sys.modules
    assert ids(registry.load_module(written(file, "claim('my.one')"))) == ["my.one"]


def test_what_a_file_gave_before_stays_when_it_breaks(tmp_path):
    file = written(tmp_path / "mine.py", "claim('my.one')")
    (claim,) = registry.load_module(file)
    with pytest.raises(BadInput, match="NameError"):
        registry.load_module(written(file, "claim('my.one')", "nothing"))
    assert registry.claims() == {"my.one": claim}
    assert sys.modules["obverse_claims_mine"].__dict__["measure"] is claim.measure


def test_ctrl_c_in_a_file_is_no_mistake_of_the_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        registry.load_module(written(tmp_path / "mine.py", "claim('my.one')", "raise KeyboardInterrupt"))
    assert registry.claims() == {}


def test_a_file_without_claims_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"claims registered by .*mine\.py; got none; call obverse\.claims"):
        registry.load_module(written(tmp_path / "mine.py"))


def test_what_is_no_python_file_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("")
    (tmp_path / "latin.py").write_bytes("# café\n".encode("latin-1"))
    with pytest.raises(BadInput, match=r"^No such file or folder: .*none\.py'$"):
        registry.load_module(tmp_path / "none.py")
    for name in ("mine.txt", "."):
        with pytest.raises(BadInput, match=r"a Python file with claims; got .*; see examples/my_claims"):
            registry.load_module(tmp_path / name)
    with pytest.raises(BadInput, match=r"a Python file in UTF-8; got .*latin\.py"):
        registry.load_module(tmp_path / "latin.py")
