"""Every claim of the paper `ladder`. See every_claim."""

from claims.every_claim import EveryClaim, of, short


@of(short("ladder"))
class TestLadder(EveryClaim):
    inconclusive = (
        "ladder.thm1",
        "ladder.thm2",
        "ladder.thm2.backward",
        "ladder.thm3",
        "ladder.thm3.exact",
        "ladder.thm4.corrected",
        "ladder.thm4.covariance",
        "ladder.eq58",
        "ladder.bottom",
        "ladder.thm2.lossless",
        "ladder.thm2.upward",
        "ladder.decorrelation",
        "ladder.sampled.errors",
        "ladder.sampled.rate",
        "ladder.thm5",
        "ladder.eq12",
        "ladder.thm5.eps-corrected",
        "ladder.energy",
        "ladder.energy.bias-corrected",
        "ladder.eq104",
    )
