"""`decide`: what can be pasted, read as PEFT, axolotl and `compress` read it."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml  # type: ignore[import-untyped]
from torch import nn

import obverse
from obverse._core import BadInput
from obverse.weights import compress, decide, decompose, difference
from obverse.weights.results import Audit, Interval, LayerAudit, read_audit, write_audit
from training.helpers import files_below
from weights.made_audits import made_audit, made_layer, made_parts, unmeasured


def layer(name: str, rank: int = 2, **changes: Any) -> LayerAudit:
    grade = changes.pop("grade", "signal in a random bulk" if rank else "untouched")
    parts = made_parts(grade, rank=rank, **changes.pop("parts", {}))
    return made_layer(name, grade, **({"parts": parts, "tensor": f"{name}.weight"} | changes))


def share(of: float) -> dict[str, Any]:
    return {"random_share": Interval(of, of - 0.01, of + 0.01)}


def ranks_in_peft(config: dict[str, Any], modules: list[str]) -> dict[str, int]:
    """Which modules PEFT would adapt and with which rank, after its documentation, written separately.

    Names in a list stand for modules that end with them, after a dot; a string is matched as a whole. The
    first pattern that matches the end of the name gives rank and alpha.
    """

    def wanted(module: str) -> bool:
        targets = config["target_modules"]
        if isinstance(targets, str):
            return re.fullmatch(targets, module) is not None
        return any(module == target or module.endswith(f".{target}") for target in targets)

    def of(module: str, patterns: dict[str, int], default: int) -> int:
        return next(
            (value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", module)), default
        )

    found = {one: of(one, config["rank_pattern"], config["r"]) for one in modules if wanted(one)}
    assert found == {one: of(one, config["alpha_pattern"], config["lora_alpha"]) for one in found}
    return found


def unfrozen_in_axolotl(text: str, parameters: list[str]) -> list[str]:
    """Which parameters axolotl would train: a dot stands for itself, the rest is a regular expression."""
    patterns = yaml.safe_load(text)["unfrozen_parameters"]
    literal = [re.compile(re.sub(r"\.(?!\+)", r"\\.", one)) for one in patterns]
    return [name for name in parameters if any(one.match(name) for one in literal)]


# PEFT


def test_every_module_gets_its_own_rank():
    names = [f"model.layers.{at}.mlp.up_proj" for at in range(13)]
    audit = made_audit(*(layer(name, rank=at) for at, name in enumerate(names)))
    decision = decide(audit, "lora")
    config = json.loads(decision.text)
    wanted = {name: at for at, name in enumerate(names) if at}
    assert decision.ranks == wanted
    assert (config["r"], config["lora_alpha"]) == (12, 12)
    for prefix in ("", "base_model.model."):
        net = [f"{prefix}{name}" for name in (*names, "model.layers.1", "other.up_proj")]
        assert ranks_in_peft(config, net) == {f"{prefix}{name}": rank for name, rank in wanted.items()}


def test_names_that_end_alike_are_told_apart():
    names = {"layers.1.up": 3, "encoder.layers.1.up": 5, "x.encoder.layers.1.up": 7, "layers.11.up": 9}
    audit = made_audit(*(layer(name, rank) for name, rank in names.items()), layer("decoder.layers.1.up", 0))
    config = json.loads(decide(audit, "lora").text)
    net = [*names, "decoder.layers.1.up"]
    assert ranks_in_peft(config, net) == names
    assert ranks_in_peft(config, [f"net.{name}" for name in net]) == {
        f"net.{name}": rank for name, rank in names.items()
    }


def test_what_is_no_linear_layer_with_a_signal_is_left_out_and_named():
    audit = made_audit(
        layer("embed", kind="embedding"),
        layer("conv", kind="convolution"),
        layer("rnn.weight_ih_l0 (input gate)", kind="recurrent", tensor="rnn.weight_ih_l0"),
        layer("table", kind="matrix", tensor="table"),
        layer("attn.in_proj (query)", kind="attention", tensor="attn.in_proj_weight"),
        layer("attn.out_proj"),
        layer("experts (expert 1 of 8)", tensor="experts.weight"),
        layer("flat", 0),
        layer("wide", 0, grade="cannot tell"),
        layer("one"),
        layer("two\\n"),
        unmeasured(),
    )
    decision = decide(audit, "lora")
    assert decision.chosen == ("one",)
    said = "\n".join(decision.notes)
    for name, reason in {
        "embed": "an embedding, no linear layer",
        "conv": "a convolution, no linear layer",
        "rnn.weight_ih_l0 (input gate)": "a gate of a recurrent layer, no linear layer",
        "table": "a matrix that is not called a weight, no linear layer",
        "attn.out_proj": "nn.MultiheadAttention reads its weight without calling it",
        "flat": "no direction stands out from noise",
        "wide": "cannot tell",
        "out": "not judged",
        "two\\n": "its name has characters that no module has, or is too long",
    }.items():
        assert f"Left out: {name}: {reason}." in said
    assert "attn.in_proj (query) and experts (expert 1 of 8): a part of a parameter" in said
    assert "Chosen: 1 linear layer in which at least one direction stands out" in said
    assert "with a chance of 0.1\xa0%" in said
    assert said.endswith("is unproven.")


def test_query_key_and_value_of_one_layer_get_the_largest_rank():
    parts = [layer(f"h.0.c_attn ({name})", rank, tensor="h.0.c_attn.weight", kind="attention")
             for name, rank in (("query", 2), ("key", 5), ("value", 0))]  # fmt: skip
    for audit in (
        made_audit(*parts),
        made_audit(*(layer(one.name, one.parts.rank, tensor="", kind="attention") for one in parts)),
    ):
        decision = decide(audit, "lora")
        assert decision.ranks == {"h.0.c_attn": 5}
        assert "r is the largest of the three" in "\n".join(decision.notes)


def test_bounds_means_cuts_and_wide_updates_are_said():
    audit = made_audit(
        layer("least", 4, parts={"rank_is_bound": True}),
        layer("mean", 3, mean_share=0.1),
        layer("wide", 50, rows=64, columns=100),
    )
    decision = decide(audit, "lora")
    assert decision.ranks == {"least": 4, "mean": 4, "wide": 50}
    said = "\n".join(decision.notes)
    assert "There may be more directions in least: r is a lower bound there." in said
    assert "The mean of all entries counts as a direction in mean." in said
    assert "as many parameters as the matrix, or more, in wide" in said  # 50 · 164 > 64 · 100
    cut = decide(audit, "lora", max_rank=3)
    assert cut.ranks == {"least": 3, "mean": 3, "wide": 3}
    assert "Cut to 3 by --max-rank: least, mean and wide." in cut.notes
    assert "as many parameters" not in "\n".join(cut.notes)


def test_an_audit_that_claims_too_much_is_bounded():
    found = decide(made_audit(layer("a", 7, rows=64, columns=5), layer("b", 1)), "lora")
    assert found.ranks == {"a": 5, "b": 1}


@pytest.mark.slow
def test_peft_adapts_these_modules_with_these_ranks():
    """Needs the package peft, which needs transformers and accelerate: pip install peft."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    net = taught()
    decision = decide(obverse.audit(net, samples=4), "lora")
    adapted = peft.get_peft_model(net, peft.LoraConfig(**json.loads(decision.text)))
    found = {
        name.removeprefix("base_model.model."): (module.r["default"], module.scaling["default"])
        for name, module in adapted.named_modules()
        if isinstance(module, peft.tuners.lora.LoraLayer)
    }
    assert found == {name: (rank, 1.0) for name, rank in decision.ranks.items()}
    assert {"layers.1.up", "encoder.layers.1.up", "layers.10.down"} <= found.keys()
    assert "layers.0.up" not in found


# What changed


def nets_before_and_after() -> tuple[nn.Module, nn.Module]:
    """From base to tuned: a rank of 2 and of 5, rounding, nothing, and everything with 3 directions."""
    torch.manual_seed(6)
    base = nn.Sequential(*(nn.Linear(64, 96) for _ in range(5)))
    tuned = deepcopy(base)
    with torch.no_grad():
        for net in (base, tuned):  # both are stored so
            for one in net:
                one.weight.copy_(one.weight.bfloat16())
        for at, rank in ((0, 2), (1, 5), (4, 3)):
            update = 0.05 * torch.randn(96, rank) @ torch.randn(rank, 64)
            noise = 0.02 * torch.randn(96, 64) if at == 4 else 0
            tuned[at].weight.copy_((base[at].weight + update + noise).bfloat16())
        finer = nn.Linear(64, 96).weight
        tuned[2].weight.copy_(finer)
        base[2].weight.copy_(finer.bfloat16())
    return tuned, base


def test_of_a_difference_the_ranks_are_those_of_what_changed():
    changed = difference(*nets_before_and_after())
    decision = decide(changed, "lora")
    assert decision.ranks == {"0": 2, "1": 5, "4": 3}
    net = [f"model.{at}" for at in range(5)]
    assert ranks_in_peft(json.loads(decision.text), net) == {"model.0": 2, "model.1": 5, "model.4": 3}
    assert decision.notes[0] == "obverse audit Sequential --against Sequential --decide lora --format peft"
    said = "\n".join(decision.notes)
    assert "stands out of the change from base to tuned (in noise a false one" in said
    assert "Left out: 2: nothing but rounding." in said
    assert "Left out: 3: identical." in said
    assert "More than these directions changed in 4: " in said
    assert said.endswith("needs the same ranks, is unproven.")
    for kind, format in (("compress", None), ("lora", "axolotl")):
        with pytest.raises(BadInput, match="the audit of one net for this format; got what changed"):
            decide(changed, kind, format=format)
    base = nets_before_and_after()[1]
    with pytest.raises(BadInput, match="a direction stands out of the change; got none in 5 layers"):
        decide(difference(base, base), "lora")


# axolotl


def test_the_top_of_each_kind_is_trained():
    shares = {
        "up": [0.9, 0.2, 0.5, 0.7, 0.1, 0.6, 0.8, 0.4],
        "down": [0.3, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2],
    }
    audit = made_audit(
        layer("embed", kind="embedding"),
        *(
            layer(f"model.layers.{at}.{kind}", parts=share(shares[kind][at]))
            for at in range(8)
            for kind in shares
        ),
    )
    names = [one.tensor for one in audit.layers] + ["model.layers.14.up.weight", "model.layers.4.up.weight_g"]
    for prefer, most in (("signal", min), ("random", max)):
        for top in (1, 25, 60, 100):
            decision = decide(audit, "lora", format="axolotl", top=top, prefer=prefer)
            wanted = set()
            for kind, values in shares.items():
                left = dict(enumerate(values))
                for _ in range(max(1, round(8 * top / 100))):
                    at = most(left, key=lambda at: left[at])
                    del left[at]
                    wanted.add(f"model.layers.{at}.{kind}.weight")
            assert set(unfrozen_in_axolotl(decision.text, names)) == wanted == set(decision.chosen)
    assert "Left out: embed: the only one of its kind." in decision.notes


def test_layers_without_signal_or_with_a_bound_alone_are_not_chosen():
    audit = made_audit(
        layer("h.0.up", 0, parts=share(1.0)),
        layer("h.1.up", 0, grade="structured otherwise", parts={"random_share": Interval.at_most(0.95)}),
        layer("h.2.up", 3, parts=share(0.9)),
        layer("h.3.up", 0, grade="cannot tell", parts={"random_share": None}),
    )
    signal = decide(audit, "lora", format="axolotl", top=100)
    assert signal.chosen == ("h.1.up.weight", "h.2.up.weight")
    assert "Left out: h.0.up: no signal was found." in signal.notes
    random = decide(audit, "lora", format="axolotl", top=100, prefer="random")
    assert random.chosen == ("h.0.up.weight", "h.2.up.weight")
    assert "Left out: h.1.up: only a bound of the random share is known." in random.notes


@pytest.mark.parametrize(
    "name", ["a'b", "a: b #c", "- x", "a+b.c*", "x[0:3]", "ключ", '"q"', "a.+b", "[a](b)"]
)
def test_names_of_any_kind_are_matched_whole(name):
    audit = made_audit(*(layer(f"h.{at}.{name}", kind="linear") for at in range(2)))
    text = decide(audit, "lora", format="axolotl", top=100).text
    names = [one.tensor for one in audit.layers]
    assert unfrozen_in_axolotl(text, [*names, *(one + "x" for one in names), "h.0.", "h.0"]) == names


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\\nb", "x" * 300])
def test_names_that_cannot_be_pasted_are_left_out(name):
    audit = made_audit(layer("h.0.up"), layer("h.1.up"), layer(f"h.0.{name}"), layer(f"h.1.{name}"))
    decision = decide(audit, "lora", format="axolotl", top=100)
    assert decision.chosen == ("h.0.up.weight", "h.1.up.weight")
    assert yaml.safe_load(decision.text).keys() == {"unfrozen_parameters"}
    assert decide(audit, "lora").chosen == ("h.0.up", "h.1.up")


def test_the_model_may_be_called_anything():
    audit = made_audit(layer("h.0.up"), layer("h.1.up"), model="x\nevil: 1\n- y")
    found = yaml.safe_load(decide(audit, "lora", format="axolotl").text)
    assert found == {"unfrozen_parameters": ["^h.0.up.weight$"]}


# compress


def test_only_layers_that_pay_and_leave_noise_are_compressed():
    audit = made_audit(
        layer("pays", 3),
        layer("dear", 40),  # 40 · 164 > 64 · 100
        layer("otherwise", 3, grade="structured otherwise"),
        layer("conv", 2, kind="convolution"),
        layer("embed", 2, kind="embedding"),
        layer("flat", 0),
    )
    decision = decide(audit, "compress")
    assert json.loads(decision.text) == {"pays": 3, "conv": 2}
    said = "\n".join(decision.notes)
    assert "Left out: otherwise: what would be dropped is not like random numbers." in said
    assert "Left out: dear: two thin layers would have as many weights, or more." in said
    assert "Weights of these layers: 12,800, and 820 in their place." in said  # 5 · 164


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 96), nn.Linear(96, 64)

    def forward(self, x):
        return self.down(self.up(x).relu())


def taught() -> nn.Module:
    """Blocks of noise; into some of them directions are planted, as many as their number says."""
    net = nn.Module()
    net.layers = nn.ModuleList(Block() for _ in range(12))
    net.encoder = nn.ModuleDict({"layers": nn.ModuleList(Block() for _ in range(2))})
    for name, weight in net.named_parameters():
        if weight.ndim == 2 and ("1" in name):
            rows, columns = weight.shape
            left, right = torch.randn(rows, 3), torch.randn(3, columns)
            weight.data += 0.2 * left @ right
    return net


def test_the_ranks_make_the_compression_that_the_signal_makes():
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64))
    net[0].weight.data += 0.2 * torch.randn(96, 3) @ torch.randn(3, 64)
    ranks = json.loads(decide(obverse.audit(net, samples=4), "compress").text)
    assert ranks == {"0": 3}
    small, report = compress(net, ranks=ranks)
    other, own = compress(net, layers=["0"])
    x = torch.randn(20, 64)
    # two ways to the same directions, in float64 and in float32
    assert torch.allclose(small(x), other(x), atol=1e-4)
    assert report.layers[0].rank == own.layers[0].rank == 3
    assert report.settings["rule"] == "ranks"
    assert report.layers[1].note == "not asked for"


@pytest.mark.parametrize("rank", [1, 5, 20])
def test_a_given_rank_keeps_the_largest_values_without_the_profile(rank):
    torch.manual_seed(3)
    net = nn.Linear(64, 96)
    net.weight.data *= torch.linspace(0.2, 2, 96)[:, None]
    net.weight.data[5] = 0
    small, _ = compress(nn.Sequential(net), ranks={"0": rank})
    product = small[0][1].weight @ small[0][0].weight
    parts = decompose(net.weight)
    scales = parts.row_scales[:, None].where(parts.row_scales[:, None] > 0, 1) * parts.column_scales
    left, values, right = torch.linalg.svd((net.weight / scales).double(), full_matrices=False)
    best = (left[:, :rank] * values[:rank]) @ right[:rank] * scales
    assert torch.allclose(product.double(), best, atol=1e-5)  # float32 factors
    assert not product[5].any()


def test_a_layer_of_several_matrices_stays():
    net = nn.Sequential()
    net.add_module("qkv", nn.Linear(64, 192))
    net.qkv.weight.data += 0.2 * torch.randn(192, 2) @ torch.randn(2, 64)
    _, report = compress(net)
    assert {one.note for one in report.layers} == {"one of several matrices of its layer"}


WRONG_RANKS = [
    ({"0": 0}, {}, "a whole number of at least 1 as the rank of 0; got 0"),
    ({"0": True}, {}, "at least 1 as the rank of 0; got True"),
    ({"0": 1.5}, {}, "got 1.5"),
    ({"1": 2}, {}, "expected names of layers: 0; got '1'"),
    ({"0": 2}, {"shrink": True}, "expected ranks alone"),
    ({"0": 2}, {"layers": ["0"]}, "expected ranks alone"),
]


@pytest.mark.parametrize(("ranks", "options", "sentence"), WRONG_RANKS)
def test_wrong_ranks_are_refused(ranks, options, sentence):
    with pytest.raises(BadInput, match=re.escape(sentence)):
        compress(nn.Sequential(nn.Linear(64, 64)), ranks=ranks, **options)


# The command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    audit = made_audit(layer("h.0.up", 3), layer("h.1.up", 0), layer("h.2.up", 1), unmeasured())
    write_audit(audit, tmp_path / "audit.json")
    return tmp_path / "audit.json"


def test_standard_output_is_the_file_alone(obverse, file, tmp_path):
    done = obverse("audit", file, "--decide", "lora")
    assert done.code == 0
    assert json.loads(done.out)["rank_pattern"] == {r"h\.0\.up": 3, r"h\.2\.up": 1}
    assert "Left out: h.1.up: no direction stands out from noise." in done.err.splitlines()
    done = obverse("audit", file, "--decide", "lora", "--format", "axolotl", "--top", "30")
    assert (done.code, done.err) == (0, "")
    assert yaml.safe_load(done.out) == {"unfrozen_parameters": ["^h.0.up.weight$"]}
    assert json.loads(obverse("audit", file, "--decide", "compress").out) == {"h.0.up": 3, "h.2.up": 1}
    limited = obverse(
        "audit", file, "--decide", "lora", "--format", "peft", "--max-rank", "2", "--layers", "h.0*"
    )
    assert json.loads(limited.out)["rank_pattern"] == {r"h\.0\.up": 2}


def test_out_takes_the_file_and_its_notes(obverse, file, tmp_path):
    out, audited = tmp_path / "out", {"audit.json", "audit.csv", "audit.html"}
    done = obverse("audit", file, "--decide", "lora", "--out", out)
    assert done.err.startswith(f"page: {out / 'audit.html'}\n")
    assert files_below(out) == {*audited, "decide.lora.json", "decide.lora.txt"}
    assert (out / "decide.lora.json").read_text() == done.out
    assert (out / "decide.lora.txt").read_text() == done.err.partition("\n")[2]
    obverse("audit", file, "--decide", "lora", "--format", "axolotl", "--out", out)
    assert files_below(out) == {*audited, "decide.lora.yaml"}, "what was decided before is gone"
    assert obverse("audit", out, "--out", out).code == 0
    assert files_below(out) == audited


def test_weights_are_measured_and_decided_in_one_go(obverse, tmp_path):
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(64, 96), nn.Linear(96, 64))
    net[1].weight.data += 0.2 * torch.randn(64, 2) @ torch.randn(2, 96)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    done = obverse(
        "audit", tmp_path / "net.pt", "--samples", "4", "--decide", "lora", "--out", tmp_path / "a"
    )
    assert json.loads(done.out)["target_modules"] == ["1"]
    assert [one.tensor for one in read_audit(tmp_path / "a")] == ["0.weight", "1.weight"]
    again = obverse("audit", tmp_path / "a", "--decide", "lora")
    assert again.out == done.out, "the audit that was written says the same"


def test_what_changed_is_decided_without_an_audit_of_either(obverse, file, tmp_path):
    for name, net in zip(("tuned", "base"), nets_before_and_after(), strict=True):
        torch.save(net.state_dict(), tmp_path / f"{name}.pt")
    words = ("audit", tmp_path / "tuned.pt", "--against", tmp_path / "base.pt", "--decide", "lora")
    done = obverse(*words, "--out", tmp_path / "out")
    assert done.code == 0
    assert json.loads(done.out)["rank_pattern"] == {"0": 2, "1": 5, "4": 3}
    assert "Left out: 2: nothing but rounding." in done.err
    assert files_below(tmp_path / "out") == {"decide.lora.json", "decide.lora.txt"}
    assert (tmp_path / "out" / "decide.lora.json").read_text() == done.out
    assert json.loads(obverse(*words, "--layers", "1").out)["rank_pattern"] == {"1": 5}
    for more, sentence in (
        (["--quick"], "a flag of the audit's own tests"),
        (["--fail-on", "signal"], "a flag of the audit's own tests"),
        (["--format", "axolotl"], "expected the audit of one net for this format"),
    ):
        done = obverse(*words, *more)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
    done = obverse("audit", tmp_path / "tuned.pt", "--against", file, "--decide", "lora")
    assert done.code == 2
    assert "expected weights on both sides, for --decide with --against" in done.err


def test_nothing_to_choose_is_said_and_the_audit_is_kept(obverse, tmp_path):
    write_audit(made_audit(layer("h.0.up", 0), layer("h.1.up", 0), unmeasured()), tmp_path / "a.json")
    for words, sentence in (
        (
            ["lora"],
            "expected a linear layer in which a direction stands out from noise; got none among 2 judged",
        ),
        (
            ["lora", "--format", "axolotl"],
            "expected a kind of matrix of which several layers are judged, and one",
        ),
        (["compress"], "expected a layer whose signal takes less room than the layer; got none in 3 layers"),
    ):
        done = obverse("audit", tmp_path / "a.json", "--decide", *words, "--out", tmp_path / "out")
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
        assert "there is nothing to choose: leave --decide out" in done.err
        assert files_below(tmp_path / "out") == {"audit.json", "audit.csv", "audit.html"}


WRONG = [
    (["--decide", "qlora"], "expected a decision out of lora, compress; got 'qlora'"),
    (["--decide", "lora", "--format", "obverse"], "a format of lora out of peft, axolotl; got 'obverse'"),
    (["--decide", "compress", "--format", "peft"], "a format of compress out of obverse; got 'peft'"),
    (["--decide", "lora", "--top", "10"], "expected settings that the format peft has: max_rank; got top"),
    (["--decide", "compress", "--max-rank", "1"], "expected settings that the format obverse has: none"),
    (["--decide", "lora", "--format", "axolotl", "--top", "0"], "expected top in percent, above 0"),
    (["--decide", "lora", "--format", "axolotl", "--top", "nan"], "expected top in percent, above 0"),
    (["--decide", "lora", "--format", "axolotl", "--prefer", "x"], "expected prefer out of signal, random"),
    (["--decide", "lora", "--max-rank", "0"], "expected a largest rank of at least 1; got 0"),
    (["--format", "peft"], "expected --decide lora or compress; got --format alone"),
    (["--decide", "lora", "--json"], "expected --decide without --json"),
    (["--decide", "lora", "--by", "block"], "expected --by for the table of one audit"),
    (["--decide", "lora", "--ablate"], "expected --ablate with --data"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_flags_that_do_not_fit_together_are_refused(obverse, file, words, sentence):
    done = obverse("audit", file, *words)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


def test_an_audit_of_an_older_version_has_no_tensors(tmp_path):
    audit: Audit = made_audit(
        layer("h.0.up", tensor=""), layer("rnn.weight_ih_l0 (input gate)", tensor="", kind="recurrent")
    )
    whole = json.loads(json.dumps(audit.to_dict()))
    for one in whole["layers"]:
        del one["tensor"]
    (tmp_path / "audit.json").write_text(json.dumps({"format": 2} | whole))
    assert decide(read_audit(tmp_path), "lora").chosen == ("h.0.up",)
    many = made_audit(
        *(layer(f"rnn.weight_ih_l{at} (input gate)", tensor="", kind="recurrent") for at in (0, 1))
    )
    chosen = decide(many, "lora", format="axolotl", top=100).chosen
    assert chosen == ("rnn.weight_ih_l0", "rnn.weight_ih_l1")
