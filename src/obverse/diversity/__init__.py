"""Has this generator learned the distribution? Tests of any sampler, file or folder of pictures."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._birthday import Birthday, BirthdayTest, birthday_test
    from ._bounds import Collisions, effective_support_bound, support_at_least
    from ._dimension import Dimension, intrinsic_dimension
    from ._directions import label_direction, principal_directions, regressed_direction
    from ._discrepancy import Discrepancy, discrepancy
    from ._features import Features, of_module, pixels, train_encoder
    from ._files import nearest_in_files
    from ._interpolation import strips
    from ._measure import assess
    from ._memorization import Memorization, memorization
    from ._moments import Moments, moments
    from ._neighbours import nearest
    from ._pairs import Pairs, close_pairs, closest_pairs
    from ._quality import Quality, quality
    from ._quality_test import QualityTest, quality_test
    from ._smoothness import PathLength, path_length
    from ._sources import Sampler, Source, open_source
    from ._vendi import Vendi, vendi
    from .results import Diversity

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Birthday",
    "BirthdayTest",
    "Collisions",
    "Dimension",
    "Discrepancy",
    "Diversity",
    "Features",
    "Memorization",
    "Moments",
    "Pairs",
    "PathLength",
    "Quality",
    "QualityTest",
    "Sampler",
    "Source",
    "Vendi",
    "assess",
    "birthday_test",
    "close_pairs",
    "closest_pairs",
    "discrepancy",
    "effective_support_bound",
    "intrinsic_dimension",
    "label_direction",
    "memorization",
    "moments",
    "nearest",
    "nearest_in_files",
    "of_module",
    "open_source",
    "path_length",
    "pixels",
    "principal_directions",
    "quality",
    "quality_test",
    "regressed_direction",
    "strips",
    "support_at_least",
    "train_encoder",
    "vendi",
]
