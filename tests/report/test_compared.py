"""Reports of comparisons: what the page holds of both parts, what it says, and how large it is."""

import base64
import json
import re
import zlib
from html import unescape

import numpy as np
import pytest

import metfa
from metfa import report
from metfa.results.differences import difference_of as difference

NAME = "</script><img src=x onerror=alert(2)>\u202e"  # of a part, which figures have little room for
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
LABELS = (np.arange(48) // 12).reshape(6, 8)
NORMAL = {"explainer": "Gradient(model)", "noise": "Gaussian(std=0.2)", "gaussian_std": 0.2, "rng": "0x7"}


@pytest.fixture
def parts(sample):
    def make(shape=(6, 8), n=12, **settings):
        """Two results of the same copies; settings in pairs differ."""
        given = [
            {name: value[k] if isinstance(value, list) else value for name, value in settings.items()} for k in (0, 1)
        ]
        given = [{"provenance": NORMAL, **one} for one in given]
        inputs = np.random.default_rng(9).random((1, 3, *shape)) if len(shape) == 2 else np.ones((1, *shape))
        return [sample(shape, n, seed, **{"inputs": inputs, **one}) for seed, one in zip((0, 1), given, strict=True)]

    return make


def data_of(path):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"))[1]
    )


def text_of(path):
    page = path.read_text("utf-8").partition('<script type="application/json"')[0]
    return " ".join(unescape(re.sub("<[^>]*>", "\n", page.partition("<body>")[2])).split())


def unpacked(text, dtype="<f8"):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)


def test_the_page_holds_both_maps_on_one_scale(parts, tmp_path):
    found = metfa.compare(*parts())
    (told,) = data_of(found.report(tmp_path / "r.html"))["results"]
    both = np.stack([part.smoothed(0.95)[0] for part in found.pair])
    for name, expected in zip(("before", "after"), both, strict=True):
        np.testing.assert_allclose(unpacked(told["compared"]["maps"][name]), expected.ravel(), rtol=1e-6)
    assert (told["compared"]["low"], told["compared"]["high"]) == (both.min(), both.max())
    assert told["compared"]["names"] == ["before", "after"]
    assert (told["compared"]["signed"], told["signed"]) == (False, True)
    assert told["called"] == ["more than before", "less than before"]
    assert told["edges"][told["computed"]] == 0
    assert told["rule"] == "no difference"
    assert data_of(found.pair[0].report(tmp_path / "one.html"))["results"][0]["compared"] is None


def test_each_input_of_a_batch_and_its_regions_have_their_own_parts(parts, tmp_path):
    rng = np.random.default_rng(0)
    batch = {
        "values": [rng.random((12, 2, 6, 8)), rng.random((12, 2, 6, 8))], "vanilla": rng.random((2, 6, 8)),
        "inputs": rng.random((2, 3, 6, 8)), "target": (1, 4), "input_names": ("a", "b"),
    }  # fmt: skip
    found = metfa.compare(*parts(**batch))
    told = data_of(found.report(tmp_path / "r.html", regions=LABELS))["results"]
    assert [one["kind"] for one in told] == ["regions", "maps", "regions", "maps"]
    pooled = found.over(LABELS)
    for place, (row, of) in enumerate([(0, pooled), (0, found), (1, pooled), (1, found)]):
        for name, part in zip(("before", "after"), of.pair, strict=True):
            expected = part.smoothed(0.95)[row].ravel()
            np.testing.assert_allclose(unpacked(told[place]["compared"]["maps"][name]), expected, rtol=1e-6)


def test_changed_inputs_bring_both_pictures_and_no_radii(parts, tmp_path):
    other = np.random.default_rng(3).random((1, 3, 6, 8))
    before, after = parts()
    changed = metfa.compare(before, parts(inputs=other)[1])
    held = data_of(changed.report(tmp_path / "r.html"))
    (told,) = held["results"]
    assert len(held["pictures"]) == 2
    assert {told["picture"], told["compared"]["picture"]} == {0, 1}
    assert told["certificate"] is None
    text = text_of(tmp_path / "r.html")
    assert 'Two inputs that belong together were explained 12 times each, under the same noise: "before" (by' in text
    assert "input another in each of the two, so there is no certificate" in text
    same = data_of(metfa.compare(before, after).report(tmp_path / "s.html"))
    assert len(same["pictures"]) == 1
    assert same["results"][0]["certificate"] is not None
    assert "input the same in both" in text_of(tmp_path / "s.html")


def test_values_of_a_changed_row(parts, tmp_path):
    before, after = parts((3,), inputs=[np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.5, 3.0]])])
    (told,) = data_of(metfa.compare(before, after).report(tmp_path / "r.html"))["results"]
    assert told["values"] == ["1", "2 → 2.5", "3"]


def test_what_it_says_are_the_numbers(parts, tmp_path):
    found = metfa.compare(*parts(n=20))
    text = text_of(found.report(tmp_path / "r.html"))
    marks = found.significance_map()
    above, below, rest = (100 * (marks == mark).mean() for mark in (1, -1, 0))
    assert (
        'The same 20 noisy copies of the input were explained twice: "before" (by Gradient) and "after" (by Gradient). '
        "Each explanation gives every pixel a score: how much it matters for the class that is explained (class 1). In "
        'each copy the score of "before" is subtracted from that of "after". The scores are subtracted as the '
        "explainers gave them"
    ) in text
    assert f"So {above:.1f}% of the pixels are said to get more than before and {below:.1f}% less than before." in text
    assert (
        f"For the other {rest:.1f}% the differences do not agree enough to decide. That no difference is shown" in text
    )
    assert "This is about the median of these differences, which is not the difference of the two medians." in text
    interval = found.confidence_interval()
    outside = ((found.vanilla < interval.low) | (found.vanilla > interval.high)).sum()
    assert f"The difference without noise lies outside the interval of {outside} of 48 pixels" in text
    assert "This page shows where they are shown to differ" in text
    assert "what stays the same" not in text
    assert "unchanged" not in text


@pytest.mark.parametrize(
    ("scale", "said"),
    [("mean", "divided by the mean"), ("share", "divided by the sum"), ("rank", "replaced by its rank")],
)
def test_scales_are_said(scale, said, parts, tmp_path):
    path = metfa.compare(*parts(), scale=scale).report(tmp_path / "r.html")
    assert f"Before the subtraction, each {'score' if scale == 'rank' else 'map'} was {said}" in text_of(path)
    assert said in data_of(path)["results"][0]["compared"]["scale"]
    assert f"scale {scale}" in text_of(path)
    assert ">Gradient, class 1: after minus before</h2>" in path.read_text("utf-8")


OTHER = {**NORMAL, "explainer": "Occlusion(3)"}


@pytest.mark.parametrize(
    ("settings", "names", "heading"),
    [
        ({}, None, "Gradient, class 1: after minus before"),
        ({}, ("v1", "v2"), "Gradient, class 1: v2 minus v1"),
        ({"provenance": [NORMAL, OTHER]}, None, "class 1: Occlusion minus Gradient"),
        ({"provenance": [NORMAL, OTHER]}, ("v1", "v2"), "class 1: v2 minus v1"),
        ({"target": [(1,), (4,)]}, None, "Gradient: class 4 minus class 1"),
        ({"target": [(1,), (4,)], "provenance": [NORMAL, OTHER]}, None, "Occlusion minus Gradient"),
        ({"target": (None,)}, None, "Gradient: after minus before"),
    ],
)
def test_headings(settings, names, heading, parts, tmp_path):
    page = metfa.compare(*parts(**settings), names=names).report(tmp_path / "r.html").read_text("utf-8")
    assert f">{heading}</h2>" in page


def test_what_the_parts_do_not_share_is_said_of_each(parts, tmp_path):
    found = metfa.compare(*parts(provenance=[NORMAL, OTHER], target=[(1,), (4,)]), names=("old", "new"))
    text = text_of(found.report(tmp_path / "r.html"))
    for said in (
        "compared new minus old", "old: explainer Gradient(model)", "new: explainer Occlusion(3)",
        "old: class explained class 1", "new: class explained class 4", "Explained: old: class 1; new: class 4",
        "how much it matters for the class that is explained (old: class 1; new: class 4)", "seed 7 (rng=0x7)",
    ):  # fmt: skip
        assert said in text
    assert text.count("samples N 12") == 1


def test_a_contrast_of_classes(parts, tmp_path):
    found = difference(*parts(target=[(1,), (4,)]), names=("class 1", "class 4"), word="for")
    text = text_of(found.report(tmp_path / "r.html"))
    assert "Explained: class 4, against class 1" in text
    assert (
        'were explained twice: for "class 1" and for "class 4". Each explanation gives every pixel a score: how' in text
    )
    assert "said to get more for class 4 than for class 1" in text
    assert "where explanations of two classes differ under this noise" in text


def test_draws_of_its_own_cannot_be_repeated_by_explain(parts, tmp_path):
    found = metfa.compare(*parts(provenance=[NORMAL, {**NORMAL, "draws": "own"}]))
    text = text_of(found.report(tmp_path / "r.html"))
    assert "after: random draws of the explainer own" in text
    assert "before: to repeat it metfa.explain(" in text
    assert "after: to repeat it" not in text


def test_names_of_others_are_shown_as_texts(parts, tmp_path):
    table = metfa.compare(*parts((3,), feature_names=(HOSTILE, "b", "c")), names=(NAME, "B"))
    words = metfa.compare(*parts((3,), inputs=[[["a", HOSTILE, "c"]]] * 2), names=(NAME, "B"))
    maps = metfa.compare(*parts(), names=("A", NAME))
    path = report.write(tmp_path / "r.html", [table, words, maps, maps.over(LABELS)])
    page = path.read_text("utf-8")
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert "\u202e" not in page
    assert "\\u202e" not in page
    told = data_of(path)["results"]
    shown = NAME.replace("\u202e", "?")
    assert told[0]["compared"]["names"] == [shown, "B"]
    assert told[2]["compared"]["names"] == ["A", shown]


def test_no_differences_are_said_without_calling_them_the_same(parts, tmp_path):
    one, _ = parts()
    text = text_of(metfa.compare(one, one).report(tmp_path / "r.html"))
    assert "No pixel is shown to differ: most differences of each are 0 to rounding." in text
    assert "The other 100.0% are undecided: most differences of each are 0 to rounding." in text


def test_scores_of_the_parts_that_are_too_large_to_be_drawn(parts, tmp_path):
    one, _ = parts()
    large = [
        metfa.AttributionSample(**{**vars(one), "values": one.values.astype(np.float64) + 2e300}) for _ in range(2)
    ]
    with pytest.raises(ValueError, match="too large to be drawn"):
        metfa.compare(*large).report(tmp_path / "r.html")


@pytest.mark.slow
def test_both_maps_take_no_more_than_two_maps(sample, tmp_path):
    """Noise is the worst to pack; four bytes a score, in base64."""
    rng = np.random.default_rng(0)
    inputs = rng.random((1, 3, 224, 224))
    both = [
        sample((224, 224), 50, values=values, vanilla=values[0], inputs=inputs)
        for values in rng.random((2, 50, 1, 224, 224), np.float32)
    ]
    found = metfa.compare(*both)
    path = found.report(tmp_path / "r.html")
    maps = data_of(path)["results"][0]["compared"]["maps"]
    assert sum(map(len, maps.values())) < 2 * 4 * 224 * 224 * 4 / 3 * 1.01
    assert path.stat().st_size < 4e6
