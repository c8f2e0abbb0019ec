"""Warnings point at the line of the caller's own code."""

import contextlib

import pytest

from metfa._base import warnings as _warnings
from metfa._base.warnings import MetfaWarning, warn


def test_every_kind_can_be_silenced_by_itself_and_all_at_once():
    kinds = [getattr(_warnings, name) for name in _warnings.__all__ if name.endswith("Warning")]
    assert len(kinds) >= 5
    assert all(issubclass(kind, MetfaWarning) and issubclass(kind, UserWarning) for kind in kinds)


def as_if_in_metfa(code, **names):
    """Run code whose frame belongs to a module of metfa."""
    scope = {"__name__": "metfa.somewhere", "warn": warn, "contextlib": contextlib, "Kind": MetfaWarning, **names}
    exec(code, scope)
    return scope


def test_depth_inside_metfa_does_not_matter():
    deep = as_if_in_metfa("def f(): g()\ndef g(): h()\ndef h(): warn('here', Kind)")["f"]
    with pytest.warns(MetfaWarning, match="here") as record:
        deep()
    assert record[0].filename == __file__


def test_our_context_managers_do_not_matter():
    code = "@contextlib.contextmanager\ndef guard():\n    warn('in', Kind)\n    yield\n    warn('out', Kind)\n"
    code += "def f():\n    with contextlib.ExitStack() as stack:\n        stack.enter_context(guard())\n"
    with pytest.warns(MetfaWarning) as record:
        as_if_in_metfa(code)["f"]()
    assert [(w.filename, str(w.message)) for w in record] == [(__file__, "in"), (__file__, "out")]


def test_modules_named_alike_are_the_callers():
    scope = as_if_in_metfa("def f(): warn('here', Kind)")
    caller = as_if_in_metfa("def g(): f()", __name__="metfa_extra.module", f=scope["f"])["g"]
    with pytest.warns(MetfaWarning) as record:
        caller()
    assert record[0].filename == "<string>"
