"""obverse: the other side of your network."""

__version__ = "0.1.0.dev0"
