"""`Run`: where a call keeps its samples, whether it shows a bar, names, the first sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from metfa._base.validation import as_names, as_path, check_flag, keep, positive_int
from metfa.sampling.streams import MAX_SAMPLE_ID

__all__ = ["Run"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a long call is run: settings that do not change what is explained.

    Give it as `run` to `metfa.explain`, `metfa.compare`, `metfa.contrast`, `metfa.text.explain_text` and
    `metfa.segmentation.explain_context`. The attacks
    use only its `store` and `progress`.

    Parameters
    ----------
    store : path, optional
        Folder for the samples. The call writes them there as it goes, so memory does not grow with N. An interrupted
        call resumes if it is repeated with the same arguments, and a finished one returns its result. Only one call at
        a time may write into a folder. (Functions are compared by name. Explainer and noise must really be the same; a
        threshold rule may be another function of the same name, because samples do not depend on it.)
    progress : bool
        Show a bar with rate and time left (needs tqdm).
    input_names : sequence, optional
        One name for each input: the address of its random streams. By default the labels of a data frame whose index
        names its rows, see `metfa.explain`, else a digest of the content.
    feature_names : sequence of str, optional
        One name for each feature of an attribution (batch, features). Results keep them and figures show them. By
        default the columns of a data frame, if there are as many features. For several inputs a dict with a list for
        each part that has names.
    class_names : sequence of str, optional
        Names of the model's classes, at least one for each. Results keep them, and summaries, figures and reports name
        the class that was explained. `metfa.tables.explain` and `metfa.text.explain_text` take those that a model has.
    first_sample : int
        Number of the first sample. A later call with ``first_sample=10`` continues a call of 10 samples, see
        `AttributionSample.concat`.

    Raises
    ------
    TypeError, ValueError
        For bad settings; whether names fit is checked when inputs, features and scores are known.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> more = metfa.Run(first_sample=10, feature_names=["age", "income"])
    >>> settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 5, "rng": 0}
    >>> sample = metfa.explain(lambda inputs, target: inputs**2, np.ones((1, 2)), 0, run=more, **settings)
    >>> sample.sample_ids, sample.feature_names
    ((10, 11, 12, 13, 14), ('age', 'income'))
    """

    store: str | Path | None = None
    progress: bool = False
    input_names: Sequence[Any] | None = None
    feature_names: Sequence[str] | Mapping[Any, Sequence[str]] | None = None
    class_names: Sequence[str] | None = None
    first_sample: int = 0

    def __post_init__(self) -> None:
        if self.store is not None:
            as_path(self.store, "store")
        keep(self, progress=check_flag(self.progress, "progress"))
        if self.class_names is not None:
            keep(self, class_names=as_names(self.class_names, "class_names"))
        object.__setattr__(self, "first_sample", positive_int(self.first_sample, "first_sample", 0, MAX_SAMPLE_ID))

    @classmethod
    def checked(cls, run: Any, takes: Sequence[str] = ()) -> Run:
        """The run given, or the usual one for None; ValueError for a setting that `takes`, if any, does not name."""
        if run is None:
            return cls()
        if not isinstance(run, Run):
            raise TypeError(f"`run` must be a metfa.Run, such as metfa.Run(progress=True), got {type(run).__name__}")
        for field in fields(cls) if takes else ():
            value = getattr(run, field.name)
            given = value is not field.default and not (isinstance(value, int) and value == field.default)
            if field.name not in takes and given:  # names may be an array, which has no truth value
                raise ValueError(f"`run` of this call takes only {' and '.join(takes)}, got `{field.name}`")
        return run
