"""Has this generator learned the distribution? Tests of any sampler, file or folder of pictures."""

from .birthday import Birthday, BirthdayTest, birthday_test
from .bounds import effective_support_bound, printed_bound, support_at_least
from .dimension import Dimension, intrinsic_dimension
from .directions import label_direction, principal_directions, regressed_direction
from .features import Features, of_module, pixels, train_encoder
from .interpolation import strips
from .measure import assess
from .memorization import Memorization, memorization
from .moments import Moments, moments
from .neighbours import nearest
from .pairs import Pairs, close_pairs, closest_pairs
from .quality import Quality, quality
from .results import Diversity
from .smoothness import PathLength, path_length
from .sources import Sampler, Source, open_source
from .vendi import Vendi, vendi

__all__ = [
    "Birthday",
    "BirthdayTest",
    "Dimension",
    "Diversity",
    "Features",
    "Memorization",
    "Moments",
    "Pairs",
    "PathLength",
    "Quality",
    "Sampler",
    "Source",
    "Vendi",
    "assess",
    "birthday_test",
    "close_pairs",
    "closest_pairs",
    "effective_support_bound",
    "intrinsic_dimension",
    "label_direction",
    "memorization",
    "moments",
    "nearest",
    "of_module",
    "open_source",
    "path_length",
    "pixels",
    "principal_directions",
    "printed_bound",
    "quality",
    "regressed_direction",
    "strips",
    "support_at_least",
    "train_encoder",
    "vendi",
]
