"""A thousand random calls: each is refused by name, or right; and every public callable is among them.

`python -m fuzz` in ``tests/`` makes as many calls as one likes.
"""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import metfa

from .calls import Folder, cases
from .values import COUNT, FLAG
from .verdicts import Case, Fresh, run, table, usual, verdict_of

MADE_BY_US = {  # results and their parts, which nobody makes by hand
    "AnswerTree", "AttackResult", "AttributionParts", "AttributionSample", "Change", "Changes", "ClassContext",
    "ConfidenceInterval", "ContextExplanation", "ContextTable", "Prominence", "Detection", "EValueBounds", "Evaluation",
    "Explorer", "FaithfulnessCurve", "Likeness", "LoadedModel", "MaskState", "Measured", "OverallFaithfulness",
    "Ranks", "RegionTree", "Regression", "RobustScore", "Scores", "SequentialTestResult", "Shares", "SignTestResult",
    "SimesBounds", "Stability", "Surrogate", "Table", "VarianceShares", "WordMixture", "WordScores", "WordSurrogate",
}  # fmt: skip
ELSEWHERE = {  # why not here
    "AnswerScorer": "takes a network of transformers",
    "EfficientNetLite": "takes a name alone",
    "Noise": "a type",
    "UnitStore": "made by `evaluate`",
    "load_answer_tree": "takes a folder alone",
    "generate_answer": "takes a network of transformers",
    "source_relevance": "takes a network of transformers",
    "from_transformers": "makes a network of a real size",
    "read_regression": "takes a file alone",
    "read_rows": "takes a folder of tables alone",
}


@pytest.fixture(scope="module")
def folder():
    made = Folder()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def chosen(folder):
    return cases(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_thousand_calls(chosen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a text may be a path
    verdicts = run(chosen, 1000, seed=20)
    words = [verdict.word for verdict in verdicts]
    assert words.count("silent") == words.count("slow") == 0, table(verdicts)
    assert words.count("unclear") < 5, table(verdicts)
    assert words.count("clear") > 800, "the fuzz asks too little"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_good_calls_are_good(chosen):
    for case in chosen:
        usual(case)


@pytest.mark.slow
def test_every_public_callable_is_called(chosen):
    called = {name for case in chosen for name in re.findall(r"\w+", case.name)}
    left_out = {"cli"} if importlib.util.find_spec("anywidget") else {"cli", "explore"}
    rooms = sorted({path.parent.name for path in Path(metfa.__file__).parent.glob("*/__init__.py")} - left_out)
    missing = set()
    for module in ("metfa", *(f"metfa.{room}" for room in rooms)):
        package = importlib.import_module(module)
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            warns = inspect.isclass(thing) and issubclass(thing, BaseException)
            if callable(thing) and not warns and name not in {*called, *MADE_BY_US, *ELSEWHERE}:
                missing.add(f"{module}.{name}")
    assert not missing


class TestVerdicts:
    """The judge itself: what it must find."""

    @staticmethod
    def verdict(function, **odd):
        case = Case("function", function, {"n_samples": 5, "scale": True}, kinds={"n_samples": COUNT, "scale": FLAG})
        return verdict_of(case, {**case.good, **odd}, list(odd), "function()").word

    def test_a_bare_error(self):
        assert self.verdict(lambda n_samples, scale: range(n_samples)[0] / 0, n_samples=3) == "unclear"

    def test_an_ignored_argument(self):
        assert self.verdict(lambda n_samples, scale: n_samples, scale="no") == "silent"
        assert self.verdict(lambda n_samples, scale: n_samples, scale=False) == "right"

    def test_nan_without_a_word(self):
        assert self.verdict(lambda n_samples, scale: float("nan") if n_samples == 3 else 1.0, n_samples=3) == "silent"

    def test_a_clear_error(self):
        from metfa.stats import min_samples

        case = Case("stats.min_samples", min_samples, {"alpha": 0.05})
        assert verdict_of(case, {"alpha": "0.05"}, ["alpha"], "").word == "clear"

    def test_fresh_arguments_are_made_for_each_call(self):
        made = []
        case = Case("function", lambda path: path, {"path": Fresh(lambda: made.append(1) or len(made))})
        usual(case)
        assert made == [1]
