"""Sentences of summaries, figures, texts and reports: each number in them is computed again from the samples.

No digit of a summary may stand in a sentence that is not read here, so that a new one comes with its check.
"""

import html
import re
from dataclasses import replace
from decimal import Decimal

import matplotlib as mpl
import numpy as np
import pytest
import scipy.stats
from matplotlib.text import Text

import metfa
from metfa.text import render_html, render_terminal

mpl.use("Agg")
NOISE = metfa.noise.Gaussian(0.5)
WEIGHTS = np.linspace(-2, 3, 60)


def unsigned(x, target):
    return np.abs(WEIGHTS[: x[0].size]).reshape(x.shape[1:]) * np.abs(x)


def signed(x, target):
    return WEIGHTS[: x[0].size].reshape(x.shape[1:]) * x


def explained(explainer, shape, n_samples, *, flips=0.0, targets=(1,)):
    """Of a batch, with predictions that flip in a share of the copies of each input, and class 1 as the clean one."""
    inputs = np.random.default_rng(0).uniform(0.5, 1.5, (len(targets), *shape))
    sample = metfa.explain(explainer, inputs, list(targets), noise=NOISE, n_samples=n_samples, rng=0)
    flipped = np.arange(sample.n_samples) < round(flips * sample.n_samples)
    predictions = np.repeat(np.where(flipped, 0, 1)[:, None], len(targets), axis=1)
    return replace(sample, scores=np.tile([0.2, 0.7, 0.1], (len(targets), 1)), predictions=predictions)


def of_before(sample):
    """As it was decided before each statement was a family of its own."""
    return replace(sample, provenance={**sample.provenance, "families": "both"})


UNTIL = metfa.Until(undecided=0.4, threshold=1.2, alpha=0.1, correction="bonferroni", max_samples=300)
CASES = {  # sample, settings
    "unsigned": lambda shape: (explained(unsigned, shape, 20, flips=0.1), {}),
    "signed": lambda shape: (explained(signed, shape, 20), {}),
    "batch": lambda shape: (explained(signed, shape, 12, flips=0.5, targets=(1, 2, 0)), {}),
    "until": lambda shape: (explained(unsigned, shape, UNTIL), {}),
    "until, uncorrected": lambda shape: (explained(unsigned, shape, UNTIL), {"correction": "none"}),
    **{
        name: lambda shape, name=name: (explained(signed, shape, 40), {"correction": name, "alpha": 0.025})
        for name in ("bonferroni", "holm", "bh", "by", "e-bh", "closed-e-bh")
    },
    **{
        f"{name}, one family": lambda shape, name=name: (of_before(explained(signed, shape, 40)), {"correction": name})
        for name in ("bonferroni", "holm", "bh", "e-bh", "closed-e-bh")
    },
    "tiny alpha": lambda shape: (explained(unsigned, shape, 25), {"alpha": 1e-6}),
    "alpha .005, split": lambda shape: (explained(unsigned, shape, 30), {"alpha": 0.005, "split": 8}),
    "high level": lambda shape: (explained(unsigned, shape, 30), {"confidence_level": 0.99999}),
    "five features": lambda shape: (explained(signed, (5,) if len(shape) == 1 else (1, 5), 20, flips=1.0), {}),
    "few samples": lambda shape: (explained(signed, shape, 8), {}),
    "no interval": lambda shape: (explained(signed, shape, 5), {}),
    "no target": lambda shape: (replace(explained(signed, shape, 20), target=(None,)), {}),
}
CONDITIONS = {
    "bh": "under positive dependence",
    "by": "under any dependence",
    "e-bh": "under any dependence and whenever sampling stops",
    "closed-e-bh": "under any dependence and whenever sampling stops",
}
PERCENT = r"([\d.e-]+)%"


def is_shown(text, share):
    """Whether `text` is this share in percent, rounded to the digits that it has, and 0 or 100 only for what is."""
    shown = Decimal(text)
    unit = Decimal(1).scaleb(shown.as_tuple().exponent)
    exact = 100 * (share if isinstance(share, Decimal) else Decimal(float(share)))
    assert abs(shown - exact) <= unit / 2 * (1 + Decimal("1e-9")) + Decimal("1e-12"), (text, share)
    assert (shown == 0, shown == 100) == (share == 0, share == 1), (text, share)
    return True


class Facts:
    """What the sentences must state about one row, from the samples alone."""

    def __init__(self, sample, row, settings):
        terms = {name: settings[name] for name in ("alpha", "correction", "split") if name in settings}
        self.sample, self.row = sample, row
        self.decision = sample.decide(sample.terms(**terms))
        self.terms = self.decision.terms
        values = np.sort(sample.values[:, row].reshape(sample.n_samples, -1), axis=0)
        self.n, self.m = values.shape
        self.marks = self.decision.marks[row]
        self.kinds = {name: float((self.marks == mark).mean()) for mark, name in self.decision.kinds.items()}
        self.level = settings.get("confidence_level", 0.95)
        self.outside = self.width = None
        if sample.too_few_for(self.level) is None:
            interval = sample.confidence_interval(self.level)
            low = next(rank for rank in range(self.n) if np.array_equal(values[rank], interval.low[row].ravel()))
            self.covered = 1 - 2 * scipy.stats.binom.cdf(low, self.n, 0.5)
            clean = sample.vanilla[row].ravel()
            ends = values[low], values[self.n - 1 - low]
            self.outside = int(((clean < ends[0]) | (clean > ends[1])).sum())
            self.width = float((ends[1] - ends[0]).mean())
            smoothed = sample.smoothed(self.level)[row].ravel()
            trimmed = (
                k for k in range(self.n // 2) if np.allclose(values[k : self.n - k].mean(axis=0), smoothed, rtol=1e-6)
            )
            self.trimmed = next(trimmed)
        flips = sample.predictions[:, row] != sample.scores[row].argmax()
        self.flips = float(flips.mean())

    @property
    def expected(self):
        """Features that are marked falsely on average, if every median lies at the threshold."""
        n = self.n - self.terms.split
        least = next(k for k in range(n + 2) if scipy.stats.binom.sf(k - 1, n, 0.5) <= self.terms.alpha)
        return 2 * scipy.stats.binom.sf(least - 1, n, 0.5) * self.m


def number(text):
    return float(text.replace(",", ""))


def read_promise(facts, text, noun="feature"):
    """Read the sentence about false marks."""
    terms, above, below = facts.terms, facts.decision.kinds[1], facts.decision.kinds[-1]
    if terms.correction is None and not facts.sample.any_time:
        pattern = (
            rf"up to ([\d.,e-]+) of ([\d,]+) {noun}s? marked falsely on average \({PERCENT}\), if every median "
            "lay at the threshold"
        )
        count, of, share = re.fullmatch(pattern, text).groups()
        digits = 0 if facts.expected >= 10 else 2
        assert number(count) == float(f"{facts.expected:.{digits}{'f' if not digits else 'g'}}")
        assert number(of) == facts.m
        assert is_shown(share, facts.expected / facts.m)
        return
    family_wise = (
        rf"no {noun} is called {above} falsely, with probability at least {PERCENT}; the same for {below}; both "
        rf"together with at least {PERCENT}"
    )
    patterns = {
        None: (
            rf"each {noun} is called {above} falsely with probability at most {PERCENT}, whenever sampling stops; the "
            rf"same for {below}"
        ),
        "bonferroni": family_wise,
        "holm": family_wise,
    }
    for name, condition in CONDITIONS.items():
        patterns[name] = (
            rf"of those called {above}, at most {PERCENT} on average are false, {condition}; the same for those called "
            rf"{below}"
        )
    alpha = Decimal(repr(terms.alpha))
    if terms.families == "both" and terms.correction is not None:
        patterns = {
            "bonferroni": rf"no {noun} is called {above} or {below} falsely, with probability at least {PERCENT}",
            "holm": rf"no {noun} with its median at the threshold is marked, with probability at least {PERCENT}",
        }
        for name, condition in CONDITIONS.items():
            patterns[name] = (
                rf"on average at most {PERCENT} of all marks together \({above} and {below}\) are false, {condition}; "
                rf"of the {above} ones alone it may be more"
            )
    said = re.fullmatch(patterns[terms.correction], text)
    if terms.correction in ("bonferroni", "holm"):
        for share, missing in zip(said.groups(), (alpha, 2 * alpha), strict=False):
            assert is_shown(share, 1 - missing)
    else:
        assert is_shown(said[1], terms.alpha)


def read_contradiction(facts, text, noun="feature"):
    pattern = rf"the score without noise lies outside the interval of ([\d,]+) of ([\d,]+) {noun}s? \({PERCENT}\)"
    count, of, share = re.fullmatch(pattern, text).groups()
    assert (number(count), number(of)) == (facts.outside, facts.m)
    assert is_shown(share, facts.outside / facts.m)


def read_caution(facts, text):
    assert is_shown(
        re.fullmatch(rf"The noise changed the prediction in {PERCENT} of the noisy copies", text)[1], facts.flips
    )


def read_class(facts, text):
    target, clean = facts.sample.target[facts.row], int(facts.sample.scores[facts.row].argmax())
    assert text == (f"class {target}, as predicted" if target == clean else f"class {target}; predicted: class {clean}")


def read_summary(facts, lines):
    """Read every line of a summary; one that is not known here fails, unless it holds no digit."""
    seen = set()
    for name, text in lines:
        seen.add(name)
        if name == "caution":
            read_caution(facts, text)
        elif name == "row":
            assert text == f"input {facts.row} of {len(facts.sample.target)}"
        elif name == "class explained":
            read_class(facts, text)
        elif name == "samples":
            n, kept, m = re.fullmatch(
                r"(\d+) of each feature's score(?:, (\d+) of them for the threshold alone)?; ([\d,]+) features", text
            ).groups()
            assert (int(n), int(kept or 0), number(m)) == (facts.n, facts.terms.split, facts.m)
        elif name in facts.kinds:
            share, threshold = re.fullmatch(
                rf" *{PERCENT}(?: \(median (?:above the threshold, (\S+)|below it)\))?", text
            ).groups()
            assert is_shown(share, facts.kinds[name])
            assert threshold is None or float(threshold) == float(
                f"{facts.decision.thresholds.flat[facts.row % facts.decision.thresholds.size]:.4g}"
            )
        elif name == "stopped":
            assert text == str(facts.sample.stopping.of_input(facts.row))
        elif name == "false marks":
            said, at, side, by = re.fullmatch(r"(.*) \(alpha (\S+)( a side)?, ([a-z -]+)\)", text).groups()
            read_promise(facts, said)
            assert at == f"{facts.terms.alpha:g}"
            assert bool(side) == (facts.terms.correction is None or facts.terms.families == "statements")
            assert by.removesuffix(" over both sides together") == (facts.terms.correction or "uncorrected")
            assert by.endswith(" over both sides together") != bool(side)
        elif name == "intervals" and facts.outside is None:
            assert text == f"none: {facts.sample.too_few_for(facts.level)}"
        elif name == "intervals":
            least, share, width = re.fullmatch(
                rf"each holds its median with probability (at least )?{PERCENT}, (?:more where scores tie|whenever "
                r"sampling stops); mean width (\S+)",
                text,
            ).groups()
            assert bool(least) == facts.sample.any_time
            covered = facts.covered if not least else facts.sample.confidence_interval(facts.level).confidence_level
            assert is_shown(share, covered)
            assert float(width) == float(f"{facts.width:.3g}")
        elif name == "contradicted":
            read_contradiction(facts, text)
        elif name == "smoothed map":
            trimmed = r"mean of the (\d+) middle ones of (\d+) samples of each feature, (\d+) left out on each side"
            if facts.trimmed:
                middle, *counts = map(int, re.fullmatch(trimmed, text).groups())
                assert counts == [facts.n, facts.trimmed]
                assert middle == facts.n - 2 * facts.trimmed
            else:
                assert text == f"mean of all {facts.n} samples of each feature, too few to leave any out"
        elif name == "prediction flips":
            assert is_shown(re.fullmatch(rf"{PERCENT} of the noisy inputs", text)[1], facts.flips)
        else:
            assert not re.search(r"\d", text), (name, text)
    assert ("caution" in seen) == (facts.flips >= 0.2)
    assert ("row" in seen) == (len(facts.sample.target) > 1)
    assert ("class explained" in seen) == (facts.sample.target[facts.row] is not None)
    assert ("contradicted" in seen) == ("smoothed map" in seen) == (facts.outside is not None)
    assert {"samples", "false marks", "intervals", "prediction flips", *facts.kinds} <= seen


def read_heading(facts, text):
    """Lines of a title: the row and its class, and the caution where it is due."""
    target = facts.sample.target[facts.row]
    place = f"input {facts.row} of {len(facts.sample.target)}" if len(facts.sample.target) > 1 else None
    named = None
    if target is not None:
        named = "explained: " + (
            f"class {target}, as predicted" if target == 1 else f"class {target}; predicted: class 1"
        )
    about = "; ".join(part for part in (place, named) if part)
    lines = text.split("\n")
    assert lines[0] == about
    if facts.flips >= 0.2:
        read_caution(facts, lines[1])
    assert len(lines) == (2 if facts.flips >= 0.2 else 1)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_summaries(case):
    sample, settings = case((60,))
    for row, summary in enumerate(sample.summary(**settings)):
        facts = Facts(sample, row, settings)
        read_summary(facts, summary.lines())
        assert str(summary).count("\n") + 1 == len(summary.lines())


def texts_of(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("name", ["unsigned", "batch", "bh", "tiny alpha", "five features", "few samples", "no target"])
def test_bars(name):
    sample, settings = CASES[name]((60,))
    for row in range(len(sample.target)):
        facts = Facts(sample, row, settings)
        figure = metfa.plot.bars(sample, index=row, max_features=60, **settings)
        if facts.sample.target[row] is not None:
            read_heading(facts, figure.get_suptitle())
        shown = texts_of(figure)
        counts = {name: round(share * facts.m) for name, share in facts.kinds.items()}
        assert {f"{name}: {count}" for name, count in counts.items()} <= set(shown)
        (interval,) = re.findall(rf"{PERCENT} interval of the median", "\n".join(shown))
        assert is_shown(interval, facts.covered)
        beyond = [re.fullmatch(r"vanilla outside its interval: (\d+) of (\d+)", text) for text in shown]
        found = [tuple(map(int, match.groups())) for match in beyond if match]
        assert found == ([(facts.outside, facts.m)] if facts.outside else [])
        (trimmed,) = (
            re.search(r"smoothed over (\d+) samples, (?:(\d+) left out|too few)", text)
            for text in shown
            if "smoothed over" in text
        )
        assert (int(trimmed[1]), int(trimmed[2] or 0)) == (facts.n, facts.trimmed)
        assert sum("alpha" in text for text in shown) == 1  # said once
        faint = {bar.get_alpha() for bar in figure.axes[0].patches}
        assert faint == {0.25 if facts.flips >= 0.2 else 1.0}


@pytest.mark.parametrize("name", ["unsigned", "batch", "five features"])
def test_images(name):
    sample, settings = CASES[name]((6, 10))
    for row in range(len(sample.target)):
        facts = Facts(sample, row, settings)
        figure = metfa.plot.figure(sample, index=row, **settings)
        read_heading(facts, figure.get_suptitle())
        shown = "\n".join(texts_of(figure))
        assert is_shown(re.search(rf"{PERCENT} outside intervals", shown)[1], facts.outside / facts.m)
        for kind, share in facts.kinds.items():
            assert is_shown(re.search(rf"\b{kind} {PERCENT}", shown)[1], share)
        assert is_shown(re.search(rf"of the {PERCENT} intervals", shown)[1], facts.covered)
        assert f"{facts.n} samples, {facts.trimmed} + {facts.trimmed} left out" in shown


@pytest.mark.parametrize(
    "name", ["unsigned", "signed", "until", "by", "holm, one family", "tiny alpha", "five features"]
)
def test_reports(name, tmp_path):
    sample, settings = CASES[name]((60,))
    facts = Facts(sample, 0, settings)
    page = metfa.report.write(tmp_path / "r.html", sample, **settings).read_text("utf-8")
    page = html.unescape(page[page.index("<main") : page.index("</main>")])
    read_summary(facts, re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page.split("How the result was made")[0]))
    assert f"class {sample.target[0]}</h2>" in page
    read_class(facts, re.search(r'<p class="of">Explained: (.*?)</p>', page)[1])
    cautions = re.findall(r'<p class="caution">(.*?)\.</p>', page)
    assert len(cautions) == (facts.flips >= 0.2)
    for text in cautions:
        read_caution(facts, text)
    paragraph = re.search(r"settings at the start\.</strong> (.*?)</p>", page)[1]
    above, below = facts.decision.kinds[1], facts.decision.kinds[-1]
    shares = re.search(
        rf"So {PERCENT} of the features are called {above} and {PERCENT} {below}\.(?: For the other {PERCENT} the)?",
        paragraph,
    ).groups("0")
    assert all(map(is_shown, shares, (facts.kinds[above], facts.kinds[below], facts.kinds["undecided"])))
    contradicted = re.search(r"(The score without noise.*?\))\.", paragraph)
    assert bool(contradicted) == bool(facts.outside)
    if contradicted:
        read_contradiction(facts, "t" + contradicted[1][1:])
    if facts.terms.correction is None:
        assert is_shown(re.search(rf"marks it in at most {PERCENT} of the cases", paragraph)[1], facts.terms.alpha)
    else:
        read_promise(facts, re.search(r"features at once: (.*?)\)\. So", paragraph)[1])


@pytest.mark.parametrize("name", ["unsigned", "until", "holm", "tiny alpha", "five features", "few samples"])
def test_texts(name):
    sample, settings = CASES[name]((60,))
    words = tuple(f"w{place}" for place in range(sample.n_features))
    sample = replace(sample, inputs=[" ".join(words)], feature_names=words)
    facts = Facts(sample, 0, settings)
    views = {
        "terminal": render_terminal(sample, colour=False, width=10_000, **settings),
        "page": html.unescape(re.sub(r"<[^>]*>", "\n", render_html(sample, **settings))),
    }
    for view in views.values():
        lines = view.splitlines()
        read_class(facts, next(line for line in lines if "explained by" in line).split("; explained by")[0])
        (decided,) = (line for line in lines if line.startswith("decided at"))
        read_promise(facts, decided.split(": ", 1)[1].split("; brackets")[0], "word")
        (contradicted,) = (line for line in lines if line.startswith("the score without noise"))
        read_contradiction(facts, contradicted, "word")
        warned = [line.removeprefix("CAUTION: ") for line in lines if "The noise changed" in line]
        assert len(warned) == (facts.flips >= 0.2)
        for line in warned:
            read_caution(facts, line)
    hovers = re.findall(r'title="([^"]*)"', render_html(sample, **settings))
    assert sum("(outside)" in hover for hover in hovers) == facts.outside
    for place, hover in enumerate(hovers):
        assert f"without noise {sample.vanilla[0, place]:.3g}" in hover


@pytest.mark.parametrize(
    ("n", "wild", "smoothed"), [(8, 1, 125), (9, 1, 0), (10, 1, 0), (10, 2, 125), (12, 2, 0), (20, 5, 0)]
)
def test_from_which_number_on_wild_maps_are_left_out(n, wild, smoothed):
    """As the documentation says of maps of zeros with some at 1000."""
    sample, _ = CASES["unsigned"]((5,))
    values = np.repeat((np.arange(n) < wild)[:, None, None] * 1000.0, 5, axis=2)
    sample = replace(sample, values=values, predictions=None, sample_ids=tuple(range(n)))
    assert (sample.smoothed() == smoothed).all()
    said = dict(sample.summary(threshold=1.0)[0].lines())["smoothed map"]
    left = re.search(r"(\d+) left out on each side", said)
    assert (int(left[1]) >= wild if left else said.endswith("too few to leave any out")) or smoothed > 0


def test_the_share_from_which_a_flip_is_said_is_the_users():
    sample, _ = CASES["unsigned"]((60,))  # 2 of 20 copies
    assert [bool(sample.summary(flips_from=share)[0].cautions) for share in (0.05, 0.1, 0.11, 1)] == [
        True,
        True,
        False,
        False,
    ]
    assert "The noise changed" in metfa.plot.bars(sample, flips_from=0.1).get_suptitle()
    assert "The noise changed" not in metfa.plot.bars(sample).get_suptitle()


@pytest.mark.parametrize(
    ("share", "error", "said"),
    [
        (0, ValueError, "`flips_from` must be a share above 0 and at most 1, got 0: for 20 % write 0.2"),
        (20, ValueError, "`flips_from` must be a share above 0 and at most 1, got 20"),
        ("20%", TypeError, "`flips_from` must be a number, got str: '20%'"),
        (True, TypeError, "`flips_from` must be a number, got bool: True"),
        (float("nan"), ValueError, "`flips_from` must be finite, got nan"),
    ],
)
def test_bad_shares(share, error, said, tmp_path):
    sample, _ = CASES["no target"]((60,))
    for view in (
        sample.summary,
        lambda **given: metfa.plot.bars(sample, **given),
        lambda **given: metfa.report.write(tmp_path / "r.html", sample, **given),
    ):
        with pytest.raises(error, match=re.escape(said)):
            view(flips_from=share)
    sample.summary(flips_from=0.2)  # as advised


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_where_nothing_stands_out_every_title_says_so(tmp_path):
    noise = np.random.default_rng(0).random((20, 1, 60))
    sample, _ = CASES["unsigned"]((60,))
    words = tuple(f"w{place}" for place in range(60))
    flat = replace(sample, values=noise, vanilla=noise[0], default_terms=None)
    decision = flat.decide(flat.terms())
    why = decision.nothing[0]
    assert why
    assert flat.summary()[0].cautions == (f"No feature stands out: {why}",)
    assert " ".join(metfa.plot.bars(flat).get_suptitle().split()).endswith(f"No feature stands out: {why}")
    page = metfa.report.write(tmp_path / "r.html", flat).read_text("utf-8")
    assert f'<p class="caution">No feature stands out: {why}.</p>' in html.unescape(page)
    text = replace(flat, inputs=[" ".join(words)], feature_names=words)
    assert render_terminal(text, colour=False, width=10_000).startswith(f"CAUTION: No word stands out: {why}")
    assert f"No word stands out: {why}" in html.unescape(render_html(text))
