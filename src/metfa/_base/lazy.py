"""Public names whose module loads at their first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["lazy_names", "needs_extra"]

LIGHT = {"matplotlib": "'metfa[plot]'", "PIL": "'metfa[plot]'", "tqdm": "tqdm", "xarray": "xarray"}  # without torch


@contextmanager
def needs_extra(feature: str, extra: str = "image") -> Iterator[None]:
    """Say what to install where an optional library is missing; a missing module of metfa raises as it is."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "metfa") or "pip install" in str(error):
            raise
        what = LIGHT.get(missing, f"'metfa[{extra}]'")
        message = f"{feature} needs {missing}: pip install {what}"
        raise ModuleNotFoundError(message, name=error.name) from error


def lazy_names(
    package: str, home: dict[str, str], extra: str = "image"
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for `package`; `home` gives the module of each name.

    A name that is its own module (``"noise": "metfa.noise"``) stands for the module. `extra` is the extra to install
    where a library is missing.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs_extra(f"{package}.{name}", extra):
            module = import_module(home[name])
        return module if home[name] == f"{package}.{name}" else getattr(module, name)

    return __getattr__, lambda: sorted(home)
