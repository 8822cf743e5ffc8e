"""The tables of docs/zoo.md, each made of the committed results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .._lab.tables import table
from .counts import Estimate, mean_of_clusters, middle, pooled_share, rank_correlation
from .layers import judged
from .manifest import Net
from .results_of import Row, by_cluster, flat, nets, tables
from .statements import ROLES, STATEMENTS, Statement, role, third

Keep = Callable[[Net, Row], bool]
SHORT = {  # of statements, as heads of tables
    "entries normal": "entries normal",
    "biases constant": "biases constant",
    "values on the law": "values on the law",
    "bulk’s values on the law": "bulk’s values on the law",
    "a sparse h comes back": "h comes back",
}


def percent(one: Estimate) -> str:
    if not one.layers:
        return "–"
    shown = f"{100 * one.value:.0f} %"
    if one.low is None or one.high is None:
        return f"{shown} (of {one.clusters})"
    return f"{shown} ({100 * one.low:.0f}–{100 * one.high:.0f})"


def signed(one: Estimate, digits: int = 2) -> str:
    if one.low is None or one.high is None:
        return f"{one.value:+.{digits}f}".replace("-", "−")
    words = f"{one.value:+.{digits}f} ({one.low:+.{digits}f} to {one.high:+.{digits}f})"
    return words.replace("-", "−")


def statement_table() -> str:
    rows = []
    for one in STATEMENTS:
        clusters = by_cluster(one.holds)
        share, even = pooled_share(clusters), mean_of_clusters(clusters, 0, 1)
        yes = sum(map(sum, clusters.values()))
        rows.append(
            [one.words, f"{yes} of {share.layers}", percent(share), percent(even), str(share.clusters)]
        )
    head = ["statement", "layers", "share of all layers", "mean over nets", "nets"]
    return table(head, rows)


def net_table() -> str:
    known, rows = nets(), []
    for name, all_rows in tables(copies=True).items():
        net, found = known[name], list(judged(all_rows))
        verdicts = Counter(row["verdict"] for row in found)
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        shares = [row["random_share"] for row in found if row["random_share"] is not None]
        share = f"{100 * middle(shares)[1]:.0f} %" if shares else "–"
        package = f"{net.package} {net.version} ({net.registry})"
        rows.append([net.title, package, net.licence, f"{len(found)} of {len(all_rows)}", said, share])
    head = [
        "net",
        "package",
        "licence, as the package states it",
        "layers judged",
        "verdicts",
        "random share, median",
    ]
    return table(head, rows)


GRADES: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "signal’s rank ÷ shorter side": ("%", lambda row: row["rank"] / min(row["rows"], row["columns"])),
    "signal’s share of the energy": ("%", lambda row: row["signal_share"]),
    "random share of the energy, at most": ("%", lambda row: row["random_share"]),
    "distance of the singular values to the law": ("", lambda row: row["raw_distance"]),
    "distance of the bulk’s to the law, after the profile": ("", lambda row: row["distance"]),
    "distance of the entries to a normal distribution": ("", lambda row: row["raw_ks"]),
    "the same of the bulk’s entries, after the profile": ("", lambda row: row["bulk_ks"]),
    "profile: 1 − geometric ÷ arithmetic mean of its energies": ("%", lambda row: row["profile_share"]),
    "recovery error ÷ that of shuffled entries": ("", lambda row: row["recovery_ratio"]),
}


def graded_table() -> str:
    rows = []
    for name, (unit, value) in GRADES.items():
        clusters = by_cluster(value)
        factor, digits = (100, 0) if unit else (1, 3)
        quartiles = [f"{factor * one:.{digits}f}" for one in middle(flat(clusters))]
        typical = mean_of_clusters({key: [middle(values)[1]] for key, values in clusters.items()})
        ends = (
            ""
            if typical.low is None or typical.high is None
            else (f" ({factor * typical.low:.{digits}f} to {factor * typical.high:.{digits}f})")
        )
        mean = f"{factor * typical.value:.{digits}f}{ends}".replace("-", "−")
        rows.append(
            [f"{name}{', %' if unit else ''}", quartiles[1], f"{quartiles[0]} to {quartiles[2]}", mean]
        )
    return table(["of a layer", "median", "half of the layers", "mean over nets of their medians"], rows)


def groups(words: str, names: Iterable[str], keep: Callable[[str], Keep]) -> str:
    """One row for each group: shares of statements, and the random share."""
    rows = []
    shown = [one for one in STATEMENTS if one.name in SHORT]
    for name in names:
        kept = keep(name)
        shares = by_cluster(lambda row: row["random_share"], kept)
        if not shares:
            continue
        cells = [percent(pooled_share(by_cluster(one.holds, kept))) for one in shown]
        values = flat(shares)
        random = mean_of_clusters({key: [middle(found)[1]] for key, found in shares.items()}, 0, 1)
        rows.append([name, str(len(shares)), str(len(values)), *cells, percent(random)])
    head = [words, "nets", "layers", *(SHORT[one.name] for one in shown), "random share"]
    return table(head, rows)


def by_kind_of_layer() -> str:
    kinds = Counter(row["kind"] for rows in tables().values() for row in judged(rows))
    return groups(
        "layer", [kind for kind, _ in kinds.most_common()], lambda kind: lambda net, row: row["kind"] == kind
    )


def by_depth() -> str:
    thirds = ("first third", "middle third", "last third")
    return groups("depth", thirds, lambda name: lambda net, row: third(row["place"]) == name)


def by_kind_of_net() -> str:
    kinds = dict.fromkeys(net.kind for net in nets().values())
    return groups("net", kinds, lambda kind: lambda net, row: net.kind == kind)


def by_norm() -> str:
    norms = dict.fromkeys(net.norm for net in nets().values())
    return groups("normalization", norms, lambda norm: lambda net, row: net.norm == norm)


def by_role() -> str:
    return groups("matrix", ROLES, lambda name: lambda net, row: role(row["layer"]) == name)


def within_nets(measure: Callable[[Row], float | None], value: Callable[[Row], Any]) -> Estimate:
    """The mean over nets of the rank correlation over the layers of a net; families together."""
    found: dict[str, list[float]] = {}
    known = nets()
    for name, rows in tables().items():
        both = [(measure(row), value(row)) for row in judged(rows)]
        pairs = [(x, y) for x, y in both if x is not None and y is not None]
        rho = rank_correlation([x for x, _ in pairs], [y for _, y in pairs])
        if rho is not None:
            found.setdefault(known[name].cluster, []).append(rho)
    return mean_of_clusters(found, -1, 1)


CORRELATES: dict[str, Callable[[Row], float | None]] = {
    "depth": lambda row: row["place"],
    "shorter side": lambda row: float(min(row["rows"], row["columns"])),
    "shorter ÷ longer side": lambda row: min(row["rows"], row["columns"]) / max(row["rows"], row["columns"]),
}
AGAINST: dict[str, Callable[[Row], Any]] = {
    "random share": lambda row: row["random_share"],
    "signal’s rank ÷ side": lambda row: row["rank"] / min(row["rows"], row["columns"]),
    "bulk’s distance": lambda row: row["distance"],
}


def correlation_table() -> str:
    rows = []
    for name, measure in CORRELATES.items():
        found = [within_nets(measure, value) for value in AGAINST.values()]
        rows.append([name, *map(signed, found), str(found[0].clusters)])
    return table(["within a net, rank correlation with", *AGAINST, "nets"], rows)


def difference_of_roles(first: tuple[str, ...], second: tuple[str, ...]) -> Estimate:
    """Random share of the first roles minus that of the second, means within a net, where it has both."""
    found: dict[str, list[float]] = {}
    known = nets()
    for name, rows in tables().items():
        sides = [
            [
                row["random_share"]
                for row in judged(rows)
                if role(row["layer"]) in names and row["random_share"] is not None
            ]
            for names in (first, second)
        ]
        if all(sides):
            a, b = (sum(side) / len(side) for side in sides)
            found.setdefault(known[name].cluster, []).append(a - b)
    return mean_of_clusters(found, -1, 1)


def share_of(statement: Statement) -> Estimate:
    return pooled_share(by_cluster(statement.holds))
