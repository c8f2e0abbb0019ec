"""Explainers of the lime package for tables, images and texts, one random generator a row."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, is_floating, to_host
from metfa._base.validation import check_flag, positive_int
from metfa._base.warnings import ModelOutputWarning, warn
from metfa.calls.answers import softmax
from metfa.calls.guard import loaded_torch, model_in_evaluation
from metfa.calls.inputs import check_images
from metfa.calls.targets import row_targets
from metfa.explainers._segments import check_several
from metfa.sampling.protocol import predict_scores
from metfa.sampling.randomised import row_generators

__all__ = ["from_lime"]

GOVERNED = {"data_row", "image", "text_instance", "predict_fn", "classifier_fn", "labels", "top_labels", "random_seed"}


@dataclass(frozen=True)
class LimeExplainer:
    """An explainer from one of the lime package's. The subclasses below know what a row is."""

    explainer: Any
    predict: Callable[..., Any]
    softmax: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    rng: Any = field(default=None, repr=False)

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
            targets = row_targets(target, scores, len(inputs))
            self._check_scores(scores)
            maps = []
            for row, label, rng in zip(inputs, targets, generators, strict=True):
                with _drawing_from(self.explainer, rng):
                    maps.append(self._map(row, label, inputs))
        return self._stacked(maps), scores

    def _checked(self, inputs: Any) -> Any:
        raise NotImplementedError

    def _map(self, row: Any, label: Any, inputs: Any) -> np.ndarray:
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

    def _checked(self, inputs: Any) -> Any:
        inputs = as_array(inputs, "inputs")
        if inputs.ndim != 2:
            raise ValueError(f"`inputs` must be rows of a table (batch, columns), got shape {tuple(inputs.shape)}")
        return inputs

    def _map(self, row: Any, label: Any, inputs: Any) -> np.ndarray:
        def ask(rows: np.ndarray) -> np.ndarray:
            return self._probabilities(from_host(rows, like=inputs) if is_floating(inputs) else rows)

        host = to_host(row).astype(np.float64)
        explanation = self._explanation(host, ask, label, num_features=len(host))
        return _weights(explanation, 1 if label is None else label, len(host))


@dataclass(frozen=True)
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


KINDS = {"LimeTabularExplainer": LimeTable, "LimeImageExplainer": LimeImage, "LimeTextExplainer": LimeTexts}


def from_lime(
    explainer: Any,
    predict: Callable[..., Any],
    *,
    softmax: bool = False,
    n_segments_shown: int | None = None,
    rng: Any = None,
    **settings: Any,
) -> Any:
    """Explainer from one of the lime package's: signed weights of all features of a table, an image or a text.

    Every row draws from a generator of its own, not from the lime object's random state. So the seed of `metfa.explain`
    governs all of LIME's randomness. The lime object is left as it was.

    Parameters
    ----------
    explainer : LimeTabularExplainer, LimeImageExplainer or LimeTextExplainer
        Made as lime's documentation shows.
    predict : callable
        Inputs -> probabilities (batch, classes); for a table with ``mode="regression"`` values (batch,). It is called
        with what `metfa.explain` gets: rows of a table, images (batch, channels, height, width) with pixels in [0, 1],
        each in the library of the inputs, or a list of texts.
    softmax : bool
        Turn the scores of `predict` into probabilities by a softmax, for a network that returns logits.
    n_segments_shown : int, optional
        For images: a map of 1 on this many segments, those with the largest positive weights, and 0 elsewhere, which is
        lime's ``get_image_and_mask`` (5 there and in the MeTFA paper). None: the weight of each pixel's segment.
    rng : int, numpy.random.Generator or None
        Seed of direct calls; `metfa.explain` passes its own generators.
    **settings
        Arguments of ``explain_instance``, such as ``num_samples=1000`` or ``hide_color=0``.

    Returns
    -------
    callable
        Explainer that returns weights and scores: (batch, columns), (batch, height, width) or (batch, words). For
        texts it has ``.words(text)``, the names of the features. Texts of one call need equally many words.

    Raises
    ------
    TypeError, ValueError
        If `explainer` is none of the three, or has no such setting.

    Warns
    -----
    ModelOutputWarning
        If the scores are not probabilities.

    Notes
    -----
    Weights of features that lime leaves out (``num_features=``) are 0. Features are aligned from sample to sample by
    position, so a noise on texts must keep the words: use ``noise=None``, for LIME's own randomness, or
    ``LimeTextExplainer(bow=False)`` with a noise that replaces words one by one. Under noise, an image is segmented
    anew for each sample.

    Examples
    --------
    .. code-block:: python

       explainer = from_lime(LimeTabularExplainer(training_rows), forest.predict_proba)
       explainer = from_lime(LimeImageExplainer(), network, softmax=True, n_segments_shown=5)
       explainer = from_lime(LimeTextExplainer(), pipeline.predict_proba)
    """
    names = [kind.__name__ for kind in type(explainer).__mro__]
    kind = next((KINDS[name] for name in names if name in KINDS), None)
    if kind is None:
        got = explainer.__name__ if isinstance(explainer, type) else type(explainer).__name__
        raise TypeError(f"`explainer` must be an object of {', '.join(KINDS)} of the lime package, got {got}")
    if not callable(predict):
        raise TypeError(f"`predict` must be a function inputs -> probabilities, got {type(predict).__name__}")
    softmax = check_flag(softmax, "softmax")
    known = [name for name in inspect.signature(explainer.explain_instance).parameters if name not in GOVERNED]
    for name in settings:
        if name in ("num_samples", "num_features"):
            positive_int(settings[name], name)
        if name not in known:
            raise ValueError(f"{names[0]}.explain_instance has no setting {name!r} here; it has {', '.join(known)}")
    if kind is not LimeImage:
        if n_segments_shown is not None:
            raise ValueError(f"`n_segments_shown` is for images, {names[0]} has no segments")
        return kind(explainer, predict, softmax, settings, rng)
    shown = None if n_segments_shown is None else positive_int(n_segments_shown, "n_segments_shown")
    return LimeImage(explainer, predict, softmax, settings, rng, shown)


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
