"""Explained texts to look at: what is shown is true, and no text does anything but be shown."""

import re
import time
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest

import metfa
from metfa.text import Occlusion
from metfa.text.rendering import render_html, render_terminal
from metfa.text.words import words_of

VOID = {"meta"}
EVIL = {
    "tags": "<script>alert(1)</script> <img src=x onerror=alert(1)> film",
    "closing": "</span></p></div></body> --> ]]> film",
    "quotes": "\" onmouseover=\"alert(1) ' onfocus='x film",
    "entities": "&lt;b&gt; & &amp; &#60; film",
    "escape": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x08\x7f film",
    "bidi": "\u202eevil\u202c \u2066isolated \u2069 film",
    "surrogate": "lone \ud800 film",
    "null": "a\x00b film",
}


class Page(HTMLParser):
    """What a browser would show, and every tag and attribute that it would meet."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.shown, self.tags, self.attributes, self.open, self.spans = "", [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag == "span":
            self.spans.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.shown += data
        if self.open and self.open[-1] == "span":
            self.spans[-1][1] += data

    @property
    def words(self):
        """Text and attributes of each word."""
        return [(text, attributes) for attributes, text in self.spans if "title" in attributes]


def sampled(text, scores, n_samples=20, spread=0.01, **settings):
    """A text explained by the scores given, each with noise of its own."""

    @metfa.randomised
    def explainer(texts, target, *, rngs):
        return np.stack([np.asarray(scores) + spread * rng.normal(size=len(scores)) for rng in rngs])

    names = settings.pop("feature_names", words_of(text).words)
    return metfa.explain(
        explainer, [text], 1, noise=None, n_samples=n_samples, rng=0, run=metfa.Run(feature_names=names), **settings
    )


REVIEW = "A dull, lifeless film: “good” joke!"
SAMPLE = sampled(REVIEW, [0.1, 0.9, 0.8, 0.1, 0.45, 0.2], spread=np.array([0.01, 0.01, 0.01, 0.01, 0.3, 0.01]))
SAMPLE = replace(SAMPLE, provenance={**SAMPLE.provenance, "usual_threshold": "jenks"})  # leaves a word undecided
SIGNED = sampled(REVIEW, [0, 0.9, 0.8, 0, -0.6, 0.2])


def test_html_tells_the_truth():
    page = Page(render_html(SAMPLE, title="sentiment: negative"))
    assert page.shown.startswith("sentiment: negative" + REVIEW)
    interval, smoothed = SAMPLE.confidence_interval(), SAMPLE.smoothed()[0]
    marks = SAMPLE.significance_map()[0]
    assert marks.tolist() == [-1, 1, 1, -1, 0, -1]
    assert [word for word, _ in page.words] == list(SAMPLE.words)
    for index, (_, attributes) in enumerate(page.words):
        kind = {1: "important", 0: "undecided", -1: "unimportant"}[marks[index]]
        low, high = interval.low[0, index], interval.high[0, index]
        clean = SAMPLE.vanilla[0, index]
        beyond = "" if low <= clean <= high else " (outside)"
        shown = f"{smoothed[index]:.3g} [{low:.3g}, {high:.3g}], without noise {clean:.3g}{beyond}, {kind}"
        assert attributes["title"] == shown
        style = attributes["style"]
        assert ("underline" in style, "color-mix" in style) == (kind == "important", kind == "unimportant")
        opacity = float(re.search(r"background:rgba\(230,159,0,([0-9.]+)\)", style)[1])
        assert opacity == pytest.approx(0.6 * smoothed[index] / smoothed.max(), abs=1e-3)
    assert "in brackets the 95.86% interval of its median" in page.shown
    assert "N = 20 samples, no noise" in page.shown
    threshold = float(SAMPLE.threshold()[0])
    assert f"important: median significantly above {threshold:.3g}, 2 words" in page.shown
    assert f"unimportant: median significantly below {threshold:.3g}, 3 words" in page.shown
    assert "undecided: neither, 1 word" in page.shown
    expected = metfa.stats.expected_false_marks(20, 0.05, 6)
    assert f"decided at alpha 0.05 a side, uncorrected: up to {expected:.2g} of 6 words marked falsely" in page.shown


@pytest.mark.parametrize("n_samples", [6, 10, 30, 50])
def test_at_the_alpha_of_its_interval_a_word_is_marked_just_if_that_leaves_out_the_threshold(n_samples):
    rng = np.random.default_rng(n_samples)
    text = " ".join(f"w{k}" for k in range(40))
    sample = sampled(text, rng.random(40), n_samples=n_samples, spread=0.3)
    interval = sample.confidence_interval()
    inside = (interval.low[0] <= 0.5) & (interval.high[0] >= 0.5)
    titles = [attributes["title"] for _, attributes in Page(render_html(sample, threshold=0.5, alpha=0.025)).words]
    assert [title.endswith("undecided") for title in titles] == inside.tolist()
    assert 0 < inside.sum() < 40


def test_signed_scores_are_positive_or_negative():
    page = Page(render_html(SIGNED))
    kinds = [attributes["title"].split()[-1] for _, attributes in page.words]
    assert kinds[1:3] == ["positive", "positive"]
    assert kinds[4:] == ["negative", "positive"]
    good = page.words[4][1]["style"]
    assert "wavy" in good
    assert "rgba(0,114,178," in good
    assert "orange above 0, blue below" in page.shown
    assert "negative: median significantly below 0, " in page.shown


def test_a_text_is_read_as_sampling_stopped():
    rule = metfa.Until(undecided=0.4, threshold=lambda values: 0.45 + 0 * values.mean(), max_samples=200)
    spread = np.array([0.01, 0.01, 0.01, 0.01, 0.3, 0.01])
    sample = sampled(REVIEW, [0.1, 0.9, 0.8, 0.1, 0.45, 0.2], n_samples=rule, spread=spread)
    assert sample.stopping.split == 10
    page = Page(render_html(sample)).shown
    terminal = render_terminal(sample, colour=False, width=1000)
    marks = sample.significance_map()
    for shown in (page, terminal.replace("*", "")):
        assert f"important: median significantly above 0.45, {(marks == 1).sum()} words" in shown
        assert f"unimportant: median significantly below 0.45, {(marks == -1).sum()} words" in shown
        assert (
            "decided at alpha 0.05 a side, closed-e-bh: of those called important, at most 5% on average are" in shown
        )


def test_samples_that_chose_the_threshold_are_not_tested():
    shown = render_html(SAMPLE, split=12, alpha=0.025)
    expected = metfa.stats.expected_false_marks(8, 0.025, 6)
    assert f"uncorrected: up to {expected:.2g} of 6 words marked falsely" in shown
    assert f"{float(SAMPLE.threshold(split=12)[0]):.3g}, 2 words" in shown


def test_settings_are_named():
    page = Page(render_html(SAMPLE, threshold=0.5, alpha=0.1, correction="holm", confidence_level=0.9))
    assert "important: median significantly above 0.5" in page.shown
    assert (
        "alpha 0.1 a side, holm: no word is called important falsely, with probability at least 90%; the same for "
        in page.shown
    )
    assert f"the {SAMPLE.confidence_interval(0.9).confidence_level:.2%} interval" in page.shown
    each = Page(render_html(SAMPLE, threshold=np.linspace(0.1, 0.6, 6)[None]))
    assert "significantly above a threshold of its own" in each.shown


def test_too_few_samples_are_said():
    page = Page(render_html(sampled(REVIEW, np.arange(6), n_samples=3)))
    assert "no intervals: 3 samples are too few, 95% needs 6" in page.shown
    assert "no word can be significant: too few samples" in page.shown
    assert [attributes["title"] for _, attributes in page.words][5] in [
        f"{score}, without noise {clean}" for score in ("4.99", "5", "5.01") for clean in ("4.99", "5", "5.01")
    ]
    plain = render_terminal(sampled(REVIEW, np.arange(6), n_samples=1), colour=False, width=80)
    assert plain.startswith(REVIEW + "\n")
    assert "score: the only sample" in plain


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("page", [False, True])
def test_html_of_any_text_is_text(name, page):
    text = EVIL[name]
    n = len(words_of(text))
    made = render_html(sampled(text, np.arange(n)), title=text, page=page)
    parsed = Page(made)
    allowed = {"div", "p", "span"} | ({"html", "head", "meta", "title", "body"} if page else set())
    assert set(parsed.tags) <= allowed
    known = {"style", "dir", "title"} | ({"lang", "charset", "name", "content"} if page else set())
    assert {name for name, _ in parsed.attributes} <= known
    assert len(parsed.words) == n
    if name in ("tags", "closing", "quotes", "entities"):
        assert parsed.shown.count(text) == (3 if page else 2)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", made)
    made.encode()
    assert "film" in parsed.shown


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("colour", [False, True])
def test_no_text_writes_to_the_terminal(name, colour):
    text = EVIL[name]
    made = render_terminal(sampled(text, np.arange(len(words_of(text)))), title=text, colour=colour, width=80)
    ours = re.compile(r"\x1b\[[0-9;]+m")
    assert bool(ours.search(made)) == colour
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", ours.sub("", made))
    codes = ours.findall(made)
    assert all((code == "\x1b[0m") == bool(index % 2) for index, code in enumerate(codes))  # each is put back
    made.encode()


def test_the_explainers_name_is_escaped():
    sample = SAMPLE
    object.__setattr__(sample, "provenance", {**sample.provenance, "noise": "<b>\x1b[31m"})
    assert "noise <b>" in Page(render_html(sample)).shown
    assert "\x1b" not in render_terminal(sample, colour=False)


def test_lines_of_the_text_stay():
    sample = sampled("one\r\ntwo\n\nthree", [1, 2, 3])
    assert Page(render_html(sample)).shown.startswith("one\ntwo\n\nthree")
    assert render_terminal(sample, threshold=2.5, colour=False, width=80).startswith("one\ntwo\n\n*three*\n")


def test_scripts_and_emoji_stay():
    text = "שלום, עולם! यह क्\u200dष 👩‍👩‍👧 e\u0301t\u0301e\u0301"
    sample = sampled(text, np.arange(len(words_of(text))))
    assert Page(render_html(sample)).shown.startswith(text)
    assert ' dir="auto"' in render_html(sample)
    shown = render_terminal(sample, colour=True, width=80)
    assert re.sub(r"\x1b\[[0-9;]+m", "", shown).startswith(text)


def test_terminal_without_colours():
    lines = render_terminal(SAMPLE, colour=False, width=80, title="negative").split("\n")
    assert lines[:3] == ["negative", "", "A *dull*, *lifeless* film: “(good)” joke!"]
    assert lines[4].split()[0] == "dull"
    assert lines[4].endswith(" important")
    assert any(line.startswith("*important*: median significantly above") for line in lines)
    assert "(undecided): neither, 1 word" in lines
    signed = render_terminal(SIGNED, colour=False, width=80)
    assert "“~good~”" in signed.split("\n")[0]
    assert "~negative~: median significantly below 0" in signed


def test_parts_of_a_text_are_marked_and_are_no_words():
    regions = metfa.Regions(np.array([0, 1, 1, 2, 2, 2]), ["a", "b", "c"], against="rest")
    sample = SAMPLE.over(regions)
    assert sample.significance_map()[0].tolist() == [-1, 1, -1]
    lines = render_terminal(sample, colour=False, width=200).split("\n")
    assert lines[0] == "~a~ *b* ~c~"
    assert {"*more than the rest*: median significantly above 0, 1 region", "(undecided): neither, 0 regions"} <= {
        *lines
    }
    coloured = render_terminal(sample, colour=True, width=200).split("\n")[0]
    assert re.findall(r"\[(\d;\d);[\d;]+m(\w)", coloured) == [("3;4", "a"), ("1;4", "b"), ("3;4", "c")]
    page = Page(render_html(sample))
    assert ["wavy" in attributes["style"] for _, attributes in page.words] == [True, False, True]
    assert all("underline" in attributes["style"] for _, attributes in page.words)
    assert "score of a region" in page.shown
    assert " of 3 regions marked falsely" in page.shown
    above = SAMPLE.over(replace(regions, against=None))
    assert "above 0.4: median" not in render_terminal(above, colour=False, width=200, threshold=0.4)
    assert "*b*" in render_terminal(sample, colour=False, width=200, threshold=0.4)  # "above 0.4"
    assert "word" not in "\n".join(lines)


def test_terminal_with_colours():
    first = render_terminal(SAMPLE, colour=True, width=80).split("\n")[0]
    assert first.startswith("\x1b[2;38;5;16;48;5;180mA\x1b[0m \x1b[1;4;38;5;16;48;5;208mdull\x1b[0m, ")
    assert re.sub(r"\x1b\[[0-9;]+m", "", first) == REVIEW
    signed = render_terminal(SIGNED, colour=True, width=80)
    assert "\x1b[3;4;38;5;16;48;5;39mgood" in signed or "\x1b[3;4;38;5;16;48;5;74mgood" in signed


@pytest.mark.parametrize(
    ("terminal", "no_color", "term", "expected"),
    [(True, "", "xterm", True), (True, "1", "xterm", False), (False, "", "xterm", False), (True, "", "dumb", False)],
)
def test_colours_where_they_are_wanted(monkeypatch, terminal, no_color, term, expected):
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", term)
    assert ("\x1b[" in render_terminal(SAMPLE)) == expected
    assert "\x1b[" in render_terminal(SAMPLE, colour=True)


@pytest.mark.parametrize("width", [1, 17, 40, 80])
@pytest.mark.parametrize("colour", [False, True])
def test_lines_are_broken_between_words(width, colour):
    text = "Once   upon a time,\n\nin a land “far, far” away: there was a good film."
    n = len(words_of(text))
    shown = render_terminal(sampled(text, np.linspace(0.2, 1.8, n), spread=0.3), colour=colour, width=width)
    lines = re.sub(r"\x1b\[[0-9;]+m|[*()]", "", shown).split("\n")
    first = lines.index("")
    body = lines[: lines.index("", first + 1)]
    assert all(len(line) <= width or " " not in line for line in body)
    assert " ".join(" ".join(body).split()) == " ".join(text.split())
    if colour:  # where marks take no room
        assert len([line for line in body if line]) == {1: n, 17: 5, 40: 3, 80: 2}[width]


def test_wide_letters_take_two_columns():
    text = "电影 很好 电影"
    lines = render_terminal(sampled(text, [0.1, 0.9, 0.1]), colour=True, width=10).split("\n")
    assert [re.sub(r"\x1b\[[0-9;]+m", "", line) for line in lines[:2]] == ["电影 很好", "电影"]


def test_tokens_and_words_cut_by_others():
    tokens = sampled(["a", "good", "film"], [0.1, 0.9, 0.1])
    assert Page(render_html(tokens)).shown.startswith("a good film")
    others = sampled("a good film", [0.1, 0.9, 0.1, 0.2], feature_names=["a", "go", "##od", "film"])
    assert Page(render_html(others)).shown.startswith("a go ##od film")
    assert render_terminal(others, colour=False, width=80).startswith("a *go* ##od film")


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_one_word_and_equal_scores():
    one = sampled("dull!", [0.7])
    assert Page(render_html(one, threshold=0.5)).words[0][1]["title"].endswith("important")
    assert render_terminal(one, threshold=0.5, colour=False, width=80).startswith("*dull*!")
    for level in (0.0, 0.3):
        flat = sampled(REVIEW, np.full(6, level), spread=0)
        page = Page(render_html(flat))
        assert "No word stands out: all scores are equal" in page.shown
        assert page.words[0][1]["title"] == f"{level:.3g} [{level:.3g}, {level:.3g}], without noise {level:.3g}"
        shown = render_terminal(flat, colour=False, width=80)
        assert shown.startswith(f"CAUTION: No word stands out: all scores are equal\n\n{REVIEW}")


@pytest.mark.parametrize("least", [0.0, -0.02])
def test_signs_are_the_explainers_affair_not_the_samples(least):
    """Whether 0 is the threshold does not hang on one draw of one word."""

    def model(texts):
        return np.array([0.2 + 0.3 * ("fine" in row) + least * ("film" in row) for row in texts])

    raw = partial(Occlusion, scale=False)
    noise = lambda row, rng: row.replace("fine", str(rng.choice(["finer", "finest"])))  # noqa: E731
    explained = {"noise": noise, "n_samples": 8, "rng": 0}
    sample = metfa.text.explain_text(model, "a fine film", method=raw, **explained)
    assert sample.signed
    assert "median significantly above 0, 1 word" in render_terminal(sample, colour=False, width=80)
    assert render_terminal(sample, colour=False, width=80).startswith("(a) *fine* " + ("~film~" if least else "(film)"))
    alone = metfa.text.explain_text(model, "fine", method=raw, **explained)
    assert render_terminal(alone, colour=False, width=80).startswith(
        "*fine*\n\nfine  0.3 [0.3, 0.3], without noise 0.3, positive"
    )
    assert not metfa.text.explain_text(model, "a fine film", method=Occlusion, **explained).signed
    wrapped = metfa.text.explain_text(model, "a fine film", method=lambda m: metfa.seeded(raw(m)), **explained)
    assert wrapped.signed
    smooth = metfa.Smoothed(raw(model), noise=noise)
    assert metfa.explain(smooth, ["a fine film"], noise=noise, n_samples=4, rng=0).signed


@pytest.mark.slow
def test_ten_thousand_words():
    text = " ".join(f"word{k}," for k in range(10_000))
    sample = sampled(text, np.arange(10_000) / 10_000)
    start = time.perf_counter()
    page = render_html(sample)
    shown = render_terminal(sample, colour=True, width=80)
    assert time.perf_counter() - start < 6
    assert page.count("<span") == 10_000 + 4
    assert "and 9,990 more words, their scores at most " in shown


@pytest.mark.parametrize("render", [render_html, render_terminal])
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: "a film", TypeError, "`sample` must be an AttributionSample, got str"),
        (
            lambda: metfa.explain(lambda x, target: x, np.ones((1, 3)), 0, noise=metfa.noise.Gaussian(1), n_samples=6),
            ValueError,
            "`sample` must be of a text",
        ),
        (
            lambda: metfa.explain(
                lambda texts, target: np.array([[len(text)] for text in texts]),
                ["film", "joke"],
                0,
                noise=lambda text, rng: text,
                n_samples=6,
            ),
            ValueError,
            "`sample` must be of one text, got 2",
        ),
        (
            lambda: sampled("a film", [1, 2, 3], feature_names=None),
            ValueError,
            "one score for each word, got 3 for the 2 words",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::metfa.MetfaWarning")
def test_bad_samples(render, make, error, message):
    with pytest.raises(error, match=message):
        render(make())


def test_bad_settings():
    with pytest.raises(ValueError, match="`width` must be at least 1, got 0"):
        render_terminal(SAMPLE, width=0)
    with pytest.raises(ValueError, match="alpha"):
        render_html(SAMPLE, alpha=2)


@pytest.mark.parametrize(
    ("render", "settings", "error", "message"),
    [
        (render_html, {"title": 5}, TypeError, "`title` must be a text, got int: 5"),
        (render_terminal, {"title": 5}, TypeError, "`title` must be a text, got int: 5"),
        (render_html, {"page": "yes"}, TypeError, "`page` must be True or False, got str"),
        (render_terminal, {"colour": "yes"}, TypeError, "`colour` must be True or False, got str"),
        (
            render_html,
            {"threshold": "jenks"},
            TypeError,
            r"got the text 'jenks': write a rule such as metfa\.stats\.jenks",
        ),
        (render_html, {"correction": "foo"}, ValueError, "`correction` must be None or one of .* got 'foo'"),
        (render_html, {"correction": 3}, TypeError, "`correction` must be a string or None, got int: 3"),
    ],
)
def test_unfit_settings(render, settings, error, message):
    with pytest.raises(error, match=message):
        render(sampled(REVIEW, np.arange(6)), **settings)
