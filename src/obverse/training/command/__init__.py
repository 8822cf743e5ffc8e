"""`obverse train`, `compare`, `search`, `sample`, `generate`; lends run directories to the rooms below."""

from ..._core import lend_runs
from .._lent import ACCESS
from ._compare import compare
from ._generate import generate_app
from ._sample import sample
from ._search import search
from ._train import train

__all__ = ["compare", "generate_app", "sample", "search", "train"]

lend_runs(ACCESS)
