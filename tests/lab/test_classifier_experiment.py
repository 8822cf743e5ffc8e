"""ShadowClassifier beside MLPClassifier: what is compared, and what the page says of it."""

from __future__ import annotations

from pathlib import Path

from sklearn.neural_network import MLPClassifier

from experiments._lab.result_files import read
from experiments.classifier import page
from experiments.classifier.run import DATA, FOLDER, METHODS, SPLITS, score
from obverse import ShadowClassifier

DOCS = Path(__file__).parents[2] / "docs"


def test_ten_data_sets_and_only_defaults() -> None:
    assert len(DATA) == 10
    for seed in (0, 7):
        ours, theirs = METHODS["ShadowClassifier"](seed), METHODS["MLPClassifier"](seed)
        assert ours.get_params() == ShadowClassifier(random_state=seed).get_params()
        assert theirs.get_params() == MLPClassifier(random_state=seed).get_params()
    for name in ("make_moons, noise 0.2", "make_hastie_10_2"):
        (x, _), (again, _), (other, _) = (DATA[name](seed) for seed in (0, 0, 1))
        assert (x == again).all()
        assert (x != other).any()


def test_a_score_is_of_points_that_were_not_trained_on() -> None:
    class Memory:
        """Right on what it has seen, and on nothing else."""

        def fit(self, x, y):
            self.seen = {row.tobytes() for row in x}
            return self

        def score(self, x, y):
            return sum(row.tobytes() in self.seen for row in x) / len(x)

    found = score("make_moons, noise 0.2", lambda seed: Memory(), 3)
    assert (found["accuracy"], found["training_accuracy"], found["warned"]) == (0.0, 1.0, False)


def test_the_page_says_where_the_difference_is_clear() -> None:
    """Better by 0.1 on the first, worse by 0.1 on the second, and as often better as worse on the others."""
    entries = {}
    for number, data in enumerate(DATA):
        for split in range(10):
            gap = (0.1, -0.1)[number] if number < 2 else 0.05 * (-1) ** split
            for method in METHODS:
                ours = method == "ShadowClassifier"
                noise = 0.001 * (split % 3)
                entries[f"{data}|{method}|{split}"] = {"accuracy": 0.8 + (gap + noise) * ours}
    first, second, *_ = DATA
    text = page.text(entries)
    assert f"better than `MLPClassifier` on {first}, and worse on {second}." in text
    assert f"| {first} | 0.901 ± 0.000 | 0.800 ± 0.000 | 0.800 ± 0.000 | +0.101 ± 0.000 |" in text
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 12


def test_the_published_table_is_that_of_the_results() -> None:
    entries = read(FOLDER / "accuracy.json")["entries"]
    assert len(entries) == len(DATA) * len(METHODS) * len(SPLITS)
    assert page.text(entries) in (DOCS / "training.md").read_text(encoding="utf-8")
