"""All benchmarks, each in its own process, and one table. Exit code 1 if a bar was missed.

Run it on a quiet machine: beside other jobs the ratios mean nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from measure import RESULTS, Outcome

SCRIPTS = ("shadow_step", "shadow_of", "saved_activations", "import_time")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, help="runs of each side, in place of each script's own")
    arguments = parser.parse_args()
    options = [] if arguments.repetitions is None else ["--repetitions", str(arguments.repetitions)]
    outcomes = []
    for name in SCRIPTS:
        print(f"{name} …", file=sys.stderr)
        script = RESULTS.parent / f"{name}.py"
        subprocess.run([sys.executable, script, *options], check=True, stdout=subprocess.DEVNULL)
        content = json.loads((RESULTS / f"{name}.json").read_text())
        machine, _ = content.pop("machine"), content.pop("holds")
        outcomes.append(Outcome(**content))
        if machine["load_before"] > 0.5 * machine["cores"]:
            print(f"  load {machine['load_before']} before it: not a quiet machine", file=sys.stderr)
    print(", ".join(f"{key} {value}" for key, value in machine.items() if key != "load_before"))
    print(Outcome.header(), *outcomes, sep="\n")
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
