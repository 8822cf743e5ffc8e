"""Training: the loop that fits any Task, run directories, checkpoints, comparisons. Not for losses."""

from .classify import ClassifierTask, fit_classifier, initial_net, load_trained
from .compare import Comparison, Plan, compare, read_comparison, read_plan, summarize
from .fit import Diverged, Interrupted, Task, fit
from .rundir import RunRecord, create_run, read_run
from .settings import Settings

__all__ = [
    "ClassifierTask",
    "Comparison",
    "Diverged",
    "Interrupted",
    "Plan",
    "RunRecord",
    "Settings",
    "Task",
    "compare",
    "create_run",
    "fit",
    "fit_classifier",
    "initial_net",
    "load_trained",
    "read_comparison",
    "read_plan",
    "read_run",
    "summarize",
]
