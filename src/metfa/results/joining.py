"""Samples of one input, samples of two calls joined, and the numbers of samples at which somebody looked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.earlier_words import same_explainer
from metfa._base.validation import positive_int
from metfa.results.across import joined_rows
from metfa.results.corrections import STATEMENTS
from metfa.results.one_map import is_noisy, of_one_map
from metfa.results.rules import USUAL
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing import TypeVar

    from metfa.results.layout import Layout
    from metfa.results.samples import Samples

    S = TypeVar("S", bound=Samples)

__all__ = [
    "both",
    "check_plain",
    "equal",
    "grown",
    "in_order",
    "input_of",
    "joined",
    "read_only",
    "same_maps",
    "short",
    "with_record",
]

RULES_NOW = {"families": STATEMENTS, "usual_threshold": USUAL}


def input_of(sample: S, index: int) -> S:
    """See `AttributionSample.of_input`."""
    index = positive_int(index, "index", minimum=0)
    batch = sample.values.shape[1]
    if index >= batch:
        raise ValueError(f"`index` must lie in 0..{batch - 1}, got {index}")
    return _of_inputs(sample, slice(index, index + 1))


def in_order(sample: S, input_names: tuple[str, ...], sample_ids: tuple[int, ...]) -> S:
    """The same inputs and samples in another order."""
    if sample.sample_ids != sample_ids:
        order = _places(sample.sample_ids, sample_ids)
        predictions = None if sample.predictions is None else sample.predictions[order]
        sample = replace(sample, values=sample.values[order], predictions=predictions, sample_ids=sample_ids)
    if sample.input_names != input_names:
        sample = _of_inputs(sample, _places(sample.input_names, input_names))
    return sample


def _places(names: Sequence[Any], wanted: Sequence[Any]) -> list[int]:
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in wanted]


def _of_inputs(sample: S, rows: slice | list[int]) -> S:
    """Some inputs; those of a slice as views."""
    batch = range(sample.values.shape[1])
    of = list(batch[rows]) if isinstance(rows, slice) else rows
    return replace(
        sample,
        values=sample.values[:, rows],
        inputs=_rows(sample.inputs, rows),
        target=tuple(sample.target[row] for row in of),
        vanilla=None if sample.vanilla is None else sample.vanilla[rows],
        scores=None if sample.scores is None else sample.scores[rows],
        predictions=None if sample.predictions is None else sample.predictions[:, rows],
        input_names=tuple(sample.input_names[row] for row in of),
        stopping=None if sample.stopping is None else sample.stopping.of_inputs(of),
        default_terms=None if sample.default_terms is None else sample.default_terms.of_inputs(of),
        regions=None if sample.regions is None else sample.regions.of_inputs(of),
        population=None if sample.population is None else sample.population.of_inputs(of),
        pair=None if sample.pair is None else both(_of_inputs, sample.pair, rows),
        provenance={**sample.provenance, "signed": sample.signed},
    )


def both(made: Callable[..., Any], pair: tuple[Any, Any], *arguments: Any) -> tuple[Any, Any]:
    """What a function makes of each of two parts (`AttributionSample.pair`)."""
    before, after = pair
    return made(before, *arguments), made(after, *arguments)


def read_only(value: Any) -> Any:
    """`value` with the NumPy arrays in it, also in tuples and dicts, as views that cannot be written to."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, tuple):
        return tuple(map(read_only, value))
    return {key: read_only(part) for key, part in value.items()} if isinstance(value, dict) else value


def _rows(inputs: Any, rows: slice | list[int]) -> Any:
    """Rows of a batch of inputs: of an array, a list, or each part of a tuple or dict."""
    if isinstance(inputs, tuple):
        return tuple(part[rows] for part in inputs)
    if isinstance(inputs, dict):
        return {key: part[rows] for key, part in inputs.items()}
    if isinstance(inputs, list):
        return inputs[rows] if isinstance(rows, slice) else [inputs[row] for row in rows]
    return inputs[rows]


def check_plain(sample: Samples, what: str) -> None:
    """Raise if the marks have a meaning of their own (`Terms.effects_at`), which no sum or difference of scores has."""
    terms = sample.default_terms
    if terms is not None and terms.sides is not None and terms.of_effects:
        raise ValueError(
            f"`{what}` is for plain scores, and the marks of these have a meaning of their own "
            f"({terms.sides[0]!r}), which holds for no sum or difference of them: ask about several sources together "
            "by `metfa.text.SourceEffects(groups=...)`"
        )


def joined(sample: S, other: S) -> S:
    """See `AttributionSample.concat`."""
    if sample.population is not None or other.population is not None:
        return joined_rows(sample, other)
    _check_joins(sample, other)
    ids = sample.sample_ids + other.sample_ids
    order = np.argsort(np.array(ids))
    predictions = None
    if sample.predictions is not None and other.predictions is not None:
        predictions = np.concatenate([sample.predictions, other.predictions])[order]
    spent = {name: sum(one.provenance.get(name, 0) for one in (sample, other)) for name in ("seconds", "maps_made")}
    stopping = sample.stopping
    if stopping is not None:
        stopping = replace(stopping, added=stopping.added + other.n_samples)
    parts = None
    if sample.pair is not None and other.pair is not None:
        parts = joined(sample.pair[0], other.pair[0]), joined(sample.pair[1], other.pair[1])
    first = min(sample, other, key=lambda one: min(one.sample_ids))
    values = np.concatenate([sample.values, other.values])[order]
    first_copy, spent["seconds"] = first.provenance.get("first_copy"), round(spent["seconds"], 3)
    made = {"n_samples": len(ids), "first_sample": min(ids), **spent, "first_copy": first_copy}
    return replace(
        sample,
        values=values,
        predictions=predictions,
        sample_ids=tuple(ids[i] for i in order),
        stopping=stopping,
        pair=parts,
        provenance={
            **sample.provenance,
            **made,
            "unmoved": _unmoved(sample, other, values),
            "looks": sorted({*sample.looks, *other.looks}),
            **_layouts(sample, other),
        },
    )


def _unmoved(sample: Samples, other: Samples, values: np.ndarray) -> list[str]:
    """Inputs whose samples are all the same in both parts and together."""
    known = [_may_be_one_map(part) for part in (sample, other)]
    rows = [row for row, name in enumerate(sample.input_names) if all(name in names for names in known)]
    same = of_one_map(rows, values, noisy=is_noisy(sample.provenance))
    return [sample.input_names[row] for row in same]


def _may_be_one_map(part: Samples) -> Sequence[str]:
    """Inputs that more samples may show to have one map: those without noise of which there is one sample, too."""
    undrawn = part.n_samples == 1 and not is_noisy(part.provenance) and not part.of_effects
    return part.input_names if undrawn else part.provenance.get("unmoved", ())


def _layouts(*parts: Samples) -> dict[str, str | None]:
    """The memory layouts in which the model was asked, which change rounding only; None where a part does not say."""
    layouts = {part.provenance.get("layout") for part in parts}
    known = None if None in layouts else " and ".join(sorted(map(str, layouts)))
    return {} if layouts == {None} else {"layout": known}


def with_record(provenance: dict[str, Any]) -> dict[str, Any]:
    """The provenance with the list "looks", which results of the same samples share, and with rules that may change.

    These are the rule of families and the usual threshold rule.

    Raises
    ------
    TypeError
        If "looks" is another thing.
    """
    looks, said = provenance.get("looks"), {name: provenance.get(name) for name in RULES_NOW}
    if looks is not None and (not isinstance(looks, list) or not all(type(size) is int and size > 0 for size in looks)):
        raise TypeError(f"looks in the provenance, which must be a list of numbers of samples, got {looks!r:.80}")
    if looks is not None and None not in said.values():
        return provenance
    now = {name: RULES_NOW[name] if rule is None else rule for name, rule in said.items()}
    return {**provenance, "looks": [] if looks is None else looks, **now}


def grown(looks: list[int], n_samples: int, noun: str = "sample") -> str | None:
    """At which numbers below `n_samples` somebody looked before more were joined, in words; None if nobody did."""
    sizes = sorted({size for size in looks if size < n_samples})
    if not sizes:
        return None
    listed = ("..., " if len(sizes) > 5 else "") + ", ".join(map(str, sizes[-5:]))
    return f"joined from parts after looks at {listed} {noun}s"


def _check_joins(sample: Samples, other: Samples) -> None:
    """Raise unless `other` holds further samples of the same inputs, made in the same way."""
    repeated = sorted(set(sample.sample_ids) & set(other.sample_ids))
    if repeated:
        raise ValueError(
            f"`other` holds {len(repeated)} sample ids that are here already, from {repeated[0]}: sample it with "
            f"`first_sample={max(sample.sample_ids) + 1}`"
        )
    if other.stopping is not None and sample.stopping is None:
        raise ValueError(
            "`other` was sampled until enough was known, and this one was not: use one rule for all samples, or begin "
            "with the rule and add a fixed number"
        )
    if sample.stopping is not None and min(other.sample_ids) < max(sample.sample_ids):
        raise ValueError(
            "`other` must hold later samples, because this one was sampled until enough was known: sample `other` with "
            f"`first_sample={max(sample.sample_ids) + 1}`"
        )
    for name in ("input_names", "inputs", "target", "feature_names"):
        if not equal(getattr(sample, name), getattr(other, name)):
            raise ValueError(
                f"`other` has another `{name}`: {short(getattr(other, name))} against {short(getattr(sample, name))}"
            )
    for name in ("explainer", "noise", "rng", "streams"):
        one, two = sample.provenance.get(name), other.provenance.get(name)
        if one != two and not (name == "explainer" and same_explainer(one, two)):
            raise ValueError(f"`other` was made with {name}={two}, this with {one}")
    if sample.provenance.get("compared") != other.provenance.get("compared"):
        raise ValueError(f"`other` has other differences: {short(other.provenance.get('compared'))}")
    if sample.regions != other.regions:
        raise ValueError(f"`other` has other `regions`: {other.regions} against {sample.regions}")
    if not _same_terms(sample.default_terms, other.default_terms):
        raise ValueError(f"`other` has other `default_terms`: {other.default_terms} against {sample.default_terms}")
    if not same_maps(sample.vanilla, other.vanilla):
        raise ValueError("`other` explains another model: the attributions of the clean inputs differ")


def _same_terms(a: Terms | None, b: Terms | None) -> bool:
    """Whether default terms agree, units up to the rounding of a model's kernels: some are of the clean maps."""
    if a is None or b is None:
        return a is b
    if (a.unit is None) != (b.unit is None) or replace(a, unit=None) != replace(b, unit=None):
        return False
    return a.unit is None or (np.shape(a.unit) == np.shape(b.unit) and np.allclose(a.unit, b.unit, rtol=0.02, atol=0))


def same_maps(a: np.ndarray, b: np.ndarray, layout: Layout | None = None) -> bool:
    """Whether the attributions of each clean input, and of each part of it, agree up to the rounding of kernels."""
    if a.shape != b.shape:
        return False
    if layout is not None:
        return all(map(same_maps, layout.split(a).values(), layout.split(b).values()))
    a, b = (maps.reshape(len(maps), -1).astype(np.float64) for maps in (a, b))
    return bool((np.abs(a - b).sum(1) <= 0.02 * np.maximum(np.abs(a).sum(1), np.abs(b).sum(1))).all())


def equal(a: Any, b: Any) -> bool:
    """Whether two fields of results are equal, arrays and all."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(equal, a, b))
    return repr(a) == repr(b)


def short(value: Any) -> str:
    """A field of a result for a message."""
    return f"an array {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.80}"
