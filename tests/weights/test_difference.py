"""What changed from base to tuned, on matrices whose change is known: rounded, planted, moved, unrelated."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from obverse import BadInput
from obverse.weights import difference
from obverse.weights._difference.grids import FORMATS, cut_off, format_of, nearest, steps
from obverse.weights._difference.matrices import compare
from obverse.weights._difference.results import CHANGES, NAME, difference_text, read_difference, to_csv
from obverse.weights._difference.rounded_update import rounded_update

FORMAT = {one.name: one for one in FORMATS}


def made(rows=96, columns=128, seed=0, *, heavy=False):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator)
    if heavy:
        values = values * torch.randn(rows, columns, generator=generator).exp()
    return 0.02 * values


def planted(matrix, rank, strength, seed=7):
    """An update of equal singular values in random directions, float64."""
    generator = torch.Generator().manual_seed(seed)
    sides = [
        torch.linalg.qr(torch.randn(side, rank, generator=generator, dtype=torch.float64))[0]
        for side in matrix.shape
    ]
    return strength * sides[0] @ sides[1].T


def graded(tuned, base, **settings):
    return compare(
        tuned,
        base,
        alpha=settings.get("alpha", 0.001),
        exact=None,
        generator=torch.Generator().manual_seed(0),
    )


# Formats and steps, against torch's and numpy's own


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_step_is_the_distance_between_neighbouring_numbers(name):
    one = FORMAT[name]
    raw = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[one.dtype.itemsize]
    values = made(20, 30, heavy=True).abs().clamp(1e-4, 100).to(one.dtype)
    above = (values.view(raw) + 1).view(one.dtype)  # the next pattern of bits is the next number
    assert torch.equal(steps(values.double(), one), above.double() - values.double())


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_numbers_below_the_smallest_normal_one_share_its_step(name):
    one = FORMAT[name]
    tiny = torch.finfo(one.dtype).smallest_normal
    found = steps(torch.tensor([0.0, tiny / 3, tiny]), one)
    assert found.tolist() == [tiny * 2.0**-one.bits] * 3


def test_cutting_off_drops_the_last_bits():
    values = made(heavy=True)
    dropped = (values.view(torch.int32) & ~0xFFFF).view(torch.float32)
    assert torch.equal(cut_off(values, FORMAT["bfloat16"]), dropped.double())


def test_rounding_to_a_format_never_overflows():
    found = nearest(torch.tensor([1e6, -1e6, 448.0, 1e-9]), FORMAT["float8_e4m3fn"])
    assert found.tolist() == [448.0, -448.0, 448.0, 0.0]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn"])
def test_numbers_of_a_coarse_format_are_known_in_a_finer_file(name):
    assert format_of(made().to(FORMAT[name].dtype).float()).name == name
    assert format_of(made()).name == "float32"


# Nothing but rounding


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize(
    "copy",
    [
        lambda w: w.bfloat16(),
        lambda w: w.half(),
        lambda w: w.bfloat16().float(),
        lambda w: w.to(torch.float8_e4m3fn),
        lambda w: w.to(torch.float8_e5m2).float(),
        lambda w: (w.view(torch.int32) & ~0xFFFF).view(torch.float32),
    ],
)
def test_a_file_and_its_rounded_copy_differ_by_rounding_in_both_directions(copy, heavy):
    base = made(heavy=heavy)
    for tuned, other in ((copy(base), base), (base, copy(base))):
        found = graded(tuned, other)
        assert found.change == "nothing but rounding"
        assert found.numbers["changed"] > 0


def quantized(w, bits, block=None, dtype=torch.float32):
    """As most tools do it: a scale for each block, the largest number at the end of the grid."""
    values = w.reshape(1, -1) if block is None else w.reshape(-1, block)
    most = 2 ** (bits - 1) - 1
    scale = (values.abs().amax(1, keepdim=True) / most).half().float()
    return ((values / scale).round().clamp(-most, most) * scale).reshape(w.shape).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("bits", "block"), [(8, None), (8, 128), (8, 32), (4, 32), (4, 128)])
def test_a_file_and_its_quantized_copy_differ_by_rounding(bits, block, dtype):
    base = made(heavy=bits == 8)
    found = graded(quantized(base, bits, block, dtype), base)
    assert found.change == "nothing but rounding"
    assert "few levels" in found.sentence


def test_four_bits_of_a_code_book_are_a_grid_too():
    levels = torch.tensor(sorted(np.random.default_rng(0).standard_normal(16)))
    base = made()
    of_row = base.abs().amax(1, keepdim=True)
    at = (base[:, :, None] / of_row[:, :, None] - levels / levels.abs().max()).abs().argmin(2)
    found = graded((levels / levels.abs().max())[at].float() * of_row, base)
    assert found.change == "nothing but rounding"


def test_stochastic_rounding_is_rounding():
    base = made(seed=3).double()
    one = FORMAT["bfloat16"]
    low = torch.floor(base / steps(base, one)) * steps(base, one)
    up = torch.rand(base.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tuned = torch.where(up < (base - low) / steps(base, one), low + steps(base, one), low)
    found = graded(tuned.bfloat16(), base.float())
    assert found.change == "nothing but rounding"
    assert "stochastic" in found.sentence


def test_what_is_identical_may_be_stored_otherwise():
    base = made().bfloat16()
    assert graded(base.clone(), base).change == "identical"
    assert graded(base.float(), base).sentence == "identical: every number is the same"


# An update of low rank


def noise_of(base, name="bfloat16"):
    """Root mean square of rounding's error."""
    return math.sqrt(float((steps(base, FORMAT[name]) ** 2 / 12).mean()))


@pytest.mark.parametrize("rank", [1, 4, 16])
@pytest.mark.parametrize("base_kind", ["float32", "rounded too"])
def test_an_update_under_rounding_is_found_with_its_rank(rank, base_kind):
    base = made(192, 256, seed=rank)
    strength = 1.5 * noise_of(base) * (192 * 256) ** 0.25
    if base_kind == "rounded too":
        strength *= math.sqrt(2)
    tuned = (base.double() + planted(base, rank, strength)).bfloat16()
    found = graded(tuned, base if base_kind == "float32" else base.bfloat16())
    assert found.change == "directions"
    assert found.numbers["rank"] == rank


def test_an_update_into_a_rounded_base_is_found_where_it_survives():
    base = made(192, 256, seed=5).bfloat16()
    strength = 3 * noise_of(base.float()) * (192 * 256) ** 0.25
    found = graded((base.double() + planted(base, 4, strength)).bfloat16(), base)
    assert (found.change, found.numbers["rank"]) == ("directions", 4)
    assert found.numbers["changed"] < base.numel() / 2  # most of it was rounded away
    assert "base plus these, rounded to bfloat16, has " in found.sentence


def rounded_into(times, rank, *, shape=(192, 256), seed=5, kind="bfloat16"):
    """A base on the grid, an update of so many times the threshold, and base with it, rounded again."""
    dtype = getattr(torch, kind)
    base = made(*shape, seed=seed).to(dtype)
    strength = times * noise_of(base.float(), kind) * math.prod(shape) ** 0.25
    update = planted(base, rank, strength)
    return (base.double() + update).to(dtype), base, update


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize(("times", "rank"), [(3, 1), (10, 4), (30, 4), (30, 8)])
def test_an_update_rounded_into_base_has_its_own_rank_and_strength(times, rank, kind):
    """The singular values of the file alone are some tenths smaller, and show dozens of directions."""
    tuned, base, update = rounded_into(times, rank, kind=kind)
    found = graded(tuned, base)
    assert (found.change, found.numbers["rank"]) == ("directions", rank)
    assert not found.numbers["rank_is_bound"]
    own = torch.linalg.svdvals(update)[:rank].tolist()
    assert found.numbers["strengths"] == pytest.approx(own, rel=0.15 if times == 3 else 0.05)
    said = re.search(r"has ([\d.]+)\W+% of tuned’s numbers, base alone ([\d.]+)\W+%", found.sentence)
    assert float(said[1]) > 90
    assert float(said[2]) == pytest.approx(100 * float((tuned == base).double().mean()), abs=1)


def test_directions_of_an_update_are_those_that_were_added():
    tuned, base, update = rounded_into(10, 3)
    found = rounded_update(tuned, base, FORMAT["bfloat16"], 9, torch.Generator().manual_seed(0))
    left, _, right = torch.linalg.svd(update, full_matrices=False)
    for one, own in ((found.left, left[:, :3]), (found.right, right[:3].T)):
        assert (
            float(torch.linalg.svdvals(own.T @ one).min()) > 0.99
        )  # cosines of the angles between the spaces


@pytest.mark.parametrize("sample", [2**20, 2**14])
def test_the_rank_of_a_large_update_is_sought_in_some_of_its_rows_and_columns(monkeypatch, sample):
    monkeypatch.setattr("obverse.weights._difference.rounded_update.SAMPLE", sample)
    tuned, base, _ = rounded_into(20, 2)
    found = rounded_update(tuned, base, FORMAT["bfloat16"], 8, torch.Generator().manual_seed(0))
    assert (len(found.values), len(found.left), len(found.right)) == (2, *base.shape)


@pytest.mark.parametrize("size", [0.05, 0.3, 3])
def test_no_few_directions_explain_what_has_none(size):
    """A change of full rank, from a twentieth of a step to three; and a base that is rounded too."""
    base = made(192, 256).bfloat16()
    moved = size * float(steps(base.double(), FORMAT["bfloat16"]).median()) * made(192, 256, seed=3) / 0.02
    tuned = (base.double() + moved).bfloat16()
    assert rounded_update(tuned, base, FORMAT["bfloat16"], 12, torch.Generator()) is None
    master = made(192, 256, seed=8)
    strength = 10 * noise_of(master) * (192 * 256) ** 0.25
    both = (master.double() + planted(master, 4, strength)).bfloat16()
    assert rounded_update(both, master.bfloat16(), FORMAT["bfloat16"], 12, torch.Generator()) is None


def test_a_strong_update_in_float32_has_its_own_singular_values():
    base = made(64, 96)
    update = planted(base, 3, 1.0) @ torch.eye(96, dtype=torch.float64)
    found = graded((base.double() + update).float(), base)
    assert (found.change, found.numbers["rank"]) == ("directions", 3)
    assert found.numbers["strengths"] == pytest.approx([1.0] * 3, rel=1e-5)  # float32
    assert found.numbers["share"] == pytest.approx(1.0, abs=1e-6)
    assert found.numbers["size"] == pytest.approx(math.sqrt(3) / float(base.norm()), rel=1e-5)


def test_a_change_everywhere_is_dense_whatever_stands_out_of_it():
    base = made(96, 128)
    noise = made(96, 128, seed=9) / 10
    found = graded(base + noise, base)
    assert (found.change, found.numbers["rank"]) == ("dense", 0)
    more = graded((base + noise).double() + planted(base, 2, 0.2), base)
    assert (more.change, more.numbers["rank"]) == ("dense", 2)
    assert "like random numbers" in more.sentence


def test_single_steps_without_a_pattern_are_not_called_rounding():
    base = made(96, 128).bfloat16()
    tuned = (
        base.double()
        + torch.where(made(96, 128, seed=2) > 0.04, 1.0, 0.0)
        * steps(base.double(), FORMAT["bfloat16"])
        * made(96, 128, seed=4).sign()
    )
    found = graded(tuned.bfloat16(), base)
    assert found.change == "scattered"
    assert "no number moved by more than one step of bfloat16" in found.sentence


# Rows, columns, scale, order


def test_a_change_in_few_rows_or_columns_is_named():
    base = made(200, 96)
    tuned = base.clone()
    tuned[[3, 17]] += 0.01
    found = graded(tuned, base)
    assert (found.change, found.numbers["changed_rows"]) == ("in a few rows", 2)
    assert found.sentence.startswith("all in 2 of 200 rows")
    turned = graded(tuned.T.contiguous(), base.T.contiguous())
    assert turned.change == "in a few columns"
    assert turned.sentence.startswith("all in 2 of 200 columns")


@pytest.mark.parametrize("factor", [0.5, 1.37, -1.0])
def test_a_scaled_matrix_is_named_with_its_factor(factor):
    base = made()
    for tuned in (base * factor, (base * factor).bfloat16()):
        found = graded(tuned, base)
        assert found.change == "scaled"
        assert found.numbers["factor"] == pytest.approx(factor, rel=1e-3)  # half a step of bfloat16 is 2^-9


def test_rows_in_another_order_are_seen():
    base = made()
    order = torch.arange(len(base))
    order[:3] = torch.tensor([1, 2, 0])
    found = graded(base[order], base)
    assert found.change == "rows in another order"
    assert "3 of them in another place" in found.sentence


def test_a_small_matrix_is_not_taken_apart():
    base = made(10, 12)
    found = graded(base + made(10, 12, seed=1), base)
    assert found.change == "changed"
    assert "too few to take apart" in found.sentence


# Whole checkpoints


def net(seed, *, classes=10):
    generator = torch.Generator().manual_seed(seed)
    shapes = {"fc1.weight": (48, 64), "fc2.weight": (40, 48), "out.weight": (classes, 40)}
    return {name: torch.randn(shape, generator=generator) / 8 for name, shape in shapes.items()}


def run(tuned, base, **settings):
    return difference(tuned, base, generator=torch.Generator().manual_seed(0), **settings)


def test_a_checkpoint_against_its_copy_says_so_first():
    base = net(0)
    found = run({name: one.half() for name, one in base.items()}, base)
    assert found.summary == "from base to tuned: 0 of 3 layers changed; 3 nothing but rounding"
    assert found.lineage.sentence.startswith("of one lineage")
    assert found.ranks == {}


def test_a_prefix_more_is_taken_off_and_named():
    base = net(0)
    found = run({f"module.{name}": one for name, one in base.items()}, base)
    assert [layer.base_name for layer in found.layers] == ["fc1", "fc2", "out"]
    assert found.notes == ("3 names matched without the prefix 'module.' of tuned",)
    turned = run(base, {f"model.{name}": one for name, one in base.items()})
    assert [layer.base_name for layer in turned.layers] == ["model.fc1", "model.fc2", "model.out"]
    assert turned.notes == ("3 names matched without the prefix 'model.' of base",)


def test_two_prefixes_that_would_do_are_left_alone():
    base = {"fc1.weight": made()}
    found = run({"a.fc1.weight": made(), "b.fc1.weight": made()}, base)
    assert not found.layers
    assert (found.only_tuned, found.only_base) == (("a.fc1", "b.fc1"), ("fc1",))
    assert "names do not match" in found.notes[0]


def test_other_shapes_are_not_compared_but_rows_more_are():
    base, tuned = net(0), net(0, classes=12)
    tuned["out.weight"][:10] = base["out.weight"]
    tuned["fc2.weight"] = made(40, 50)
    by_name = {layer.name: layer for layer in run(tuned, base)}
    assert by_name["fc2"].change == "not comparable"
    assert by_name["fc2"].sentence == "not comparable: 40 × 48 in base, 40 × 50 in tuned"
    assert (by_name["out"].change, by_name["out"].added_rows) == ("identical", 2)
    assert (
        by_name["out"].sentence == "2 rows more than base; the first 10: identical: every number is the same"
    )


def test_files_are_compared_in_the_precision_they_are_stored_in(tmp_path):
    base = {name: one.double() * math.pi for name, one in net(0).items()}
    save_file(base, tmp_path / "base.safetensors")
    save_file({name: one.float() for name, one in base.items()}, tmp_path / "float32.safetensors")
    copy = run(tmp_path / "float32.safetensors", tmp_path / "base.safetensors")
    assert {layer.change for layer in copy} == {"nothing but rounding"}
    assert copy.layers[0].stored == ("float64", "float32")
    base["fc1.weight"][0, 0] += 1e-12  # far below float32
    save_file(base, tmp_path / "tuned.safetensors")
    found = run(tmp_path / "tuned.safetensors", tmp_path / "base.safetensors")
    assert [layer.change for layer in found] == ["in a few columns", "identical", "identical"]
    assert found.layers[0].changed == 1
    assert (found.tuned, found.base) == ("tuned.safetensors", "base.safetensors")


def test_a_difference_comes_back_from_its_file(tmp_path):
    base = net(0)
    tuned = {name: one + made(*one.shape, seed=8) / 3 for name, one in base.items()}
    found = run(tuned, base)
    (tmp_path / NAME).write_text(difference_text(found))
    assert read_difference(tmp_path) == found
    assert json.loads(difference_text(found))["layers"][0]["change"] in CHANGES
    table = to_csv(found).splitlines()
    assert len(table) == 4
    assert table[0].startswith("layer,base_name,kind,rows,columns")
    assert str(found).startswith("from base to tuned: 3 of 3 layers changed")


def test_a_name_that_a_spreadsheet_would_run_is_quoted():
    found = run({"=1+1": made(), "b": made()}, {"=1+1": made(seed=1), "b": made()})
    assert "\n'=1+1,'=1+1," in to_csv(found)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_a_level_is_a_chance(alpha):
    with pytest.raises(BadInput, match="alpha between 0 and 1"):
        run(net(0), net(1), alpha=alpha)


def test_progress_is_told_of_every_layer():
    heard = []
    run(net(0), net(1), progress=lambda done, total, name: heard.append((done, total, name)))
    assert heard == [(0, 3, "fc1"), (1, 3, "fc2"), (2, 3, "out"), (3, 3, "")]


# Matrices too large to be taken apart whole


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr("obverse.weights._difference.matrices.LARGE", 40_000)
    monkeypatch.setattr("obverse.weights._difference.matrices.SAMPLE", 19_200)


def test_of_a_large_matrix_some_rows_are_taken_apart(small_limits):
    """Counts are those of all entries; what is said of directions names the rows that it is of."""
    base = made(1000, 96)
    update = planted(base, 3, 2.0)
    found = graded((base.double() + update).float(), base)
    assert (found.change, found.numbers["rank"]) == ("directions", 3)
    assert found.numbers["changed_rows"] == 1000
    assert found.numbers["changed"] == base.numel()
    assert found.sentence.startswith(
        "1,000 of 1,000 rows changed; 200 of them, chosen at random: 3 directions "
    )
    assert graded(base + made(1000, 96, seed=4) / 5, base).change == "dense"
    assert graded(base.bfloat16(), base).change == "nothing but rounding"
    assert graded(base, base).change == "identical"


def test_of_few_changed_rows_of_a_large_matrix_all_are_taken_apart(small_limits):
    base = made(1000, 96)
    tuned = base.clone()
    tuned[100:160] += made(60, 96, seed=3)
    found = graded(tuned, base)
    assert (found.change, found.numbers["changed_rows"]) == ("in a few rows", 60)
    assert found.sentence.startswith("60 of 1,000 rows changed; in these: ")
    other = graded(torch.where(torch.arange(1000)[:, None] < 50, 2 * base, base), base)
    assert (other.change, other.numbers["changed"]) == ("in a few rows", 50 * 96)
    assert "in these: scaled: tuned is base times 2" in other.sentence
