"""Backpropagation in locally connected nets against a discrete hierarchical teacher, exactly."""

from ._compare import Comparison, compare, compare_pass, standard_error
from ._conditional import Conditional
from ._dynamics import Race, race
from ._model import EventModel
from ._passes import Pass, propagate
from ._reformulation import Reformulated, reformulate
from ._regions import RegionGraph, grid, tree, windows
from ._student import Step, Student, random_student
from ._summaries import random_table
from ._teacher import Teacher, enumerate_teacher, sample_teacher

__all__ = [
    "Comparison",
    "Conditional",
    "EventModel",
    "Pass",
    "Race",
    "Reformulated",
    "RegionGraph",
    "Step",
    "Student",
    "Teacher",
    "compare",
    "compare_pass",
    "enumerate_teacher",
    "grid",
    "propagate",
    "race",
    "random_student",
    "random_table",
    "reformulate",
    "sample_teacher",
    "standard_error",
    "tree",
    "windows",
]
