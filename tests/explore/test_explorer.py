"""The widget without a front end: what the page says reaches Python, and further samples change what stands."""

import json
import re
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa.results.certified import check_certifiable
from metfa.results.summary import summarise

pytest.importorskip("anywidget")
traitlets = pytest.importorskip("traitlets")

IMAGE = np.exp(-((np.mgrid[:6, :8][0] - 2) ** 2 + (np.mgrid[:6, :8][1] - 4) ** 2) / 6) * np.ones((1, 3, 1, 1))
NOISE = metfa.noise.Uniform(0.3)
FRESH = {"n": 20, "alpha": 0.05, "correction": "none", "correctionOfRegions": None, "moved": [None]}
FRESH |= {"movedOfRegions": [], "drawn": [[]]}
RUNS = [[9, 3], [17, 3]]


def explainer(inputs, target):
    return np.abs(inputs.mean(1))


again = partial(metfa.explain, explainer, IMAGE, 0, noise=NOISE, rng=3)


@pytest.fixture(scope="module")
def made():
    return again(n_samples=20)


@pytest.fixture
def sample(made):
    """Twenty samples at which nobody has looked."""
    return replace(made, provenance={**made.provenance, "looks": []})


@pytest.fixture(scope="module")
def plain(made):
    """An explorer that nothing changes."""
    return made.explore()


def said(explorer):
    """What the page holds."""
    return json.loads(re.search(r'id="data">(.*?)</script>', explorer._page)[1])


def choose(explorer, **chosen):
    """As the front end sends it."""
    explorer.set_state({"_chosen": {**FRESH, **chosen}})


def ask(explorer, until, start=None):
    asked = {"kind": "more", "from": explorer.sample.n_samples if start is None else start, "until": until}
    explorer._handle_custom_msg(asked, [])
    return explorer._sampling


class TestWhatIsChosen:
    def test_begins_as_the_page(self, sample):
        explorer = sample.explore(alpha=0.01, correction="by", split=5)
        assert (explorer.alpha, explorer.correction, explorer.regions) == (0.01, "by", None)
        assert explorer.threshold.tolist() == sample.threshold(split=5).tolist()
        assert explorer.terms == sample.terms(alpha=0.01, correction="by", split=5)
        data = said(explorer)
        assert (data["alpha"], data["correction"], data["results"][0]["split"]) == (0.01, "by", 5)

    def test_follows_the_page(self, sample):
        explorer, seen = sample.explore(), []
        explorer.observe(lambda change: seen.append((change.name, change.new)), ["alpha", "threshold", "regions"])
        choose(explorer, alpha=0.1, correction="closed-e-bh", moved=[0.25], drawn=[RUNS])
        assert [name for name, _ in seen] == ["alpha", "threshold", "regions"]
        assert (explorer.alpha, explorer.correction, explorer.threshold.tolist()) == (0.1, "closed-e-bh", [0.25])
        mask = np.zeros(48, bool)
        mask[[9, 10, 11, 17, 18, 19]] = True
        assert (explorer.regions.masks[0] == mask.reshape(1, 6, 8)).all()
        assert explorer.regions.names == ("drawn after a look",)
        choose(explorer, alpha=0.1, correction="closed-e-bh", moved=[0.25], drawn=[RUNS])
        assert len(seen) == 3  # nothing has changed
        choose(explorer)
        assert explorer.regions is None
        assert explorer.terms == sample.terms(correction="none")

    def test_a_region_that_was_drawn_is_guaranteed(self, sample):
        explorer = sample.explore(threshold=0.4)
        choose(explorer, drawn=[RUNS])
        found = explorer.sample.guarantee(explorer.regions, 0.4)
        mask = explorer.regions.masks[0][0]
        assert found.important == sample.guarantee(mask, 0.4).important

    @pytest.mark.parametrize("begun", [{"threshold": 0.4}, {"split": 10}])
    def test_a_threshold_that_was_moved_is_no_fixed_one(self, begun, sample):
        explorer = sample.explore(correction="closed-e-bh", **begun)
        assert explorer.terms.in_effect == "closed-e-bh"
        choose(explorer, moved=[0.25], correction="closed-e-bh")
        terms, split = explorer.terms, begun.get("split", 0)
        assert (terms.in_effect, terms.split) == ("e-bh", split)
        assert (sample.decide(terms).marks == sample.significance_map(0.25, correction="e-bh", split=split)).all()
        text = str(summarise(sample, sample.decide(terms), 0.95)[0])
        assert ("10 of them not tested" in text) == bool(split)
        with pytest.raises(ValueError, match="must not depend on the samples that are tested"):
            sample.guarantee(np.ones((6, 8), bool), terms.threshold, split=split)
        with pytest.raises(ValueError, match="must not depend on the samples that are tested"):
            check_certifiable(terms)

    def test_several_inputs(self):
        both = metfa.explain(explainer, np.concatenate([IMAGE, IMAGE[..., ::-1]]), 0, noise=NOISE, n_samples=20, rng=0)
        explorer = both.explore()
        choose(explorer, moved=[None, 0.25], drawn=[[], RUNS])
        assert explorer.threshold.tolist() == [both.threshold()[0], 0.25]
        assert explorer.regions is None
        with pytest.raises(ValueError, match=r"for all 2 inputs, .* explore one input, `sample.of_input\(0\).explore"):
            _ = explorer.terms
        choose(explorer, moved=[None, None], drawn=[RUNS, RUNS])
        assert len(explorer.regions.masks) == 2
        assert explorer.terms == both.terms(correction="none")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"alpha": 2.0},
            {"alpha": "0.05"},
            {"correction": "hochberg"},
            {"correction": None},
            {"moved": [None, None]},
            {"moved": ["0.3"]},
            {"moved": [float("nan")]},
            {"moved": 3},
            {"drawn": [[[40, 9]]]},
            {"drawn": [[[-1, 2]]]},
            {"drawn": [[[0, 1.5]]]},
            {"drawn": [[["0", 2]]]},
            {"drawn": [[3]]},
        ],
    )
    def test_what_no_page_says_is_refused(self, wrong, plain):
        explorer = plain
        with pytest.raises(traitlets.TraitError, match="does not fit"):
            choose(explorer, **wrong)
        assert (explorer.alpha, explorer.regions) == (0.05, None)

    def test_python_cannot_set_it(self, sample):
        explorer = sample.explore()
        for name in ("sample", "alpha", "correction", "threshold", "regions"):
            with pytest.raises(traitlets.TraitError, match="read-only"):
                setattr(explorer, name, None)


class TestMore:
    def test_the_same_samples_as_in_one_call(self, sample):
        explorer = sample.explore(more=again)
        longer = explorer.sample_more(13)
        assert longer is explorer.sample
        assert (longer.values == again(n_samples=33).values).all()

    def test_after_a_look_only_what_holds_at_any_time_stands(self, sample):
        explorer = sample.explore(more=again, correction="holm")
        notebook = said(explorer)["notebook"]
        assert "exact tests and intervals for 20 samples stand" in notebook["stands"]
        assert "they do not hold for the longer run" in notebook["ifMore"]
        assert sample.looks == [20]
        longer = explorer.sample_more(20)
        assert longer.any_time
        assert isinstance(longer.test(), stats.SequentialTestResult)
        assert (explorer.correction, explorer.terms.correction) == ("bonferroni", "bonferroni")
        data = said(explorer)
        assert (data["correction"], data["results"][0]["anyTime"]) == ("bonferroni", True)
        assert data["notebook"]["title"] == "40 samples, joined from parts after looks at 20 samples."
        assert "each statement here stands, whenever you stop" in data["notebook"]["stands"]
        assert longer.looks == [20, 40]  # the page is a look again

    @pytest.mark.parametrize(("before", "after"), [("bh", "closed-e-bh"), ("by", "closed-e-bh"), ("none", "none")])
    def test_what_is_chosen_stays(self, before, after, sample):
        explorer = sample.explore(more=again)
        choose(explorer, alpha=0.1, correction=before, moved=[0.2515], drawn=[RUNS])
        explorer.sample_more(10)
        assert (explorer._chosen["correction"], explorer.alpha) == (after, 0.1)
        assert explorer.threshold.tolist() == [0.2515]
        assert 0.2515 in said(explorer)["results"][0]["edges"]
        assert explorer.regions is not None
        choose(explorer, correction=before)  # the old page may still say so
        assert (explorer.correction or "none") == after

    def test_until_allows_it(self):
        began = again(n_samples=metfa.Until(undecided=0.3, threshold=0.4, max_samples=60))
        explorer = began.explore(more=again)
        assert "with looks by metfa.Until" in said(explorer)["notebook"]["title"]
        assert explorer.sample_more(5).stopping.added == 5

    def test_of_a_comparison(self):
        compared = partial(metfa.compare, explainer, lambda x, target: 2 * explainer(x, target), IMAGE, 0, noise=NOISE)
        explorer = compared(n_samples=20).explore(more=compared)
        assert explorer.sample_more(4).pair[1].n_samples == 24

    def test_names_of_the_run_stay_and_its_store_does_not(self, tmp_path):
        run = metfa.Run(store=tmp_path / "kept", input_names=["mine"])
        named = partial(again, run=run)
        assert named(n_samples=10).explore(more=named).sample_more(2).input_names == ("mine",)

    def test_without_a_seed(self):
        fresh = partial(metfa.explain, explainer, IMAGE, 0, noise=NOISE)
        assert fresh(n_samples=10).explore(more=fresh).sample_more(2).n_samples == 12

    def test_rounds_that_a_page_asks_for(self, sample, monkeypatch):
        monkeypatch.setattr("metfa.explore._more.SECONDS", 0.0)
        explorer = sample.explore(more=again)
        shown = explorer._page
        assert ask(explorer, 45) == {"n": 30, "round": 1, "ended": None}
        assert ask(explorer, 45, start=20)["n"] == 30  # an answer that came twice
        assert ask(explorer, 45)["n"] == 40
        assert ask(explorer, 45)["n"] == 45
        assert explorer._page == shown  # nobody looked between
        explorer._handle_custom_msg({"kind": "done"}, [])
        assert said(explorer)["notebook"]["n"] == 45
        assert explorer.sample.looks == [20, 45]

    def test_a_page_that_was_closed(self, sample):
        explorer = sample.explore(more=again)
        ask(explorer, 25)
        explorer._repr_mimebundle_()
        assert said(explorer)["notebook"]["n"] == 25

    @pytest.mark.parametrize("message", [None, 3, {}, {"kind": "more"}, {"kind": "more", "from": 20, "until": "99"}])
    def test_messages_of_no_page(self, message, plain):
        before = plain.sample
        plain._handle_custom_msg(message, [])
        assert plain.sample is before

    def test_an_interrupt_keeps_finished_rounds(self, sample, monkeypatch):
        monkeypatch.setattr("metfa.explore._more.SECONDS", 0.0)
        calls = []

        def interrupted(n_samples, rng, run):
            calls.append(n_samples)
            if len(calls) in (2, 3):
                raise KeyboardInterrupt
            return again(n_samples=n_samples, rng=rng, run=run)

        explorer = sample.explore(more=interrupted)
        with pytest.raises(KeyboardInterrupt):
            explorer.sample_more(30)
        assert explorer.sample.n_samples == said(explorer)["notebook"]["n"] == 30
        assert ask(explorer, 50)["ended"] == "Interrupted: the samples of finished rounds are kept."
        assert ask(explorer, 50) == {"n": 40, "round": 2, "ended": None}

    def test_a_failure_is_told_on_the_page(self, sample):
        explorer = sample.explore(more=partial(metfa.explain, explainer, 2 * IMAGE, 0, noise=NOISE))
        assert ask(explorer, 30)["ended"].startswith("ValueError: `other` has another `input_names`")
        assert explorer.sample is sample


class TestBadInput:
    @pytest.mark.parametrize(
        ("more", "error", "message"),
        [
            (3, TypeError, r"`more` must be a function, called as more\(n_samples=..., rng=..., run=...\), got int: 3"),
            (lambda n: None, TypeError, "`more` must be a function that is called as more"),
            (partial(metfa.explain, explainer), TypeError, "missing a required .*argument: 'inputs'"),
        ],
    )
    def test_more(self, more, error, message, sample):
        with pytest.raises(error, match=message):
            sample.explore(more=more)

    @pytest.mark.parametrize(
        ("returned", "message"),
        [(3, "must return an AttributionSample, got int: 3"), ("short", "as many samples as .*, 8, got 7")],
    )
    def test_what_more_returns(self, returned, message, sample):
        def more(n_samples, rng, run):
            return again(n_samples=n_samples - 1, rng=rng, run=run) if returned == "short" else returned

        with pytest.raises((TypeError, ValueError), match=message):
            sample.explore(more=more).sample_more(8)

    def test_no_more(self, sample):
        explorer = sample.explore()
        assert "give the call that made the samples" in said(explorer)["notebook"]["ifMore"]
        with pytest.raises(ValueError, match="give the call that made the samples"):
            explorer.sample_more(5)
        with pytest.raises(ValueError, match="`n_samples` must be"):
            sample.explore(more=again).sample_more(0)

    def test_samples_without_a_seed(self, sample):
        with pytest.raises(ValueError, match="`more` needs the seed of the samples"):
            replace(sample, provenance={}).explore(more=again)

    def test_of_a_population(self):
        rows = metfa.explain(lambda x, target: x, np.arange(40.0).reshape(20, 2), 0, noise=NOISE, n_samples=5, rng=0)
        population = rows.across_inputs()
        with pytest.raises(ValueError, match="these are rows: explain further rows, and join both results by `concat`"):
            population.explore(more=again)
        assert said(population.explore())["notebook"]["ifMore"] == ""

    def test_settings(self, sample):
        with pytest.raises(ValueError, match="`correction` must be"):
            sample.explore(correction="hochberg")
        with pytest.raises(TypeError, match="`other` must be an AttributionSample"):
            sample.explore(3)
        with pytest.raises(
            TypeError, match=r"`explore` takes regions, threshold, .*, got `treshold`, did you mean 'threshold'"
        ):
            sample.explore(treshold=0.3)

    def test_without_anywidget(self, sample, monkeypatch):
        monkeypatch.setitem(sys.modules, "anywidget", None)
        monkeypatch.delitem(sys.modules, "metfa.explore._explorer", raising=False)
        with pytest.raises(
            ModuleNotFoundError, match=r"sample.explore\(\) needs anywidget: pip install 'metfa\[notebook\]'"
        ):
            sample.explore()


class TestViews:
    def test_other_results_are_compared(self, sample):
        other = metfa.explain(lambda x, target: 2 * explainer(x, target), IMAGE, 0, noise=NOISE, n_samples=20, rng=3)
        explorer = sample.explore(other)
        assert explorer.sample.pair[0].values is not None
        assert (explorer.sample.values == metfa.compare(sample, other).values).all()
        with pytest.raises(ValueError, match="the same seed"):
            sample.explore(metfa.explain(explainer, IMAGE, 0, noise=NOISE, n_samples=20, rng=4))

    def test_regions_beside_have_choices_of_their_own(self, sample):
        regions = metfa.Regions(np.broadcast_to(np.arange(8) // 4, (6, 8)), against="rest")
        explorer = sample.explore(more=again, regions=regions)
        choose(explorer, correctionOfRegions="holm", moved=[0.25], movedOfRegions=[0.01])
        explorer.sample_more(10)
        assert explorer._chosen["correctionOfRegions"] == "bonferroni"
        of_regions, pixels = said(explorer)["results"]
        assert 0.01 in of_regions["edges"]
        assert 0.01 not in pixels["edges"]
        assert 0.25 in pixels["edges"]

    def test_the_page_is_the_report_and_holds_itself(self, sample, tmp_path):
        page = sample.explore()._page
        report = sample.report(tmp_path / "r.html").read_text("utf-8")
        script = re.compile(r"<script>(.*?)</script>", re.DOTALL)
        assert script.search(page)[1] == script.search(report)[1]
        policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
        assert policy == re.search(r'Content-Security-Policy" content="(.*?)"', report)[1]
        assert 'class="in-notebook"' in page
        assert "in-notebook" not in report.partition("<style>")[0]
        assert '"notebook"' not in report

    def test_a_front_end_without_scripts_shows_a_text(self, sample):
        explorer = sample.explore()
        bundle = explorer._repr_mimebundle_()[0]
        assert bundle["text/plain"] == repr(explorer)
        assert repr(sample) in repr(explorer)
        assert "alpha 0.05, correction none. Its page needs a front end with JavaScript." in repr(explorer)
        choose(explorer, drawn=[RUNS])
        assert "1 region drawn" in repr(explorer)
