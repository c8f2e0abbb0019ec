"""The only module that knows array libraries: NumPy, torch, JAX, CuPy, array-api-strict."""

from __future__ import annotations

import sys
from typing import Any

import array_api_compat as compat
import numpy as np

__all__ = [
    "as_array",
    "copied",
    "device_of",
    "first_not_finite",
    "from_host",
    "is_array",
    "is_floating",
    "namespace",
    "real_dtype",
    "to_host",
    "widen",
]


def is_array(x: Any) -> bool:
    """Whether `x` is an array (or a NumPy scalar) of a known library."""
    return hasattr(x, "shape") and compat.is_array_api_obj(x)


def as_array(x: Any, name: str = "values") -> Any:
    """`x` if it is an array of numbers of a known library, else a NumPy array made from nested sequences of numbers.

    Raises
    ------
    TypeError, ValueError
        If it holds anything but numbers, or no data (a sparse tensor, or one on the device "meta").
    """
    if is_array(x):
        return _checked_array(x, name)
    try:
        converted = np.asarray(x)
    except Exception as error:  # the object's own, whatever it may be
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"`{name}` must be an array, got {type(x).__name__} that cannot become one: {error}") from None
    if converted.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` must be an array of real numbers, got {type(x).__name__} of {converted.dtype}")
    return converted


def _checked_array(x: Any, name: str) -> Any:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"`{name}` must not be a masked array: its mask would be ignored; pass `{name}`.compressed()")
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind in "OSUMm" or x.dtype.names is not None:
            hint = ": write texts as a list (`.tolist()`)" if x.dtype.kind == "U" else ""
            raise TypeError(f"`{name}` must hold numbers, got an array of {x.dtype}{hint}")
        return np.asarray(x) if isinstance(x, np.matrix) else x
    if compat.is_torch_array(x):
        if x.layout != sys.modules["torch"].strided:
            raise TypeError(f"`{name}` must be a dense tensor, got one of {x.layout}: write `{name}.to_dense()`")
        if x.device.type == "meta":
            raise ValueError(f"`{name}` is a tensor on the device 'meta', which holds no numbers")
    return x


def namespace(*arrays: Any) -> Any:
    """Array API namespace that all `arrays` belong to."""
    return compat.array_namespace(*arrays)


def device_of(x: Any) -> Any:
    """Device of `x`, in the form that its library uses."""
    return compat.device(x)


def copied(x: Any) -> Any:
    """A copy of `x`, which stays in its graph where it has one."""
    if isinstance(x, np.ndarray):
        return np.array(x)
    return x.clone() if compat.is_torch_array(x) else namespace(x).asarray(x, copy=True)


def is_floating(x: Any) -> bool:
    """Whether `x` holds real floating-point numbers of any width, bfloat16 included."""
    return bool(namespace(x).isdtype(x.dtype, "real floating"))


def first_not_finite(rows: Any) -> int | None:
    """Index of the first row that holds NaN or infinity; None where there is none."""
    xp = namespace(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(rows))):  # a sum with NaN or infinity is not finite, and a sum is far quicker
            return None
    finite = to_host(xp.all(xp.isfinite(rows), axis=tuple(range(1, rows.ndim))))
    return None if finite.all() else int(finite.argmin())


def real_dtype(x: Any) -> Any:
    """Widest real dtype that the library and device of `x` offer: float64, or float32 (Apple GPUs, JAX's default)."""
    if isinstance(x, np.ndarray):
        return np.float64
    xp = namespace(x)
    if compat.is_torch_array(x):
        return xp.float32 if x.device.type == "mps" else xp.float64
    if compat.is_jax_array(x):
        import jax

        return xp.float64 if jax.config.jax_enable_x64 else xp.float32  # pyright: ignore[reportAttributeAccessIssue]
    return xp.float64


def widen(x: Any) -> Any:
    """`x` in a dtype for arithmetic: half precision becomes float32, integers and booleans the widest real dtype.

    Every value is kept exactly (integers up to the precision of the real dtype).
    """
    xp = namespace(x)
    if not is_floating(x):
        return xp.astype(x, real_dtype(x))
    return xp.astype(x, xp.float32) if xp.finfo(x.dtype).bits < 32 else x


def to_host(x: Any) -> np.ndarray:
    """`x` as a NumPy array on the host, detached from any graph; bfloat16 becomes float32, which holds it exactly."""
    if isinstance(x, np.ndarray):
        return x
    if compat.is_torch_array(x):
        x = x.detach()
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).cpu().numpy()
    if compat.is_cupy_array(x):
        return x.get()
    host = np.asarray(x)
    return host.astype(np.float32) if host.dtype.name == "bfloat16" else host


def from_host(host: np.ndarray, like: Any, dtype: Any = None) -> Any:
    """A host array in the library of `like`, on its device, and in its dtype (or in `dtype`)."""
    if isinstance(like, np.ndarray):
        return np.asarray(host, dtype=dtype or like.dtype)
    xp = namespace(like)
    if compat.is_torch_array(like):
        torch = sys.modules["torch"]
        held = torch.as_tensor(np.require(host, requirements="W"), device="cpu")  # wherever torch makes new tensors
        return held.to(device=like.device, dtype=dtype or like.dtype)
    return xp.asarray(host, dtype=dtype or like.dtype, device=device_of(like))
