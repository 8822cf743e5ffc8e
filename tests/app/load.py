"""Clients that move sliders, many at once, as a page does: the next question when one is answered."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from dataclasses import dataclass, field

from obverse.app._explorer.address import Address


@dataclass
class Load:
    """What came of it; `times` are seconds from question to answer, by kind."""

    answers: int = 0
    errors: list[str] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)


def movement(random_: random.Random) -> tuple[str, dict[str, object]]:
    """One movement of a control on one of the tabs."""
    kind = random_.choice(["shadow"] * 6 + ["predict", "measure", "birthday", "ladder", "audit"])
    return kind, {
        "shadow": lambda: {
            "index": random_.randrange(40),
            "layer": random_.choice(["h1", "h2", "h3"]),
            "keep": random_.randrange(1, 21) / 20,
            "smooth": random_.randrange(4),
            "refine": random_.choice([0, 0, 0, 5]),
            "match_norm": random_.random() < 0.5,
            "seed": random_.randrange(100),
        },
        "predict": lambda: _bench(random_),
        "measure": lambda: _bench(random_) | {"law": "normal", "seed": 0, "first": 0},
        "birthday": lambda: {
            "support": random_.randrange(2, 5000),
            "size": random_.randrange(2, 100),
            "law": random_.choice(["uniform", "zipf", "a favourite"]),
            "seed": random_.randrange(100),
            "first": 0,
            "count": 5,
            "confidence": 0.95,
            "collisions": 0,
            "pairs": 0,
            "chains": 0,
        },
        "ladder": lambda: {
            "leaves": 3,
            "regions": [{"name": "a", "children": ["x1", "x2"]}, {"name": "b", "children": ["a", "x3"]}],
            "summary": random_.choice(["full", "xor", "majority"]),
            "values": 2,
            "nodes": random_.randrange(1, 7),
            "seed": random_.randrange(100),
            "steps": random_.randrange(10),
            "lr": 0.1,
            "linear": False,
            "message": "recursive",
        },
        "audit": lambda: {"layer": random_.choice(["h1", "h2", "h3"]), "keep": random_.randrange(2, 21) / 20},
    }[kind]()


def _bench(random_: random.Random) -> dict[str, object]:
    return {"n": 200, "m": 100, "k": random_.randrange(1, 50), "t": 150, "offset": 1.0, "axis": "offset"}


def run_clients(address: Address, *, clients: int, seconds: float) -> Load:
    """So many clients for so long, each with a connection that is kept open."""
    found, lock, end = Load(), threading.Lock(), time.monotonic() + seconds

    def one(number: int) -> None:
        random_ = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=120)
        while time.monotonic() < end:
            kind, body = movement(random_)
            began = time.monotonic()
            try:
                connection.request(
                    "POST",
                    f"/{address.token}/{kind}",
                    json.dumps(body),
                    {"Content-Type": "application/json"},
                )
                response = connection.getresponse()
                text = response.read().decode()
                wrong = text if response.status != 200 or "error" in json.loads(text) else None
            except (OSError, http.client.HTTPException, ValueError) as error:
                wrong = repr(error)
                connection.close()
            with lock:
                found.answers += 1
                found.times.setdefault(kind, []).append(time.monotonic() - began)
                if wrong is not None:
                    found.errors.append(f"{kind}: {wrong}")
        connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
