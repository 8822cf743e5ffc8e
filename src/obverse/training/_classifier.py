"""SHADOW training as a scikit-learn estimator. Not for run directories: see fit and the command line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import BadInput, Control, Labels
from ..data import Dataset
from ._classify import ClassifierTask, fit_classifier
from ._settings import Settings


class ShadowClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fully connected ReLU net trained with shadows of its own making.

        X, y = sklearn.datasets.load_digits(return_X_y=True)
        net = ShadowClassifier().fit(X, y)
        net.score(X, y), net.shadows(X)

    Parameters are those of obverse.training.Settings with the same names and meaning, and `scale`: "auto"
    gives every feature mean 0 and variance 1 before the net sees it (fitted on the training data, kept as
    `scaler_`); None leaves the inputs as they are. `random_state` is a whole number, a numpy RandomState, or
    None for a new seed each time.

    The fitted `net_` and its `shadow_` work in float64, on scaled inputs; `shadows(X)` takes X and gives its
    shadows in the units of X. A ConvergenceWarning says where training has not made the net better than
    predicting the class frequencies for every point.
    """

    def __init__(
        self,
        hidden: Sequence[int] | int = (100, 100),
        *,
        scale: Literal["auto"] | None = "auto",
        weight: float = 1.0,
        layer: str | None = None,
        keep: float = 1.0,
        match_norm: bool = True,
        labels: Labels = "given",
        normalize: bool = True,  # any step size is felt at once where nobody tunes the lr
        control: Control | None = None,
        dropout: float = 0.0,
        uniform_bias: bool = False,
        epochs: int = 100,
        batch_size: int = 100,
        lr: float = 0.05,
        momentum: float = 0.9,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden = hidden
        self.scale = scale
        self.weight = weight
        self.layer = layer
        self.keep = keep
        self.match_norm = match_norm
        self.labels = labels
        self.normalize = normalize
        self.control = control
        self.dropout = dropout
        self.uniform_bias = uniform_bias
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.momentum = momentum
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ShadowClassifier:
        """Train on inputs X (points × features) and class labels y."""
        from sklearn.utils import check_random_state

        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        parameters = self.get_params()
        del parameters["random_state"], parameters["scale"]
        seed = int(check_random_state(self.random_state).randint(2**31))
        settings = Settings(**parameters, device="cpu", seed=seed, evaluate_every=self.epochs)
        self.scaler_ = self._fitted_scaler(X)
        scaled = self._scaled(X)
        x = torch.from_numpy(scaled.astype(np.float32))
        labels = torch.from_numpy(np.searchsorted(self.classes_, y).astype(np.int64))
        # There is no test set here: `fit` evaluates on nothing that matters.
        data = Dataset("X", x, labels, x[:1], labels[:1], tuple(map(str, self.classes_)))
        task = ClassifierTask(settings, data)
        records = fit_classifier(task)
        self.net_ = task.net.eval().double()  # so that a point's answer does not depend on its batch
        self.shadow_ = task.shadow
        self.loss_curve_ = [record["train_loss"] for record in records[1:]]
        self.n_iter_ = self.epochs
        self._warn_if_nothing_learned(scaled, labels)
        return self

    def _fitted_scaler(self, X: np.ndarray[Any, Any]) -> StandardScaler | None:
        if self.scale not in ("auto", None):
            raise BadInput("scale 'auto' or None", got=repr(self.scale), do="leave it out")
        return None if self.scale is None else StandardScaler().fit(X)

    def _scaled(self, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = X if self.scaler_ is None else self.scaler_.transform(X)
        return np.ascontiguousarray(found)

    def _warn_if_nothing_learned(self, scaled: np.ndarray[Any, Any], labels: torch.Tensor) -> None:
        """By the mean log-loss on the training data, beside that of the class frequencies, without a net."""
        with torch.no_grad():
            found = float(torch.nn.functional.cross_entropy(self.net_(torch.from_numpy(scaled)), labels))
        share = torch.bincount(labels).double() / len(labels)
        without = float(torch.special.entr(share).sum())
        if len(share) > 1 and not found < without:
            scaling = "" if self.scaler_ is not None else 'set scale="auto", '
            warnings.warn(
                f"the net has learned nothing: its mean loss on the training data is {found:.3g}, and "
                f"{without:.3g} for predicting the class frequencies for every point; {scaling}try a smaller "
                "lr or more epochs, or look at the data",
                ConvergenceWarning,
                stacklevel=3,
            )

    def shadows(self, X: Any, layer: str | None = None) -> np.ndarray[Any, Any]:
        """The shadow of each point of X from a layer (the highest hidden one if None), in the units of X."""
        check_is_fitted(self)
        scaled = self._scaled(validate_data(self, X, dtype=np.float64, reset=False))
        found: np.ndarray[Any, Any] = self.shadow_.of(
            torch.from_numpy(scaled), layer, match_norm=self.match_norm
        ).numpy()
        return found if self.scaler_ is None else self.scaler_.inverse_transform(found)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Class probabilities, one row a point, one column a class of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with torch.no_grad():
            logits = self.net_(torch.from_numpy(self._scaled(X)))
            result: np.ndarray[Any, Any] = torch.softmax(logits, dim=-1).numpy()
        return result

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable class of each point."""
        probabilities = self.predict_proba(X)
        labels: np.ndarray[Any, Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels
