"""Every claim of the paper `alm`: several layers. See every_claim."""

from typing import ClassVar

from claims.every_claim import ALM_LAYERS, EveryClaim, family, of, short


@of({id: claim for id, claim in short("alm").items() if family(id) in ALM_LAYERS})
class TestAlmLayers(EveryClaim):
    inconclusive = (
        "alm.eq23.rate",
        "alm.eq22.corrected",
        "alm.eq23.corrected",
        "alm.thm3.2.corrected",
        "alm.thm3.2.bound",
        "alm.thm3.2.dropout",
        "alm.depth.evolution",
    )
    larger: ClassVar = {
        "alm.thm3.1.corrected": 2,  # the ratio falls by 0.17 of a power itself
        "alm.thm3.2.corrected": 2,  # twenty nets know the power to 0.2
    }
    undecided: ClassVar = {
        "alm.depth.label": "few of 12 nets give any wrong label: their mean is within its errors of zero",
    }
