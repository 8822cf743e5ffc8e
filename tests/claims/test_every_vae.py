"""Every claim of the paper `vae`. See every_claim."""

from claims.every_claim import EveryClaim, of, short


@of(short("vae"))
class TestVae(EveryClaim):
    pass
