"""The one palette: colour-blind readers can tell its series apart, and no figure has colours of its own."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import obverse
from obverse.present.palette import DARK, DARK_PAGE, GREY, LIGHT, LIGHT_PAGE, MARKERS

# Machado, Oliveira and Fernandes, A physiologically-based model for simulation of color vision deficiency,
# IEEE TVCG 15 (2009), severity 1: matrices on linear RGB.
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
# Okabe and Ito, Color universal design (2008): made for colour-blind readers. Without its yellow, which has
# 1.3:1 against white.
OKABE_ITO = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7")
XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)  # IEC 61966-2-1
WHITE = XYZ.sum(1)
FEWEST = 3.0  # WCAG 2.1, 1.4.11: contrast of what a graphic needs to be understood
ROOT = Path(__file__).parents[2]
PALETTES = {"light": (LIGHT, LIGHT_PAGE), "dark": (DARK, DARK_PAGE)}


def linear(colour: str) -> np.ndarray:
    """sRGB without its gamma."""
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB, D65."""
    ratios = XYZ @ light / WHITE
    f = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(colours: tuple[str, ...]) -> dict[str, float]:
    """The least distance ΔE*ab of any two, by kind of eyes."""
    found = {}
    for eyes, matrix in EYES.items():
        seen = [lab(np.clip(matrix @ linear(colour), 0, 1)) for colour in colours]
        found[eyes] = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
    return found


def contrast(one: str, other: str) -> float:
    """WCAG's ratio."""
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_the_ruler_is_right():
    assert lab(np.ones(3)) == pytest.approx([100, 0, 0], abs=1e-6)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)  # the textbook value
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for eyes, matrix in EYES.items():
        assert matrix.sum(1) == pytest.approx(1, abs=1e-5), f"{eyes} see grey as grey"
    # a red and a green of one lightness, which those without the cones for green confuse
    assert closest(("#b07000", "#7f8a00"))["deuteranopia"] < closest(("#b07000", "#7f8a00"))["all cones"] / 2


@pytest.mark.parametrize("name", PALETTES)
def test_series_stay_apart_for_all_eyes(name):
    """No two are closer, for any eyes, than the closest two of Okabe and Ito are for some."""
    least = min(closest(OKABE_ITO).values())
    assert least == pytest.approx(16.1, abs=0.1)
    found = closest(PALETTES[name][0])
    assert min(found.values()) >= least, found


@pytest.mark.parametrize("name", PALETTES)
def test_series_stand_out_from_the_page(name):
    colours, page = PALETTES[name]
    assert [colour for colour in colours if contrast(colour, page) < FEWEST] == []


def test_guides_stand_out_and_markers_are_different():
    assert contrast(GREY, LIGHT_PAGE) >= FEWEST
    assert len(set(MARKERS)) == len(MARKERS) >= 2 * len(LIGHT), "a repeated colour has another marker"


COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}\b|\b(?:tab:\w+|C\d)\b")
NAMED = {"red", "green", "blue", "gray", "grey", "orange", "purple", "cyan", "magenta", "yellow", "black"}
FIGURES = sorted(
    path
    for folder in (Path(obverse.__file__).parent, ROOT / "experiments")
    for path in folder.rglob("*.py")
    if path.name not in ("palette.py", "svg.py")  # svg.py: placeholders that become CSS variables
)


def literals(source: str) -> list[str]:
    """Colours that a file names itself, in what it passes to calls and in what it assigns."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and COLOUR.fullmatch(node.value):
            found.append(node.value)
        if isinstance(node, ast.keyword) and node.arg and "color" in node.arg:
            values = [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
            found += [value for value in values if value in NAMED]
    return found


@pytest.mark.parametrize("path", FIGURES, ids=[f"{path.parent.name}/{path.stem}" for path in FIGURES])
def test_no_figure_has_colours_of_its_own(path):
    assert literals(path.read_text(encoding="utf-8")) == []


def test_colours_would_be_found():
    assert literals("axes.plot(x, color='#0072B2')") == ["#0072B2"]
    assert literals("axes.plot(x, color='gray' if y else 'none')") == ["gray"]
    assert literals("COLOURS = ('#abc', 'tab:blue', 'C0')") == ["#abc", "tab:blue", "C0"]
    assert len(FIGURES) > 40


@pytest.mark.parametrize("style", ["present/page.css", "app/_explorer/page/style.css.j2"])
def test_dark_changes_colours_alone(style: str) -> None:
    """So that a page seen light at one width and dark at another has been seen at both in both."""
    text = (Path(obverse.__file__).parent / style).read_text(encoding="utf-8")
    blocks = re.findall(r"prefers-color-scheme: dark\) \{\n  :root \{\n(.*?)\n  \}\n\}\n", text, re.DOTALL)
    assert len(blocks) == text.count("prefers-color-scheme") == 1
    declared = re.findall(r"([\w-]+):", re.sub(r"\{\{.*?\}\}", "", blocks[0]))
    assert {"color-scheme", "--page", "--ink"} <= set(declared)
    assert [name for name in declared if not name.startswith("--") and name != "color-scheme"] == []
    colours = r"var\(--(page|ink|soft|grid|tint|mark|accent)"
    sizes = rf"(width|height|padding|margin|font)[^;]*{colours}"
    assert [line for line in text.splitlines() if re.search(sizes, line)] == []
