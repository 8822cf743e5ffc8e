"""Training: the loop that fits any Task, run directories, checkpoints, comparisons. Not for losses."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core.interrupts import Interrupted
    from ._classify import ClassifierTask, fit_classifier, initial_net, load_trained
    from ._compare import Comparison, Plan, compare, read_comparison, read_plan, summarize
    from ._fit import Diverged, Task, fit
    from ._generators.fit import fit_generator, generator_task, load_generator
    from ._generators.settings import GeneratorSettings
    from ._rundir import RunRecord, create_generator_run, create_run, read_generator_run, read_run
    from ._settings import Settings
else:
    from .._core.lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "ClassifierTask": "_classify",
            "Comparison": "_compare",
            "Diverged": "_fit",
            "GeneratorSettings": "_generators.settings",
            "Interrupted": "_fit",
            "Plan": "_compare",
            "RunRecord": "_rundir",
            "Settings": "_settings",
            "Task": "_fit",
            "compare": "_compare",
            "create_generator_run": "_rundir",
            "create_run": "_rundir",
            "fit": "_fit",
            "fit_classifier": "_classify",
            "fit_generator": "_generators.fit",
            "generator_task": "_generators.fit",
            "initial_net": "_classify",
            "load_generator": "_generators.fit",
            "load_trained": "_classify",
            "read_comparison": "_compare",
            "read_generator_run": "_rundir",
            "read_plan": "_compare",
            "read_run": "_rundir",
            "summarize": "_compare",
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
