"""Summaries against Python's own and, or, sum."""

from itertools import product

import pytest
import torch

from ladder.plain_ladder import same_partition
from obverse._core.errors import BadInput
from obverse.ladder._summaries import random_table, renumber, summarize

RULES = {
    "and": lambda bits: int(all(bits)),
    "or": lambda bits: int(any(bits)),
    "xor": lambda bits: sum(bits) % 2,
    "majority": lambda bits: int(sum(bits) > len(bits) / 2),  # a tie is none
}


def joint(ranges):
    every = list(product(*[range(count) for count in ranges]))
    return every, [torch.tensor(column) for column in zip(*every, strict=True)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rule", RULES)
def test_named_summaries_of_bits(rule, count):
    every, parts = joint([2] * count)
    found, size = summarize("r", rule, parts, [2] * count)
    assert found.tolist() == [RULES[rule](bits) for bits in every]
    assert size == 2
    assert found.dtype == torch.long


@pytest.mark.parametrize("rule", RULES)
def test_a_child_with_one_event_only_is_a_bit_that_is_0(rule):
    _, parts = joint([2, 1, 2])
    every, _ = joint([2, 1, 2])
    assert summarize("r", rule, parts, [2, 1, 2])[0].tolist() == [RULES[rule](bits) for bits in every]


@pytest.mark.parametrize("ranges", [[2], [2, 2], [3, 2], [2, 3, 4], [1, 5]])
def test_full_tells_joint_events_apart_and_no_more(ranges):
    every, parts = joint(ranges)
    found, size = summarize("r", "full", parts, ranges)
    assert same_partition(found.tolist(), every)
    assert size == len(every)
    assert sorted(set(found.tolist())) == list(range(size))


def test_full_of_children_that_overlap_has_the_joint_events_that_there_are():
    every, _ = joint([2, 2, 2])
    left, right = [2 * a + b for a, b, _ in every], [2 * b + c for _, b, c in every]
    found, size = summarize("r", "full", [torch.tensor(left), torch.tensor(right)], [4, 4])
    assert size == 8
    assert same_partition(found.tolist(), every)


@pytest.mark.parametrize("ranges", [[2, 2], [3, 2], [2, 3, 2], [4]])
def test_a_table_is_read_with_the_last_child_fastest(ranges):
    every, parts = joint(ranges)
    generator = torch.Generator().manual_seed(1)
    table = torch.randint(5, (len(every),), generator=generator)
    order = torch.randperm(len(every), generator=generator)  # inputs come in any order
    found, size = summarize("r", table, [part[order] for part in parts], ranges)
    by_hand = {events: int(table[place]) for place, events in enumerate(every)}
    assert found.tolist() == [by_hand[every[int(at)]] for at in order]
    assert size == int(table.max()) + 1


def test_a_function_sees_events_input_by_child():
    every, parts = joint([3, 2])
    seen = []

    def rule(events):
        seen.append(events)
        return events[:, 0] * events[:, 1] + 1

    found, size = summarize("r", rule, parts, [3, 2])
    assert seen[0].tolist() == [list(events) for events in every]
    assert found.tolist() == [a * b + 1 for a, b in every]
    assert size == 4  # 1, 2, 3 and the 0 that does not occur: numbers are kept


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8, torch.int32])
def test_a_function_or_table_may_give_any_whole_numbers(dtype):
    _, parts = joint([2, 2])
    found, size = summarize("r", lambda z: z.sum(1).clamp(max=1).to(dtype), parts, [2, 2])
    assert (found.tolist(), size, found.dtype) == ([0, 1, 1, 1], 2, torch.long)
    found, size = summarize("r", torch.tensor([0, 1, 1, 0]).to(dtype), parts, [2, 2])
    assert (found.tolist(), size, found.dtype) == ([0, 1, 1, 0], 2, torch.long)


@pytest.mark.parametrize(
    ("rule", "ranges", "said"),
    [
        ("nand", [2, 2], "full, and, or, xor, majority for 'r'; got 'nand'"),
        ("", [2, 2], "got ''"),
        ("and", [2, 3], r"two events in each child of 'r' for 'and'; got \[2, 3\]"),
        ("majority", [3], "two events in each child"),
        (None, [2, 2], "a summary for 'r'"),
        (3, [2, 2], "a summary for 'r'"),
        ([0, 1, 1, 0], [2, 2], "a summary for 'r'"),
        (torch.tensor([0, 1, 1]), [2, 2], "a table of 4 whole numbers for 'r'"),
        (torch.tensor([0, 1, 1, 0, 1]), [2, 2], "a table of 4 whole numbers"),
        (torch.tensor([[0, 1], [1, 0]]), [2, 2], "a table of 4 whole numbers"),
        (torch.tensor(1), [2, 2], "a table of 4 whole numbers"),
        (torch.tensor([]), [2, 2], "a table of 4 whole numbers"),
        (torch.tensor([0.0, 1.0, 1.0, 0.0]), [2, 2], "a table of 4 whole numbers"),
        (torch.tensor([0, -1, 1, 0]), [2, 2], "events from 0 in the table of 'r'; got -1"),
        (torch.tensor([0, 10**10, 1, 0]), [2, 2], "'r'"),  # more events than can be kept
        (lambda z: z.sum(1).double(), [2, 2], "4 whole numbers from the function of 'r'"),
        (lambda z: z, [2, 2], "4 whole numbers from the function"),
        (lambda z: z.sum(), [2, 2], "4 whole numbers from the function"),
        (lambda z: z.sum(1).tolist(), [2, 2], "4 whole numbers from the function of 'r'; got list"),
        (lambda z: None, [2, 2], "4 whole numbers from the function"),
        (lambda z: -z.sum(1), [2, 2], "events from 0 for 'r'; got -2"),
        (lambda z: z.sum(1) * 10**12, [2, 2], "'r'"),
    ],
)
def test_what_is_no_summary_is_refused(rule, ranges, said):
    _, parts = joint(ranges)
    with pytest.raises(BadInput, match=said):
        summarize("r", rule, parts, ranges)


@pytest.mark.parametrize(("count", "events"), [(1, 1), (4, 1), (4, 4), (16, 3), (100, 7)])
def test_a_random_table_has_every_event(count, events):
    found = random_table(count, events, torch.Generator().manual_seed(2))
    assert found.shape == (count,)
    assert set(found.tolist()) == set(range(events))
    again = random_table(count, events, torch.Generator().manual_seed(2))
    assert torch.equal(found, again)


def test_a_random_table_is_even_over_places():
    """Each place is as likely to hold each event: 4,000 tables, 5 standard deviations of a binomial."""
    generator = torch.Generator().manual_seed(3)
    tables = torch.stack([random_table(4, 2, generator) for _ in range(4000)])
    ones = tables.sum(0)
    # by symmetry P(1) = 1/2 at each place
    assert all(abs(float(one) - 2000) < 5 * (4000 * 0.25) ** 0.5 for one in ones)


@pytest.mark.parametrize(
    "arguments", [(4, 5), (4, 0), (0, 0), (4, -1), (2**25, 2), (True, True), (4.0, 2), (4, 2.0), ("4", 2)]
)
def test_a_random_table_needs_room_for_its_events(arguments):
    with pytest.raises(BadInput):
        random_table(*arguments, torch.Generator())  # type: ignore[call-arg]


def test_renumbering_is_of_what_occurs_however_many_there_could_be():
    generator = torch.Generator().manual_seed(4)
    parts = [torch.randint(2**15, (50,), generator=generator) for _ in range(40)]
    parts = [torch.cat([part, part[:10]]) for part in parts]  # 50 contents, 10 of them twice
    found, count = renumber(parts)
    assert count == 50
    assert found[50:].tolist() == found[:10].tolist()
    assert same_partition(found.tolist(), list(zip(*[part.tolist() for part in parts], strict=True)))
