"""Whether what a noise returned fits the row that it got."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, namespace, to_host
from metfa._base.validation import is_text

__all__ = ["check_like_text", "host_like", "like_row", "require_finite", "same_kind"]

KINDS = ("bool", "unsigned integer", "signed integer", "real floating")  # each has all numbers of those before it


def check_like_text(noisy: Any, row: Any, where: Any) -> None:
    """Raise if the `row` is a text, or a list of tokens, and the noise's result is not."""
    if not is_text(row) or (is_text(noisy) and isinstance(noisy, str) == isinstance(row, str)):
        return
    kind = "a text" if isinstance(row, str) else "a list of tokens"
    raise TypeError(f"`noise` must return {kind} for {kind}, got {type(noisy).__name__} for {where}: {noisy!r:.80}")


def like_row(noisy: Any, row: Any, where: Any) -> Any:
    """What a noise returned, in the dtype of its `row`; raises if it does not fit the row."""
    noisy = as_array(noisy, "noise(x, rng)")
    if tuple(noisy.shape) != tuple(row.shape):
        raise ValueError(f"`noise` changed the shape of {where} from {tuple(row.shape)} to {tuple(noisy.shape)}")
    if _kind(noisy) > _kind(row):
        raise TypeError(
            f"`noise` returned {noisy.dtype} for {where}, which is {row.dtype}: it must return numbers of the input's "
            "kind; scale images to floats first, as in `image.astype('float32') / 255`"
        )
    return namespace(noisy).astype(noisy, row.dtype, copy=True)  # a noise may write its next one to the same place


def host_like(noisy: Any, row: Any, where: Any) -> Any:
    """The same on the host, for a row that is there."""
    if same_kind(noisy, row):
        return noisy.copy()
    with np.errstate(over="ignore"):  # what became infinite is found
        return like_row(to_host(as_array(noisy, "noise(x, rng)")), row, where)


def same_kind(noisy: Any, row: Any) -> bool:
    """Whether both are arrays of one library, shape and dtype, so that there is nothing to convert."""
    return type(noisy) is type(row) and noisy.dtype == row.dtype and noisy.shape == row.shape


def require_finite(finite: bool, where: Any) -> None:
    """Raise unless a noise made finite numbers."""
    if not finite:
        raise ValueError(f"`noise` made NaN or infinity of {where}")


def _kind(x: Any) -> int:
    xp = namespace(x)
    return next((rank for rank, kind in enumerate(KINDS) if xp.isdtype(x.dtype, kind)), len(KINDS))
