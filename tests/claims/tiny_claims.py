"""Claims of milliseconds for the tests of the runner; loaded as a user's file, by its path."""

import os
import signal
import time
from pathlib import Path

import torch

from obverse.claims import Along, Claim, Equal, Exponent, MeanBelow, grid, register


def normals(setting, generator):
    """Means of products: their last bits depend on the order of every sum, and so on threads."""
    matrix = torch.empty(int(setting["n"]), 400).normal_(generator=generator)
    return (matrix @ matrix.T).mean(1)[:20]


def powers(setting, generator):
    return setting["n"] ** 0.5 * (1 + 0.01 * torch.empty(50).normal_(generator=generator))


def threads(setting, generator):
    """How many threads it could use, of torch and of every other library."""
    from threadpoolctl import threadpool_info

    return [torch.get_num_threads(), *(library["num_threads"] for library in threadpool_info())]


def slowly(setting, generator):
    """Leaves a line for every time it is done, and takes its time."""
    with Path(setting["log"]).open("a", encoding="utf-8") as file:
        file.write(f"{setting['n']}\n")
    time.sleep(setting["wait"])
    return 1 + 0.01 * torch.empty(20).normal_(generator=generator)


def moody(setting, generator):
    mood = setting["mood"]
    if mood == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if mood == "exits":
        os._exit(3)
    if mood == "leaves":
        raise SystemExit(4)
    if mood == "raises":
        raise RuntimeError("a bad day")
    if mood == "empty":
        return []
    if mood == "infinite":
        return [1.0, float("inf"), float("nan")]
    return 1 + 0.01 * torch.empty(20).normal_(generator=generator)


def make(id, measure, settings, **more):
    """A claim about nothing in particular; what is not given does not matter to the runner."""
    words = {"title": id, "statement": "a statement", "source": "nowhere", "quantity": "a number"}
    plain = {"predict": lambda setting: 1.0, "rule": Equal(), "axis": next(iter(settings[0]))}
    return Claim(id=id, measure=measure, grid=settings, **(words | plain | more))


NORMALS = register(
    make(
        "tiny.normals",
        normals,
        grid(n=(300, 100, 500, 200, 400)),
        predict=lambda setting: 9.0,
        rule=MeanBelow(),
    )
)
POWERS = register(
    make(
        "tiny.powers",
        powers,
        grid(n=(100, 10, 1000)),
        predict=lambda setting: setting["n"] ** 0.5,
        rule=Exponent(Along("n")),
        quick=grid(n=(4, 1, 2)),
    )
)
