"""Hostile PEFT adapters and quantized layouts. Not for other weights: see `weights`."""

from __future__ import annotations

from random import Random
from typing import Any

from .case import Case, Content
from .mutate import changed_json, dump, number, some_bytes, text
from .weights import SIZES, Entry, audit, safetensors_bytes, shape_like, values


def adapter(random: Random) -> Case:
    """A folder as PEFT writes it, its configuration or its weights changed; now and then on a base."""
    rank, rows, columns = random.choice((1, 4, 8)), random.choice((1, 6, 40)), random.choice((1, 6, 40))
    module = random.choice(("layers.0.q_proj", "fc", text(random)))
    prefix = random.choice(("base_model.model.", "", "base_model."))

    def entry(*shape: int) -> Entry:
        return "F32", shape, values(shape, "F32", random)

    sides = random.choice((("lora_A.weight", "lora_B.weight"), ("lora_embedding_A", "lora_embedding_B")))
    shapes: list[tuple[int, ...]] = [(rank, columns), (rows, rank)]
    if random.random() < 0.3:
        shapes[random.randrange(2)] = shape_like(random.choice(shapes), random)
    tensors = {f"{prefix}{module}.{side}": entry(*shape) for side, shape in zip(sides, shapes, strict=True)}
    if random.random() < 0.2:
        tensors[f"{prefix}{module}.{random.choice(('lora_magnitude_vector', 'lora_B.bias', 'SCB'))}"] = entry(
            rows
        )
    patterns = (module, "q_proj", ".*proj", "(a|b)+", "(x+)+y", "[z-a]", text(random), "^", ".")
    wild = random.random() < 0.2
    config: dict[str, Any] = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": random.choice((16, 16, 0, -1, 1e-300, 1e9, number(random))),
        "rank_pattern": {random.choice(patterns): rank} if random.random() < 0.2 else {},
        "alpha_pattern": {random.choice(patterns): random.choice((8, number(random)))} if wild else None,
        "use_rslora": random.random() < 0.5,
    }
    if random.random() < 0.2:
        kinds: tuple[Any, ...] = (text(random), number(random), None, [], {}, True, "LOHA")
        config[random.choice((*config, "use_dora", "init_lora_weights", "use_qalora"))] = random.choice(kinds)
    content = dump(config if random.random() < 0.9 else changed_json(config, random)).encode()
    weights = safetensors_bytes(tensors, random if random.random() < 0.2 else None)
    files: dict[str, Content] = {
        "a/adapter_config.json": some_bytes(content, random) if random.random() < 0.1 else content,
        "a/adapter_model.safetensors": weights,
        "base.safetensors": safetensors_bytes({f"{module}.weight": entry(rows, columns)}),
    }
    if random.random() < 0.05:
        del files[random.choice(("a/adapter_config.json", "a/adapter_model.safetensors"))]
    more = random.choice(((), ("--base", "base.safetensors"), ("--json",), ("--out", "made")))
    return Case(files, ("audit", random.choice(("a", "a/adapter_model.safetensors")), *more))


def packed(random: Random) -> Case:
    """Quantized layouts whose parts do not always fit each other."""
    a, b = random.choice((1, 4, 33, 64)), random.choice((2, 16, 40, 64))
    count = -(-a * b // 64)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [a, b]}
    if random.random() < 0.4:
        state = changed_json(state, random)
    raw = dump(state).encode()
    raw = some_bytes(raw, random) if random.random() < 0.1 else raw
    layouts: tuple[dict[str, tuple[str, tuple[int, ...]]], ...] = (
        {"weight": ("F8_E4M3", (a, b)), "weight_scale_inv": ("F32", (-(-a // 32), -(-b // 32)))},
        {"weight": ("I8", (a, b)), "weight_scale": ("F32", (a, 1)), "weight_zero_point": ("I8", (a, 1))},
        {"weight": ("I8", (a, b)), "SCB": ("F32", (a,)), "weight_format": ("U8", ())},
        {
            "weight": ("U8", (-(-a * b // 2), 1)),
            "weight.absmax": ("F32", (count,)),
            "weight.quant_map": ("F32", (16,)),
            "weight.quant_state.bitsandbytes__nf4": ("U8", (len(raw),)),
        },
        {
            "qweight": ("I32", (a, b)),
            "qzeros": ("I32", (1, b)),
            "scales": ("F16", (1, b)),
            "g_idx": ("I32", (8 * a,)),
        },
        {"weight_packed": ("U8", (a, b)), "weight_scale": ("F8_E4M3", (a, 1))},
        {"up_blocks": ("U8", (2, a, 1, 16)), "up_scales": ("U8", (2, a, 1))},
    )
    found: dict[str, Entry] = {"other.weight": ("F32", (40, 33), values((40, 33), "F32", random))}
    for name, (dtype, shape) in random.choice(layouts).items():
        if name.endswith("nf4"):
            found[f"fc.{name}"] = (dtype, shape, raw)
            continue
        if random.random() < 0.15:
            shape = shape_like(shape or (1,), random)
        if random.random() < 0.1:
            dtype = random.choice(tuple(SIZES))
        found[f"fc.{name}"] = (dtype, shape, values(shape, dtype, random))
    return Case({"m.safetensors": safetensors_bytes(found)}, audit("m.safetensors", random))
