"""Every claim of the paper `identity`. See every_claim."""

from claims.every_claim import EveryClaim, of, short


@of(short("identity"))
class TestIdentity(EveryClaim):
    inconclusive = (
        "identity.thm1",
        "identity.eq6.corrected",
        "identity.convergence",
        "identity.thm3.parameters",
    )
