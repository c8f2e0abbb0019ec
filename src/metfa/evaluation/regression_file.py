"""A `Regression` from a TOML file, which runs code or downloads weights only where the caller allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metfa._base.validation import as_path, check_flag
from metfa.by_name.methods import Of
from metfa.evaluation.entries import check_known, check_model, method_of, named_noise, parsed
from metfa.evaluation.inputs import Texts, study_inputs
from metfa.evaluation.regression import Regression

__all__ = ["read_regression"]

ENTRIES: dict[str, tuple[str, ...]] = {
    "model": ("name",),
    "data": ("inputs", "limit"),
    "explainer": ("method", "settings"),
    "sampling": ("noise", "n_samples", "seed", "batch_size", "device"),
    "question": ("regions", "scale", "delta", "alpha", "correction"),
}


def read_regression(
    path: str | Path, *, model: str | None = None, allow_import: bool = False, allow_download: bool = False
) -> Regression:
    """Description of a check from a TOML file.

    The file has these tables; the first four must be there:

    - ``[model]``: ``name``, as on the command line;
    - ``[data]``: ``inputs`` (a folder of pictures, or a CSV file of pictures or texts with perhaps a column "target",
      relative to the TOML file) and perhaps ``limit``;
    - ``[explainer]``: ``method``, and perhaps a table ``settings``;
    - ``[sampling]``: ``noise`` such as ``"gaussian:0.1"``, for texts ``"sense-synonyms:0.5"``; ``n_samples`` (50) and
      ``seed`` (0); ``batch_size`` and ``device``, which do not change what is asked;
    - ``[question]``: ``regions`` ("superpixels:50", "grid:7" or "none"), ``scale`` ("raw"), ``delta`` (0), ``alpha``
      (0.05) and ``correction`` ("holm").

    Parameters
    ----------
    path : path
        The file, at most 1 MiB.
    model : str, optional
        Another model than the file names; it needs no leave, as the caller names it.
    allow_import : bool
        Import ``package.module:callable`` if the file names such a model or method; this runs its code.
    allow_download : bool
        Let timm and torchvision download the weights of a model that the file names.

    Returns
    -------
    Regression

    Raises
    ------
    ValueError
        If the file is not TOML, has unknown entries, or names something that is not allowed.

    Examples
    --------
    In a test of pytest, with a record made by ``metfa regression record``::

        def test_explanations_are_as_recorded():
            found = read_regression("regression.toml", allow_import=True).check("recorded")
            assert not found, found
    """
    path = as_path(path, "path")
    check_flag(allow_import, "allow_import")
    check_flag(allow_download, "allow_download")
    content = parsed(path, "regression file")
    check_known(content, tuple(ENTRIES), "the file")
    tables: dict[str, dict[str, Any]] = {}
    for name, entries in ENTRIES.items():
        if name not in content and name != "question":
            raise ValueError(f"{path}: the table [{name}] is missing")
        tables[name] = content.get(name, {})
        check_known(tables[name], entries, f"[{name}]")
    data, sampling = tables["data"], dict(tables["sampling"])
    named = {"name": model} if model is not None else tables["model"]
    for table, name in ((data, "inputs"), (named, "name"), (tables["explainer"], "method")):
        if not isinstance(table.get(name), str):
            raise ValueError(f"{path}: `{name}` must be a string, got {table.get(name)!r}")
    if model is None:
        check_model(named["name"], "regression file", allow_import=allow_import, allow_download=allow_download)
    inputs = study_inputs(path.parent / data["inputs"], None, data.get("limit"))
    of: Of = "text" if isinstance(inputs, Texts) else "image"
    named_noise("noise", sampling.get("noise"), "sampling", of)
    file = named["name"].endswith(".npz") and model is None
    return Regression(
        model=str(path.parent / named["name"]) if file else named["name"],
        data=inputs,  # pyright: ignore[reportArgumentType] - a path gives files or texts
        method=method_of(tables["explainer"], of, "explainer", allow_import=allow_import),
        **sampling,
        **tables["question"],
    )
