"""What the results of this room look like in a notebook."""

from . import _differences, _layers, _nets

__all__ = ["_differences", "_layers", "_nets"]
