"""Explainers of the lime package for tables, images and texts, as explainers of batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, is_floating, to_host
from metfa._base.one_line import one_line
from metfa._base.warnings import DegenerateAttributionsWarning, ModelOutputWarning, warn
from metfa._frames.columns import is_frame, names_of, with_columns
from metfa.calls.answers import softmax
from metfa.calls.behind import loaded_torch
from metfa.calls.coded import Coded
from metfa.calls.fitted_names import fitted_names, in_order_of
from metfa.calls.guard import model_in_evaluation
from metfa.calls.inputs import check_images
from metfa.calls.targets import row_targets
from metfa.explainers._segments import check_several
from metfa.sampling.protocol import predict_scores
from metfa.sampling.randomised import row_generators

__all__ = ["LimeImage", "LimeTable", "LimeTexts"]

FEW = 3  # with fewer words nearly all copies are far from the text, and lime's penalty of 1 outweighs the others


@dataclass(frozen=True)
class LimeExplainer:
    """An explainer from one of the lime package's. The subclasses below know what a row is."""

    explainer: Any
    predict: Callable[..., Any]
    softmax: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    rng: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        return one_line(self)

    rows_independent = True

    @property
    def model(self) -> Any:
        """The function that predicts."""
        return self.predict

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None) -> Any:
        """Weights of each row's features, and the model's scores."""
        inputs = self._checked(inputs)
        generators = row_generators(inputs, rngs, self.rng)
        torch = loaded_torch()
        with model_in_evaluation(self.predict), nullcontext() if torch is None else torch.no_grad():
            scores = predict_scores(self.predict, inputs)
            targets = row_targets(target, scores, len(inputs), self.predict)
            self._check_scores(scores)
            maps = []
            for row, label, rng in zip(inputs, targets, generators, strict=True):
                with _drawing_from(self.explainer, rng):
                    maps.append(self._map(row, label, inputs))
        return self._stacked(maps), scores

    def _checked(self, inputs: Any) -> Any:
        raise NotImplementedError

    def _map(self, row: Any, label: Any, inputs: Any) -> np.ndarray:
        """Map of one row, one of `inputs`."""
        raise NotImplementedError

    def _stacked(self, maps: list[np.ndarray]) -> np.ndarray:
        return np.stack(maps)

    def _explanation(self, row: Any, ask: Callable[[Any], np.ndarray], label: Any, **settings: Any) -> Any:
        given = {**settings, **self.settings, "labels": () if label is None else (label,), "top_labels": None}
        return self.explainer.explain_instance(row, ask, **given)

    def _probabilities(self, batch: Any) -> np.ndarray:
        """The values that LIME fits, on the host: the model's scores, or their softmax if `softmax` is true."""
        scores = predict_scores(self.predict, batch)
        return softmax(scores) if self.softmax else scores

    def _check_scores(self, scores: np.ndarray) -> None:
        if scores.ndim == 1 and getattr(self.explainer, "mode", None) != "regression":
            raise ValueError(
                f"{type(self.explainer).__name__} needs scores (batch, classes), got (batch,): for a regression write "
                "LimeTabularExplainer(..., mode='regression'), for one logit `metfa.models.TwoClasses(model)`"
            )
        if scores.ndim == 2 and not self.softmax and (scores.min() < 0 or scores.max() > 1 + 1e-6):
            warn(
                f"LIME fits probabilities, but the model's scores lie between {scores.min():.3g} and "
                f"{scores.max():.3g}: write `softmax=True` if they are logits",
                ModelOutputWarning,
            )


class LimeTable(LimeExplainer):
    """Weights (batch, columns) of a table's rows."""

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None) -> Any:
        """Weights of each row's columns, and the model's scores; lime gets the codes of a frame, the model frames."""
        if not is_frame(inputs):
            return super().__call__(inputs, target, rngs=rngs)
        columns, coded = names_of(inputs), self._coded(inputs)
        given = replace(self, predict=coded)
        maps, scores = given(coded.codes(inputs), target, rngs=row_generators(inputs, rngs, self.rng))
        places = [columns.index(name) for name in coded.columns.names]
        return maps[:, np.argsort(places)], scores

    def _coded(self, frame: Any) -> Coded:
        """The model of codes, in the order of the columns that lime knows."""
        if isinstance(self.predict, Coded):
            return self.predict
        columns, own = names_of(frame), getattr(self.explainer, "feature_names", None) or ()
        known = list(map(str, own)) if set(map(str, own)) == set(map(str, columns)) else fitted_names(self.predict)
        coded = Coded(self.predict, frame if known is None else with_columns(frame, in_order_of(columns, known)))
        if coded.columns.labelled:
            labelled = next(column.name for column in coded.columns.columns if column.kind == "label")
            raise TypeError(
                f"lime takes numbers, and column {labelled!r} of the frame holds labels: write `coded = "
                "metfa.Coded(predict, table)`, LimeTabularExplainer(coded.codes(table), "
                "categorical_features=coded.categorical, categorical_names=coded.labels) and from_lime(lime, coded)"
            )
        return coded

    def _checked(self, inputs: Any) -> Any:
        inputs = as_array(inputs, "inputs")
        if inputs.ndim != 2:
            raise ValueError(f"`inputs` must be rows of a table (batch, columns), got shape {tuple(inputs.shape)}")
        return inputs

    def _map(self, row: Any, label: Any, inputs: Any) -> np.ndarray:
        def ask(rows: np.ndarray) -> np.ndarray:
            return self._probabilities(from_host(rows, like=inputs) if is_floating(inputs) else rows)

        host = to_host(row).astype(np.float64)
        self._refuse_missing(host)
        explanation = self._explanation(host, ask, label, num_features=len(host))
        return _weights(explanation, 1 if label is None else label, len(host))

    def _refuse_missing(self, row: np.ndarray) -> None:
        """Raise where a value is missing, which lime would read as one of the largest, or in lime's own table."""
        own = getattr(getattr(self.explainer, "discretizer", None), "stds", {})  # column -> spread in each of its bins
        missing = [place for place, value in enumerate(row) if np.isnan(value) or np.isnan(own.get(place, 0)).any()]
        if missing:
            names = getattr(self.explainer, "feature_names", None)
            name = missing[0] if names is None else names[missing[0]]
            where = "the row" if np.isnan(row[missing[0]]) else "the table of LimeTabularExplainer"
            raise ValueError(
                f"lime takes no missing values, and column {name!r} of {where} has some: fill them before, or explain "
                "the model by `metfa.tables.explain`"
            )


@dataclass(frozen=True, repr=False)
class LimeImage(LimeExplainer):
    """Maps (batch, height, width): the weight of each pixel's segment, or 1 on the strongest segments."""

    n_segments_shown: int | None = None

    def _checked(self, inputs: Any) -> Any:
        check_images(inputs)
        if inputs.shape[1] not in (1, 3):
            raise ValueError(
                f"`inputs` must have 1 or 3 channels for the lime package, got shape {tuple(inputs.shape)}; "
                "metfa.explainers.LIME takes any number"
            )
        host = to_host(inputs)
        if host.min() < -1e-6 or host.max() > 1 + 1e-6:
            raise ValueError(
                f"`inputs` must be pixels in [0, 1], which the segmentation is made for, got {host.min():.4g} to "
                f"{host.max():.4g}: let the model normalise, see metfa.models.Normalised"
            )
        return inputs

    def _map(self, row: Any, label: Any, inputs: Any) -> np.ndarray:
        channels = inputs.shape[1]

        def ask(pictures: np.ndarray) -> np.ndarray:  # (n, height, width, 3), grey ones with three equal channels
            images = np.moveaxis(pictures, -1, 1)[:, :channels]
            return self._probabilities(from_host(np.ascontiguousarray(images), like=inputs))

        picture = np.moveaxis(to_host(row).astype(np.float64), 0, -1)
        explanation = self._explanation(np.ascontiguousarray(picture[..., 0] if channels == 1 else picture), ask, label)
        check_several([explanation.segments])
        if self.n_segments_shown is not None:
            mask = explanation.get_image_and_mask(label, positive_only=True, num_features=self.n_segments_shown)[1]
            return mask.astype(np.float32)
        segments = explanation.segments
        return _weights(explanation, label, int(segments.max()) + 1)[segments]


class LimeTexts(LimeExplainer):
    """Weights (batch, words) of texts with equally many words."""

    def words(self, text: str) -> tuple[str, ...]:
        """The features of a text, in the order of the weights: its distinct words, or all with ``bow=False``."""
        words = self._indexed(text)
        return tuple(str(words.word(index)) for index in range(words.num_words()))

    def _indexed(self, text: str) -> Any:
        from lime import lime_text

        lime = self.explainer
        if lime.char_level:
            return lime_text.IndexedCharacters(text, bow=lime.bow, mask_string=lime.mask_string)
        return lime_text.IndexedString(
            text, bow=lime.bow, split_expression=lime.split_expression, mask_string=lime.mask_string
        )

    def _checked(self, inputs: Any) -> Any:
        if not isinstance(inputs, list) or not all(isinstance(text, str) for text in inputs):
            raise TypeError(f"`inputs` must be a list of texts, got {type(inputs).__name__}")
        for row, text in enumerate(inputs):
            if not self.words(text):
                raise ValueError(f"`inputs` must hold texts with words, but lime finds none in row {row}: {text!r:.80}")
        fewest = min(len(self.words(text)) for text in inputs)
        if fewest < FEW:
            warn(
                f"a text has {fewest} {'word' if fewest == 1 else 'words'}, where the lime package's ridge penalty "
                "decides over the answers: take metfa.text.LIME, which asks every copy of a short text",
                DegenerateAttributionsWarning,
            )
        return inputs

    def _map(self, row: Any, label: Any, inputs: Any) -> np.ndarray:  # noqa: ARG002
        n_words = self._indexed(row).num_words()
        return _weights(self._explanation(row, self._probabilities, label, num_features=n_words), label, n_words)

    def _stacked(self, maps: list[np.ndarray]) -> np.ndarray:
        counts = sorted({len(weights) for weights in maps})
        if len(counts) > 1:
            raise ValueError(
                f"`inputs` holds texts of {counts[0]} to {counts[-1]} distinct words, but every row needs as many "
                "features: explain one text a call, with `noise=None` or a noise that keeps the number of words"
            )
        return np.stack(maps)


def _weights(explanation: Any, label: Any, n_features: int) -> np.ndarray:
    """Weights of all features, 0 for those that lime left out."""
    weights = np.zeros(n_features)
    for feature, weight in explanation.local_exp[label]:
        weights[feature] = weight
    return weights


@contextmanager
def _drawing_from(lime: Any, rng: np.random.Generator) -> Iterator[None]:
    """Let everything random in a lime explainer draw from `rng`, and show no progress bar of its own."""
    state = np.random.RandomState(rng.integers(0, 2**32, size=8, dtype=np.uint32))  # the kind that lime takes
    owners = [lime, lime.base, getattr(lime, "discretizer", None)]
    found = [(owner, owner.random_state) for owner in owners if hasattr(owner, "random_state")]
    module = sys.modules["lime.lime_image"] if type(lime).__module__ == "lime.lime_image" else None
    bar = getattr(module, "tqdm", None)
    try:
        for owner, _ in found:
            owner.random_state = state
        if module is not None and bar is not None:
            module.tqdm = iter  # pyright: ignore[reportAttributeAccessIssue]
        yield
    finally:
        for owner, kept in found:
            owner.random_state = kept
        if module is not None and bar is not None:
            module.tqdm = bar  # pyright: ignore[reportAttributeAccessIssue]
