"""The terms of a decision: threshold, alpha, correction and split, and what holds where they are not given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import as_names, check_number, keep, positive_int, shown
from metfa.results.corrections import BOTH, UNPROVEN, check_alpha, check_correction, check_families
from metfa.results.rules import RULES, USUAL, saw_tested
from metfa.results.units import checked_unit

__all__ = ["Terms", "check_fits", "checked_threshold", "filled"]


@dataclass(frozen=True, eq=False)
class Terms:
    r"""Threshold, alpha, correction and split of a decision.

    `AttributionSample.terms` fills in what is not given, from the first of these that there is:

    1. the terms of `metfa.Until`, if it tested anything: the threshold of each input, its alpha and its correction, and
       its first samples left out where these gave the thresholds. For the single features of ``Until(over=)``, which
       tests regions, its alpha and its correction, with the threshold of 2 or 3;
    2. the `AttributionSample.default_terms` of the result;
    3. the threshold 0 for signed attributions (`AttributionSample.signed`), else the natural break of the medians
       (`stats.jenks_of_medians`; results from before it was usual keep `stats.jenks`, the paper's); alpha 0.05, no
       correction, no split.

    A `threshold` that is given alone has no split. A `split` alone takes the threshold of 2 or 3, which must be a rule.

    Attributes
    ----------
    threshold : float, ndarray (batch,) or (batch, \*features), or callable
        One number for all, one for each input, or one for each feature. Or a rule such as
        `stats.jenks_of_medians`: values (n, \*features) of an input -> float.
    alpha : float
        Level of each of the two statements, "above" and "below": of the one-sided test of one feature (the paper's
        rule), or with a correction of the tests of all features of an input together.
    correction : {None, "bonferroni", "holm", "bh", "by", "e-bh", "closed-e-bh"}
        Correction for many features: family-wise error (bonferroni, holm) or false discovery rate (bh under positive
        dependence, by under any, e-bh and closed-e-bh under any and whenever sampling stops). If the threshold comes
        from the tested samples themselves, there is no proof for bh (chosen to mislead, it doubled the rate, .021 to
        .040), and e-bh decides in place of closed-e-bh. That marks no fewer features than e-bh, as a set with this
        rate; a single mark may be false more often than alpha. Without a correction, up to `stats.expected_false_marks`
        false marks are expected if every median lies at the threshold. As an argument "none" means no correction, and
        None means that nothing is given. After `metfa.Until` all tests use e-values, and holm, bh and by are refused.
    unit : float, ndarray (batch,), optional
        What counts as a whole score, in the units of the maps: 1 for probabilities. Scores that differ by less than a
        ten-thousandth of it do not differ (`stats.prominence`): natural breaks find no threshold where all medians
        agree to that, and a test about the threshold 0, also one that you give, counts scores as near to 0 for neither
        side. `AttributionSample.terms` takes the explainer's attribute `unit`, if it has one, else for each input the
        largest absolute score of the clean map or the largest absolute median of the samples, whichever is smaller.
    split : int
        How many of the first samples are left out of the tests. A rule takes the threshold from these alone, so that it
        is a fixed number for the test. Without a split, all samples choose the threshold and are tested. If you give a
        number that was taken from first samples, leave these out too.
    nothing : tuple of (str or None)
        After `metfa.Until`: why its rule found no threshold for an input, whose `threshold` is nan; else empty.
    families : {None, "statements", "both"}
        Which tests a correction takes together. "statements": the m tests of "above" at alpha, and on their own those
        of "below". Rates are of those called important, and of those called unimportant; family-wise errors of both
        together have the level 2 alpha. "both": all 2m tests, as once; a rate is then of all marks together, and the
        few important ones may be false far more often. None: as saved with the result, "statements" for a new one.
    sides : (str, str) or None
        What differences above and below 0 are called, such as ("more than the rest", "less than the rest"), or effects
        above and below `effects_at`. None for plain scores.
    effects_at : float or None
        Of draws of the effects of sources (`metfa.text.SourceEffects`): the effect about which `sides` speak, above 0.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """

    threshold: Any = RULES[USUAL]
    alpha: float = 0.05
    correction: str | None = None
    split: int = 0
    unit: Any = None
    nothing: tuple[str | None, ...] = ()
    families: str | None = None
    sides: tuple[str, str] | None = None
    effects_at: float | None = None

    def __post_init__(self) -> None:
        fits = isinstance(self.nothing, tuple) and all(isinstance(why, str | None) for why in self.nothing)
        if not fits or (self.nothing and np.shape(self.threshold) != (len(self.nothing),)):
            raise ValueError(f"`nothing` must be a text or None for each threshold, got {shown(self.nothing)}")
        missing = np.array([why is not None for why in self.nothing])
        given: Any = self.threshold
        known: Any = checked_threshold(np.where(missing, 0.0, given) if missing.any() else given)
        check_alpha(self.alpha)
        keep(self, threshold=np.where(missing, np.nan, known) if missing.any() else known)
        keep(self, unit=checked_unit(self.unit), alpha=float(self.alpha), families=check_families(self.families))
        keep(self, correction=check_correction(self.correction), split=positive_int(self.split, "split", minimum=0))
        if self.sides is not None:
            keep(self, sides=as_names(self.sides, "sides"))
            if len(self.sides) != 2:
                raise ValueError(f"`sides` must be two texts, above and below `sides_at`, got {len(self.sides)}")
        if self.effects_at is not None:
            check_number(self.effects_at, "effects_at", above=0)
            if self.sides is None:
                raise ValueError("`effects_at` needs `sides`, the names of effects above and below it")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Terms):
            return NotImplemented
        named = ("alpha", "correction", "split", "families", "sides", "effects_at")
        same = all(getattr(self, name) == getattr(other, name) for name in named)
        same = same and np.array_equal(self.unit, other.unit)
        if callable(self.threshold) or callable(other.threshold):
            return same and self.threshold is other.threshold
        return same and np.array_equal(self.threshold, other.threshold, equal_nan=True)

    __hash__: ClassVar[None] = None  # pyright: ignore[reportIncompatibleMethodOverride] - it may hold an array

    @property
    def of_differences(self) -> bool:
        """Whether the scores are differences, whose signs have names."""
        return self.sides is not None and not self.of_effects

    @property
    def of_effects(self) -> bool:
        """Whether marks have a meaning of their own, as those of `metfa.text.SourceEffects`."""
        return self.effects_at is not None

    @property
    def sides_at(self) -> float:
        """The threshold at which `sides` name what lies above and below."""
        return 0.0 if self.effects_at is None else self.effects_at

    @property
    def at(self) -> str:
        """Alpha, and whether it is that of each side, in words."""
        return f"alpha {self.alpha:g}{'' if self.together else ' a side'}"

    @property
    def level(self) -> str:
        """Alpha and correction in words, of which tests, and what no proof covers."""
        by = f"{self.correction or 'uncorrected'}{' over both sides together' * self.together}"
        instead = " and so decided by e-bh" * (self.in_effect != self.correction)
        return f"{self.at}, {by}{f', {UNPROVEN}{instead}' * self.unproven}"

    @property
    def together(self) -> bool:
        """Whether a correction takes the tests of both statements as one family."""
        return self.correction is not None and self.families == BOTH

    @property
    def unproven(self) -> bool:
        """Whether no proof covers the correction, because the threshold is from the samples that are tested."""
        return self.correction in ("bh", "closed-e-bh") and saw_tested(self.threshold, self.split)

    @property
    def in_effect(self) -> str | None:
        """The correction that decides: "e-bh" in place of a "closed-e-bh" without a proof."""
        return "e-bh" if self.unproven and self.correction == "closed-e-bh" else self.correction

    def of_input(self, index: int) -> Terms:
        """The same for one input of the batch, as a batch of one."""
        return self.of_inputs([index])

    def of_inputs(self, rows: Sequence[int]) -> Terms:
        """The same for some inputs of the batch, in this order."""
        given = {name: getattr(self, name) for name in ("threshold", "unit")}
        of_rows = {name: value[list(rows)] for name, value in given.items() if isinstance(value, np.ndarray)}
        nothing = tuple(self.nothing[row] for row in rows) if self.nothing else ()
        return replace(self, **of_rows, nothing=nothing) if of_rows else self

    def written(self) -> dict[str, Any]:
        """As JSON.

        Raises
        ------
        TypeError
            If the threshold is a rule other than `stats.jenks`, `stats.jenks_of_medians` and `stats.jenks_of_means`,
            which no file can hold.
        """
        threshold = self.threshold
        if callable(threshold):
            names = [name for name, rule in RULES.items() if rule is threshold]
            if not names:
                raise TypeError(
                    "`default_terms` must have a number or one of metfa.stats.jenks, jenks_of_medians and "
                    f"jenks_of_means as `threshold` to be saved, got {threshold!r}"
                )
            threshold = names[0]
        elif isinstance(threshold, np.ndarray):
            threshold = threshold.tolist()
        unit = self.unit.tolist() if isinstance(self.unit, np.ndarray) else self.unit
        return {name: value for name, value in vars(self).items() if name != "nothing"} | {
            "threshold": threshold, "unit": unit
        }  # fmt: skip

    @classmethod
    def read(cls, written: Any, shape: tuple[int, ...]) -> Terms:
        """From JSON that anybody may have written, for samples of a shape; TypeError or KeyError if it does not fit."""
        if not isinstance(written, dict):
            raise TypeError("default_terms, which must be an object")
        threshold = written["threshold"]
        try:
            found = cls(
                RULES[threshold] if isinstance(threshold, str) else threshold,
                written["alpha"],
                written["correction"],
                written["split"],
                written.get("unit"),
                families=written.get("families"),
                sides=written.get("sides"),
                effects_at=written.get("effects_at"),
            )
            check_fits(found, shape)
        except ValueError as error:
            raise TypeError(f"default_terms: {error}") from error
        return found


def filled(
    own: Terms,
    usual: Any,
    threshold: Any = None,
    *,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
) -> Terms:
    """Terms, where each None is filled in from `own`; a `split` alone takes the `usual` threshold, a rule.

    Raises
    ------
    TypeError, ValueError
        For what `Terms` refuses, and for a `split` alone where the usual threshold is a number.
    """
    if threshold is None and split is None:
        threshold, split = own.threshold, own.split
    elif threshold is None:
        threshold = usual
        if positive_int(split, "split", 0) and not callable(usual):
            raise ValueError(
                f"`split` is for choosing a threshold, and that of these attributions is {usual:.4g}, a number that "
                f"needs no samples, got `split`={split}: leave it out, or give a rule as `threshold`"
            )
    return replace(
        own,
        threshold=threshold,
        alpha=own.alpha if alpha is None else alpha,
        correction=own.correction if correction is None else correction,
        split=0 if split is None else split,
        nothing=own.nothing if threshold is own.threshold else (),
    )


def checked_threshold(threshold: Any) -> float | np.ndarray | Callable[..., Any]:
    """`threshold` as a float, a read-only array of float64, or the rule that it is; raises for anything else."""
    if isinstance(threshold, str):
        raise _no_threshold(TypeError, f"the text {threshold!r:.80}")
    if isinstance(threshold, type):
        raise _no_threshold(TypeError, f"the class {threshold.__name__}")
    if callable(threshold):
        return threshold
    try:
        host = to_host(as_array(threshold, "threshold"))
    except (TypeError, ValueError):
        host = np.array(None)
    if host.dtype.kind not in "iuf":
        raise _no_threshold(TypeError, shown(threshold))
    numbers = host.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise _no_threshold(ValueError, str(numbers[~np.isfinite(numbers)].flat[0]))
    if numbers.ndim == 0:
        return float(numbers)
    numbers.flags.writeable = False
    return numbers


def _no_threshold(kind: type[Exception], got: str) -> Exception:
    return kind(
        f"`threshold` must be a number or a rule, got {got}: write a rule such as metfa.stats.jenks_of_medians "
        "or metfa.stats.jenks, or a finite number"
    )


def check_fits(terms: Terms, shape: tuple[int, ...]) -> None:
    r"""Raise unless the terms fit samples of the shape (n, batch, \*features)."""
    n, batch, *_ = shape
    if terms.split >= n:
        raise ValueError(f"`split` must leave samples to test, got {terms.split} of {n}")
    if isinstance(terms.threshold, np.ndarray) and terms.threshold.shape not in ((batch,), shape[1:]):
        raise ValueError(
            f"`threshold` must be a number, one for each input ({batch},) or one for each feature {shape[1:]}, "
            f"got shape {terms.threshold.shape}"
        )
    if isinstance(terms.unit, np.ndarray) and terms.unit.shape != (batch,):
        raise ValueError(f"`unit` must be a number or one for each input ({batch},), got shape {terms.unit.shape}")
