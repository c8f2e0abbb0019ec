"""Columns of a table that belong to one variable, such as those of a one-hot encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from metfa._base.validation import as_list, as_names, did_you_mean, is_whole, positive_int, shown
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample

__all__ = ["variables"]


def variables(of: Any, variables: Any = None, *, how: str = "sum", against: Any = None) -> Regions:
    """Columns that belong to one variable, asked about as one.

    Parameters
    ----------
    of : AttributionSample or sequence of str
        A result with `feature_names`, or the names of all columns in their order, such as scikit-learn's
        ``encoder.get_feature_names_out()``.
    variables : sequence of str or dict, optional
        Which columns belong together. None: those with the same text before "=", such as "colour=red" and
        "colour=blue". Names of the variables before encoding, such as ``encoder.feature_names_in_`` or those of a data
        frame: a column belongs to the variable whose name it has, or begins with before "_" or "="; what scikit-learn's
        ``ColumnTransformer`` puts before "__" is left out. Or a dict from each variable to the names or indices of its
        columns. Columns that the dict or "=" leave alone are variables of their own.
    how : {"sum", "mean", "max"}
        As for `metfa.Regions`. The sum is what contributions, such as SHAP values, of a variable's columns add up to.
    against
        As for `metfa.Regions`; it needs ``how="mean"``.

    Returns
    -------
    Regions
        In the order of each variable's first column, with the variables' names.

    Raises
    ------
    ValueError
        If a column belongs to no variable or could belong to several, or nothing says which belong together.

    Examples
    --------
    >>> from metfa import regions
    >>> found = regions.variables(["age", "colour=red", "colour=blue"])
    >>> found.names, found.masks[0]
    (('age', 'colour'), array([0, 1, 1], dtype=int32))
    >>> names = ["num__age", "cat__colour_red", "cat__colour_blue"]  # of a ColumnTransformer
    >>> regions.variables(names, ["age", "colour"]).names
    ('age', 'colour')
    >>> regions.variables(["r", "g", "b", "size"], {"colour": ["r", "g", "b"]}).names
    ('colour', 'size')
    """
    columns = _columns(of)
    if isinstance(variables, Mapping):
        owners = _by_dict(columns, variables)
    elif variables is None:
        owners = _by_equals(columns)
    else:
        owners = _by_names(columns, as_names(variables, "variables"))
    names = list(dict.fromkeys(owners))
    return Regions(np.array([names.index(owner) for owner in owners]), names, how=how, against=against)


def _columns(of: Any) -> tuple[str, ...]:
    if isinstance(of, AttributionSample):
        if of.feature_names is None:
            raise ValueError(
                "`of` must be a result with `feature_names`: name the columns by `metfa.Run(feature_names=...)`, or "
                "give the names of all columns here"
            )
        return of.feature_names
    columns = as_names(of, "of")
    if not columns:
        raise ValueError("`of` must name at least one column, got none")
    return columns


def _by_equals(columns: tuple[str, ...]) -> list[str]:
    if not any("=" in column for column in columns):
        raise ValueError(
            "`variables` must say which columns belong together, as no name has the form 'colour=red': give the names "
            "of the variables before encoding, such as `encoder.feature_names_in_`, or a dict from each variable to "
            "its columns"
        )
    return [column.partition("=")[0] for column in columns]


def _by_dict(columns: tuple[str, ...], variables: Mapping[Any, Any]) -> list[str]:
    names = as_names(list(variables), "variables")
    owners = list(columns)
    taken: dict[int, str] = {}
    for name, members in zip(names, variables.values(), strict=True):
        for member in as_list([members] if isinstance(members, str) else members, "variables", "lists of columns"):
            at = _index(columns, member)
            if at in taken:
                raise ValueError(f"`variables`: column {columns[at]!r} belongs to {taken[at]!r} and to {name!r}")
            owners[at] = taken[at] = name
    alone = {column for at, column in enumerate(columns) if at not in taken} & set(names)
    if alone:
        raise ValueError(f"`variables`: {min(alone)!r} is also a column that no variable holds: give another name")
    return owners


def _index(columns: tuple[str, ...], member: Any) -> int:
    if is_whole(member):
        return positive_int(member, "variables", minimum=0, maximum=len(columns) - 1)
    if not isinstance(member, str):
        raise TypeError(f"`variables` must hold names or indices of columns, got {shown(member)}")
    if columns.count(member) != 1:
        raise ValueError(
            f"`variables`: {columns.count(member)} columns have the name {member!r}{did_you_mean(member, columns)}"
        )
    return columns.index(member)


def _by_names(columns: tuple[str, ...], variables: tuple[str, ...]) -> list[str]:
    bare = [column.partition("__")[2] or column for column in columns]
    plain = {*columns, *bare} & set(variables)  # a column itself: numbers, which are not encoded
    owners = []
    for column, short in zip(columns, bare, strict=True):
        own = [name for name in (column, short) if name in plain]
        found = own[:1] or [
            name
            for name in dict.fromkeys(variables)
            if name not in plain and any(text.startswith((f"{name}_", f"{name}=")) for text in {column, short})
        ]
        if len(found) != 1:
            several = f"could belong to {' or to '.join(map(repr, found))}" if found else "belongs to none"
            raise ValueError(f"`variables`: column {column!r} {several}: give a dict from each variable to its columns")
        owners.append(found[0])
    return owners
