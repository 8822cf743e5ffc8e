"""Weights of any origin, one matrix at a time: a file reader per format. Not for judging them."""
