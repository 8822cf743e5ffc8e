"""`obverse claims list` over the library's own claims: paper by paper, a line each."""

import re


def test_list_is_grouped_by_paper_and_shorter_than_twice_the_papers_and_claims(obverse):
    done = obverse("claims", "list", "alm.*", "tools.*")
    lines = done.out.splitlines()
    heads = [line for line in lines if re.search(r": \d+ held", line)]
    assert heads[0].startswith("Arora, Liang, Ma: Why are deep nets reversible: ")
    assert len(heads) == 2
    shown = [line for line in lines if re.match(r"  (held|failed|inconclusive)\s+(alm|tools)\.\S+  ", line)]
    assert lines[0].split()[0] == str(len(shown))
    assert len(lines) <= len(shown) + 2 * len(heads) + 6
