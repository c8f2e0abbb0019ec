"""`explain`: rows of a table under noise, with an explainer and a noise that are chosen for the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from metfa import noise as noises
from metfa._arrays import is_array
from metfa._base.other_words import our_words
from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa._base.validation import one_of, shown
from metfa._frames.columns import is_frame, is_series, names_of
from metfa.calls.fitted_names import by_name
from metfa.results.files import write_manifest
from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.explain import explain as sampled
from metfa.sampling.protocol import predict_scores
from metfa.sampling.request import Request
from metfa.sampling.run import Run
from metfa.tables.methods import CHECKED_ROWS, METHODS, picked
from metfa.tables.predictions import Prediction, library_of
from metfa.tables.targets import places_of

__all__ = ["explain"]

OUTPUTS = ("auto", "margin", "probability")
ROWS_AT_ONCE = 1_000  # in a call of an explainer without random numbers


@our_words
def explain(
    model: Any,
    inputs: Any,
    target: Any = None,
    *,
    background: Any = None,
    noise: Any = "auto",
    method: str = "auto",
    output: str = "auto",
    n_samples: int | Until = 50,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample:
    r"""Explain rows of a table by SHAP values with error bars: explainer and noise are chosen, the result says which.

    Parameters
    ----------
    model : model or callable
        Fitted model of scikit-learn, xgboost, lightgbm or catboost, or a function of rows -> probabilities (batch,
        classes), one number a row, or several (batch, outputs) of which `target` names one. The columns of `inputs` are
        explained, so a pipeline with its own encoders is a black box.
    inputs : data frame or array, (rows, columns)
        Rows to explain, of pandas or polars, or an array of numbers. Columns are matched by name. An index
        of pandas names the rows, as in `metfa.explain`.
    target : label or sequence of labels, optional
        Class to explain, one for all or one for each row, by the model's own label (of its ``classes_``), as
        ``model.predict(rows)`` returns it. Where labels are numbers, a number is a label and never a place. Where they
        are texts or the model has none, as a function, an integer is the place among its scores. None: the class
        predicted for each row. For a regression of one number leave it out. Where a model gives several numbers that
        are no probabilities of classes (a regression of several outputs, scores, labels that may hold together), it
        names one output for all rows.
    background : data frame or array, optional
        Training table, or a sample of it: the noise is made from it, and explainers that only ask for predictions (and
        that of linear models) put its values in place of a row's own.
    noise : noise, None or "auto"
        "auto": `metfa.noise.from_table` of `background`. None: no noise, only the explainer's own draws.
    method : {"auto", "tree", "linear", "exact", "permutation", "kernel"}
        SHAP's explainer. "auto": "tree" for trees, forests and boosting, "linear" for linear models, else one that only
        asks for predictions: "exact" up to 8 columns, "permutation" for more. So does "auto" where the values of the
        first two do not add up to the predictions of 20 rows, as for splits that SHAP does not know.
    output : {"auto", "margin", "probability"}
        What is explained of a classifier: "auto" is what the explainer adds up, the margin (log-odds) of boosted and
        linear models, and the probability of forests and of explainers that only ask for predictions.
    n_samples, batch_size, rng, run
        As for `metfa.explain`; by default 50 samples.

    Returns
    -------
    AttributionSample
        Its `provenance` says under "picked" what was chosen in one sentence, and under "score" the unit. So do figures
        and reports.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before anything is sampled: for a `target` that is no class of the model; if there is neither
        `background` nor `noise`, and if the values of a method that you name do not add up to the predictions; if the
        model gives several numbers that are no probabilities of classes, none below 0 with the sum 1, and `target`
        names none.

    Notes
    -----
    The unit is not read from the model's name: values and base value of up to 20 rows are added up, and compared with
    the predictions as probabilities, log-odds, margins and logarithms (SHAP's local accuracy [1]_).

    References
    ----------
    .. [1] S. M. Lundberg and S.-I. Lee, "A unified approach to interpreting model predictions", NeurIPS 2017,
       :arxiv:`1705.07874`.

    Examples
    --------
    >>> import pandas as pd, metfa
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> wine = load_wine(as_frame=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(wine.data, wine.target)
    >>> sample = metfa.tables.explain(forest, wine.data.iloc[:3], background=wine.data, n_samples=20, rng=0)
    >>> sample.provenance["score"]
    'SHAP value, in units of the probability'
    """
    _check_table(inputs, "inputs")
    if background is not None:
        _check_table(background, "background")
        _check_same_kind(inputs, background)
    one_of(method, "method", METHODS)
    one_of(output, "output", OUTPUTS)
    prediction = Prediction.by(model)
    noise, of_noise = _noise(noise, background)
    run = Run.checked(run)
    given: dict[str, Any] = {"noise": noise, "n_samples": n_samples, "predict": prediction.ask, "rng": rng, "run": run}
    given["target"] = places_of(target, prediction.labels)
    bare = {"over": None, "row_args": None, "batch_size": batch_size}
    Request(explainer=_unasked, inputs=inputs, **bare, **given)  # raises before the model is asked
    some = inputs[:CHECKED_ROWS]
    asked = by_name(prediction.ask, names_of(some)) if is_frame(some) else prediction.ask
    # an error of the model's own, as for other columns, is no choice
    scores = predict_scores(asked, some, prediction.asked_as(model))
    prediction, given["target"] = prediction.for_target(scores, given["target"])
    given["predict"] = prediction.explained
    if run.class_names is None:
        given["run"] = replace(run, class_names=prediction.classes)
    found = picked(model, prediction, method, inputs, scores, background, output)
    if noise is None and found.deterministic:
        raise ValueError(f"`noise` is None, and {found.about} draws no random numbers: leave `noise` out, or give one")
    if batch_size is None and found.deterministic:
        batch_size = ROWS_AT_ONCE
    sample = sampled(found.explainer, inputs, batch_size=batch_size, **given)
    score = f"SHAP value{prediction.named}, in units of the {found.unit}"
    facts = {
        "score": score,
        "notes": [*sample.provenance.get("notes", []), ["score", score]],  # for summaries
        "picked": printable(f"{found.about}, in units of the {found.unit}; {of_noise}"),
    }
    sample = replace(sample, provenance={**sample.provenance, **facts})
    if run.store is not None:
        write_manifest(Path(run.store).expanduser(), sample)
    return sample


def _unasked(inputs: Any, target: Any, rngs: Any = None) -> Any:
    """Stands for the explainer while the other arguments are checked."""
    raise NotImplementedError


def _check_table(table: Any, name: str) -> None:
    if is_series(table):
        raise TypeError(f"`{name}` must be a data frame, got a single row or column: write `frame.iloc[[0]]`")
    if not is_frame(table) and not is_array(table):
        lazy = f": write `{name}.collect()`" if hasattr(table, "collect") else ""
        raise TypeError(f"`{name}` must be a data frame or an array (rows, columns), got {shown(table)}{lazy}")
    if len(table.shape) != 2 or 0 in table.shape:
        raise ValueError(f"`{name}` must have rows and columns, got shape {tuple(table.shape)}")


def _check_same_kind(inputs: Any, background: Any) -> None:
    kinds = [
        f"a data frame of {library_of(table)}" if is_frame(table) else "an array" for table in (inputs, background)
    ]
    if kinds[0] != kinds[1]:
        raise TypeError(f"`background` is {kinds[1]} and `inputs` is {kinds[0]}: give both in one form")
    if kinds[0] == "an array" and inputs.shape[1] != background.shape[1]:
        raise ValueError(f"`background` has {background.shape[1]} columns, and `inputs` has {inputs.shape[1]}")


def _noise(noise: Any, background: Any) -> tuple[Any, str]:
    """The noise, and what is said of it."""
    if isinstance(noise, str) and noise != "auto":
        raise ValueError(f'`noise` must be "auto", a noise or None, got {noise!r}')
    if not isinstance(noise, str):
        return noise, "no noise: the explainer's own draws" if noise is None else "the noise that was given"
    if background is None:
        raise ValueError(
            "`background` is needed for the noise: give the training table, as in `background=train`, or a noise of "
            "your own, such as `noise=metfa.noise.per_column(train, 0.1)`"
        )
    made = noises.from_table(background)
    return made, f"noise by metfa.noise.from_table of the {counted(len(background), 'row')} of `background`"
