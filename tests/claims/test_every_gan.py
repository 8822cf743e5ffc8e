"""Every claim of the paper `gan`. See every_claim."""

from typing import ClassVar

from claims.every_claim import EveryClaim, of, short


@of(short("gan"))
class TestGan(EveryClaim):
    inconclusive = (
        "gan.generalization.lipschitz",
        "gan.generalization.trained.p",
        "gan.mixture.smooth",
        "gan.mixture.rough",
        "gan.mixture.finite",
        "gan.equilibrium.narrowing",
    )
    larger: ClassVar = {
        "gan.generalization.trained": 2,  # the ratio falls by 0.18 of a power itself
    }
