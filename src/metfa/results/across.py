"""One number of each row of a data set: the rows become the samples, and statements are about their population."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.provenance import printable
from metfa._base.validation import check_flag, one_of
from metfa._base.warnings import MetfaWarning, warn
from metfa.results.labels import joined_codes
from metfa.results.population import DIFFERENCE, NUMBERS, Population
from metfa.results.regions import Regions
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing import TypeVar

    from metfa.results.samples import Samples

    S = TypeVar("S", bound=Samples)

__all__ = ["across_rows", "base_of", "joined_rows", "number_of_each", "terms_across"]

KEPT = (
    "columns",
    "explainer",
    "noise",
    "rng",
    "streams",
    "device",
    "versions",
    "families",
    "usual_threshold",
    "unit",
    "started",
    "class_names",
    "of_outputs",
    "picked",
)
LISTED = 3  # rows that are named in a message


def across_rows(sample: S, of: str = "vanilla", absolute: bool | None = None) -> S:
    """See `AttributionSample.across_inputs`."""
    one_of(of, "of", NUMBERS)
    if sample.population is not None:
        raise ValueError(
            f"`across_inputs` needs samples under noise, and the samples of this result are "
            f"{sample.population.noun}s already"
        )
    if sample.pairs_of is not None:
        raise ValueError("`across_inputs` comes first: write `sample.across_inputs(...).pairwise()`")
    if isinstance(sample.inputs, list) and sample.regions is None:
        raise ValueError(
            "`across_inputs` needs features that mean the same in every row, and words of texts stand at places: pool "
            "them first, with regions of the same names for each text, `sample.over(regions).across_inputs()`"
        )
    if sample.regions is None and len(sample.feature_shape) > 1:
        shape = "×".join(map(str, sample.feature_shape))
        warn(
            f"`across_inputs` takes each of the {shape} features as the same in every row, which pixels of different "
            "pictures and steps of different series are not; unless yours are aligned, pool them first, with regions "
            "of the same names for each input, `sample.over(regions).across_inputs()`",
            MetfaWarning,
        )
    _check_names(sample.regions)
    _check_units(sample.input_names)
    absolute = _checked_absolute(sample, absolute)
    numbers = number_of_each(sample, of)
    common = len({repr(one) for one in sample.target}) == 1
    noisy = of != "vanilla"
    flips = None if not noisy or sample.flip_rate is None else (float(sample.flip_rate.mean()),)
    regions = sample.regions
    return replace(
        sample,
        values=(np.abs(numbers) if absolute else numbers)[:, None],
        inputs=_as_one(sample.inputs),
        target=sample.target[:1] if common else (None,),
        vanilla=None,
        scores=None,
        predictions=None,
        sample_ids=tuple(range(len(numbers))),
        input_names=("population",),
        provenance={
            **{name: sample.provenance[name] for name in KEPT if name in sample.provenance},
            "noise": sample.provenance.get("noise") if noisy else None,
            "signed": sample.signed and not absolute,
            "looks": _looks_at(sample),
        },
        stopping=None,
        default_terms=terms_across(sample, absolute),
        pair=None,  # each row's own difference is one number
        regions=None,  # they may lie elsewhere in each row; their names stay
        population=Population(
            noun="row",
            names=sample.input_names,
            of=of,
            copies=sample.n_samples if noisy else 0,
            absolute=absolute,
            score=sample.score_name if sample.pair is None else DIFFERENCE,
            feature=sample.noun,
            targets=sample.target,
            flips=flips,
            layout=None if regions is None or regions.named else regions.digest,
        ),
    )


def number_of_each(sample: Samples, of: str) -> np.ndarray:
    r"""The number that is taken of each input, (batch, \*features), at least float32."""
    numbers = sample.vanilla if of == "vanilla" else getattr(sample, of)()
    return numbers.astype(np.result_type(numbers.dtype, np.float32), copy=False)


def terms_across(sample: Samples, absolute: bool) -> Terms | None:
    """Default terms of the numbers of the inputs, from those of the samples; None for the usual ones."""
    own = sample.default_terms
    if own is None:
        return None
    number = np.isscalar(own.threshold) and not absolute  # 0 is no threshold for absolute values
    threshold = own.threshold if number or callable(own.threshold) else sample.usual_rule
    unit = None if own.unit is None else float(np.median(own.unit))
    sides = None if absolute else own.sides
    return replace(own, threshold=threshold, split=0, unit=unit, nothing=(), sides=sides)


def joined_rows(sample: S, other: S) -> S:
    """See `AttributionSample.concat`."""
    one, two = sample.population, other.population
    if one is None or two is None or (one.noun, two.noun) != ("row", "row"):
        kinds = [f"{part.sample_noun}s" for part in (sample, other)]
        raise ValueError(
            f"`other` holds {kinds[1]}, and this result {kinds[0]}: join rows with rows, "
            "`first.across_inputs().concat(second.across_inputs())`"
        )
    for name in ("of", "copies", "absolute", "score", "feature", "layout"):
        if getattr(one, name) != getattr(two, name):
            raise ValueError(
                f"`other` is another number of each row, or of other features: {name}={getattr(two, name)!r} against "
                f"{getattr(one, name)!r}; give `across_inputs` the same `of` and `absolute`, and the parts as many "
                "samples and the same regions"
            )
    for name, a, b in (
        ("features", sample.values.shape[1:], other.values.shape[1:]),
        ("feature names", sample.feature_names, other.feature_names),
        *((name, sample.provenance.get(name), other.provenance.get(name)) for name in ("explainer", "noise")),
        ("kind of inputs", type(sample.inputs), type(other.inputs)),
        ("dtype of the inputs", *(getattr(part.inputs, "dtype", None) for part in (sample, other))),
    ):
        if a != b:
            raise ValueError(f"`other` has other {name}: {printable(f'{b!r:.80}')} against {printable(f'{a!r:.80}')}")
    if sample.default_terms != other.default_terms and (
        sample.default_terms is None
        or other.default_terms is None
        or replace(sample.default_terms, unit=None) != replace(other.default_terms, unit=None)
    ):
        raise ValueError("`other` has other `default_terms`")
    names = one.names + two.names
    _check_units(names)
    targets = one.targets + two.targets
    common = len(set(map(repr, targets))) == 1
    weights = len(one.names), len(two.names)
    flips = None
    if one.flips is not None and two.flips is not None:
        flips = (float(np.average([one.flips[0], two.flips[0]], weights=weights)),)
    inputs, columns = joined_codes(sample, other)
    return replace(
        sample,
        values=np.concatenate([sample.values, other.values]),
        inputs=_joined_inputs(sample.inputs, inputs),
        target=targets[:1] if common else (None,),
        sample_ids=tuple(range(len(names))),
        provenance={
            **sample.provenance,
            "rng": sample.provenance.get("rng")
            if sample.provenance.get("rng") == other.provenance.get("rng")
            else None,
            "signed": sample.signed or other.signed,
            "looks": sorted({*sample.looks, *other.looks}),
            **({} if columns is None else {"columns": columns}),
        },
        population=replace(one, names=names, targets=targets, flips=flips),
    )


def base_of(name: str) -> str:
    """The digest of the content in an id that `explain` gave to a repeated row; any other id as it is."""
    found = re.fullmatch(r"([0-9a-f]{32})#\d+", name)
    return name if found is None else found[1]


def _looks_at(sample: Samples) -> list[int]:
    """The list of looks that all results of these rows share, see `AttributionSample.looks`."""
    rows = blake2b(repr(sample.input_names).encode(), digest_size=8).hexdigest()
    return sample.provenance.setdefault("looks_across", {}).setdefault(rows, [])


def _check_units(names: Sequence[str]) -> None:
    """Raise if a row is there twice: it is no second unit of the population."""
    first: dict[str, int] = {}
    repeated = []
    for row, name in enumerate(names):
        same = first.setdefault(base_of(name), row)
        if same != row:
            repeated.append(f"{row} (as {same})")
    if repeated:
        more = f" and {len(repeated) - LISTED} more" if len(repeated) > LISTED else ""
        raise ValueError(
            f"`across_inputs` needs rows that are units of their own, and these have the content of others: rows "
            f"{', '.join(repeated[:LISTED])}{more}. Leave copies out before they are explained; if they are different "
            "people or things that only look alike, name each: "
            "`metfa.explain(..., run=metfa.Run(input_names=[...]))`"
        )


def _check_names(regions: Regions | None) -> None:
    if regions is not None and len(regions.masks) > 1 and not regions.named:
        raise ValueError(
            "`across_inputs`: the regions lie elsewhere in each row and have no names of their own, so that "
            "'region 0' of one row is not that of another: give names that mean the same in every row, "
            "`metfa.Regions(masks, names=[...])`"
        )


def _checked_absolute(sample: Samples, absolute: bool | None) -> bool:
    if absolute is not None:
        return check_flag(absolute, "absolute")
    differences = sample.default_terms is not None and sample.default_terms.of_differences
    return sample.signed and not differences


def _as_one(inputs: Any) -> Any:
    """All rows as the one input of a batch of one."""
    if isinstance(inputs, list):
        return [[row if isinstance(row, str) else " ".join(map(str, row)) for row in inputs]]
    if isinstance(inputs, tuple):
        return tuple(part[None] for part in inputs)
    return {key: part[None] for key, part in inputs.items()} if isinstance(inputs, dict) else inputs[None]


def _joined_inputs(a: Any, b: Any) -> Any:
    if isinstance(a, list):
        return [[*a[0], *b[0]]]
    if isinstance(a, tuple):
        return tuple(map(_along_rows, a, b))
    return {key: _along_rows(a[key], b[key]) for key in a} if isinstance(a, dict) else _along_rows(a, b)


def _along_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b], axis=1)
