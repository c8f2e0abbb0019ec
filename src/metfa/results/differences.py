"""Paired differences of two results: where one explanation of the same noisy copies gives more than another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.mapped import unload
from metfa._base.provenance import printable
from metfa._base.validation import as_names, one_of, shown
from metfa.results.corrections import STATEMENTS
from metfa.results.joining import equal, in_order, short
from metfa.results.same_copies import same_copies
from metfa.results.samples import Samples
from metfa.results.scaled import SCALES, scaled_sample
from metfa.results.stopping import Stopping
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing import TypeVar

    S = TypeVar("S", bound=Samples)

__all__ = ["difference_of", "sides_of", "subtracted"]

LONGEST_NAME = 40  # as legends have room for
AT_A_TIME = 64  # samples that are read from a file before their memory is given back


def difference_of(before: S, after: S, *, scale: str = "raw", names: Any = None, word: str = "in") -> S:
    r"""The samples of `after` minus those of `before`, copy by copy; see `metfa.compare`.

    Parameters
    ----------
    before, after : AttributionSample
        Two results of the same noisy copies: the same input ids (in any order), sample ids, noise and seed.
    scale : {"raw", "mean", "share", "rank"}
        How each map is scaled before anything is subtracted; see `AttributionSample.scaled`.
    names : (str, str), optional
        What the two are called in sentences; by default before and after.
    word : {"in", "for"}
        More *in* one of two models, or more *for* one of two classes.

    Returns
    -------
    AttributionSample
        With the two as its `pair`, the threshold 0 and signs: +1 where the median difference is above 0.

    Raises
    ------
    TypeError, ValueError
        If they cannot be paired; the message says what differs.
    """
    one_of(scale, "scale", ("raw", *SCALES))
    sides_of(names, word=one_of(word, "word", ("in", "for")))  # they must be two texts
    _check_copies(before, after)
    after = in_order(after, before.input_names, before.sample_ids)
    _check_features(before, after)
    if scale != "raw" and before.regions is not None:
        raise ValueError(
            f"`scale` {scale!r} is for maps, and these are scores of regions: scale first and pool then, "
            f"`metfa.compare(before, after, scale={scale!r}).over(regions)` with the results of the single features"
        )
    if scale != "raw":
        before, after = scaled_sample(before, scale), scaled_sample(after, scale)
    changed = not equal(before.inputs, after.inputs)
    if not changed and same_copies(before.provenance.get("first_copy"), after.provenance.get("first_copy")) is False:
        raise ValueError(
            "`before` and `after` must have the same noise, so that their copies are the same, and these two noises of "
            f"the name {before.provenance.get('noise')!s:.80} make other copies of {before.input_names[0]!r:.60}"
        )
    made = {"scale": scale, "names": None if names is None else list(names), "inputs": "changed" if changed else "same"}
    made |= {} if word == "in" else {"word": word}
    return subtracted(before, after, made)


def sides_of(names: Any, of: tuple[str, str] | None = None, word: str = "in") -> tuple[str, str]:
    """Words for differences above and below 0; raises unless `names` are two different texts, or None.

    `of`: what the parts' own scores above and below 0 are called, where these are differences from something else.
    """
    if of is not None:
        above, below = sides_of(names, word=word)
        other = of[0].removeprefix("more than ")
        return f"{above}, against {other}", f"{below}, against {other}"
    if names is None:
        return "more than before", "less than before"
    two = as_names(names, "names")
    if len(two) != 2 or two[0] == two[1]:
        raise ValueError(f"`names` must be two different texts, before and after, got {shown(names)}")
    if max(map(len, two)) > LONGEST_NAME or not all(name.strip() for name in two):
        raise ValueError(f"`names` must have 1 to {LONGEST_NAME} letters, as figures show them, got {shown(names)}")
    first, second = map(printable, two)
    return f"more {word} {second} than {word} {first}", f"less {word} {second} than {word} {first}"


def subtracted(before: S, after: S, compared: dict[str, Any]) -> S:
    """`after` minus `before`, where both hold the same copies of the same inputs in the same order.

    `compared` says how they came about: "scale", "names", and "inputs", "same" or "changed".
    """
    same, made, other = compared["inputs"] == "same", before.provenance, after.provenance
    deviation = made.get("gaussian_std")
    if not same or deviation != other.get("gaussian_std"):
        deviation = None  # of clean against changed inputs there is no certificate
    explainers = [printable(str(one.get("explainer"))) for one in (made, other)]
    explainer = f"{explainers[1]} minus {explainers[0]}"
    if explainers[0] == explainers[1]:
        explainer = f"differences of two by {explainers[0]}"
    terms = before.default_terms
    own = terms.sides if terms is not None and terms.of_differences else None
    pairs = zip(before.target, after.target, strict=True)
    target = tuple(a if equal(a, b) else _parts(a) + _parts(b) for a, b in pairs)
    return replace(
        before,
        values=_differences(before, after),
        vanilla=np.subtract(after.vanilla, before.vanilla, dtype=_dtype(before.vanilla, after.vanilla)),
        target=target,
        scores=None,
        predictions=None,
        feature_names=_names_of(before, after),
        provenance={
            **made,
            "explainer": explainer,
            "signed": True,
            "unit": None,
            "gaussian_std": deviation,
            "unmoved": [name for name in made.get("unmoved", []) if name in other.get("unmoved", [])],
            "looks": sorted({*before.looks, *after.looks}),
            "seconds": round(made.get("seconds", 0) + other.get("seconds", 0), 3),
            "maps_made": made.get("maps_made", 0) + other.get("maps_made", 0),
            "compared": compared,
        },
        stopping=_stopping(before, after),
        default_terms=Terms(0.0, families=STATEMENTS, sides=_sides(compared, own)),
        pair=(before, after),
    )


def _sides(compared: dict[str, Any], own: tuple[str, str] | None) -> tuple[str, str]:
    return sides_of(compared["names"], own, compared.get("word", "in"))


def _parts(target: Any) -> tuple[Any, ...]:
    return () if target is None else target if isinstance(target, tuple) else (target,)


def _differences(before: Samples, after: Samples) -> np.ndarray:
    found = np.empty(before.values.shape, _dtype(before.values, after.values))
    for start in range(0, len(found), AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        with np.errstate(over="ignore"):
            np.subtract(after.values[part], before.values[part], out=found[part], dtype=found.dtype)
        unload(before.values)
        unload(after.values)
        if not np.isfinite(found[part]).all():
            raise ValueError("the scores are too large to be subtracted: write scale='mean'")
    return found


def _dtype(*arrays: np.ndarray) -> np.dtype:
    """Wide enough that a difference of two scores is 0 only if they are equal, or differ by less than they resolve."""
    return np.result_type(*arrays, np.float32)


def _stopping(before: Samples, after: Samples) -> Stopping | None:
    """That the number of samples depends on what was seen in one of the two, if it does."""
    stopping = after.stopping if before.stopping is None else before.stopping
    if stopping is None:
        return None
    return replace(stopping, thresholds=None, nothing=(), over=None, noun=stopping.noun_of("uncompared"))


def _names_of(before: Samples, after: Samples) -> tuple[str, ...] | None:
    """Names of the features; of texts that were edited word by word, both words where they differ."""
    if before.feature_names is None or after.feature_names is None:
        return before.feature_names or after.feature_names
    pairs = zip(before.feature_names, after.feature_names, strict=True)
    return tuple(a if a == b else f"{a} \N{RIGHTWARDS ARROW} {b}" for a, b in pairs)


def _check_copies(before: Samples, after: Samples) -> None:
    """Raise unless the two are results of the same noisy copies of the same inputs, in any order."""
    for name, one in (("before", before), ("after", after)):
        if not isinstance(one, Samples):
            raise TypeError(f"`{name}` must be an AttributionSample, got {shown(one)}")
        if one.population is not None:
            raise ValueError(
                f"`{name}` holds {one.population.noun}s and not noisy copies: compare first, and then take the "
                "differences of the rows, `metfa.compare(before, after).across_inputs()`"
            )
        if one.pairs_of is not None:
            raise ValueError(f"`{name}` holds differences of features: compare the results that they are of")
        if one.pair is not None:
            raise ValueError(f"`{name}` holds differences already: compare the results that they are of, its `pair`")
        if not isinstance(one.provenance.get("rng"), str):
            raise ValueError(
                f"`{name}` does not say which noise its samples had (provenance['rng']): nothing pairs them"
            )
    missing = sorted({*before.input_names} ^ {*after.input_names})
    if missing:
        raise ValueError(
            f"`before` and `after` must explain the same inputs, but {len(missing)} are in one alone, such as "
            f"{missing[0]!r:.60}: for a changed input give both the same name, `run=metfa.Run(input_names=...)`"
        )
    if {*before.sample_ids} != {*after.sample_ids}:
        raise ValueError(
            f"`before` and `after` must hold the same samples, got {_ids(before)} against {_ids(after)}: explain both "
            "with the same `n_samples` and `first_sample`, or both in one call of `metfa.compare`"
        )
    for name in ("rng", "streams", "noise"):
        made, other = before.provenance.get(name), after.provenance.get(name)
        if made != other:
            what = {"rng": "the same seed", "noise": "the same noise"}.get(name, "streams of the same kind")
            raise ValueError(
                f"`before` and `after` must have {what}, so that their copies are the same, got {name}={made!s:.80} "
                f"against {other!s:.80}"
            )


def _check_features(before: Samples, after: Samples) -> None:
    """Raise unless the two hold scores of the same features."""
    if before.feature_shape != after.feature_shape:
        raise ValueError(
            f"`before` and `after` must have the same features, got maps of {before.feature_shape} against "
            f"{after.feature_shape}: bring both to one size, `metfa.explainers.heatmap`, or ask about regions"
        )
    if before.regions != after.regions:
        raise ValueError(f"`after` has other `regions` than `before`: {after.regions} against {before.regions}")
    names = before.feature_names, after.feature_names
    texts = isinstance(before.inputs, list) and not equal(before.inputs, after.inputs)
    if None not in names and names[0] != names[1] and not texts:
        raise ValueError(
            f"`after` has other `feature_names` than `before`: {short(names[1])} against {short(names[0])}"
        )


def _ids(sample: Samples) -> str:
    ids = sorted(sample.sample_ids)
    return f"{ids[0]} to {ids[-1]} ({len(ids)} samples)"
