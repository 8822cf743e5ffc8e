"""How do I test a statement of my own? Two claims about r(g) = max(g, 0). Run this file, or
obverse claims run --module examples/my_claims.py 'mine.*'"""

import torch

from obverse.claims import Claim, Equal, grid, register, run


def measure(setting, generator):  # a simulation that does not know the prediction: one number per trial
    return (setting["scale"] * torch.randn(setting["trials"], 10, generator=generator)).relu().var(1)


guess = Claim(
    id="mine.relu-variance",
    title="variance of a rectified normal variable",
    statement="Var r(g) = s²/2 for g ~ N(0, s²), because r keeps one half of g",
    source="the integral of r(g)² over the normal law",
    grid=grid(scale=(0.5, 1.0, 2.0), trials=4000),
    predict=lambda setting: setting["scale"] ** 2 / 2,
    measure=measure,
    rule=Equal(),
    quantity="variance of r(g)",
    axis="scale",
    twin="mine.relu-variance-corrected",
    expected="failed",  # a result like any other: with --check only a change of it counts
)
right = guess.other(  # the same draws, another prediction
    statement="Var r(g) = s²(1/2 − 1/(2π)) for g ~ N(0, s²): the square of the mean is taken off",
    predict=lambda setting: setting["scale"] ** 2 * (1 / 2 - 1 / (2 * torch.pi)),
    reading="corrected",
)
CLAIMS = [register(guess), register(right)]


def main() -> None:
    print(*(claim.statement for claim in CLAIMS), run(CLAIMS, jobs=1), sep="\n")


if __name__ == "__main__":
    main()
