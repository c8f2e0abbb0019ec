"""Typed dictionaries of settings have the arguments of the functions that get them, and the same types."""

import inspect

import pytest

import metfa
from metfa import plot, report
from metfa.plot.settings import CommonSettings, PartsSettings, PlotSettings
from metfa.report.settings import ReportSettings
from metfa.results.settings import TermSettings

OF_SAMPLES = (plot.bars, plot.comparison, plot.figure, plot.regions, plot.series, plot.volume)
OF_METHODS = {"ax", "fig"}  # arguments that the methods declare themselves


def declared(settings):
    return {name: getattr(kind, "__forward_arg__", kind) for name, kind in settings.__annotations__.items()}


def taken(function, *own):
    """Names and types of the arguments after the first ones."""
    parameters = inspect.signature(function).parameters.items()
    return {name: one.annotation for name, one in parameters if name not in {*own, *OF_METHODS}}


@pytest.mark.parametrize(
    ("settings", "functions", "own"),
    [
        (CommonSettings, [plot.context], ["explanation"]),
        (PlotSettings, OF_SAMPLES, ["sample", "kind"]),
        (PartsSettings, [plot.side_by_side], ["parts"]),
        (ReportSettings, [report.write], ["path", "results"]),
        (TermSettings, [metfa.AttributionSample.terms], ["self", "threshold"]),
    ],
)
def test_settings_are_the_arguments(settings, functions, own):
    names, arguments = declared(settings), [taken(function, *own) for function in functions]
    assert names.keys() == {name for one in arguments for name in one}
    for one in arguments:
        assert {name: names[name] for name in one if names[name] != "Any"} == {
            name: kind for name, kind in one.items() if names[name] != "Any"
        }


def test_all_figures_have_what_is_said_of_all():
    for function in (*OF_SAMPLES, plot.side_by_side):
        assert {**declared(CommonSettings), "index": "int"}.items() <= taken(function).items(), function.__name__


@pytest.mark.parametrize(
    ("method", "settings"),
    [(metfa.AttributionSample.plot, PlotSettings), (metfa.AttributionSample.report, ReportSettings)],
)
def test_docstrings_name_each(method, settings):
    words = set(inspect.getdoc(method).replace(",", " ").replace(".", " ").split())
    assert declared(settings).keys() <= words
