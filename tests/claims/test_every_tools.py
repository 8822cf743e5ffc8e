"""Every claim about tools in use. See every_claim."""

from claims.every_claim import EveryClaim, of, short


@of(short("tools"))
class TestTools(EveryClaim):
    pass
