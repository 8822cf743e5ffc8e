"""How well-known nets call their matrices, as an audit lists them: for tables that have to shorten names."""

from __future__ import annotations


def _llama(blocks: int, mlp: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")) -> list[str]:
    kinds = [*(f"self_attn.{one}_proj" for one in "qkvo"), *(f"mlp.{one}" for one in mlp)]
    return [
        "model.embed_tokens",
        *(f"model.layers.{block}.{kind}" for block in range(blocks) for kind in kinds),
        "lm_head",
    ]


def _mixtral(blocks: int, experts: int) -> list[str]:
    experts_of = [f"block_sparse_moe.experts.{at}.w{one}" for at in range(experts) for one in (1, 2, 3)]
    kinds = [*(f"self_attn.{one}_proj" for one in "qkvo"), "block_sparse_moe.gate", *experts_of]
    return [f"model.layers.{block}.{kind}" for block in range(blocks) for kind in kinds]


def _bert(blocks: int, start: str = "bert.") -> list[str]:
    kinds = [
        *(f"attention.self.{one}" for one in ("query", "key", "value")),
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
    ]
    embeddings = [f"{start}embeddings.{one}_embeddings" for one in ("word", "position", "token_type")]
    encoder = [f"{start}encoder.layer.{block}.{kind}" for block in range(blocks) for kind in kinds]
    return [*embeddings, *encoder, f"{start}pooler.dense"]


def _whisper(blocks: int) -> list[str]:
    kinds = [f"self_attn.{one}_proj" for one in ("k", "v", "q", "out")]
    cross = [f"encoder_attn.{one}_proj" for one in ("k", "v", "q", "out")]
    return [
        "model.encoder.conv1",
        "model.encoder.conv2",
        "model.encoder.embed_positions",
        *(f"model.encoder.layers.{block}.{one}" for block in range(blocks) for one in (*kinds, "fc1", "fc2")),
        "model.decoder.embed_tokens",
        "model.decoder.embed_positions",
        *(
            f"model.decoder.layers.{block}.{one}"
            for block in range(blocks)
            for one in (*kinds, *cross, "fc1", "fc2")
        ),
    ]


def _t5(blocks: int) -> list[str]:
    attention = [f"layer.0.SelfAttention.{one}" for one in "qkvo"]
    cross = [f"layer.1.EncDecAttention.{one}" for one in "qkvo"]
    dense = ("wi_0", "wi_1", "wo")
    return [
        "shared",
        *(
            f"encoder.block.{block}.{one}"
            for block in range(blocks)
            for one in (*attention, *(f"layer.1.DenseReluDense.{two}" for two in dense))
        ),
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        *(
            f"decoder.block.{block}.{one}"
            for block in range(blocks)
            for one in (*attention, *cross, *(f"layer.2.DenseReluDense.{two}" for two in dense))
        ),
        "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "lm_head",
    ]


def _resnet() -> list[str]:
    stages = [
        f"layer{stage}.{block}.{one}"
        for stage, blocks in ((1, 3), (2, 4), (3, 6), (4, 3))
        for block in range(blocks)
        for one in ("conv1", "conv2", "conv3", *(("downsample.0",) if block == 0 else ()))
    ]
    return ["conv1", *stages, "fc"]


def _gguf(blocks: int) -> list[str]:
    kinds = ("attn_k", "attn_output", "attn_q", "attn_v", "ffn_down", "ffn_gate", "ffn_up")
    return ["token_embd", *(f"blk.{block}.{kind}" for block in range(blocks) for kind in kinds), "output"]


def _keras(blocks: int) -> list[str]:
    kinds = [
        *(f"multi_head_attention/{one}/kernel" for one in ("query", "key", "value", "attention_output")),
        "dense/kernel",
        "dense_1/kernel",
    ]
    return [
        "token_embedding/embeddings",
        *(f"transformer_encoder_{block}/{kind}" for block in range(blocks) for kind in kinds),
    ]


_FUSED = [
    f"vit.encoder.layers.encoder_layer_{block}.{one}"
    for block in range(12)
    for one in (
        *(f"self_attention.in_proj ({part})" for part in ("query", "key", "value")),
        "self_attention.out_proj",
        "mlp.0",
        "mlp.3",
    )
]
NAMES: dict[str, list[str]] = {
    "Llama": _llama(32),
    "Mixtral": _mixtral(32, 8),
    "BERT": _bert(12),
    "MiniLM": _bert(6, ""),
    "ViT of Hugging Face": [
        f"vit.encoder.layer.{block}.{one}"
        for block in range(12)
        for one in (
            *(f"attention.attention.{part}" for part in ("query", "key", "value")),
            "attention.output.dense",
            "intermediate.dense",
            "output.dense",
        )
    ],
    "ViT of timm": [
        f"blocks.{block}.{one}"
        for block in range(12)
        for one in (
            *(f"attn.qkv ({part})" for part in ("query", "key", "value")),
            "attn.proj",
            "mlp.fc1",
            "mlp.fc2",
        )
    ],
    "ViT of torchvision": ["conv_proj", *_FUSED],
    "encoder of torch": [
        f"encoder.layers.{block}.{one}"
        for block in range(4)
        for one in (
            *(f"self_attn.in_proj ({part})" for part in ("query", "key", "value")),
            "self_attn.out_proj",
            "linear1",
            "linear2",
        )
    ],
    "Whisper": _whisper(6),
    "T5": _t5(12),
    "ResNet": _resnet(),
    "GGUF": _gguf(32),
    "Keras": _keras(12),
    "experts in one tensor": [
        f"model.layers.{block}.mlp.experts.{one} (expert {expert + 1} of 16)"
        for block in range(4)
        for one in ("gate_up_proj", "down_proj")
        for expert in range(16)
    ],
}
