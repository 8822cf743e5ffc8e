"""How many different pictures can a generator make? The birthday bound, where the truth is known."""

import torch

from obverse.diversity import Sampler, birthday_test

GENERATORS = {
    "1,000 equally likely pictures": torch.full((1000,), 1 / 1000),
    "a favourite, half of the time, among 100,001": torch.tensor([0.5] + 100_000 * [0.5 / 100_000]),
}


def sampler_of(chances: torch.Tensor) -> Sampler:
    """Your own generator goes here: any function that returns n samples, one a row."""
    return lambda n, generator: torch.multinomial(chances, n, True, generator=generator)[:, None].float()


def main() -> None:
    for name, chances in GENERATORS.items():
        found = birthday_test(sampler_of(chances), generator=torch.Generator().manual_seed(0))
        truth = 1 / float(chances.square().sum())
        print(f"{name}: the truth is an effective number 1/Σp² of {truth:,.0f}")
        print(f"  {found}")
        print(
            f"  by the number of colliding pairs: {found.effective.low:,.0f} to {found.effective.high:,.0f}"
        )
    print("What is bounded is the effective number: a favourite hides however many rare pictures there are.")


if __name__ == "__main__":
    main()
