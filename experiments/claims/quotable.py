"""What docs/papers.md leads with: of each text what it says, what held, what failed, and what is not known.

A claim stands in a sentence as {id: verdict}. The page is not made if the published verdict is another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from obverse.claims import Outcome

from .statements import link

MARK = re.compile(r"\{([A-Za-z0-9._-]+): (held|failed)\}")


@dataclass(frozen=True)
class Text:
    """One text in sentences."""

    title: str
    says: str
    held: str
    failed: str
    sharper: str
    unknown: str


TEXTS = (
    Text(
        "Why are deep nets reversible (Arora, Liang and Ma, 2015)",
        "A net with random-like weights can be run backwards with its own weights transposed, and run "
        "forwards again it finds the hidden layer it was started from; images made so, with their labels, "
        "are good training data.",
        "One layer is reversible with an error of about k/t {alm.thm2.3: held}, for nearly every h and x "
        "{alm.thm2.3.each: held}, with half of the input dropped {alm.thm2.4: held}, and with entries "
        "that are not normal {alm.universal.signs: held}. The error on shadows tracks the real one after "
        "training with them {alm.sec4.tracking: held}.",
        "Two and three layers do not have the printed rate {alm.thm3.1: failed}, {alm.thm3.2: failed}; of "
        "the sizes that could be drawn six do not come back {alm.depth: failed}. ĥ is not sub-Gaussian "
        "{alm.lemmaA.1.subgaussian: failed}. Several formulas are misprinted, among them eq. 24 "
        "{alm.eq24: failed} and the variance in the proof sketch {alm.sketch.variance: failed}.",
        "Mean, variance and covariance of ĥ have closed forms {alm.eq19.exact: held}, "
        "{alm.claimA.2.exact: held}, {alm.lemmaB.4.exact: held}, and so has the error at every threshold "
        "{alm.thm2.3.closed: held}; the linearization of the proof costs nothing on average "
        "{alm.eq13.mean: held}. With depth the error follows a recursion {alm.depth.evolution: held}.",
        "Why trained weights are as random-like as they are; high probability for more than one layer; "
        "and whether SHADOW is of use where every method has a learning rate of its own and momentum: no "
        "gain was found there. Under the paper's own protocol, without momentum, it is better on MNIST, "
        "as far as that was run; with momentum the difference is not significant ([the paper's "
        "experiments](paper.md#the-papers-protocol-to-the-letter)).",
    ),
    Text(
        "Notes on it (2016)",
        "A summary, with a baby theorem for the linear case, and questions.",
        "A Boltzmann machine of one hidden layer is reversible {alm.notes.boltzmann: held}, a deep one is "
        "not {alm.notes.deep_boltzmann: held}.",
        "m < n is not necessary {alm.notes.narrower: failed}; ‖WᵀW − I‖ is not small {alm.notes.gram: "
        "failed}, nor does the baby theorem hold {alm.notes.baby: failed}, for want of a 1/n; Lemma 2.5 "
        "has Õ(1/√m) for Õ(1/√t) {alm.notes.delta: failed}, and the ReLU is printed as a step "
        "{alm.notes.relu: failed}.",
        "With the 1/n, ‖WᵀW/n − I‖ is 2√(m/n) + m/n, to the Tracy–Widom law {alm.notes.gram.corrected: "
        "held}; the technical lemma without its square has a closed form {alm.notes.technical.exact: "
        "held}.",
        "Whether a Boltzmann machine could be the model instead.",
    ),
    Text(
        "Theory of deep learning: generative models (2018)",
        "What a VAE maximizes; why a GAN can win with few images; and how the birthday paradox shows it.",
        "The bound of VAEs is what it is said to be {vae.elbo.identity: held}, and a Q of high capacity "
        "closes it {vae.capacity: held}. The likeliest images are fuzzy {vae.fuzzy: held}, images have "
        "few dimensions {vae.manifold: held}, and with equal masses the bound on the support holds "
        "{gan.birthday.inverse: held}.",
        "Samples collide less often than printed where some mass is diffuse {gan.birthday.forward: "
        "failed}. Duplicates do not bound the support {gan.birthday.support: failed}, and it is not the "
        "square of the batch {gan.birthday.square: failed}.",
        "Duplicates bound the effective support 1/Σp² {gan.birthday.effective: held}; a Gaussian Q leaves "
        "ln 2 on a posterior with two humps {vae.capacity.gaussian: held}; the share of z that matter "
        "falls exponentially {vae.few: held}.",
        "Whether depth makes features abstract, and what a good representation is.",
    ),
    Text(
        "A theoretical framework for locally connected ReLU nets (2019 submission)",
        "Averaged over inputs with the same event, backpropagation becomes a product of small matrices.",
        "Where events tell everything this is exact {ladder.thm3.exact: held}; marginal gradients are "
        "recursive {ladder.thm1: held} and give ΔW {ladder.eq3: held}; batch norm's gradient is a "
        "projection {ladder.thm5: held}, its Jacobian takes f and 1 to zero {ladder.eq78: held}.",
        "ΔW needs a condition that is not named {ladder.thm4: failed}; no exact ladder has each P "
        "all-vert {ladder.thm6.all-vert: failed}; random weights do not always have full rank "
        "{ladder.full-rank: failed}, so that the top layer alone does not suffice {ladder.top-only: "
        "failed}.",
        "All children's P side by side are what Theorem 6 needs {ladder.thm6.corrected: held}; what a "
        "spurious factor teaches is its ε {ladder.eq16: held}, of size 1/√(4πn) {ladder.eq15: held}.",
        "Whether gradient descent finds the events between pixels and label, other than by experiment "
        "([ladder](ladder.md)).",
    ),
    Text(
        "Identity matters in deep learning (Hardt and Ma, 2016, by a review of 2018)",
        "Near the identity deep linear nets have no bad critical points, and a residual net of n log n "
        "parameters fits any labels.",
        "All critical points with ‖A‖ ≤ τ are minima {identity.thm1: held}, though depth makes the "
        "problem non-convex {identity.nonconvex: held}; near-identity factors exist {identity.thm2: "
        "held}; any labels are expressed {identity.thm3: held}, and a last layer maps q_j to e_j "
        "{identity.last-layer: held}.",
        "The gradient bound has σ_min(Σ)² for σ_min(Σ) {identity.eq6: failed}, and the printed "
        "construction, with its constants, misses labels {identity.thm3.construction: failed}.",
        "The gradient bound with σ_min(Σ) {identity.eq6.corrected: held}, factors nearer to the identity "
        "than printed {identity.thm2.sharper: held}, and how far two minima are from convex: ‖((R − "
        "I)/2)²Σ^½‖² {identity.nonconvex: held}.",
        "The landscape of nets with nonlinear layers; and the 6.38 % of error on CIFAR-10 at full width "
        "([identity](identity.md)).",
    ),
)
PARTS = {
    "says": "Says",
    "held": "Held",
    "failed": "Failed",
    "sharper": "Sharper",
    "unknown": "Not known",
}


def linked(sentence: str, found: Mapping[str, tuple[str, Outcome]]) -> str:
    """Each {id: verdict} as a link, if that is the published verdict."""

    def one(match: re.Match[str]) -> str:
        id, verdict = match.groups()
        if id not in found:
            raise SystemExit(f"expected a published claim; got {id}; correct the sentence")
        folder, outcome = found[id]
        if outcome.verdict != verdict:
            raise SystemExit(f"expected {id} to have {verdict}; it {outcome.verdict}; correct the sentence")
        return f"({link(id, folder)})"

    return MARK.sub(one, sentence)


def text(found: Mapping[str, tuple[str, Outcome]]) -> str:
    blocks = []
    for own in TEXTS:
        lines = [f"- *{word}.* {linked(getattr(own, name), found)}" for name, word in PARTS.items()]
        blocks.append(f"### {own.title}\n\n" + "\n".join(lines))
    return "\n\n".join(blocks)
