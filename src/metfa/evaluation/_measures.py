"""The measures of a study: metrics by name, which give rows (metric, score, raw, ...) for one input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metfa import metrics
from metfa._base.validation import check_number, did_you_mean, positive_int
from metfa.calls.called import Called
from metfa.calls.fast import check_fast
from metfa.calls.held import SETTINGS
from metfa.calls.hidden import Hidden, baseline_numbers
from metfa.evaluation import _of_samples
from metfa.evaluation._figures import BESIDE_MSTD, Row, number, plain_row, score_row
from metfa.results.corrections import check_correction
from metfa.results.sample import AttributionSample
from metfa.results.terms import checked_threshold
from metfa.text import word_metrics

__all__ = ["GOVERNED", "MEASURES", "Measure", "check_measures"]


@dataclass(frozen=True)
class Measure:
    """One entry of a study's metrics.

    `of` names the arguments:

    - "maps": (model, inputs, maps, target);
    - "maps under noise": the same, and the outer noise and the seed;
    - "outer samples": explanations under an outer noise;
    - "predictions": the same, but only for the vanilla map, which comes with the model's scores;
    - "samples": samples under a sampling noise.

    `takes` is the function whose settings the measure has, and `needs` holds the settings without a default. `makes`
    holds the metrics of its rows if their names differ from the measure's. `of_texts` is True for texts only, False
    for other inputs only, None for any. A measure of samples depends on the confidence level if `by_level`, and tests
    at alpha = 1 - level if it `decides`.
    """

    name: str
    of: str
    rows: Callable[..., list[Row]]
    takes: Callable[..., Any] | None = None
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    of_texts: bool | None = None
    by_level: bool = True
    decides: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def under_outer_noise(self) -> bool:
        """Whether it needs explanations under an outer noise."""
        return self.of in ("outer samples", "predictions")

    @property
    def asks(self) -> bool:
        """Whether it asks the model, so that its settings may say how."""
        return self.takes is not None and "model" in inspect.signature(self.takes).parameters

    def called(self, model: Any) -> Any:
        """The model as it is asked."""
        asking = {name: value for name, value in self.settings.items() if self.asks and name in SETTINGS}
        return Called(model, **{"softmax": not self.of_texts, **asking}) if asking else model

    @property
    def own_settings(self) -> dict[str, Any]:
        """Settings of the function, without those that say how the model is asked."""
        return {name: value for name, value in self.settings.items() if not (self.asks and name in SETTINGS)}


def _faithfulness(model: Any, inputs: Any, maps: Any, target: Any, **settings: Any) -> list[Row]:
    result = metrics.overall(model, inputs, maps, target, **settings)
    return [
        score_row("insertion", result.insertion),
        score_row("deletion", result.deletion),
        score_row("overall", result),
    ]


def _robust_faithfulness(
    model: Any, inputs: Any, maps: Any, target: Any, *, noise: Any, rng: int, n_outer: int, **settings: Any
) -> list[Row]:
    """RI, RD and RO from the same draws; each curve is computed once."""
    judged = metrics.robust(metrics.overall, noise=noise, n_outer=n_outer, rng=rng)
    both = judged(model, inputs, maps, target, **settings)
    inserted = metrics.RobustScore.of([draw.insertion for draw in both.draws])
    deleted = metrics.RobustScore.of([draw.deletion for draw in both.draws])
    return [_robust_row("RI", inserted), _robust_row("RD", deleted), _robust_row("RO", both)]


def _robust_row(metric: str, score: metrics.RobustScore) -> Row:
    return score_row(
        metric,
        score,
        mean_of_ratios=number(score.mean_of_ratios[0]),
        median_of_ratios=number(score.median_of_ratios[0]),
    )


def _word_faithfulness(model: Any, inputs: Any, maps: Any, target: Any, *, others: Any, **settings: Any) -> list[Row]:
    return [
        score_row("FDT", word_metrics.fdt(model, inputs, maps, target, **settings)),
        score_row("ST", word_metrics.st(model, inputs, maps, target, **settings)),
        score_row("FAT", word_metrics.fat(model, inputs, maps, target, others=others, **settings)),
    ]


def _robust_word_faithfulness(
    model: Any,
    inputs: Any,
    maps: Any,
    target: Any,
    *,
    noise: Any,
    rng: int,
    n_outer: int,
    others: Any,
    **settings: Any,
) -> list[Row]:
    """RFDT, RST and RFAT from the same noisy texts."""
    found = []
    for name, metric, more in (
        ("RFDT", word_metrics.fdt, {}), ("RST", word_metrics.st, {}), ("RFAT", word_metrics.fat, {"others": others})
    ):  # fmt: skip
        judged = metrics.robust(metric, noise=noise, n_outer=n_outer, rng=rng)
        found.append(_robust_row(name, judged(model, inputs, maps, target, **settings, **more)))
    return found


def _infidelity(model: Any, inputs: Any, maps: Any, target: Any, **settings: Any) -> list[Row]:
    return [score_row("infidelity", metrics.infidelity(model, inputs, maps, target, **settings))]


def _mstd(sample: AttributionSample) -> list[Row]:
    result = metrics.mstd(sample)
    return [score_row("mstd", result, **{name: number(getattr(result, name)[0]) for name in BESIDE_MSTD})]


def _top_k_overlap(sample: AttributionSample, k: int) -> list[Row]:
    return [score_row("top_k_overlap", metrics.top_k_overlap(sample, k))]


def _max_sensitivity(sample: AttributionSample) -> list[Row]:
    return [score_row("max_sensitivity", metrics.max_sensitivity(sample))]


def _prediction_agreement(sample: AttributionSample) -> list[Row]:
    if sample.flip_rate is None:
        return [plain_row("prediction_agreement", np.nan, "the explainer returns no scores")]
    return [score_row("prediction_agreement", metrics.prediction_agreement(sample))]


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("faithfulness", "maps", _faithfulness, takes=metrics.overall,
                makes=("insertion", "deletion", "overall"), of_texts=False),
        Measure("word_faithfulness", "maps", _word_faithfulness, takes=word_metrics.fat,
                makes=("FDT", "ST", "FAT"), of_texts=True),
        Measure("robust_word_faithfulness", "maps under noise", _robust_word_faithfulness, takes=word_metrics.fat,
                makes=("RFDT", "RST", "RFAT"), of_texts=True),
        Measure("infidelity", "maps", _infidelity, takes=metrics.infidelity, needs=("noise",),
                of_texts=False),
        Measure("robust_faithfulness", "maps under noise", _robust_faithfulness, takes=metrics.overall,
                makes=("RI", "RD", "RO"), of_texts=False),
        Measure("mstd", "outer samples", _mstd),
        Measure("top_k_overlap", "outer samples", _top_k_overlap, takes=metrics.top_k_overlap, needs=("k",)),
        Measure("max_sensitivity", "outer samples", _max_sensitivity),
        Measure("prediction_agreement", "predictions", _prediction_agreement),
        Measure("interval_width", "samples", _of_samples.interval_width),
        Measure("sample_size", "samples", _of_samples.sample_size, by_level=False),
        Measure("rule_met", "samples", _of_samples.rule_met, by_level=False),
        Measure("undecided", "samples", _of_samples.undecided, takes=metrics.undecided, decides=True),
        Measure("region_score", "samples", _of_samples.region_score, takes=metrics.region_score, of_texts=False,
                decides=True),
        Measure("certified_radius", "samples", _of_samples.certified_radius, takes=metrics.certified_radius,
                decides=True),
        Measure("certified_share", "samples", _of_samples.certified_share, takes=metrics.certified_share,
                needs=("radius",), decides=True),
    )
}  # fmt: skip
GOVERNED = {"model", "inputs", "attributions", "regions", "sample", "target", "rng", "alpha"}


def check_measures(
    entries: Any, sampling: Mapping[str, Any], outer: Mapping[str, Any], texts: Sequence[Any] | None = None
) -> tuple[Measure, ...]:
    """The chosen measures with their settings; raises if one is unknown, lacks its noise or does not fit the inputs.

    `texts` are the texts of the study; None if its inputs are not texts.
    """
    if isinstance(entries, str) or not isinstance(entries, Mapping | Sequence):
        raise TypeError(f"`metrics` must be a sequence of names or a dict of names, got {type(entries).__name__}")
    for entry in entries:
        if not isinstance(entry, str):
            raise TypeError(f"`metrics` must hold names, got {type(entry).__name__}: {entry!r}")
    chosen = entries if isinstance(entries, Mapping) else {name: {} for name in entries}
    if not chosen:
        raise ValueError(f"`metrics` is empty: give some of {', '.join(MEASURES)}")
    measures = tuple(_measure(name, settings, texts) for name, settings in chosen.items())
    for measure in measures:
        noises, name = (sampling, "sampling") if measure.of == "samples" else (outer, "outer")
        if measure.of != "maps" and not noises:
            raise ValueError(f"`metrics`: {measure.name} is measured under noise, and `{name}` names none")
        if measure.of_texts is not None and measure.of_texts != (texts is not None):
            raise ValueError(
                f"`metrics`: {measure.name} is for {'texts' if measure.of_texts else 'images'}, but the inputs are not"
            )
        if measure.of == "maps under noise" and all(noise is None for noise in noises.values()):
            raise ValueError(f"`metrics`: {measure.name} needs a noise in `outer` that is not None")
    return measures


def _measure(name: str, settings: Any, texts: Sequence[Any] | None) -> Measure:
    if callable(settings):
        if any(name in (measure.name, *measure.makes) for measure in MEASURES.values()):
            raise ValueError(f"`metrics`: metfa uses the name {name!r} already, give your function another name")
        return Measure(name, "maps", _Own(name, settings))
    if name not in MEASURES:
        hint = _of_another_name(name) or did_you_mean(name, MEASURES)
        raise ValueError(f"`metrics` must be of {', '.join(MEASURES)}, or a name and a function, got {name!r}{hint}")
    measure = MEASURES[name]
    if not isinstance(settings, Mapping | None):
        raise TypeError(f"`metrics[{name!r}]` must be a dict of settings, got {type(settings).__name__}: {settings!r}")
    settings = dict(settings or {})
    if measure.of_texts and texts is not None:
        settings.setdefault("others", tuple(texts))
        others = settings["others"] if isinstance(settings["others"], list | tuple) else ()  # refused by the metric
        if len({isinstance(text, str) for text in (*texts, *others)}) > 1:
            raise TypeError(
                f"`metrics`: {name} plants words of one text in another, but some are texts and some lists of tokens: "
                "give all in one form"
            )
    parameters = inspect.signature(measure.takes).parameters if measure.takes else ()
    allowed = [setting for setting in parameters if setting not in GOVERNED] + list(SETTINGS if measure.asks else ())
    for setting in settings:
        if setting not in allowed:
            raise ValueError(
                f"`metrics`: {name} has no setting {setting!r}{did_you_mean(str(setting), allowed)}; it has "
                f"{', '.join(allowed) or 'none'}"
            )
    missing = [setting for setting in measure.needs if setting not in settings]
    if missing:
        raise ValueError(f"`metrics`: {name} needs {', '.join(missing)}, as in {{'{name}': {{'{missing[0]}': ...}}}}")
    try:
        _check_settings(settings)
    except (TypeError, ValueError) as error:
        raise type(error)(f"`metrics[{name!r}]`: {error}") from error
    return replace(measure, settings=settings)


def _of_another_name(name: str) -> str:
    """End of an error message if the name is that of a figure, not of its measure."""
    alias = {made.casefold(): measure.name for measure in MEASURES.values() for made in measure.makes}
    found = alias.get(name.casefold().replace("_", ""))
    return "" if found is None else f", which {found} measures: did you mean {found!r}?"


def _check_settings(settings: dict[str, Any]) -> None:
    """Raise for settings that the metrics themselves would refuse in every unit."""
    check_fast(settings.get("fast"))  # a copy of the model can be made when there is one
    Called(lambda inputs: inputs, **{name: settings[name] for name in SETTINGS if name in settings and name != "fast"})
    for count, least in {"k": 1, "n": 1, "steps": 1, "n_perturbations": 1, "split": 0}.items():
        if count in settings:
            positive_int(settings[count], count, least)
    if "radius" in settings:
        check_number(settings["radius"], "radius", above=0)
    check_correction(settings.get("correction"))
    if settings.get("threshold") is not None:
        threshold = checked_threshold(settings["threshold"])
        if isinstance(threshold, np.ndarray):
            raise TypeError(f"`threshold` must be one number or a rule in a study, got an array of {threshold.shape}")
    if "noise" in settings and not callable(settings["noise"]):
        raise TypeError(f"`noise` must be a function f(x, rng) -> x, got {settings['noise']!r}")
    baseline = settings.get("baseline", "black")
    if isinstance(baseline, str):
        Hidden.behind(baseline, np.zeros((1, 1, 12, 12)))  # pyright: ignore[reportArgumentType]
    elif not callable(baseline):
        baseline_numbers(baseline)


@dataclass(frozen=True)
class _Own:
    """The rows of a user's own metric."""

    name: str
    metric: Callable[..., Any]

    def __call__(self, model: Any, inputs: Any, maps: Any, target: Any) -> list[Row]:
        result = self.metric(model, inputs, maps, target)
        if isinstance(result, metrics.Scores):
            return [score_row(self.name, result)]
        return [plain_row(self.name, getattr(result, "score", result))]
