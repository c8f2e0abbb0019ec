"""A study: which explainers, on which inputs of which model, under which noise, measured how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from metfa._base.validation import check_number, did_you_mean, positive_int
from metfa.by_name.methods import Of, check_method, explainer_of
from metfa.evaluation._enough_samples import check_enough_samples
from metfa.evaluation._measures import Measure, check_measures
from metfa.evaluation.inputs import Arrays, ImageFiles, Texts, study_inputs
from metfa.results.stopping import Until
from metfa.sampling.protocol import explained_model
from metfa.sampling.randomised import randomised, seeded
from metfa.text.word_for_word import WordForWord

__all__ = ["AGGREGATES", "NamedMethod", "Study"]

AGGREGATES = ("vanilla", "mean", "smoothed")
Aggregate = Literal["vanilla", "mean", "smoothed"]


@dataclass(frozen=True)
class NamedMethod:
    """An explainer by its name, made when a worker has the model."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    of: Of = "image"

    def __call__(self, model: Any) -> Any:
        """The explainer."""
        return explainer_of(self.method, model, dict(self.settings), self.of)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Description of an evaluation; nothing is run or loaded before `metfa.evaluate`.

    Parameters
    ----------
    model : str, LoadedModel, torch.nn.Module or callable
        A name for `metfa.models.load` (of texts, for `metfa.text.load_model`), what these return, or inputs -> scores
        (batch, classes).
    inputs : path, array, sequence of arrays or list of texts
        A folder of pictures (hidden ones are left out), a CSV file with a column "path" (of pictures, relative to the
        file) or "text", and perhaps "target", an array with a batch axis, anything with ``len`` and ``[i]`` that gives
        arrays without one, such as a data set of torch, or a list of texts, each a str or the list of its tokens.
    explainers : dict of str to (str or callable)
        A name for the tables -> the method's name on the command line ("gradient", "rise", ...; of texts "lemna",
        "lime", "occlusion", "gradient-x-input"), or a function of the
        model that returns an explainer: ``metfa.explainers.RISE`` or ``functools.partial(RISE, n_masks=500)``.
    sampling : dict of str to noise
        The paper's P: noises under which explanations are sampled to be smoothed, by name.
    outer : dict of str to (noise or None)
        The paper's :math:`O_n`: noises under which stability and robust faithfulness are judged, by name. None leaves
        the input alone, to see the explanation's own randomness.
    metrics : sequence of str, or dict of str to (dict or callable)
        Names of the measures below, with settings where a dict is given; or a name of yours and a function
        ``metric(model, inputs, attributions, target)`` that returns something with `score` (batch,).
    aggregates : sequence of {"vanilla", "mean", "smoothed"}
        Maps that are measured: the explanation itself, the mean of N samples (SmoothGrad's map), the smoothed median.
    n_samples : int, sequence of int, or Until
        The paper's N, samples under P. Of several, smaller ones are the first of the largest. Or a rule that says when
        there are enough, ``metfa.until(undecided=0.05)``, for each input by itself; without `max_seconds`, so that no
        figure depends on the machine's speed.
    confidence_level : float or sequence of float
        Of the interval whose inside the smoothed map averages, 1 - alpha; alpha is the level of tests.
    n_outer : int
        Draws of an outer noise, the paper's 10.
    targets : sequence of int, optional
        Class of each input, or None for the predicted one, which is the default.
    limit : int, optional
        Only the first inputs.
    seed : int
        The same seed gives the same figures.
    batch_size : int
        Rows a call of an explainer.
    device : str
        Of the model, such as "cuda". Part of the record of a unit.
    version : str, optional
        Yours, for functions without an import path, objects that show no settings, and models whose weights cannot be
        seen, as those of scikit-learn: change it when they change.

    Notes
    -----
    Measures by name: of maps, ``faithfulness`` (insertion, deletion, overall), ``robust_faithfulness`` (RI, RD, RO
    under each outer noise) and ``infidelity``; of texts, ``word_faithfulness`` (FDT, ST, FAT) and
    ``robust_word_faithfulness`` (RFDT, RST, RFAT), where the other texts of FAT are those of the study; of maps under
    an outer noise, ``mstd``, ``top_k_overlap``,
    ``max_sensitivity`` and ``prediction_agreement``; of the samples under P, ``interval_width``, ``region_score``,
    ``undecided``, ``certified_radius`` and ``certified_share``, of which the last three take `threshold`, `correction`
    and `split`, which left open are those of a rule that is of ``undecided``; with a rule also ``sample_size`` (N) and
    ``rule_met`` (1 where it was met, 0 where `max_samples` ended it). A map under an outer noise is made by the same
    rule, draw by draw.

    Raises
    ------
    TypeError, ValueError
        For settings that cannot work, before anything is loaded.
    """

    model: Any
    inputs: Any
    explainers: Mapping[str, str | Callable[[Any], Any]]
    metrics: Sequence[str] | Mapping[str, Any]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    outer: Mapping[str, Any] = field(default_factory=dict)
    aggregates: Sequence[Aggregate] = AGGREGATES
    n_samples: int | Sequence[int] | Until = 10
    confidence_level: float | Sequence[float] = 0.95
    n_outer: int = 10
    targets: Any = None
    limit: int | None = None
    seed: int = 0
    batch_size: int = 10
    device: str = "cpu"
    version: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) and not callable(getattr(self.model, "module", self.model)):
            raise TypeError(f"`model` must be a name, a LoadedModel or a function, got {type(self.model).__name__}")
        for name in ("n_outer", "batch_size"):
            positive_int(getattr(self, name), name)
        positive_int(self.seed, "seed", 0)
        for name, value in (("device", self.device), ("version", self.version)):
            if not (isinstance(value, str) and value) and not (name == "version" and value is None):
                raise TypeError(f"`{name}` must be a text, got {type(value).__name__}: {value!r}")
        for name in ("methods", "noises", "outer_noises", "maps", "sizes", "levels", "measures", "data"):
            getattr(self, name)  # each raises where it was given something else
        if not self.maps and any(measure.of != "samples" for measure in self.measures):
            raise ValueError(f"`aggregates` are {self.aggregates!r} without a noise in `sampling`: no map is made")
        check_enough_samples(self)
        if "vanilla" not in self.maps and any(measure.of == "predictions" for measure in self.measures):
            raise ValueError(f"`aggregates` must hold 'vanilla' for prediction_agreement, got {self.aggregates!r}")
        spread = [measure.name for measure in self.measures if measure.name in ("mstd", "top_k_overlap")]
        if spread and self.n_outer < 2:
            raise ValueError(f"`n_outer` must be at least 2 for {spread[0]}, got {self.n_outer}")

    @cached_property
    def methods(self) -> dict[str, Callable[[Any], Any]]:
        """Functions that make an explainer of the model, by name."""
        return {name: _explainer(name, value, self.of) for name, value in _named(self.explainers, "explainers")}

    @cached_property
    def noises(self) -> dict[str, Callable[..., Any]]:
        """Sampling noises by name."""
        return dict(_noises(self.sampling, "sampling", none_allowed=False))

    @cached_property
    def outer_noises(self) -> dict[str, Callable[..., Any] | None]:
        """Outer noises by name."""
        return dict(_noises(self.outer, "outer", none_allowed=True))

    @cached_property
    def maps(self) -> tuple[str, ...]:
        """Aggregates that can be made: the vanilla map alone, where nothing is sampled."""
        return _aggregates(self.aggregates, self.noises)

    @cached_property
    def sizes(self) -> tuple[int | None, ...]:
        """Sample sizes N, ascending; None alone, where a rule ends sampling."""
        if self.rule is not None:
            return (None,)
        return _each(self.n_samples, "n_samples", lambda n: positive_int(n, "n_samples"))

    @property
    def rule(self) -> Until | None:
        """What ends sampling, where no number does."""
        return self.n_samples if isinstance(self.n_samples, Until) else None

    @property
    def most(self) -> int:
        """Samples of an input, or as many as there may be."""
        return max((n for n in self.sizes if n is not None), default=0) if self.rule is None else self.rule.max_samples

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Confidence levels, ascending."""
        return _each(self.confidence_level, "confidence_level", _level)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Metrics with their settings."""
        texts = self.data.texts if isinstance(self.data, Texts) else None
        return check_measures(self.metrics, self.noises, self.outer_noises, texts)

    @property
    def sampled(self) -> dict[str, Callable[..., Any]]:
        """Noises under which the input itself is explained: none, where only stability is measured."""
        return {} if all(measure.under_outer_noise for measure in self.measures) else self.noises

    @cached_property
    def data(self) -> ImageFiles | Arrays | Texts:
        """The inputs, one of which is loaded at a time."""
        return study_inputs(self.inputs, self.targets, self.limit)

    def held(self, noise: Any) -> Any:
        """A noise as it is used: of texts, held to make a text of as many words."""
        return WordForWord(noise) if self.of == "text" and noise is not None else noise

    def try_noises(self) -> None:
        """Try each noise of texts on the first one, so that an unfit one shows before any unit.

        Raises
        ------
        TypeError, ValueError
            If what it makes is no text of as many words.
        """
        if not isinstance(self.data, Texts):
            return
        for name, noises in (("sampling", self.noises), ("outer", self.outer_noises)):
            for key, noise in noises.items():
                if noise is not None:
                    _try_noise(self.held(noise), self.data.texts[0], f"{name}[{key!r}]")

    def called(self, model: Any) -> Any:
        """Inputs -> scores, of a model as it was loaded."""
        return model if self.of == "text" else getattr(model, "module", model)

    @property
    def of(self) -> Of:
        """What kind of methods it can name."""
        return "text" if isinstance(self.data, Texts) else "image"


def _try_noise(noise: Any, text: Any, name: str) -> None:
    try:
        noise(text, np.random.default_rng(0))
    except (TypeError, ValueError) as error:
        raise type(error)(f"`{name}` is no noise for the texts: {error}") from error


def _named(mapping: Any, name: str) -> list[tuple[str, Any]]:
    if not isinstance(mapping, Mapping):
        raise TypeError(f"`{name}` must be a dict of names, got {type(mapping).__name__}: {mapping!r}")
    if not all(isinstance(key, str) and key for key in mapping):
        raise TypeError(f"`{name}` must have texts as names, got {list(mapping)}")
    if not mapping and name == "explainers":
        raise ValueError("`explainers` is empty: there is nothing to measure")
    return list(mapping.items())


def _explainer(name: str, value: Any, of: Of) -> Any:
    if isinstance(value, str):
        try:
            check_method(value, of)
        except ValueError as error:
            raise ValueError(f"`explainers[{name!r}]`: {error}; or give a function of the model") from error
        return NamedMethod(value, of=of)
    if not callable(value) or explained_model(value) is not None or isinstance(value, randomised | seeded):
        raise TypeError(
            f"`explainers[{name!r}]` must be a method's name or a function of the model that returns an explainer, got "
            f"{type(value).__name__}: for an explainer at hand write `lambda model: explainer` and give a `version=`"
        )
    return value


def _noises(mapping: Any, name: str, *, none_allowed: bool) -> list[tuple[str, Any]]:
    for key, noise in _named(mapping, name):
        if isinstance(noise, type):
            raise TypeError(f"`{name}[{key!r}]` must be a noise, got the class {noise.__name__}: give it its settings")
        if not (callable(noise) or (noise is None and none_allowed)):
            raise TypeError(
                f"`{name}[{key!r}]` must be a function f(x, rng) -> x, such as metfa.noise.Uniform(0.1), got {noise!r}"
            )
    return _named(mapping, name)


def _aggregates(aggregates: Any, sampling: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(aggregates, str) or not isinstance(aggregates, Sequence):
        raise TypeError(f"`aggregates` must be a sequence of names, got {type(aggregates).__name__}: {aggregates!r}")
    if not aggregates:
        raise ValueError(f"`aggregates` is empty: name some of {', '.join(AGGREGATES)}")
    for entry in aggregates:
        if entry not in AGGREGATES:
            raise ValueError(
                f"`aggregates` must be of {', '.join(AGGREGATES)}, got {entry!r}{did_you_mean(str(entry), AGGREGATES)}"
            )
    if sampling:
        return tuple(dict.fromkeys(aggregates))
    return tuple(entry for entry in dict.fromkeys(aggregates) if entry == "vanilla")


def _level(value: Any) -> float:
    check_number(value, "confidence_level")
    if not 0 < value < 1:
        raise ValueError(f"`confidence_level` must lie between 0 and 1, got {value}")
    return float(value)


def _each(value: Any, name: str, check: Callable[[Any], Any]) -> tuple[Any, ...]:
    entries = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not entries:
        raise ValueError(f"`{name}` is empty")
    return tuple(sorted({check(entry) for entry in entries}))
