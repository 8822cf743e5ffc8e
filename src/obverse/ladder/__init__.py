"""Backpropagation in locally connected nets against a discrete hierarchical teacher, exactly."""

from .compare import Comparison, compare, compare_pass, standard_error
from .conditional import Conditional
from .dynamics import Race, race
from .model import EventModel
from .passes import Pass, propagate
from .reformulation import Reformulated, reformulate
from .regions import RegionGraph, grid, tree, windows
from .student import Step, Student, random_student
from .summaries import random_table
from .teacher import Teacher, enumerate_teacher, sample_teacher

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
