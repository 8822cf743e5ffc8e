"""Every claim of the paper `alm`: other laws of W and other offsets. See every_claim."""

import pytest

from claims.every_claim import ALM_ENTRIES, EveryClaim, family, of, short


@pytest.mark.slow  # laws beyond the paper: half a minute of simulation
@of({id: claim for id, claim in short("alm").items() if family(id) in ALM_ENTRIES})
class TestAlmEntries(EveryClaim):
    inconclusive = (
        "alm.offsets.skewed",
        "alm.universal.normal",
        "alm.universal.signs",
        "alm.universal.uniform",
        "alm.universal.sparse",
        "alm.universal.student10",
        "alm.universal.student5",
    )
