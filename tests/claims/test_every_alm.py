"""Every claim of the paper `alm`: one layer and the lemmas. See every_claim."""

from claims.every_claim import ALM_ENTRIES, ALM_LAYERS, EveryClaim, family, of, short


@of({id: claim for id, claim in short("alm").items() if family(id) not in ALM_LAYERS | ALM_ENTRIES})
class TestAlm(EveryClaim):
    inconclusive = (
        "alm.thm2.3.exponent.gaussian",
        "alm.thm2.3.closed",
        "alm.thm2.3.best",
        "alm.notes.offset.corrected",
        "alm.thm2.4.closed",
        "alm.claimA.2",
        "alm.claimA.2.exact",
        "alm.lemmaB.4.exact",
    )
