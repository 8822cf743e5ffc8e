"""Audits with plausible numbers to make pages from, measured in a few lines on small random matrices.

Not the audit itself: statistics are plain NumPy, nulls and recovery errors are of the right size only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np

from obverse.weights._verdict import Thresholds
from obverse.weights.results import (
    Audit,
    Correlations,
    Decomposition,
    Direction,
    Entries,
    Finding,
    Histogram,
    Interval,
    LayerAudit,
    Norms,
    Number,
    Offsets,
    Recovered,
    Reversal,
    Verdict,
)

KINDS = ("normal", "laplace", "spiked", "row scales", "correlated", "pruned", "narrow", "square", "tiny")
VERDICT: dict[str, Verdict] = {
    "normal": "untouched",
    "laplace": "untouched",
    "spiked": "signal in a random bulk",
    "row scales": "untouched",
    "correlated": "mostly signal",
    "pruned": "structured otherwise",
    "narrow": "untouched",
    "square": "untouched",
    "tiny": "not judged",
}
NOTHING = "no direction stands out from noise; the spectrum is like that of random numbers"
SENTENCE = {
    "normal": NOTHING,
    "laplace": f"{NOTHING}; entries are closer to Laplace than to normal (KS 0.061)",
    "spiked": "3 of 160 directions carry the signal, 41.0 % of the energy; the rest is like random numbers",
    "row scales": f"{NOTHING}; recovery error 1.30 × that of its shuffled entries (1.24 to 1.36)",
    "correlated": "2 of 160 directions carry the signal, 56.0 % of the energy; "
    "the rest is like random numbers",
    "pruned": "no direction stands out from noise; the spectrum is not like that of random numbers "
    "(0.06 off their distribution); 70.0 % of the entries are exactly 0",
    "narrow": NOTHING,
    "square": NOTHING,
    "tiny": "too small to judge (a side of 10, at least 32 needed)",
}


def marchenko_pastur(x: np.ndarray, rows: int, columns: int, scale: float) -> np.ndarray:
    """The density of singular values from the textbook's of eigenvalues: an oracle for the page's curve."""
    p, q = min(rows, columns), max(rows, columns)
    ratio, variance = p / q, scale**2 * q
    eigenvalue = x**2 / variance
    low, high = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    inside = (eigenvalue > low) & (eigenvalue < high)
    safe = np.where(inside, eigenvalue, 1.0)
    of_eigenvalue = np.sqrt(np.abs((high - safe) * (safe - low))) / (2 * math.pi * ratio * safe)
    return np.where(inside, of_eigenvalue * 2 * x / variance, 0.0)


def sample_matrix(kind: str, rows: int, columns: int, random: np.random.Generator) -> np.ndarray:
    matrix = random.normal(0.0, 0.02, (rows, columns))
    if kind == "laplace":
        matrix = random.laplace(0.0, 0.02, (rows, columns))
    elif kind == "spiked":
        for strength in (5.0, 1.8, 1.35):
            left, right = random.normal(size=rows), random.normal(size=columns)
            edge = 0.02 * (math.sqrt(rows) + math.sqrt(columns))
            part = np.outer(left / np.linalg.norm(left), right / np.linalg.norm(right))
            matrix = matrix + strength * edge * part
    elif kind == "row scales":
        matrix = matrix * random.gamma(4.0, 0.25, (rows, 1))
    elif kind == "correlated":
        matrix = matrix + 0.02 * random.normal(size=(1, columns)) + 0.01 * random.normal(size=(rows, 1))
    elif kind == "pruned":
        matrix = np.where(np.abs(matrix) > 0.02, matrix, 0.0)
    return matrix


def sample_layer(
    name: str, kind: str, shape: tuple[int, int], random: np.random.Generator, *, biased: bool = True
) -> LayerAudit:
    rows, columns = shape
    if kind == "tiny":
        return LayerAudit(name, "linear", rows, columns, VERDICT[kind], SENTENCE[kind])
    matrix = sample_matrix(kind, rows, columns, random)
    parts, values = sample_parts(matrix, kind)
    aspects = ("parts", "entries", "offsets", "norms", "correlations", "recovery")
    odd = {"laplace": "entries", "row scales": "norms", "correlated": "parts", "pruned": "parts"}
    squares = (matrix**2).sum(axis=1), (matrix**2).sum(axis=0)
    norms = Norms(
        Number(float(squares[0].std() / squares[0].mean()), 0.005, math.sqrt(2 / columns), 0.5),
        Number(float(squares[1].std() / squares[1].mean()), 0.005, math.sqrt(2 / rows), 0.6),
    )
    findings = tuple(
        Finding(
            aspect,
            odd.get(kind) != aspect,
            f"what an audit would say about the {aspect}, with its number and what random entries give",
            decides=aspect == "parts",
        )
        for aspect in aspects
    )
    return LayerAudit(
        name=name,
        kind="linear" if rows <= columns else "convolution",
        rows=rows,
        columns=columns,
        verdict=VERDICT[kind],
        sentence=SENTENCE[kind],
        findings=findings,
        entries=sample_entries(matrix, kind),
        offsets=sample_offsets(random.normal(-0.1, 0.018, rows)) if biased else None,
        parts=parts,
        values=values,
        norms=norms,
        correlations=(sample_cosines(matrix, "rows"), sample_cosines(matrix.T, "columns")),
        blocks=Number(0.013, 0.011, 0.0, 0.24),
        reversal=sample_reversals(rows, columns, kind),
        seconds=0.4,
        p=0.6 if VERDICT[kind] == "untouched" else 1e-9,
        family_p=1.0 if VERDICT[kind] == "untouched" else 1e-8,
    )


def histogram(values: np.ndarray, bins: int, low: float, high: float) -> Histogram:
    counts, edges = np.histogram(np.clip(values, low, high), bins, (low, high))
    return Histogram(tuple(map(float, edges)), tuple(map(int, counts)))


def sample_entries(matrix: np.ndarray, kind: str) -> Entries:
    flat = np.sort(matrix.ravel())
    count, mean, scale = len(flat), float(flat.mean()), float(flat.std())
    standard = (flat - mean) / scale
    normal = NormalDist()
    z = np.linspace(-3.5, 3.5, 41)
    shares = np.array([normal.cdf(one) for one in z])
    observed = np.quantile(standard, shares)
    below = np.array([normal.cdf(one) for one in standard[:: max(1, count // 2000)]])
    ranks = np.linspace(0, 1, len(below))
    return Entries(
        count=count,
        used=count,
        mean=Number(mean, scale / math.sqrt(count), 0.0, 0.4),
        scale=Number(scale, scale / math.sqrt(2 * count)),
        skew=Number(float((standard**3).mean()), math.sqrt(6 / count), 0.0, 0.3),
        kurtosis=Number(float((standard**4).mean() - 3), math.sqrt(24 / count), 0.0, 0.2),
        ks=Number(
            float(np.abs(below - ranks).max()), 0.26 / math.sqrt(count), 0.87 / math.sqrt(count), 0.0004
        ),
        anderson=Number(0.7, 0.2, 0.4, 0.06),
        best_law="Laplace" if kind == "laplace" else "normal",
        likelihoods={"normal": 0.0, "Laplace": -0.049, "Student t": 0.0002, "uniform": -1.3},
        freedom=84.0,
        matters_from={"mean": 0.021, "skew": 0.41, "kurtosis": 11.0},
        zeros=float((flat == 0).mean()),
        distinct=None,
        step=None,
        histogram=histogram(standard, 60, -6.0, 6.0),
        quantiles=tuple((float(a), float(b)) for a, b in zip(z, observed, strict=True)),
    )


def sample_offsets(bias: np.ndarray) -> Offsets:
    mean, std = float(bias.mean()), float(bias.std())
    near = float((np.abs(bias - mean) <= 0.1 * abs(mean)).mean())
    ratio = Number(abs(mean) / std, 0.2)
    low, high = float(bias.min()), float(bias.max())
    return Offsets(len(bias), mean, std, ratio, near, histogram(bias, 40, low, high))


def sample_parts(matrix: np.ndarray, kind: str) -> tuple[Decomposition, tuple[float, ...]]:
    rows, columns = matrix.shape
    values = np.sort(np.linalg.svd(matrix, compute_uv=False))
    scale = 0.02 if kind == "spiked" else float(matrix.std())
    lower = scale * abs(math.sqrt(rows) - math.sqrt(columns))
    upper = scale * (math.sqrt(rows) + math.sqrt(columns))
    energy = float((values**2).sum())
    directions = tuple(
        Direction(float(one), 0.9 * float(one), 0.8 * float(one), 1e-9)
        for one in values[::-1]
        if kind in ("spiked", "correlated") and one > 1.1 * upper
    )
    grid = np.linspace(lower, upper, 4001)
    law = np.cumsum(marchenko_pastur(grid, rows, columns, scale)) * (grid[1] - grid[0])
    ranks = (np.arange(len(values)) + 0.5) / len(values)
    distance = float(np.abs(np.interp(values, grid, law, left=0.0, right=1.0) - ranks).max())
    signal = sum(one.strength**2 for one in directions) / energy
    thinned = np.quantile(values, np.linspace(0, 1, min(200, len(values))))
    verdict = VERDICT[kind]
    parts = Decomposition(
        rows=rows,
        columns=columns,
        empty_rows=0,
        empty_columns=0,
        method="exact",
        alpha=0.001,
        grade="cannot tell" if verdict == "not judged" else verdict,
        sentence=SENTENCE[kind],
        rank=len(directions),
        rank_interval=(len(directions), len(directions) + 1),
        rank_is_bound=False,
        settled=True,
        directions=directions,
        upper_p=0.4,
        below=(),
        lower_p=0.3,
        null_directions=0,
        scale=scale,
        lower=lower,
        upper=upper,
        kurtosis=0.02,
        heavy_tails=False,
        distance=Number(distance, 0.4 / min(rows, columns), 0.7 / min(rows, columns), 0.31),
        profile_share=Number(0.3 if kind == "row scales" else 0.02, null=0.02),
        signal_share=Interval(signal, max(0.0, signal - 0.02), min(1.0, signal + 0.02)),
        random_share=Interval(1 - signal, max(0.0, 0.98 - signal), min(1.0, 1.02 - signal)),
    )
    return parts, tuple(map(float, thinned))


def sample_cosines(matrix: np.ndarray, side: str) -> Correlations:
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    used, length = min(len(unit), 256), matrix.shape[1]
    cosine = (unit[:used] @ unit[:used].T)[np.triu_indices(used, 1)] * math.sqrt(length)
    return Correlations(
        side="rows" if side == "rows" else "columns",
        used=used,
        length=length,
        rms=Number(float(np.sqrt((cosine**2).mean())), 0.01, 1.0, 0.4),
        largest=Number(float(np.abs(cosine).max() / math.sqrt(length)), 0.02, 0.24, 0.5),
        ks=Number(0.004, 0.001, 0.003, 0.2),
        histogram=histogram(cosine, 60, -6.0, 6.0),
    )


def sample_reversals(rows: int, columns: int, kind: str, ratio: float | None = None) -> tuple[Reversal, ...]:
    ratio = {"correlated": 1.9, "row scales": 1.3, "pruned": 1.1}.get(kind, 1.01) if ratio is None else ratio
    made = []
    for sparsity in sorted({max(2, round(share * rows)) for share in (0.01, 0.05, 0.2)}):
        expected = 1 - math.exp(-6 * sparsity / columns)
        error = min(0.98, expected * ratio)

        def recovered(value: float, spread: float | None) -> Recovered:
            return Recovered(Number(value, spread), 0.11, Number(4 * math.sqrt(2 / columns), 0.01))

        made.append(
            Reversal(
                source="random",
                sparsity=float(sparsity),
                kept=float(columns),
                samples=32,
                layer=recovered(error, 0.05 * error),
                shuffled=recovered(0.99 * expected, 0.05 * expected),
                gaussian=recovered(1.01 * expected, 0.05 * expected),
                predicted=recovered(expected, None),
                own_bias=Number(min(1.0, 1.2 * error), 0.02),
                ratio=Number(ratio, 0.03),
                interval=(ratio - 0.06, ratio + 0.06),
                peak=0.5,
                peak_bound=math.sqrt(math.log(sparsity) / sparsity),
                sparse_enough=sparsity < columns,
                dense_enough=columns < sparsity**2,
            )
        )
    return tuple(made)


def with_data(layer: LayerAudit) -> LayerAudit:
    """The same layer with a measurement on its own activations."""
    own = replace(layer.reversal[-1], source="data", sparsity=37.4)
    return replace(layer, reversal=(*layer.reversal, own))


@cache
def sample_audit(model: str = "trained.safetensors", seed: int = 0) -> Audit:
    """One layer of each kind."""
    random = np.random.default_rng(seed)
    shapes = {"narrow": (40, 900), "square": (240, 240), "tiny": (10, 300), "laplace": (300, 150)}
    layers = []
    for number, kind in enumerate(KINDS):
        name, biased = f"block.{number}.{kind.replace(' ', '_')}.weight", kind not in ("pruned", "square")
        layers.append(sample_layer(name, kind, shapes.get(kind, (160, 400)), random, biased=biased))
    layers[0] = with_data(layers[0])
    return audit_of(layers, model)


def audit_of(layers: list[LayerAudit], model: str) -> Audit:
    return Audit(
        model=model,
        layers=tuple(layers),
        thresholds=dict(vars(Thresholds())),
        settings={"seed": 0, "keep": 1.0, "samples": 32, "exact": None},
        versions={"obverse": "0.1", "torch": "2.6"},
        seconds=3.2,
    )


def many_layers(count: int, model: str = "large", seed: int = 0) -> Audit:
    """As many layers as asked for, by turns of each kind."""
    base = sample_audit(model, seed)
    layers = [
        replace(base.layers[index % len(base.layers)], name=f"model.layers.{index}.mlp.weight")
        for index in range(count)
    ]
    return replace(base, layers=tuple(layers))


def before_training(audit: Audit) -> Audit:
    """The same net with normal entries throughout, one layer renamed: something to compare with."""
    random = np.random.default_rng(7)
    layers = []
    for layer in audit.layers:
        shape, biased = (layer.rows, layer.columns), layer.offsets is not None
        fresh = sample_layer(layer.name, "normal", shape, random, biased=biased)
        layers.append(layer if layer.verdict == "not judged" else fresh)
    layers[-2] = replace(layers[-2], name="head.weight")
    return replace(audit, model="initial.safetensors", layers=tuple(layers))
