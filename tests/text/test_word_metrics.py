"""Faithfulness of words, by hand on models that count words."""

import math
import time

import numpy as np
import pytest
import torch

import metfa
from metfa import (
    DegenerateAttributionsWarning,
    ModelOutputWarning,
    ModelStateWarning,
    ReproducibilityWarning,
    RowDependenceWarning,
)
from metfa.metrics import mstd, robust, top_k_overlap
from metfa.text.word_metrics import fat, fdt, st
from metfa.text.words import words_of

WEIGHTS = {"superb": 0.4, "good": 0.2, "dull": -0.2, "slow": -0.1}
TEXTS = ["a superb, good but slow film", "dull and slow!", "good"]
SCORES = [np.array([0, 0.9, 0.8, 0.1, 0.3, 0.2]), np.array([0.2, 0.1, 0.7]), np.array([1.0])]
METRICS = [fdt, st, lambda *args, **settings: fat(*args, others=["the one about a ship in the far north"], **settings)]


def positive(text):
    words = text if isinstance(text, list) else [word.strip(",!.") for word in text.split()]
    return 0.4 + sum(WEIGHTS.get(word, 0.0) for word in words)


def model(texts):
    chance = np.array([positive(text) for text in texts])
    return np.stack([1 - chance, chance], axis=1)


def test_fdt_by_hand():
    scores = fdt(model, TEXTS, SCORES, target=1, n=4)
    np.testing.assert_allclose(scores.clean, [0.9, 0.1, 0.6], atol=1e-15)
    np.testing.assert_allclose(
        scores.curves,
        [
            [0.5, 0.3, 0.4, 0.4],  # without superb, good, slow, film
            [0.2, 0.4, 0.4, 0.4],  # without slow, dull, and: no words are left, also from then on
            [0.4, 0.4, 0.4, 0.4],
        ],
        atol=1e-15,
    )
    np.testing.assert_allclose(scores.raw, [0.4, 0.35, 0.4])
    np.testing.assert_array_equal(scores.n_words, [6, 3, 1])


def test_st_by_hand():
    scores = st(model, TEXTS, SCORES, target=[1, 0, 1], n=4)
    expected = [[0.8, 1.0, 0.9, 0.9], [0.7, 0.9, 0.9, 0.9], [0.6, 0.6, 0.6, 0.6]]
    np.testing.assert_allclose(scores.curves, expected, atol=1e-15)
    np.testing.assert_allclose(scores.score, [0.9 / 0.9, 0.85 / 0.9, 1.0])
    np.testing.assert_allclose(scores.normalised[0], np.array(expected[0]) / 0.9)


def test_fat_plants_the_best_words_at_their_positions():
    asked = []

    def watched(texts):
        asked.extend(texts)
        return model(texts)

    scores = fat(watched, TEXTS[:1], SCORES[:1], 1, others=["good", "We saw it, twice; with dull friends."], n=3)
    assert asked[1:4] == [
        "We superb it, twice; with dull friends.",
        "We superb good, twice; with dull friends.",
        "We superb good, twice; slow dull friends.",
    ]
    np.testing.assert_allclose(scores.curves, [[0.6, 0.8, 0.7]])
    np.testing.assert_allclose(scores.score, [0.7 / 0.9])


def test_all_maps_of_a_text_meet_the_same_other_text():
    pool = [f"a text with number {k} that is long enough" for k in range(50)]
    asked = []

    def watched(texts):
        asked.append(texts)
        return model(texts)

    drawn = []
    for map_, companions in [([1, 2, 3], []), ([3, 2, 1], ["good"]), ([1, 2, 3], ["slow", "dull film"])]:
        asked.clear()
        texts = [*companions, "a dull film"]
        maps = [np.arange(len(words_of(text))) for text in companions]
        fat(watched, texts, [*maps, map_], 1, others=pool, n=1)
        drawn.append(words_of(asked[1][-1]).words[4])
    assert len(set(drawn)) == 1
    seeds = []
    for seed in range(20):
        asked.clear()
        fat(watched, ["a dull film"], [[1, 2, 3]], 1, others=pool, n=1, rng=seed)
        seeds.append(asked[1][0])
    assert len(set(seeds)) > 10


def test_the_other_text_is_another_one_and_long_enough():
    asked = []

    def watched(texts):
        asked.extend(texts)
        return model(texts)

    pool = ["dull film, good", "a superb good film", "a Dull film", "a dull film!", "dull film"]
    for seed in range(30):
        asked.clear()
        fat(watched, ["a dull film"], [[3, 2, 1]], 1, others=pool, rng=seed)
        assert asked[1] in ("a film, good", "a superb good film", "a Dull film")


def test_equal_scores_go_in_an_order_of_the_text_alone():
    tied = [np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.0])]
    also = [np.array([9.0, 0.1, 0.1, 0.1, 0.1, 0.0])]
    np.testing.assert_array_equal(fdt(model, TEXTS[:1], tied, 1).curves, fdt(model, TEXTS[:1], also, 1).curves)
    orders = {tuple(np.round(fdt(model, TEXTS[:1], tied, 1, rng=seed).curves[0], 9)) for seed in range(30)}
    assert len(orders) > 3  # and not that of the words
    for curve in orders:
        assert curve[0] == pytest.approx(0.9)
        assert curve[4:6] == pytest.approx((0.4, 0.4))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("target", [None, 0])
def test_a_text_has_its_score_alone_and_in_company(metric, target):
    together = metric(metfa.Called(model, softmax=False, batch_size=2), TEXTS, SCORES, target, n=5)
    for row in range(3):
        alone = metric(model, TEXTS[row : row + 1], SCORES[row : row + 1], target, n=5)
        np.testing.assert_array_equal(together.curves[row], alone.curves[0])
        np.testing.assert_array_equal(together.score[row], alone.score[0])


@pytest.mark.parametrize("metric", METRICS)
def test_arrays_of_any_library_and_texts_of_one_length(metric):
    texts = ["a good film", "a dull joke"]
    maps = np.array([[0.1, 0.9, 0.2], [0.3, 0.1, 0.6]], dtype=np.float32)
    expected = metric(model, texts, maps, 1, n=3).curves
    for same in (
        torch.from_numpy(maps),
        torch.from_numpy(maps).bfloat16(),
        maps.tolist(),
        list(torch.from_numpy(maps)),
    ):
        np.testing.assert_array_equal(metric(model, texts, same, 1, n=3).curves, expected)


def test_tokens():
    tokens = [["a", "superb", ",", "good", "film"]]
    scores = fdt(model, tokens, [[0, 4, 3, 2, 1]], 1, n=3)
    np.testing.assert_allclose(scores.curves, [[0.6, 0.6, 0.4]])
    planted = fat(model, tokens, [[0, 4, 3, 2, 1]], 1, others=[["w"] * 6], n=3)
    np.testing.assert_allclose(planted.curves, [[0.8, 0.8, 1.0]])
    assert tokens == [["a", "superb", ",", "good", "film"]]


def test_one_score_a_text_and_logits():
    scores = fdt(lambda texts: model(texts)[:, 1], TEXTS, SCORES, n=4)
    expected = fdt(model, TEXTS, SCORES, 1, n=4)
    np.testing.assert_array_equal(scores.curves, expected.curves)
    logits = fdt(metfa.Called(lambda texts: np.log(model(texts) + 1e-9), softmax=True), TEXTS[:1], SCORES[:1], 1, n=4)
    np.testing.assert_allclose(logits.curves, expected.curves[:1], atol=1e-7)


def test_torch_model_is_left_as_found():
    class Bag(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, texts):
            assert not torch.is_grad_enabled()
            return self.drop(torch.from_numpy(model(texts)))

    bag = Bag().train()
    with pytest.warns(ModelStateWarning, match="training mode") as caught:
        scores = fdt(bag, TEXTS[:1], SCORES[:1], 1, n=4)
    assert len(caught) == 1
    np.testing.assert_allclose(scores.curves, [[0.5, 0.3, 0.4, 0.4]])
    assert bag.drop.training


def test_what_has_no_score():
    maps = [np.ones(6), np.array([0.0, np.nan, 1.0]), np.ones(1)]
    with (
        pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have constant attributions: 0"),
        pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have attributions with NaN or infinity: 1"),
    ):
        scores = fdt(model, TEXTS, maps, 1)
    assert scores.degenerate == ("constant attributions", "attributions with NaN or infinity", None)
    np.testing.assert_array_equal(np.isnan(scores.score), [True, True, False])
    np.testing.assert_array_equal(np.isnan(scores.curves).all(axis=1), [False, True, False])


def test_a_text_that_the_model_gives_no_chance():
    with pytest.warns(ModelOutputWarning, match="1 of 1 inputs have a clean score below 1e-06"):
        scores = fdt(lambda texts: np.array([float(len(text) < 6) for text in texts]), ["a film"], [[1, 2]], n=2)
    assert np.isnan(scores.score).all()
    np.testing.assert_array_equal(scores.raw, [1.0])


@pytest.mark.parametrize("metric", METRICS)
def test_robust_without_noise_is_the_metric(metric):
    judge = robust(metric, noise=lambda text, rng: text, n_outer=3)
    for target in (None, 1):
        expected = metric(model, TEXTS[::2], SCORES[::2], target, n=4)
        result = judge(model, TEXTS[::2], SCORES[::2], target, n=4)
        np.testing.assert_allclose(result.score, expected.score, rtol=1e-14)
        np.testing.assert_allclose(result.draws[2].curves, expected.curves, rtol=1e-14)


def test_robust_judges_noisy_texts_by_the_clean_map():
    noise = lambda text, rng: text.replace("superb", str(rng.choice(["fine", "superb"])))  # noqa: E731
    result = robust(fdt, noise=noise, n_outer=40, rng=0)(model, TEXTS[:1], SCORES[:1], 1, n=2)
    np.testing.assert_allclose([draw.curves[0] for draw in result.draws], [[0.5, 0.3]] * 40)  # the place is left out
    assert set(np.round(result.cleans[:, 0], 9)) == {0.5, 0.9}
    np.testing.assert_allclose(result.score, 0.4 / result.cleans.mean())


def noisy(text, rng):
    parsed = words_of(text)
    return parsed.replaced([word if rng.random() < 0.6 else word.upper() for word in parsed.words])


def explained(explainer=lambda text: [sum(map(ord, word)) / 999 for word in words_of(text).words], n_samples=10):
    return metfa.explain(
        lambda texts, target: np.array([explainer(text) for text in texts]),
        TEXTS[:1],
        1,
        noise=noisy,
        n_samples=n_samples,
        rng=0,
        run=metfa.Run(feature_names=words_of(TEXTS[0]).words),
    )


def test_stability_of_words():
    sample = explained()
    n = sample.n_samples
    c4 = math.sqrt(2 / (n - 1)) * math.gamma(n / 2) / math.gamma((n - 1) / 2)
    np.testing.assert_allclose(mstd(sample).score, [sample.values.std(axis=0, ddof=1).mean() / c4])
    tops = [set(np.argsort(-scores[0])[:2]) for scores in sample.values]
    pairs = [len(a & b) / 2 for i, a in enumerate(tops) for b in tops[:i]]
    np.testing.assert_allclose(top_k_overlap(sample, 2).score, [np.mean(pairs)])
    assert 0 < np.mean(pairs) < 1
    with pytest.warns(DegenerateAttributionsWarning, match="1 of 1 inputs have fewer than 10 features"):
        assert np.isnan(top_k_overlap(sample, 10).score).all()


def test_metrics_take_the_maps_of_a_sample():
    sample = explained(lambda text: [len(word) for word in words_of(text).words], n_samples=6)
    for maps in (sample.vanilla, sample.smoothed()):
        assert fdt(model, sample.inputs, maps, sample.target, n=2).curves.shape == (1, 2)


def test_ten_thousand_words():
    words = [f"w{k}" for k in range(10_000)]
    text = " ".join(words)
    start = time.perf_counter()
    scores = fat(model, [text], [np.arange(10_000)], 1, others=[" ".join(words[::-1])])
    assert time.perf_counter() - start < 5
    np.testing.assert_allclose(scores.curves, 0.4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: fdt(model, "a film", [[1, 2]]),
            TypeError,
            r"`inputs` must be a list of texts, got str: write `\[text",
        ),
        (lambda: fdt(model, [], []), ValueError, "`inputs` is empty"),
        (lambda: fdt(model, ["..."], [[]]), ValueError, "the text '...' holds no words"),
        (lambda: fdt(model, [3], [[1]]), TypeError, "a text must be a string or the list of its tokens, got int: 3"),
        (lambda: fdt(3, ["a film"], [[1, 2]]), TypeError, "`model` must be a function list of texts .* got int"),
        (lambda: fdt(model, ["a film"], 3), TypeError, "one array of scores for each text, got int"),
        (lambda: fdt(model, ["a film"], [1, 2]), ValueError, "for each of the 1 texts, got 2"),
        (lambda: fdt(model, ["a film"], [[1, 2, 3]]), ValueError, r"got shape \(3,\) for the 2 words of input 0"),
        (lambda: fdt(model, ["a film"], [["x", "y"]]), TypeError, r"`attributions\[0\]` must be an array of real numb"),
        (lambda: fdt(model, ["a film"], [[1, 2]], n=0), ValueError, "`n` must be at least 1, got 0"),
        (lambda: fdt(model, ["a film"], [[1, 2]], 2), ValueError, r"`target` must lie in 0..1"),
        (
            lambda: st(metfa.Called(model, softmax=1), ["a film"], [[1, 2]]),
            TypeError,
            "`softmax` must be True or False, got int",
        ),
        (
            lambda: st(metfa.Called(model, batch_size=0), ["a film"], [[1, 2]]),
            ValueError,
            "`batch_size` must be at least 1, got 0",
        ),
        (lambda: st(model, ["a film"], [[1, 2]], rng="a"), TypeError, "`rng` must be None, an int or"),
        (lambda: st(lambda texts: 1, ["a film"], [[1, 2]]), TypeError, "`model` must return an array .* got int"),
        (lambda: fat(model, ["a film"], [[1, 2]], others="x"), TypeError, "`others` must be a list of texts, got str"),
        (lambda: fat(model, ["a film"], [[1, 2]], others=[]), ValueError, "`others` is empty"),
        (
            lambda: fat(model, ["a film"], [[1, 2]], others=[["two", "words"]]),
            TypeError,
            "must be of one kind, got both texts and lists of tokens",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_text_without_another_to_be_planted_in_has_no_score():
    """The others keep theirs; its own words, in the form of another text, are none."""
    texts, maps, others = ["x", "a good film"], [[1], [1, 2, 3]], ["two words", "a good film."]
    with pytest.warns(DegenerateAttributionsWarning, match="1 of 2 inputs have no other text of as many words: 1"):
        scores = fat(model, texts, maps, target=0, others=others, n=2)
    assert scores.degenerate == (None, "no other text of as many words")
    assert np.isnan(scores.curves[1]).all()
    assert np.isnan(scores.score[1])
    alone = fat(model, texts[:1], maps[:1], target=0, others=others, n=2)
    np.testing.assert_array_equal(scores.curves[0], alone.curves[0])


def _reads_padding(texts):
    """The share of "good", among the words and the padding behind them."""
    longest = max(len(text.split()) for text in texts)
    return np.array([0.1 + text.split().count("good") / max(longest, 1) for text in texts])


@pytest.mark.parametrize("metric", [fdt, st])
def test_a_model_that_reads_the_padding_is_asked_about_one_text_at_a_time(metric):
    texts = ["a good film and good fun", "a long joke that is not so good and takes more than two hours of your time"]
    maps = [np.arange(len(one.split()), dtype=float) for one in texts]
    for n in (1, 2):  # one text has copies of several lengths, too
        with pytest.warns(RowDependenceWarning, match="one text at a time"):
            found = metric(_reads_padding, texts[:n], maps[:n], rng=0)
        right = metric(metfa.Called(_reads_padding, softmax=False, batch_size=1), texts[:n], maps[:n], rng=0)
        np.testing.assert_array_equal(found.curves, right.curves)
        np.testing.assert_array_equal(found.clean, right.clean)


def test_a_random_model_of_texts_is_named_so():
    rng = np.random.default_rng(0)
    with pytest.warns(ReproducibilityWarning, match="other scores each time"):
        fdt(lambda texts: rng.random(len(texts)), ["a good film"], [[0.1, 0.9, 0.2]])
