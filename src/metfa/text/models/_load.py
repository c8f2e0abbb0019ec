"""`load_model`: a trained text classifier by name or from a file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from metfa._base.import_path import imported
from metfa._base.validation import as_path, did_you_mean
from metfa.text.models.trained import read_model

__all__ = ["load_model"]

BUNDLED = {"sentiment": "sentiment.npz"}


def load_model(name_or_path: str | Path) -> Any:
    """Text classifier of that name, or from a file, in evaluation mode on the CPU.

    Parameters
    ----------
    name_or_path : str or path
        ``"sentiment"``: a bidirectional LSTM that separates favourable from unfavourable sentences of English film
        reviews, shipped with metfa (see MODEL_CARD.md beside it: it is right on three sentences in four, and only an
        example). Otherwise a .npz file written by `metfa.text.models.save_model`, as
        ``examples/train_text_classifier.py`` does; or ``"package.module:callable"``, which is imported and called
        without arguments, and returns your text model. Importing runs its code.

    Returns
    -------
    TrainedBiLSTM or callable
        A list of texts (or of lists of tokens) -> probabilities (batch, classes); metfa's own models have
        ``class_names``, ``module`` and ``tokenize``.

    Raises
    ------
    TypeError
        If it is neither a name nor a path.
    FileNotFoundError
        If there is no such file.
    ValueError
        If no model has that name, or the file is damaged or not from metfa. Files are never unpickled.

    Notes
    -----
    Recurrent networks gain nothing from torch's threads, and lose much if another process keeps the cores busy:
    ``torch.set_num_threads(1)`` makes them faster.

    Examples
    --------
    >>> from metfa.text import load_model
    >>> model = load_model("sentiment")
    >>> model.class_names
    ('negative', 'positive')
    >>> [model.class_names[row.argmax()] for row in model(["a warm, funny film", "a dull, lifeless film"])]
    ['positive', 'negative']
    """
    if not isinstance(name_or_path, str | Path):
        raise TypeError(f"`name_or_path` must be a name or a path, got {type(name_or_path).__name__}")
    if name_or_path in BUNDLED:
        with resources.as_file(resources.files("metfa.text.models") / BUNDLED[str(name_or_path)]) as path:
            return read_model(path)
    path = as_path(name_or_path, "name_or_path")
    if isinstance(name_or_path, str) and ":" in name_or_path and path.suffix != ".npz":
        return _from_callable(name_or_path)
    if isinstance(name_or_path, str) and path.suffix != ".npz" and not path.is_file():
        raise ValueError(
            f"`name_or_path` {name_or_path!r} is not a known model{did_you_mean(name_or_path, BUNDLED)}; write "
            f"{', '.join(BUNDLED)}, the path of a .npz file, or package.module:callable"
        )
    return read_model(path)


def _from_callable(name: str) -> Any:
    make = imported(name, "`name_or_path`")
    model = make() if callable(make) else None
    if not callable(model):
        raise TypeError(
            f"{name!r} must be a function that returns a text model, a function list of texts -> probabilities, got "
            f"{type(make if model is None else model).__name__}"
        )
    return model
