"""Nets from the user's own code: what is imported, called, given and refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from obverse._core.errors import BadInput
from obverse.nets._factory import load_weights_file, make_net, parse_arguments, parse_value

MODULE = """
import torch
from torch import nn

net = nn.Linear(3, 2)
number = 3
text = "net"

def plain():
    return nn.Linear(3, 2)

def wide(width=4, *, bias=True, name="h", shape=(1, 2)):
    assert type(width) is int and type(bias) is bool and type(name) is str
    made = nn.Sequential(nn.Linear(3, width, bias=bias))
    made.shape = shape
    return made

def needs(width, depth, bias=True):
    return nn.Linear(width, depth)

def positional(width, /):
    return nn.Linear(width, 2)

def anything(**more):
    return nn.Linear(**more)

def nothing():
    pass

def raises():
    raise RuntimeError("no such\\nlayer \\x1b[2J")

def leaves():
    raise SystemExit(0)

class Nets:
    @staticmethod
    def small():
        return nn.Linear(2, 2)

    class Deep(nn.Module):
        pass
"""
PLACE = iter(range(1000))


@pytest.fixture
def mynets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the working directory; another one for each test, as imports are remembered."""
    name = f"mynets{next(PLACE)}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(tmp_path))])
    return name


def test_a_module_of_the_working_directory_makes_a_net(mynets: str) -> None:
    made = make_net(f"{mynets}:plain", {})
    assert isinstance(made, nn.Linear)
    assert not made.training
    assert make_net(f"{mynets}:Nets.small", {}).in_features == 2
    assert isinstance(make_net(f"{mynets}:Nets.Deep", {}), nn.Module)
    assert make_net(f"{mynets}:anything", {"in_features": 5, "out_features": 1}).in_features == 5


def test_a_net_itself_will_do(mynets: str) -> None:
    made = make_net(f"{mynets}:net", {})
    assert made is sys.modules[mynets].net
    with pytest.raises(BadInput, match=r"no --arg for .*:net; got width; it is a net already"):
        make_net(f"{mynets}:net", {"width": 3})


def test_an_installed_module_will_do_and_a_package_of_the_working_directory(mynets, tmp_path) -> None:
    assert isinstance(make_net("torch.nn:Identity", {}), nn.Identity)
    package = tmp_path / f"{mynets}_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(f"from {mynets} import plain")
    assert isinstance(make_net(f"{package.name}.inner:plain", {}), nn.Linear)


def test_random_weights_follow_the_seed_and_leave_the_generator_alone(mynets: str) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    one, two, other = (make_net(f"{mynets}:plain", {}, seed).weight for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_arguments_reach_the_factory_with_their_types(mynets: str) -> None:
    made = make_net(
        f"{mynets}:wide",
        parse_arguments(["width=7", "bias=False", "name=relu", "shape=1,28,28"]),
    )
    assert made[0].out_features == 7
    assert made[0].bias is None
    assert made.shape == (1, 28, 28)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("-3", -3),
        ("1e-3", 0.001),
        ("2.0", 2.0),
        ("true", True),
        ("False", False),
        ("relu", "relu"),
        ("", ""),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("1,28,28", (1, 28, 28)),
        ("1,0.5", (1, 0.5)),
        ("3,", (3,)),
        ("a,b", "a,b"),
        ("1,b", "1,b"),
        (",", ","),
        ("'10'", "10"),
        ('"true"', "true"),
        ("'", "'"),
        ("__import__('os').getcwd()", "__import__('os').getcwd()"),
        ("(1, 2)", "(1, 2)"),
    ],
)
def test_a_value_is_read_and_never_evaluated(text: str, value: object) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("words", [["width"], ["=3"], ["a b=3"], ["a=1", "a=2"], ["--x=1"]])
def test_arguments_that_are_none_are_refused(words: list[str]) -> None:
    with pytest.raises(BadInput, match="--arg as NAME=VALUE, each name once"):
        parse_arguments(words)


WRONG = [
    ("plain", r"MODEL as module:factory.*got 'plain'"),
    (":plain", "MODEL as module:factory"),
    ("{m}:", "MODEL as module:factory"),
    ("{m}:a:b", "MODEL as module:factory"),
    ("./{m}:plain", "MODEL as module:factory"),
    (".{m}:plain", "MODEL as module:factory"),
    (
        "{m}.py:plain",
        r"a Python module mynets\d+\.py; got none of that name; go to the folder that holds mynets",
    ),
    ("nosuchmodule:plain", r"a Python module nosuchmodule; got none of that name; go to the folder"),
    ("{m}:plan", r"plan in mynets\d+; got no plan there; did you mean plain"),
    ("{m}:Nets.large", r"Nets\.large in mynets\d+; got no large there"),
    ("{m}:zzzzzz", "check the name behind the colon"),
    ("{m}:number", "to make a net when it is called; got int"),
    ("{m}:text", "to make a net when it is called; got str"),
    ("{m}:nothing", "to return an nn.Module; got NoneType"),
    ("{m}:needs", r"a value for width, depth of .*; got none; --arg width=… --arg depth=…"),
    ("{m}:positional", "a value for width of .*; got none; write a function around it"),
    (
        "{m}:raises",
        r"to make a net; got RuntimeError: no such layer \\x1b\[2J; correct it; --debug shows where",
    ),
    ("{m}:leaves", "to make a net; got SystemExit: 0"),
    ("{m}:anything", "to make a net; got TypeError"),
]


@pytest.mark.parametrize(("path", "said"), WRONG, ids=[path for path, _ in WRONG])
def test_what_makes_no_net_is_a_sentence(mynets: str, path: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        make_net(path.format(m=mynets), {})
    assert re.search(said, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import not_installed_here", "ModuleNotFoundError: No module named 'not_installed_here'"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("raise RuntimeError('x' * 10_000)", "RuntimeError: x{100,190}…"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(mynets, tmp_path, text, said) -> None:
    (tmp_path / f"{mynets}_broken.py").write_text(text)
    with pytest.raises(BadInput) as caught:
        make_net(f"{mynets}_broken:net", {})
    assert re.search(rf"^expected to import {mynets}_broken; got {said}", str(caught.value)), caught.value
    assert len(str(caught.value)) < 400
    assert caught.value.__cause__ is not None, "--debug shows where"


def test_arguments_that_the_factory_does_not_take_are_refused(mynets: str) -> None:
    with pytest.raises(BadInput, match=r"--arg that .*:wide takes \(width, bias, name, shape\); got depth"):
        make_net(f"{mynets}:wide", {"depth": 3})
    with pytest.raises(BadInput, match=r"takes \(none\); got depth"):
        make_net(f"{mynets}:plain", {"depth": 3})


# Weights


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def test_weights_are_loaded_to_the_bit(net: nn.Module, tmp_path: Path) -> None:
    other = {
        name: torch.randn_like(tensor.float()).to(tensor.dtype) for name, tensor in net.state_dict().items()
    }
    save_file(other, tmp_path / "net.safetensors")
    load_weights_file(net, tmp_path / "net.safetensors")
    assert all(torch.equal(tensor, other[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("0.weight"), "got it lacks 0.weight;"),
        (lambda t: t.update(more=torch.ones(1)), "got the net has no more;"),
        (
            lambda t: t.update({"0.bias": torch.ones(5)}),
            "got 0.bias is 5 float32 in the file and 4 float32 in the net",
        ),
        (
            lambda t: t.update({"0.bias": torch.ones(4, dtype=torch.float16)}),
            "got 0.bias is 4 float16 in the file and 4 float32 in the net;",
        ),
        (lambda t: [t.pop(name) for name in list(t)], r"got it lacks 0.weight, 0.bias, 1.weight and 6 more"),
        (
            lambda t: t.update({f"module.{name}": t.pop(name) for name in list(t)}),
            r"it lacks .* and 6 more, the net has no module\..* and 6 more",
        ),
    ],
    ids=["missing", "more", "shape", "type", "empty", "renamed"],
)
def test_other_weights_are_refused_and_none_are_taken(net, tmp_path, change, said) -> None:
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    tensors = {name: tensor + 1 for name, tensor in before.items()}
    change(tensors)
    save_file(tensors, tmp_path / "net.safetensors")
    with pytest.raises(BadInput, match=said) as caught:
        load_weights_file(net, tmp_path / "net.safetensors")
    assert "the 9 tensors of the net in " in str(caught.value)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_files_that_hold_no_weights_are_a_sentence(net: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"No such file or folder: .*none\.safetensors"):
        load_weights_file(net, tmp_path / "none.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"not tensors")
    with pytest.raises(BadInput, match=r"safetensors in .*broken"):
        load_weights_file(net, tmp_path / "broken.safetensors")
    torch.save(net.state_dict(), tmp_path / "net.pt")
    with pytest.raises(BadInput, match=r"weights as FILE.safetensors; got .*net.pt; convert them"):
        load_weights_file(net, tmp_path / "net.pt")
