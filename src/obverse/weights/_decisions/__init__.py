"""From an audit to what can be pasted into a trainer: which layers, and with which ranks."""
