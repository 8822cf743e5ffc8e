"""All benchmarks, each in its own process, and one table. Exit code 1 if a bar was missed.

Run it on a quiet machine: beside other jobs the ratios mean nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from measure import RESULTS, Outcome

# Each script and the results it writes. WeightWatcher and memorize_sgd, which needs CIFAR-10, have commands
# of their own: make bench-weightwatcher, make bench-memorize.
SCRIPTS = {
    "shadow_step": ("shadow_step",),
    "shadow_of": ("shadow_of",),
    "shadow_of_resnet": ("shadow_of_resnet", "shadow_of_resnet_memory"),
    "saved_activations": ("saved_activations",),
    "import_time": ("import_time",),
    "audit_time": ("audit_time_mlp", "audit_time_pair"),
    "audit_memory": ("audit_memory",),
    "decompose": (
        "decompose_block",
        "decompose_block_many",
        "decompose_resnet50",
        "decompose_minilm",
        "decompose_memory",
    ),
    "decompose_agreement": ("decompose_agreement",),
    "audit_block": ("audit_block", "audit_block_quick"),
    "audit_quick": ("audit_quick", "audit_quick_beside"),
    "audit_8b": ("audit_1b",),
    "claims_stream": ("claims_stream",),
    "factorize": ("factorize_500", "factorize_1000"),
    "ladder_scale": ("ladder_linear", "ladder_2_20"),
    "explore_update": ("explore_update",),
    "closest_pairs": ("closest_pairs_blocked", "closest_pairs_sklearn", "closest_pairs_memory"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, help="runs of each side, in place of each script's own")
    arguments = parser.parse_args()
    options = [] if arguments.repetitions is None else ["--repetitions", str(arguments.repetitions)]
    outcomes = []
    for script, results in SCRIPTS.items():
        print(f"{script} …", file=sys.stderr)
        command = [sys.executable, str(RESULTS.parent / f"{script}.py"), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        contents = [json.loads((RESULTS / f"{name}.json").read_text()) for name in results]
        machine, *_ = [content.pop("machine") for content in contents]  # before the script loaded it itself
        for content in contents:
            del content["holds"]
            outcomes.append(Outcome(**content))
        if machine["load_before"] > 0.5 * machine["cores"]:
            print(f"  load {machine['load_before']} before it: not a quiet machine", file=sys.stderr)
    print(", ".join(f"{key} {value}" for key, value in machine.items() if key != "load_before"))
    print(Outcome.header(), *outcomes, sep="\n")
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
