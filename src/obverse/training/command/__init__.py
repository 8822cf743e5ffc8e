"""`obverse train`, `compare`, `search`, `sample`, `generate`; lends run directories to the rooms below."""

from ..._core import lend_runs
from .._generators.command import generate_app
from .._lent import ACCESS
from .._search.command import search
from ._compare import compare
from ._sample import sample
from ._train import train

__all__ = ["compare", "generate_app", "sample", "search", "train"]

lend_runs(ACCESS)
