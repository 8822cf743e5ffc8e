"""What names say of tensors: the kind of a weight, its bias, which side is the output. Not for values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .stored import Stored

FUSED = {"qkv", "qkv_proj", "to_qkv", "wqkv", "c_attn", "attn_qkv"}
_INPUTS_FIRST = {"c_attn", "c_proj", "c_fc"}  # GPT-2's layers, where they are stored in × out
_EMBEDDING = re.compile(
    r"embed(?!.*(proj|linear|dense|fc|norm|out))|(^|_)embd?$|^wte$|^wpe$|^token_types$"
    r"|^relative_attention_bias$|^(mask|iou|query|object)_tokens?$"
)
_LIST_OF_EMBEDDINGS = re.compile(r"(.*[._])?embed(ding)?s\.\d+")
_SHARED = re.compile(r"(model\.)?shared(\.weight)?")  # T5, BART: the tokens of encoder and decoder
# Biases, masks and scales of more than one dimension, as some files have them
_NO_WEIGHT = re.compile(r"(.*_)?bias(_.*)?|(.*_)?mask|(.*_)?scales?(_inv)?")
_WEIGHT = ("weight", "weights", "kernel")


@dataclass(frozen=True)
class Layer:
    """What is known of a weight beyond its name and shape."""

    kind: str
    module: str | None = None
    inputs_first: bool = False  # stored in × out/groups × …, as transposed convolutions are
    groups: int = 1
    bias: str | None = None  # the name of its bias, where it isn't the usual one


def is_no_weight(name: str) -> bool:
    return _NO_WEIGHT.fullmatch(name.rpartition(".")[2]) is not None


def is_vector(name: str, shape: tuple[int, ...]) -> bool:
    """One row under many dimensions, such as the token of a class; what is called a weight is one."""
    return len(shape) > 2 and math.prod(shape[:-1]) == 1 and not name.endswith(_WEIGHT)


def stored_inputs_first(last: str, shape: tuple[int, ...], gpt2: bool, bias: Stored | None) -> bool:
    """Is this matrix in × out? Its bias tells where the sides differ; GPT-2's fused layer speaks for all.

    So does the bias of a transposed convolution: any other has an entry for each of the first side.
    """
    if shape[0] != shape[1] and bias is not None:
        return bias.shape == shape[1:2]
    if len(shape) != 2:
        return False
    return gpt2 and last in _INPUTS_FIRST


def kind_of(name: str, base: str, shape: tuple[int, ...], has_bias: bool) -> str:
    """By its name, in full and without the word weight, its shape, and whether it has a bias."""
    last = base.rpartition(".")[2].lower()
    table = (len(shape) == 2 or shape[0] == 1) and not has_bias
    if table and (
        _EMBEDDING.search(last) or _LIST_OF_EMBEDDINGS.fullmatch(base.lower()) or _SHARED.fullmatch(name)
    ):
        return "embedding"
    if last == "query_key_value" or last in FUSED:
        return "attention"
    called = name.endswith(_WEIGHT)
    if not called and ((len(shape) > 2 and shape[0] == 1) or (len(shape) == 3 and "." in name)):
        # some tokens, for every image of a batch; or a parameter of three sides, such as in × heads × size
        return "convolution" if has_bias else "matrix"
    if 3 <= len(shape) <= 5 or last.endswith("conv1d"):  # GGUF drops the side of 1 of a depthwise one
        return "convolution"
    return "linear" if len(shape) == 2 and (has_bias or name.endswith("weight")) else "matrix"


def table_shape(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Of a table of positions or tokens stored as 1 × count × width, or 1 × height × width × size."""
    if len(shape) == 4 and shape[0] == 1 and shape[1] == shape[2] != shape[3]:
        return shape[1] * shape[2], shape[3]
    return (shape[-2], shape[-1]) if len(shape) > 2 and math.prod(shape[:-2]) == 1 else None


def bias_of(name: str, tensors: Mapping[str, Stored], layer: Layer | None) -> Stored | None:
    if layer and layer.bias:
        return tensors.get(layer.bias)
    module, dot, last = name.rpartition(".")
    if match := re.fullmatch(r"(.*)weight", last):
        return tensors.get(f"{module}{dot}{match[1]}bias")
    if match := re.fullmatch(r"([Ww])(\d*)", last):  # W1 and b1: the usual names in array files
        return tensors.get(f"{module}{dot}b{match[2]}")
    return None
