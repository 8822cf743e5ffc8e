"""What the results of this room look like in a notebook."""

from . import _adapters, _differences, _layers, _nets

__all__ = ["_adapters", "_differences", "_layers", "_nets"]
