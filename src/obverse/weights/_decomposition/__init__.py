"""A matrix taken apart: profile, signal, bulk, edges and grade. See parts.py: decompose, Parts."""
