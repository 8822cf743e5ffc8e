"""Training: the loop that fits any Task, run directories, checkpoints, comparisons. Not for losses."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .classify import ClassifierTask, fit_classifier, initial_net, load_trained
    from .compare import Comparison, Plan, compare, read_comparison, read_plan, summarize
    from .fit import Diverged, Interrupted, Task, fit
    from .generator_settings import GeneratorSettings
    from .generators import fit_generator, generator_task, load_generator
    from .rundir import RunRecord, create_generator_run, create_run, read_generator_run, read_run
    from .settings import Settings
else:
    from ..lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "ClassifierTask": "classify",
            "Comparison": "compare",
            "Diverged": "fit",
            "GeneratorSettings": "generator_settings",
            "Interrupted": "fit",
            "Plan": "compare",
            "RunRecord": "rundir",
            "Settings": "settings",
            "Task": "fit",
            "compare": "compare",
            "create_generator_run": "rundir",
            "create_run": "rundir",
            "fit": "fit",
            "fit_classifier": "classify",
            "fit_generator": "generators",
            "generator_task": "generators",
            "initial_net": "classify",
            "load_generator": "generators",
            "load_trained": "classify",
            "read_comparison": "compare",
            "read_generator_run": "rundir",
            "read_plan": "compare",
            "read_run": "rundir",
            "summarize": "compare",
        },
    )

__all__ = [
    "ClassifierTask",
    "Comparison",
    "Diverged",
    "GeneratorSettings",
    "Interrupted",
    "Plan",
    "RunRecord",
    "Settings",
    "Task",
    "compare",
    "create_generator_run",
    "create_run",
    "fit",
    "fit_classifier",
    "fit_generator",
    "generator_task",
    "initial_net",
    "load_generator",
    "load_trained",
    "read_comparison",
    "read_generator_run",
    "read_plan",
    "read_run",
    "summarize",
]
