"""LoRA adapters as PEFT writes them: the update of each layer, taken apart without forming it."""
