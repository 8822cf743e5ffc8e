"""The two language nets of the zoo: what is sampled step by step is what the net says at once, and so on."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from experiments.zoo import language
from experiments.zoo.precision import BLOCK, four_bits


def test_a_text_read_piece_by_piece_is_the_text_read_at_once():
    torch.manual_seed(0)
    net = language.Llama(24, 40, 2, 3, 50).eval()
    tokens = torch.randint(50, (4, 9))
    pasts: list[list[torch.Tensor]] = [[] for _ in net.layers]
    with torch.no_grad():
        whole = net(tokens)
        pieces = torch.cat([net(tokens[:, at : at + 1], pasts) for at in range(9)], 1)
        changed = tokens.clone()
        changed[:, 5:] = 0
        assert torch.allclose(net(changed)[:, :5], whole[:, :5], atol=1e-5)  # no word knows of later ones
    assert torch.allclose(pieces, whole, atol=1e-5)  # float32, sums in another order


def test_turning_keeps_lengths_and_depends_on_distances_alone():
    torch.manual_seed(1)
    q, k = torch.randn(2, 1, 1, 1, 8).double()
    near = (language.turned(q, 3) * language.turned(k, 1)).sum()
    far = (language.turned(q, 13) * language.turned(k, 11)).sum()
    assert near == pytest.approx(float(far))
    assert float(language.turned(q, 5).norm()) == pytest.approx(float(q.norm()))


def test_sampled_texts_begin_alike_and_surprise_is_their_cross_entropy():
    torch.manual_seed(2)
    net = language.Llama(24, 40, 1, 3, 50).eval()
    tokens = language.sampled(net, 5, 12, torch.Generator().manual_seed(0))
    assert tokens.shape == (5, 12)
    assert set(tokens[:, 0].tolist()) == {language.BEGIN}
    assert torch.equal(tokens, language.sampled(net, 5, 12, torch.Generator().manual_seed(0)))
    with torch.no_grad():
        scores = net(tokens)
    first = F.cross_entropy(scores[0, :-1], tokens[0, 1:])
    assert float(language.surprise(scores, tokens)[0]) == pytest.approx(float(first), rel=1e-6)


def test_an_embedding_does_not_see_what_fills_up_the_batch():
    torch.manual_seed(3)
    net = language.Encoder(40, 20, 64, 90, 2, 2).eval()
    short, long = [3, 4, 5], [6, 7, 8, 9, 10, 11]
    with torch.no_grad():
        alone = net(language.padded([short]))
        beside = net(language.padded([short, long]))
    assert torch.allclose(alone[0], beside[0], atol=1e-6)
    assert torch.allclose(beside.norm(dim=1), torch.ones(2))


def test_word_pieces_are_the_longest_known_ones():
    words = "[UNK] [CLS] [SEP] un ##aff ##able ##a the , cafe"
    known = {word: at for at, word in enumerate(words.split())}
    found = language.pieces_of("The, Unaffable café xyz", known, 20)
    pieces = " ".join(list(known)[at] for at in found)
    assert pieces == "[CLS] the , un ##aff ##able cafe [UNK] [SEP]"
    assert len(language.pieces_of("the " * 50, known, 10)) == 10


def test_docstrings_are_short_texts_of_the_standard_library(monkeypatch):
    monkeypatch.setattr(language, "MODULES", ["csv", "email.message", "json", "random"])
    texts = language.docstrings()
    assert len(texts) >= 30
    assert all(40 <= len(one) <= 300 and "\n" not in one for one in texts)
    assert len(language.spread(texts, 30)) == 30


def test_four_bits_leave_sixteen_levels_of_each_block_and_errors_of_half_a_step():
    torch.manual_seed(4)
    matrix = 0.05 * torch.randn(8, 3 * BLOCK)
    rounded = four_bits(matrix)
    for before, after in zip(matrix.reshape(-1, BLOCK), rounded.reshape(-1, BLOCK), strict=True):
        assert len(after.unique()) <= 16
        step = float(before.max() - before.min()) / 15
        # both ends are float16: 2⁻¹¹ of 0.2, and 15 times the step's
        assert float((before - after).abs().max()) <= step / 2 * (1 + 2e-2) + 2e-4
    assert torch.equal(four_bits(torch.zeros(1, BLOCK)), torch.zeros(1, BLOCK))
