"""Warnings point at the line of the caller's own code."""

import contextlib
import warnings

import numpy as np
import pytest

import metfa
from metfa._base import warnings as _warnings
from metfa._base.warnings import MetfaWarning, each_once, warn


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


class TestEachOnce:
    """A model or an explainer that warns does so once a call, whatever its libraries do to Python's filters."""

    @staticmethod
    def shown_of(code):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("default")
            code()
        return [str(one.message) for one in shown]

    @staticmethod
    def foreign(number):
        warnings.warn(f"row {number} of 9 is odd: {number / 7:.3g}", UserWarning, stacklevel=2)

    def test_once_for_all_rows_of_a_call(self):
        def explainer(inputs, target):
            with warnings.catch_warnings():  # as Captum and scikit-learn do: Python forgets what it has shown
                pass
            self.foreign(explainer.calls)
            explainer.calls += 1
            return np.abs(inputs)

        explainer.calls = 0
        settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 6, "batch_size": 1, "rng": 0}
        shown = self.shown_of(lambda: metfa.explain(explainer, np.ones((2, 3)), 0, **settings))
        assert explainer.calls >= 12
        assert shown == ["row 0 of 9 is odd: 0"]

    def test_other_texts_places_and_kinds_are_shown(self):
        def code():
            with each_once():
                for kind in (UserWarning, MetfaWarning, UserWarning):
                    warnings.warn("a", kind, stacklevel=1)
                warnings.warn("b", UserWarning, stacklevel=1)

        assert self.shown_of(code) == ["a", "a", "b"]

    def test_calls_of_several_threads_end_in_any_order(self):
        def code():
            first, second = each_once(), each_once()
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            for _ in range(2):
                self.foreign(1)
            second.__exit__(None, None, None)
            for _ in range(2):
                self.foreign(1)

        def again():
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                code()

        before = warnings.showwarning
        assert len(self.shown_of(again)) == 3
        assert warnings.showwarning is before

    def test_filters_hold_and_what_was_there_is_put_back(self):
        before = warnings.showwarning
        with each_once(), warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="an error"):
                warnings.warn("an error", UserWarning, stacklevel=1)
        assert warnings.showwarning is before
