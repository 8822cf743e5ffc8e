"""Is this theorem true at sizes that I can run? One statement as printed, and as corrected.

python examples/run_a_theorem.py [ids or patterns, as in `obverse claims list`]
"""

import sys

from obverse.claims import find, run


def main() -> None:
    claims = find(sys.argv[1:] or ["alm.sec2.2.nonzeros*"])
    sweep = run(claims, quick=True)  # small settings: seconds
    for claim, outcome in zip(claims, sweep.outcomes, strict=True):
        print(f"{claim.id}, {claim.reading}: {outcome.verdict.upper()} ({outcome.sentence})")
        print(f"  {claim.statement}")
        for point in outcome.points:
            found = f"measured {point.mean:.4g} ± {point.error:.1g}, predicted {point.predicted:.4g}"
            print(f"  at {claim.axis} = {point.setting[claim.axis]}: {found}")


if __name__ == "__main__":
    main()
