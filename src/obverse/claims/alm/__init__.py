"""Arora, Liang, Ma: Why are deep nets reversible."""
