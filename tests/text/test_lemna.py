"""LEMNA: planted models found again, each part of the fit against a slow one, rows, seeds and errors."""

import hashlib

import numpy as np
import pytest
import torch
from scipy.stats import norm

import metfa
from metfa import DegenerateAttributionsWarning, ModelStateWarning, RowDependenceWarning
from metfa.text import _mixture
from metfa.text._deletions import deletions
from metfa.text._fused_lasso import unfused
from metfa.text._mixture import fit_mixture
from metfa.text.lemna import LEMNA

WORDS = [f"w{index}" for index in range(24)]
TEXT = " ".join(WORDS)
FIRST, SECOND = np.zeros(24), np.zeros(24)
FIRST[4:8], FIRST[15] = 0.12, -0.1  # a phrase, and a word alone
SECOND[10:14] = 0.15


def present(texts):
    return np.array([[word in set(text.split()) for word in WORDS] for text in texts], dtype=float)


def by_lot(texts):
    """Two numbers in [0, 1) for each text, the same whenever it is asked about: a coin and some noise."""
    digests = [hashlib.blake2b(" ".join(text.split()).encode(), digest_size=8).digest() for text in texts]
    return np.array([np.frombuffer(digest, dtype="<u4") / 2**32 for digest in digests]).T


def linear(texts):
    return 0.2 + present(texts) @ FIRST + 0.02 * (by_lot(texts)[1] - 0.5)


def mixed(texts):
    """Two linear models, one of which a coin decides to hold; the whole text belongs to the first."""
    shown = present(texts)
    first = (by_lot(texts)[0] < 0.6) | shown.all(axis=1)
    answers = np.where(first, 0.2 + shown @ FIRST, 0.9 - shown @ SECOND)
    return answers + 0.02 * (by_lot(texts)[1] - 0.5)


def gated(texts):
    """Another linear model holds where the last word is missing."""
    shown = present(texts)
    return np.where(shown[:, -1] > 0, 0.2 + shown @ FIRST, 0.9 - shown @ SECOND) + 0.02 * (by_lot(texts)[1] - 0.5)


def features_and_response(model=mixed, n=400, seed=0):
    kept = deletions(24, n, np.random.default_rng(seed))
    return kept.astype(float), model([" ".join(np.array(WORDS)[mask]) for mask in kept])


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_finds_a_linear_model_again(n_components):
    explainer = LEMNA(linear, n_components=n_components, scale=False, rng=0)
    (fit,), _ = explainer.fit([TEXT])
    np.testing.assert_allclose(fit.coefficients, FIRST, atol=0.01)
    assert fit.intercept == pytest.approx(0.2, abs=0.01)
    assert fit.r2 > 0.99
    np.testing.assert_array_equal(explainer([TEXT])[0][0], fit.coefficients)


@pytest.mark.parametrize("n_components", [2, 3])
def test_finds_two_linear_models_again(n_components):
    (fit,), _ = LEMNA(mixed, n_perturbations=1000, n_components=n_components, rng=0).fit([TEXT])
    np.testing.assert_allclose(fit.coefficients, FIRST, atol=0.02)
    assert fit.responsibilities[fit.component] > 0.99
    order = np.argsort(-fit.mixture.shares)
    np.testing.assert_allclose(fit.mixture.shares[order[:2]], [0.6, 0.4], atol=5 * np.sqrt(0.24 / 1000))
    np.testing.assert_allclose(fit.mixture.coefficients[order[1]], -SECOND, atol=0.02)
    (single,), _ = LEMNA(mixed, n_perturbations=1000, n_components=1, rng=0).fit([TEXT])
    assert np.abs(single.coefficients - FIRST).max() > 0.05
    assert single.r2 < 0.5 < fit.r2


def test_finds_the_linear_model_around_the_text_where_a_word_decides():
    (fit,), _ = LEMNA(gated, n_perturbations=1000, n_components=2, rng=0).fit([TEXT])
    np.testing.assert_allclose(fit.coefficients[:-1], FIRST[:-1], atol=0.02)


def test_one_component_is_the_fused_lasso():
    cvxpy = pytest.importorskip("cvxpy")
    features, response = features_and_response(linear)
    strength = 0.5 * np.sqrt(400 * np.log(24))
    mixture = fit_mixture(features, response, 1, strength)
    penalty = strength * mixture.deviations[0]
    coefficients, intercept = cvxpy.Variable(24), cvxpy.Variable()
    objective = (
        cvxpy.sum_squares(response - intercept - features @ coefficients) / 2
        + penalty * cvxpy.norm1(cvxpy.diff(coefficients))
    )  # fmt: skip
    cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver="CLARABEL")
    np.testing.assert_allclose(mixture.coefficients[0], coefficients.value, atol=1e-3)
    assert mixture.intercepts[0] == pytest.approx(float(intercept.value), abs=1e-3)


def test_each_component_is_the_fused_lasso_of_its_rows(monkeypatch):
    cvxpy = pytest.importorskip("cvxpy")
    monkeypatch.setattr(_mixture, "ENOUGH", 1e-9)
    features, response = features_and_response()
    strength = 0.5 * np.sqrt(400 * np.log(24))
    mixture = fit_mixture(features, response, 2, strength)
    responsibilities, _ = mixture.responsibilities(features, response)
    for k in range(2):
        coefficients, intercept = cvxpy.Variable(24), cvxpy.Variable()
        residuals = cvxpy.multiply(np.sqrt(responsibilities[:, k]), response - intercept - features @ coefficients)
        steps = cvxpy.norm1(cvxpy.diff(coefficients))
        objective = cvxpy.sum_squares(residuals) / 2 + strength * mixture.deviations[k] * steps
        cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver="CLARABEL")
        np.testing.assert_allclose(mixture.coefficients[k], coefficients.value, atol=1e-4)


def test_responsibilities_are_bayes_rule():
    features, response = features_and_response(n=50)
    mixture = fit_mixture(features, response, 3, 3.0)
    responsibilities, likelihood = mixture.responsibilities(features, response)
    expected = mixture.shares * norm.pdf(response[:, None], mixture.predictions(features), mixture.deviations)
    np.testing.assert_allclose(responsibilities, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    assert likelihood == pytest.approx(np.log(expected.sum(axis=1)).sum())


@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_every_step_raises_the_likelihood_where_there_is_no_penalty(n_components):
    features, response = features_and_response()
    responsibilities = np.random.default_rng(0).dirichlet(np.ones(n_components), 400)
    mixture = _mixture.Mixture(
        np.ones(n_components), np.zeros(n_components), np.zeros((n_components, 24)), np.full(n_components, 0.2)
    )
    found = []
    for _ in range(40):
        mixture = _mixture._maximised(mixture, responsibilities, features, response, 0)
        responsibilities, likelihood = mixture.responsibilities(features, response)
        found.append(likelihood)
    assert np.diff(found).min() > -1e-2 * _mixture.GONE
    if n_components > 1:
        assert found[-1] > found[0]


DECISIVE = {
    "one word": lambda shown: 0.2 + 0.6 * shown[:, 2],
    "both words": lambda shown: 0.1 + 0.8 * shown[:, 2] * shown[:, 5],
    "either word": lambda shown: 0.1 + 0.8 * np.maximum(shown[:, 2], shown[:, 5]),
    "saturated": lambda shown: 1 / (1 + np.exp(-8 * (shown[:, 2] + shown[:, 5] - 0.5))),
}


@pytest.mark.parametrize("law", DECISIVE)
@pytest.mark.parametrize("n_perturbations", [500, 2000])
def test_words_that_decide_are_found(law, n_perturbations):
    decisive = {2} if law == "one word" else {2, 5}
    explainer = LEMNA(lambda texts: DECISIVE[law](present(texts)), n_perturbations=n_perturbations)
    for seed in range(3):
        found, _ = explainer([TEXT], rngs=[np.random.default_rng(seed)])
        assert set(np.argsort(-found[0])[: len(decisive)]) == decisive


def test_without_fusion_one_component_is_least_squares():
    features, response = features_and_response(linear)
    expected = np.linalg.lstsq(np.column_stack([np.ones(400), features]), response, rcond=None)[0]
    mixture = fit_mixture(features, response, 1, 0)
    np.testing.assert_allclose(mixture.coefficients[0], expected[1:], atol=1e-7)
    assert mixture.intercepts[0] == pytest.approx(expected[0], abs=1e-7)


@pytest.mark.parametrize("n_components", [1, 2])
def test_the_explanation_follows_the_models_units(n_components):
    (fit,), _ = LEMNA(mixed, rng=0, n_components=n_components).fit([TEXT])
    (other,), _ = LEMNA(lambda texts: 50 - 1000 * mixed(texts), rng=0, n_components=n_components).fit([TEXT])
    np.testing.assert_allclose(other.coefficients, -1000 * fit.coefficients, atol=1e-4)
    assert other.r2 == pytest.approx(fit.r2)


def two_classes(texts):
    good = np.clip(linear([" ".join(text) if isinstance(text, list) else text for text in texts]), 0, 1)
    return np.stack([1 - good, good], axis=1)


SENTENCES = [" ".join(WORDS[start : start + 10]) for start in (0, 3, 9)]
SETTINGS = {"n_perturbations": 80, "n_components": 2}


def generators(seed=3, n=3):
    return [np.random.default_rng([seed, row]) for row in range(n)]


def test_rows_do_not_depend_on_each_other():
    explainer = LEMNA(two_classes, **SETTINGS)
    together, scores = explainer(SENTENCES, [0, 1, 1], rngs=generators())
    alone = [
        explainer([text], target, rngs=[rng])[0]
        for text, target, rng in zip(SENTENCES, [0, 1, 1], generators(), strict=True)
    ]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    np.testing.assert_array_equal(scores, two_classes(SENTENCES))
    assert together.shape == (3, 10)
    np.testing.assert_array_equal(together.min(axis=1), np.zeros(3))
    np.testing.assert_array_equal(together.max(axis=1), np.ones(3))


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_change_nothing(batch_size):
    expected, _ = LEMNA(two_classes, **SETTINGS, rng=0)(SENTENCES, 1)
    found, _ = LEMNA(metfa.Called(two_classes, softmax=False, batch_size=batch_size), **SETTINGS, rng=0)(SENTENCES, 1)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_tokens_give_what_their_text_gives():
    rows = [text.split() for text in SENTENCES]
    expected, _ = LEMNA(two_classes, **SETTINGS)(SENTENCES, 1, rngs=generators())
    np.testing.assert_array_equal(LEMNA(two_classes, **SETTINGS)(rows, 1, rngs=generators())[0], expected)


def test_seeds():
    state = np.random.get_state()[1].copy()
    first, again, other = (LEMNA(two_classes, **SETTINGS, rng=seed)(SENTENCES, 1)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0
    np.testing.assert_array_equal(state, np.random.get_state()[1])


def test_the_predicted_class_is_explained():
    found, scores = LEMNA(two_classes, **SETTINGS, rng=0)(SENTENCES)
    expected, _ = LEMNA(two_classes, **SETTINGS, rng=0)(SENTENCES, scores.argmax(axis=1))
    np.testing.assert_array_equal(found, expected)


def test_samples_of_its_own_randomness():
    explainer = LEMNA(two_classes, **SETTINGS)
    sample = metfa.explain(
        explainer, SENTENCES[:1], 1, noise=None, n_samples=6, rng=0, run=metfa.Run(feature_names=WORDS[:10])
    )
    assert sample.values.shape == (6, 1, 10)
    assert np.ptp(sample.values, axis=0).max() > 0
    assert set(np.argsort(sample.values.mean(axis=0)[0])[-4:]) == {4, 5, 6, 7}


class Net(torch.nn.Module):
    def __init__(self, *, broken=False):
        super().__init__()
        self.dropout, self.broken = torch.nn.Dropout(0.5), broken

    def forward(self, texts):
        if self.broken and "" in texts:
            raise RuntimeError("no words left")
        return self.dropout(torch.from_numpy(two_classes(texts)))


def test_a_module_is_put_back():
    net = Net().train()
    with pytest.warns(ModelStateWarning, match="training mode") as caught:
        found, _ = LEMNA(net, **SETTINGS, rng=0)(SENTENCES, 1)
    assert len(caught) == 1
    assert net.training
    np.testing.assert_array_equal(found, LEMNA(two_classes, **SETTINGS, rng=0)(SENTENCES, 1)[0])
    net = Net(broken=True).train()
    with pytest.warns(ModelStateWarning), pytest.raises(RuntimeError, match="no words left"):
        LEMNA(net, **SETTINGS, rng=0)(SENTENCES, 1)
    assert net.training


@pytest.mark.parametrize("fused", [0.03, 0.1, 0.3])
def test_idle_words_have_no_sign(fused):
    """Fusion alone gives them 1e-5 or more, always above 0: twenty runs called that positive."""
    text = "a moving film with one good joke and not dull"
    worth = {"moving": 0.3, "good": 0.1, "dull": -0.2}
    model = lambda texts: np.array(  # noqa: E731
        [0.5 + sum(worth.get(word, 0) for word in text.split()) for text in texts], dtype=np.float32
    )
    idle = [word not in worth for word in text.split()]
    runs = np.stack([LEMNA(model, scale=False, fused=fused, rng=seed)([text])[0][0] for seed in range(20)])
    assert not runs[:, idle].any()
    assert (np.sign(runs[:, ~np.array(idle)]) == [1, 1, -1]).all()


def test_unfused_coefficients_are_least_squares_with_the_same_blocks():
    rng = np.random.default_rng(0)
    features, response, weights = rng.integers(0, 2, (60, 5)).astype(float), rng.normal(size=60), rng.random(60)
    found = unfused(features, response, weights, np.array([1.0, 1.0, 3.0, 3.0, 2.0]))
    blocks = np.stack([features[:, :2].sum(1), features[:, 2:4].sum(1), features[:, 4], np.ones(60)], axis=1)
    root = np.sqrt(weights)
    levels = np.linalg.lstsq(blocks * root[:, None], response * root, rcond=None)[0]
    np.testing.assert_allclose(found, levels[[0, 0, 1, 1, 2]], atol=1e-8)
    assert unfused(features[:8], response[:8], weights[:8], np.arange(5.0)) is None


def test_one_word_two_words_and_repeated_words():
    one, _ = LEMNA(lambda texts: np.array([0.1 + 0.5 * ("good" in text) for text in texts]), scale=False)(["good !"])
    np.testing.assert_allclose(one, [[0.5]], atol=1e-9)
    two, _ = LEMNA(linear, scale=False)(["w4 w15"])
    np.testing.assert_allclose(two, [[0.12, -0.1]], atol=0.02)
    count = lambda texts: np.array([0.1 * text.split().count("good") for text in texts])  # noqa: E731
    repeated, _ = LEMNA(count, scale=False)(["good bad good 😀 טוב good"])
    np.testing.assert_allclose(repeated, [[0.1, 0, 0.1, 0, 0, 0.1]], atol=0.01)


def test_as_many_copies_as_words_or_fewer():
    with pytest.warns(DegenerateAttributionsWarning, match=r"unrelated numbers \(R² 1\.00 with 24 words and 20 copies"):
        found, _ = LEMNA(linear, n_perturbations=20, rng=0)([TEXT])
    assert np.isfinite(found).all()


def test_a_model_that_mixes_the_texts_of_a_call_is_told_of():
    def padded(texts):
        """The mean over the words and the padding behind them."""
        longest = max(len(text.split()) for text in texts)
        return np.array([sum(word in ("w3", "w7") for word in text.split()) / max(longest, 1) for text in texts])

    explainer = LEMNA(padded, n_perturbations=200, rng=0)
    with pytest.warns(RowDependenceWarning, match=r"depends on the other texts of its call .*batch_size=1\)`"):
        explainer([TEXT])
    alone, _ = LEMNA(metfa.Called(padded, softmax=False, batch_size=1), n_perturbations=200, rng=0)([TEXT])
    assert np.isfinite(alone).all()


@pytest.mark.slow
@pytest.mark.parametrize("fused", [0, 0.1])
def test_a_model_that_has_nothing_to_do_with_the_words_is_told_of(fused):
    def unrelated(texts):
        return np.array([int(hashlib.md5(text.encode()).hexdigest()[:8], 16) / 2**32 for text in texts])

    with pytest.warns(DegenerateAttributionsWarning, match="LEMNA's linear model fits .* no better than .* 600 words"):
        LEMNA(unrelated, n_perturbations=500, fused=fused, rng=0)([" ".join(f"w{k}" for k in range(600))])


def test_a_constant_model_gives_zeros_and_says_so():
    with pytest.warns(DegenerateAttributionsWarning, match="all 0 for 2 of 2 rows of one call"):
        fits, _ = LEMNA(lambda texts: np.full((len(texts), 2), 0.25), **SETTINGS).fit(SENTENCES[:2], 1)
    assert not fits[0].coefficients.any()
    assert (fits[0].intercept, fits[0].r2) == (0.25, 0)


def test_too_much_fusion_says_so():
    with pytest.warns(
        DegenerateAttributionsWarning, match="same for all words of 1 of 1 row of one call .*: .* than 1e\\+06"
    ):
        found, _ = LEMNA(linear, **SETTINGS, fused=1e6, rng=0)([TEXT])
    assert not found.any()


def test_a_text_of_10000_words_is_refused():
    with pytest.raises(ValueError, match=r"at most 2000 words, got 10000: .*metfa\.text\.LIME"):
        LEMNA(linear)([["w1"] * 10_000])


def test_bad_arguments():
    with pytest.raises(ValueError, match="`n_perturbations` must be at least 2, got 1"):
        LEMNA(linear, n_perturbations=1)
    with pytest.raises(ValueError, match="`n_components` must be at least 1, got 0"):
        LEMNA(linear, n_components=0)
    with pytest.raises(ValueError, match=r"not be more than `n_perturbations` \(5\), got 6"):
        LEMNA(linear, n_perturbations=5, n_components=6)
    with pytest.raises(ValueError, match="`fused` must be finite and not negative, got -1"):
        LEMNA(linear, fused=-1)
    with pytest.raises(TypeError, match="`fused` must be a number, got str"):
        LEMNA(linear, fused="S")
    with pytest.raises(ValueError, match="one generator for each of the 3 rows, got 2"):
        LEMNA(two_classes)(SENTENCES, 1, rngs=generators(n=2))
    with pytest.raises(ValueError, match=r"got shape \(1, 2, 2\)"):
        LEMNA(lambda texts: np.ones((len(texts), 2, 2)))([TEXT])
