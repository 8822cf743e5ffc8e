"""A small adapter on a small base, audited: one layer with a direction that stands out, one that is 0."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from obverse.weights import AdapterAudit, audit_adapter


@cache
def sample_adapter() -> AdapterAudit:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    tensors, base = {}, {}
    for block in range(2):
        name = f"layers.{block}.q_proj"
        second = normal(40, 4) * torch.tensor([9.0, 1.0, 1.0, 1.0]) * (block == 0)
        tensors[f"base_model.model.{name}.lora_A.weight"] = normal(4, 60)
        tensors[f"base_model.model.{name}.lora_B.weight"] = second.contiguous()
        base[f"{name}.weight"] = normal(40, 60)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        save_file(tensors, path / "adapter_model.safetensors")
        (path / "adapter_config.json").write_text(
            json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 4, "use_dora": True})
        )
        return audit_adapter(
            path, base=base, model="my-adapter", base_name="base.safetensors", generator=generator
        )
