"""What the results of this room look like in a notebook."""

from . import _layers, _nets

__all__ = ["_layers", "_nets"]
