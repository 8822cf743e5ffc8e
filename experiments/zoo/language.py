"""Two language nets of the zoo as modules: a Llama that samples its own text, and MiniLM with word pieces.

Their matrices have the names that the readers give them. Not for treating them: see function.
"""

from __future__ import annotations

import ast
import math
import sysconfig
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse._core import parse_json, read_file
from obverse.weights._readers.llama2c import checkpoint_in, open_llama2c

BEGIN = 1  # the token before every text
MODULES = [
    "argparse",
    "ast",
    "csv",
    "datetime",
    "decimal",
    "difflib",
    "email.message",
    "fractions",
    "ftplib",
    "gzip",
    "heapq",
    "http.client",
    "inspect",
    "ipaddress",
    "json",
    "logging",
    "mailbox",
    "pathlib",
    "pickletools",
    "random",
    "shutil",
    "socket",
    "statistics",
    "string",
    "subprocess",
    "tarfile",
    "tempfile",
    "textwrap",
    "threading",
    "tokenize",
    "turtle",
    "unittest.mock",
    "uuid",
    "zipfile",
]


class Norm(nn.Module):
    """By the root mean square."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt())


def turned(x: Tensor, start: int) -> Tensor:
    """Neighbouring pairs of each head's numbers, turned by angles that grow with the place in the text."""
    length, size = x.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(start, start + length).float(), speeds)
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, x: Tensor, past: list[Tensor] | None) -> Tensor:
        """`past` holds keys and values of the text so far, and gets those of x."""
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (self.wq, self.wk, self.wv)
        )
        start = past[0].shape[2] if past else 0
        q, k = turned(q, start), turned(k, start)
        if past is not None:
            past[:] = [torch.cat(pair, 2) for pair in zip(past, (k, v), strict=True)] if past else [k, v]
            k, v = past
        found = F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)
        return self.wo(found.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(size, hidden, bias=False)
        self.w2 = nn.Linear(hidden, size, bias=False)
        self.w3 = nn.Linear(size, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LlamaBlock(nn.Module):
    def __init__(self, size: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(size, heads), FeedForward(size, hidden)
        self.attention_norm, self.ffn_norm = Norm(size), Norm(size)

    def forward(self, x: Tensor, past: list[Tensor] | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), past)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    """Tokens to the scores of the next token; embedding and output are one matrix."""

    def __init__(self, size: int, hidden: int, layers: int, heads: int, words: int) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(words, size)
        self.layers = nn.ModuleList(LlamaBlock(size, hidden, heads) for _ in range(layers))
        self.norm = Norm(size)

    def forward(self, tokens: Tensor, pasts: list[list[Tensor]] | None = None) -> Tensor:
        x = self.tok_embeddings(tokens)
        for at, layer in enumerate(self.layers):
            x = layer(x, None if pasts is None else pasts[at])
        return F.linear(self.norm(x), self.tok_embeddings.weight)


def load_llama(file: Path) -> Llama:
    about, stored = checkpoint_in(file), open_llama2c(file)
    if about is None or not about.shared or about.kv_heads != about.heads:
        raise ValueError(f"expected one matrix for embedding and output, as many keys as heads: {file}")
    net = Llama(about.dim, about.hidden, about.layers, about.heads, about.vocabulary)
    net.load_state_dict({name: one.load() for name, one in stored.items()})
    return net.eval()


@torch.no_grad()
def sampled(net: Llama, texts: int, length: int, generator: torch.Generator) -> Tensor:
    """Texts of the net's own, token by token at temperature 1; each begins with BEGIN."""
    tokens = torch.full((texts, 1), BEGIN)
    pasts: list[list[Tensor]] = [[] for _ in net.layers]
    for _ in range(length - 1):
        scores = net(tokens[:, -1:], pasts)[:, -1]
        tokens = torch.cat((tokens, torch.multinomial(scores.softmax(-1), 1, generator=generator)), 1)
    return tokens


def surprise(scores: Tensor, tokens: Tensor) -> Tensor:
    """Of each text, the mean of −log p of the tokens that follow, in nats."""
    flat = F.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    return flat.view(len(tokens), -1).mean(1)


class EncoderBlock(nn.Module):
    """A block of BERT, with the names of its file."""

    def __init__(self, size: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({one: nn.Linear(size, size) for one in ("query", "key", "value")}),
                "output": nn.ModuleDict(
                    {"dense": nn.Linear(size, size), "LayerNorm": nn.LayerNorm(size, 1e-12)}
                ),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, hidden)})
        self.output = nn.ModuleDict(
            {"dense": nn.Linear(hidden, size), "LayerNorm": nn.LayerNorm(size, 1e-12)}
        )

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        own: Any = self.attention["self"]
        out: Any = self.attention["output"]
        q, k, v = (
            own[one](x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in ("query", "key", "value")
        )
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None, :])
        x = out["LayerNorm"](x + out["dense"](found.transpose(1, 2).flatten(2)))
        inner = F.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](x + self.output["dense"](inner))


class Encoder(nn.Module):
    """Word pieces (0 where a text has ended) to a vector of length 1 for each text: their mean."""

    def __init__(self, words: int, places: int, size: int, hidden: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(words, size),
                "position_embeddings": nn.Embedding(places, size),
                "token_type_embeddings": nn.Embedding(2, size),
                "LayerNorm": nn.LayerNorm(size, 1e-12),
            }
        )
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList(EncoderBlock(size, hidden, heads) for _ in range(layers))}
        )

    def forward(self, pieces: Tensor) -> Tensor:
        seen, tables = pieces > 0, self.embeddings
        places = torch.arange(pieces.shape[1])
        x = tables["word_embeddings"](pieces) + tables["position_embeddings"](places)
        x = tables["LayerNorm"](x + tables["token_type_embeddings"](torch.zeros_like(places)))
        layers: Any = self.encoder["layer"]
        for layer in layers:
            x = layer(x, seen)
        mask = seen[..., None].to(x)
        return F.normalize((x * mask).sum(1) / mask.sum(1), dim=1)


def load_encoder(file: Path) -> Encoder:
    """The sizes are those of the tensors, with heads of 32 numbers."""
    from safetensors.torch import load_file

    tensors = {
        name.removeprefix("bert."): one.float()
        for name, one in load_file(file).items()
        if "pooler" not in name and "position_ids" not in name
    }
    words, size = tensors["embeddings.word_embeddings.weight"].shape
    places = len(tensors["embeddings.position_embeddings.weight"])
    hidden = len(tensors["encoder.layer.0.intermediate.dense.weight"])
    layers = sum(name.endswith("intermediate.dense.weight") for name in tensors)
    net = Encoder(words, places, size, hidden, layers, size // 32)
    net.load_state_dict(tensors)
    return net.eval()


def pieces_of(text: str, known: dict[str, int], length: int) -> list[int]:
    """BERT's uncased word pieces: the longest known start of a word, then the longest known rest."""
    found = [known["[CLS]"]]
    for word in words_of(text):
        start, inside = 0, []
        while start < len(word):
            prefix = "##" if start else ""
            stop = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in known), 0)
            if not stop:
                inside = [known["[UNK]"]]
                break
            inside.append(known[prefix + word[start:stop]])
            start = stop
        found += inside
    return [*found[: length - 1], known["[SEP]"]]


def words_of(text: str) -> Iterator[str]:
    """In small letters without accents, apart at white space; each mark of punctuation alone."""
    plain = "".join(
        one for one in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(one) != "Mn"
    )
    word = ""
    for letter in plain:
        marks = not letter.isspace() and (
            unicodedata.category(letter).startswith("P") or letter in "$+<=>^`|~"
        )
        if marks or letter.isspace():
            if word:
                yield word
            word = ""
            if marks:
                yield letter
        else:
            word += letter
    if word:
        yield word


def vocabulary(file: Path) -> dict[str, int]:
    """Of a tokenizer.json, or of a list with a word in each line."""
    text = read_file(file, "a vocabulary", 2**24).decode()
    if file.suffix == ".json":
        return {str(word): int(place) for word, place in parse_json(text)["model"]["vocab"].items()}
    return {word: place for place, word in enumerate(text.splitlines())}


def docstrings() -> list[str]:
    """First paragraphs of docstrings of the standard library, read from its source and not imported."""
    found = []
    library = Path(sysconfig.get_path("stdlib"))
    for name in MODULES:
        place = library.joinpath(*name.split("."))
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                words = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                if 40 <= len(words) <= 300:
                    found.append(words)
    return sorted(set(found))


def padded(texts: list[list[int]]) -> Tensor:
    length = max(map(len, texts))
    return torch.tensor([text + [0] * (length - len(text)) for text in texts])


def spread(texts: list[str], count: int) -> list[str]:
    """So many of them, evenly spaced."""
    return [texts[math.floor(at * len(texts) / count)] for at in range(count)]
