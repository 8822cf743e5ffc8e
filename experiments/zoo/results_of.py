"""The committed results of the zoo, as the page and its figures ask for them. Not for measuring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._lab.result_files import read
from .layers import judged
from .manifest import Net
from .manifest import read as manifest
from .run import RESULTS

Row = dict[str, Any]


def nets() -> dict[str, Net]:
    """Those that have been measured, in the order of the manifest."""
    return {net.name: net for net in manifest() if file_of(net.name).exists()}


def file_of(name: str) -> Any:
    return RESULTS / "nets" / f"{name}.json"


def tables(*, copies: bool = False) -> dict[str, list[Row]]:
    """All layers of each net in its order; `place` is where one stands, from 0 to 1; None where unknown."""
    found = {}
    for name, net in nets().items():
        if copies or not net.copy_of:
            rows = read(file_of(name))["layers"]
            order = net.in_order([row["layer"] for row in rows])
            last = max(1, len(order) - 1)
            found[name] = [
                rows[at] | {"place": place / last if net.ordered else None} for place, at in enumerate(order)
            ]
    return found


def by_cluster(
    value: Callable[[Row], Any], keep: Callable[[Net, Row], bool] = lambda net, row: True
) -> dict[str, list[Any]]:
    """What `value` says of the judged layers, None left out, by families of nets."""
    known = nets()
    found: dict[str, list[Any]] = {}
    for name, table in tables().items():
        said = [value(row) for row in judged(table) if keep(known[name], row)]
        found.setdefault(known[name].cluster, []).extend(one for one in said if one is not None)
    return {cluster: values for cluster, values in found.items() if values}


def flat(clusters: Mapping[str, Iterable[Any]]) -> list[Any]:
    return [one for values in clusters.values() for one in values]


def functions() -> dict[str, Row]:
    """What ablation says of each net: all layers at once by treatment, and single layers by name."""
    found = {}
    for name, net in nets().items():
        file = RESULTS / "function" / f"{name}.json"
        if file.exists():
            record = read(file)
            entries = record["entries"]
            parts: Row = {"together": {}, "layer": {}}
            for key, one in entries.items():
                part, _, of = key.partition("|")
                if part in parts:
                    parts[part][of] = one
            about = {"title": net.title, "layers": entries.get("layers", [])}
            found[name] = record["settings"] | parts | about
    return found
