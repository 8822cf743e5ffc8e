"""Backpropagation in locally connected nets against a discrete hierarchical teacher, exactly."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._batchnorm import normalize, project
    from ._compare import Comparison, Sides, compare, compare_pass, standard_error
    from ._conditional import Conditional
    from ._disentangle import (
        activation_gap,
        activation_of,
        gradient_of,
        kron,
        nearest_gradient,
        off_block,
        product_conditional,
    )
    from ._dynamics import Race, race
    from ._gaps import broadness_gap, focus_gap, gap
    from ._model import EventModel
    from ._passes import Pass, propagate
    from ._reformulation import Reformulated, reformulate
    from ._regions import RegionGraph, grid, tree, windows
    from ._structure import and_weights, is_all_vert, separating_weights, vertices
    from ._student import Step, Student, random_student
    from ._summaries import random_table, renumber
    from ._teacher import Teacher, enumerate_teacher, sample_teacher

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Comparison",
    "Conditional",
    "EventModel",
    "Pass",
    "Race",
    "Reformulated",
    "RegionGraph",
    "Sides",
    "Step",
    "Student",
    "Teacher",
    "activation_gap",
    "activation_of",
    "and_weights",
    "broadness_gap",
    "compare",
    "compare_pass",
    "enumerate_teacher",
    "focus_gap",
    "gap",
    "gradient_of",
    "grid",
    "is_all_vert",
    "kron",
    "nearest_gradient",
    "normalize",
    "off_block",
    "product_conditional",
    "project",
    "propagate",
    "race",
    "random_student",
    "random_table",
    "reformulate",
    "renumber",
    "sample_teacher",
    "separating_weights",
    "standard_error",
    "tree",
    "vertices",
    "windows",
]
