"""Training: the loop that fits any Task, run directories, checkpoints, comparisons. Not for losses."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from .._core import Interrupted
    from ._classifier import ShadowClassifier
    from ._classify import ClassifierTask, fit_classifier, initial_net, load_trained
    from ._compare import Comparison, Plan, compare, read_comparison, read_plan, summarize
    from ._fit import Diverged, Task, fit
    from ._generators.fit import fit_generator, generator_task, load_generator
    from ._generators.settings import GeneratorSettings
    from ._rundir import RunRecord, create_generator_run, create_run, read_generator_run, read_run
    from ._search.plan import SearchPlan
    from ._search.results import SearchResult, at_edge, rivals
    from ._search.search import make_plan, search
    from ._settings import Settings
    from .charts._images import shadow_grid, shadow_pictures

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "ClassifierTask",
    "Comparison",
    "Diverged",
    "GeneratorSettings",
    "Interrupted",
    "Plan",
    "RunRecord",
    "SearchPlan",
    "SearchResult",
    "Settings",
    "ShadowClassifier",
    "Task",
    "at_edge",
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
    "make_plan",
    "read_comparison",
    "read_generator_run",
    "read_plan",
    "read_run",
    "rivals",
    "search",
    "shadow_grid",
    "shadow_pictures",
    "summarize",
]
