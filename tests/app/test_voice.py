"""One voice over all commands: a flag of one name is one flag everywhere, and every example can be typed."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from obverse.app.main import EXIT_CODES, app
from obverse.present.options import DATA

WRITES = (  # commands that make files: where to is --out
    "train",
    "compare",
    "search",
    "sample",
    "shadow",
    "audit",
    "memorize",
    "ladder",
    "diversity",
    "report",
    "claims run",
    "generate train",
    "generate sample",
)
RANDOM = tuple(name for name in WRITES if name != "report")
MINUTES = (  # commands that may take minutes
    "train",
    "compare",
    "search",
    "shadow",
    "audit",
    "memorize",
    "ladder",
    "diversity",
    "claims run",
    "generate train",
)
PARALLEL = ("compare", "search", "claims run")  # of whose parts none waits for another
WITHOUT_RESULT = ("explore",)  # shows a page for as long as it runs: there is no result to print
# What flags of one name share: their sentence with what is told by a command alone left out.
PATTERNS = {
    "--seed": r"Seed of everything random \\\[0\]\.",
    "--json": r"Print the result as JSON, and all else to standard error\.",
    "--out": r"Write .+ there \\\[.+\]\.",
    "--quick": r"A first look that takes seconds: .+\.",
    "--jobs": r"Number of worker processes \\\[.+\]\.",
    "--resume": r"Resume an interrupted \w+\.",
    "--data-root": r"Folder that holds the data sets \\\[.+\]\.",
    "--data": rf"(.+: .*)?{re.escape(DATA)} \\\[.+\]\.",
    "--report": r"Write the page at the end \\\[yes\]\.",
    "--config": r"Settings from a TOML file; flags win\.",
    "--layers": r"Only layers of such names, e\.g\. 'stage2\.\*' \\\[all\]\.",
    "--module": r"Python file with claims of your own, which is run; repeat for more\. See .+\.",
    "--device": r"auto, cpu, cuda or cuda:N; .+ \\\[auto\]\.",
}
METAVARS = {
    "--seed": {"N"},
    "--out": {"DIR", "FILE", "PLACE"},
    "--jobs": {"N"},
    "--resume": {"RUN"},
    "--data-root": {"DIR"},
    "--data": {"NAME"},
    "--device": {"WHICH"},
    "--config": {"FILE"},
}


def commands() -> dict[str, Any]:
    """Every command that does something, by what is typed for it."""
    found: dict[str, Any] = {}

    def walk(group: Any, names: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*names, name))
            else:
                found[" ".join((*names, name))] = command

    walk(typer.main.get_command(app), ())
    return found


COMMANDS = commands()


def options(command: Any) -> dict[str, Any]:
    return {word: one for one in command.params if one.param_type_name == "option" for word in one.opts}


def test_the_walk_finds_all_commands():
    assert {*WRITES, *RANDOM, *MINUTES, *PARALLEL, "claims list", "claims show", "doctor"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_an_example_that_parses(name):
    text = COMMANDS[name].help or ""
    last = re.split(r"\n\s*\n", text.strip())[-1]
    examples = re.findall(r"Example: (obverse .+)", text)
    assert last.startswith("Example: obverse "), text
    for example in examples:
        words = shlex.split(example)
        own = ["obverse", *name.split()]
        assert words[: len(own)] == own
        COMMANDS[name].make_context(name, words[len(own) :], resilient_parsing=False)


@pytest.mark.parametrize("group", [None, "claims", "generate"])
def test_the_help_of_a_group_has_an_example_that_parses(group):
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    text = found.help if group is None else found.commands[group].help
    (example,) = re.findall(r"Example: obverse (.+)", text)
    words = shlex.split(example)
    name = next(one for one in COMMANDS if words[: len(one.split())] == one.split())
    COMMANDS[name].make_context(name, words[len(name.split()) :])


def test_an_example_with_a_flag_that_is_not_there_would_be_found():
    with pytest.raises(Exception, match="--xyzzy"):
        COMMANDS["train"].make_context("train", ["--xyzzy"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_has_help_in_one_form(name):
    for one in COMMANDS[name].params:
        if one.name == "help" or one.hidden:
            continue
        assert one.help, one.name
        assert one.help.endswith("."), one.help
        if one.param_type_name == "option":
            assert not one.show_default or one.default in (None, False), (
                f"{one.opts}: the default is in the help"
            )
            assert one.is_flag or one.metavar, one.opts


@pytest.mark.parametrize("flag", PATTERNS)
def test_a_flag_has_one_sentence_in_every_command(flag):
    having = {name: options(command)[flag] for name, command in COMMANDS.items() if flag in options(command)}
    assert having
    for name, option in having.items():
        assert re.fullmatch(PATTERNS[flag], option.help), f"{name}: {option.help}"
        if flag in METAVARS:
            assert option.metavar in METAVARS[flag], name
        else:
            assert option.is_flag or option.metavar, name


def test_flags_of_one_name_agree_in_kind():
    """A flag of the same name takes a value of the same kind, or none, wherever it stands."""
    kinds: dict[str, dict[bool, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in COMMANDS.items():
        for word, option in options(command).items():
            kinds[word][bool(option.is_flag)].append(name)
    different = {word: dict(found) for word, found in kinds.items() if len(found) > 1}
    # obverse shadow --normalize MEAN STD scales inputs; a training's --normalize divides the loss
    assert different.keys() <= {"--normalize", "--norm"}, different


@pytest.mark.parametrize("name", [one for one in COMMANDS if one not in WITHOUT_RESULT])
def test_every_result_can_be_had_as_json(name):
    assert "--json" in options(COMMANDS[name])


@pytest.mark.parametrize(
    ("flag", "names"),
    [("--seed", RANDOM), ("--out", WRITES), ("--quick", MINUTES), ("--jobs", PARALLEL)],
)
def test_who_has_which_flag(flag, names):
    assert [name for name in names if flag not in options(COMMANDS[name])] == []


def test_exit_codes_are_in_the_help_and_in_the_module(obverse):
    import obverse.app.main as module

    said = " ".join(obverse("--help").out.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in said
        assert re.search(rf"\b{code} ", module.__doc__ or ""), code
    assert list(EXIT_CODES) == [0, 1, 2, 3, 130, 141]
