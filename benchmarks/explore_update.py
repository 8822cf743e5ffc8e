"""How long a slider of `obverse explore` waits: from question to answer at the real command, default net."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from http.client import HTTPConnection
from statistics import median, quantiles
from time import perf_counter

from measure import Outcome, publish

BAR = 0.1  # seconds; what people take for at once
DEFAULT = {"index": 0, "layer": "h2", "keep": 0.75, "smooth": 0, "refine": 0, "match_norm": True, "seed": 0}


def update(repetitions: int) -> Outcome:
    """The slowest 5 % of updates of the Shadow tab ÷ 100 ms, every control moved at random."""
    with tempfile.TemporaryDirectory() as cache:
        process = subprocess.Popen(
            [sys.executable, "-m", "obverse", "explore", "--no-browser"],
            env=os.environ | {"XDG_CACHE_HOME": cache},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            port, token = process.stdout.readline().split("127.0.0.1:")[1].strip().strip("/").split("/")
            connection = HTTPConnection("127.0.0.1", int(port))

            def ask(body: dict[str, object]) -> float:
                began = perf_counter()
                connection.request(
                    "POST", f"/{token}/shadow", json.dumps(body), {"Content-Type": "application/json"}
                )
                answer = json.load(connection.getresponse())
                assert "recovery" in answer, answer
                return perf_counter() - began

            random_ = random.Random(0)
            for _ in range(20):
                ask(DEFAULT)
            first = [ask(DEFAULT | {"index": number % 40}) for number in range(repetitions)]
            moved = [
                ask(
                    {
                        "index": random_.randrange(40),
                        "layer": random_.choice(["h1", "h2", "h3"]),
                        "keep": random_.randrange(1, 21) / 20,
                        "smooth": random_.randrange(4),
                        "refine": random_.randrange(51),
                        "match_norm": random_.random() < 0.5,
                        "seed": number,
                    }
                )
                for number in range(repetitions)
            ]
            worst = [
                ask(DEFAULT | {"keep": 0.5, "smooth": 3, "refine": 50, "seed": number})
                for number in range(repetitions)
            ]
        finally:
            process.kill()
            process.communicate()
    slowest = quantiles(moved, n=20)[-1]
    parts = [
        quantiles(moved[part::5], n=20)[-1] for part in range(5)
    ]  # how much it varies: a fifth at a time
    low, _, high = quantiles(parts, n=4)
    return Outcome(
        "explore_update",
        "slowest 5 % of updates of the Shadow tab ÷ 100 ms",
        slowest / BAR,
        1.0,
        (low / BAR, high / BAR),
        {
            "updates": len(moved),
            "default_controls_median_seconds": median(first),
            "random_controls_median_seconds": median(moved),
            "most_refinement_median_seconds": median(worst),
            "slowest_of_all_seconds": max(*first, *moved, *worst),
        },
    )


if __name__ == "__main__":
    publish(update, repetitions=300)
