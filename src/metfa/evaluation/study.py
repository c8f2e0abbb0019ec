"""`Study`, the description of an evaluation: model, inputs, explainers, noises, metrics and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from metfa._base.validation import keep, positive_int
from metfa.by_name.methods import Of, check_method, explainer_of
from metfa.evaluation._enough_samples import check_enough_samples
from metfa.evaluation._measures import Measure, check_measures
from metfa.evaluation.inputs import Arrays, ImageFiles, Texts, study_inputs
from metfa.evaluation.over import check_measures_over, checked_over, regions_for
from metfa.evaluation.settings import AGGREGATES, aggregates_of, ascending, named, noises_named
from metfa.results.regions import Regions
from metfa.results.until import Until
from metfa.sampling.protocol import explained_model
from metfa.sampling.randomised import randomised, seeded
from metfa.sampling.streams import MOST_ENTROPY
from metfa.stats.validation import as_level
from metfa.text.word_for_word import WordForWord

__all__ = ["NamedMethod", "Study"]

Aggregate = Literal["vanilla", "mean", "smoothed"]


@dataclass(frozen=True)
class NamedMethod:
    """An explainer by its name; it is made when a worker has the model."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    of: Of = "image"

    def __call__(self, model: Any) -> Any:
        """The explainer."""
        return explainer_of(self.method, model, dict(self.settings), self.of)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Description of an evaluation; `metfa.evaluate` loads and runs it.

    Parameters
    ----------
    model : str, LoadedModel, torch.nn.Module or callable
        A name for `metfa.models.load` (or `metfa.text.load_model`, if the inputs are texts), a model that they return,
        or a function inputs -> scores (batch, classes).
    inputs : path, array, sequence of arrays or list of texts
        One of

        - a folder of pictures; hidden files are left out;
        - a CSV file with a column "path" (of pictures, relative to the file) or "text", and perhaps "target";
        - an array with a batch axis;
        - an object with ``len`` and ``[i]`` that gives arrays without batch axis, the same each time, such as a data
          set of torch without random crops and flips;
        - a list of texts, each a str or the list of its tokens.
    explainers : dict of str to (str or callable)
        A name for the tables -> the name of a method on the command line ("gradient", "rise", ...; for texts "lemna",
        "lime", "occlusion", "gradient-x-input", "lrp"), or a function of the model that returns an explainer:
        ``metfa.explainers.RISE`` or ``functools.partial(RISE, n_masks=500)``.
    sampling : dict of str to noise
        The paper's P: noises for the samples of the smoothed map, by name.
    outer : dict of str to (noise or None)
        The paper's :math:`O_n`: noises for stability and robust faithfulness, by name. None does not change the input
        and shows the explanation's own randomness.
    metrics : sequence of str, or dict of str to (dict or callable)
        Names of the measures below; a dict adds their settings. Or your own name and a function
        ``metric(model, inputs, attributions, target)`` that returns an object with `score` (batch,).
    aggregates : sequence of {"vanilla", "mean", "smoothed"}
        Maps that are measured: the explanation itself, the mean of N samples (SmoothGrad's map), the smoothed median.
    n_samples : int, sequence of int, or Until
        The paper's N, the number of samples under P. If there are several, smaller numbers take the first samples of
        the largest. It can also be a rule that says for each input when there are enough samples,
        ``metfa.Until(undecided=0.05)``; a rule with `max_seconds` is refused, so that no figure depends on the speed of
        the machine.
    confidence_level : float or sequence of float
        Level of the interval, 1 - alpha; the smoothed map is the mean of the order statistics inside it, and alpha is
        the level of tests.
    n_outer : int
        Number of draws of an outer noise, 10 in the paper.
    over : callable, Regions or str, optional
        Regions whose scores are measured in place of those of single features: a function of one clean input that
        returns its `Regions`, such as ``functools.partial(metfa.regions.superpixels, n_segments=50, against="rest")``;
        a `Regions` for all inputs; or a name, "superpixels:50" or "grid:4" for images, "sentences" or "phrases" for
        texts, each against the rest. They are made of the clean input and stay the same under noise. Metrics that need
        the scores of single features (faithfulness, infidelity, your own) are refused.
    targets : sequence of int, optional
        Class of each input, or None for the predicted class (the default).
    limit : int, optional
        Only the first so many inputs.
    shuffle : int, optional
        Seed of a random order in which the inputs are taken, so that `limit` is a random part of them. By default they
        come in their own order, files by their names.
    seed : int
        The same seed gives the same figures.
    batch_size : int
        Rows in a call of an explainer.
    device : str
        Device of the model, such as "cuda"; it is part of the record of a unit.
    version : str, optional
        Your own version of things whose changes metfa cannot see: functions without an import path, objects that show
        no settings, and models with hidden weights, such as those of scikit-learn. Change it when they change.

    Notes
    -----
    Measures by name:

    - maps: ``faithfulness`` (insertion, deletion, overall), ``robust_faithfulness`` (RI, RD, RO under each outer noise)
      and ``infidelity``;
    - texts: ``word_faithfulness`` (FDT, ST, FAT) and ``robust_word_faithfulness`` (RFDT, RST, RFAT); FAT plants words
      in the texts of the study;
    - maps under an outer noise: ``mstd``, ``top_k_overlap``, ``max_sensitivity`` and ``prediction_agreement``;
    - samples under P: ``interval_width``, ``region_score``, ``undecided``, ``certified_radius`` and
      ``certified_share``. The last three take `threshold`, `correction` and `split`; if these are not given and the
      rule is for ``undecided``, they are those of the rule;
    - with a rule also ``sample_size`` (N) and ``rule_met`` (1 where it was met, 0 where `max_samples` ended sampling).

    With a rule, each map under a draw of an outer noise is made by the rule too.

    Raises
    ------
    TypeError, ValueError
        For settings that cannot work; raised before anything is loaded.
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
    over: Any = None
    targets: Any = None
    limit: int | None = None
    shuffle: int | None = None
    seed: int = 0
    batch_size: int = 10
    device: str = "cpu"
    version: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) and not callable(getattr(self.model, "module", self.model)):
            raise TypeError(f"`model` must be a name, a LoadedModel or a function, got {type(self.model).__name__}")
        for name in ("n_outer", "batch_size"):
            keep(self, **{name: positive_int(getattr(self, name), name)})
        keep(self, seed=positive_int(self.seed, "seed", 0, MOST_ENTROPY))
        for name, value in (("device", self.device), ("version", self.version)):
            if not (isinstance(value, str) and value) and not (name == "version" and value is None):
                raise TypeError(f"`{name}` must be a string, got {type(value).__name__}: {value!r}")
        for name in ("methods", "noises", "outer_noises", "maps", "sizes", "levels", "measures", "data", "parts"):
            getattr(self, name)  # each property raises if its setting is wrong
        check_measures_over(self.parts, self.measures, self.rule)
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
        """Functions from a model to an explainer, by name."""
        return {name: _explainer(name, value, self.of) for name, value in named(self.explainers, "explainers")}

    @cached_property
    def noises(self) -> dict[str, Callable[..., Any]]:
        """Sampling noises by name."""
        return dict(noises_named(self.sampling, "sampling", none_allowed=False))

    @cached_property
    def outer_noises(self) -> dict[str, Callable[..., Any] | None]:
        """Outer noises by name."""
        return dict(noises_named(self.outer, "outer", none_allowed=True))

    @cached_property
    def maps(self) -> tuple[str, ...]:
        """Aggregates that can be made: only the vanilla map if nothing is sampled."""
        return aggregates_of(self.aggregates, self.noises)

    @cached_property
    def sizes(self) -> tuple[int | None, ...]:
        """Sample sizes N, ascending; only None if a rule ends sampling."""
        if self.rule is not None:
            return (None,)
        return ascending(self.n_samples, "n_samples", lambda n: positive_int(n, "n_samples"))

    @property
    def rule(self) -> Until | None:
        """The rule that ends sampling, or None if N is a number."""
        return self.n_samples if isinstance(self.n_samples, Until) else None

    @property
    def most(self) -> int:
        """Number of samples of an input; with a rule, the largest number."""
        return max((n for n in self.sizes if n is not None), default=0) if self.rule is None else self.rule.max_samples

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Confidence levels, ascending."""
        return ascending(self.confidence_level, "confidence_level", lambda level: as_level(level, "confidence_level"))

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Metrics with their settings."""
        texts = self.data.texts if isinstance(self.data, Texts) else None
        return check_measures(self.metrics, self.noises, self.outer_noises, texts)

    @cached_property
    def parts(self) -> Callable[[Any], Any] | Regions | None:
        """Regions for all inputs, or the function of an input that makes them."""
        return checked_over(self.over, self.of)

    @property
    def sampled(self) -> dict[str, Callable[..., Any]]:
        """Sampling noises for the clean input; none if only stability is measured."""
        return {} if all(measure.under_outer_noise for measure in self.measures) else self.noises

    @cached_property
    def data(self) -> ImageFiles | Arrays | Texts:
        """The inputs; one is loaded at a time."""
        return study_inputs(self.inputs, self.targets, self.limit, self.shuffle)

    def held(self, noise: Any) -> Any:
        """A noise in the form that is used: for texts with a check that it keeps the number of words."""
        return WordForWord(noise) if self.of == "text" and noise is not None else noise

    def try_on_first(self) -> None:
        """Make the regions of the first array or text, and try each noise of texts, so that what is wrong shows early.

        Raises
        ------
        TypeError, ValueError
            If `over` fails or returns no regions, or if a noisy text has not as many words.
        """
        if not isinstance(self.data, ImageFiles):
            regions_for(self.parts, self.data.load(0, None))
        if not isinstance(self.data, Texts):
            return
        for name, noises in (("sampling", self.noises), ("outer", self.outer_noises)):
            for key, noise in noises.items():
                if noise is not None:
                    _try_noise(self.held(noise), self.data.texts[0], f"{name}[{key!r}]")

    def called(self, model: Any) -> Any:
        """The function inputs -> scores of a loaded model."""
        return model if self.of == "text" else getattr(model, "module", model)

    @property
    def of(self) -> Of:
        """The kind of methods that it can name."""
        return "text" if isinstance(self.data, Texts) else "image"


def _try_noise(noise: Any, text: Any, name: str) -> None:
    try:
        noise(text, np.random.default_rng(0))
    except (TypeError, ValueError) as error:
        raise type(error)(f"`{name}` is not a noise for the texts: {error}") from error


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
            f"{type(value).__name__}: if you have an explainer already, write `lambda model: explainer` and give a "
            "`version=`"
        )
    return value
