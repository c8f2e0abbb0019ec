"""`explain_text`: what it refuses, in the words of its own arguments, and what it says of a text."""

import re

import numpy as np
import pytest
import torch

import metfa
from metfa.text import LEMNA, Occlusion, OnlyClose, SenseSynonyms, Synonyms, explain_text, render_terminal

TEXT = "a dull, lifeless film"


def model(texts):
    dull = np.array([0.2 + 0.5 * ("dull" in text) for text in texts])
    return np.stack([1 - dull, dull], axis=1)


class Model:
    def __call__(self, texts):
        return model(texts)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"noise": lambda text, rng: text.split()}, TypeError, "`noise` must return a text for a text, got list"),
        ({"noise": lambda text, rng: None}, TypeError, "`noise` must return a text for a text, got NoneType"),
        ({"noise": lambda text, rng: text + " too"}, ValueError, "keep the number of words, but made 5 of 4"),
        (
            {"noise": Synonyms},
            TypeError,
            r"such as metfa\.text\.SenseSynonyms\(0\.5\), or None, got the class Synonyms",
        ),
        ({"noise": None}, ValueError, r"give a noise such as metfa\.text\.Synonyms\(0\.3\)"),
        (
            {"method": metfa.seeded(lambda inputs, target: inputs)},
            TypeError,
            r"`lambda model: metfa\.seeded\(metfa\.text\.Occl",
        ),
        (
            {"method": Occlusion(model)},
            TypeError,
            "if you have an explainer already, write `lambda model: explainer`",
        ),
        ({"model": Model}, TypeError, "`model` must be a function .* got the class Model"),
        ({"model": 3}, TypeError, "`model` must be a function .* got int"),
        ({"model": lambda texts: None}, TypeError, "`model` must return an array .* got NoneType"),
        ({"model": lambda texts: {"logits": model(texts)}}, TypeError, r"such as `lambda inputs: .*\['logits'\]`"),
        ({"model": lambda texts: model(texts).argmax(1)}, TypeError, "like class labels: .*`predict_proba`"),
        (
            {"model": lambda texts: np.array(["no"] * len(texts))},
            TypeError,
            "`model` must return numbers .* got text such as .no.",
        ),
        ({"model": lambda texts: model(texts)[:, :0]}, ValueError, "`model` must return prob.* got shape"),
    ],
)
def test_what_is_unfit_is_told_in_the_callers_words(arguments, error, message):
    arguments = {"model": model, "method": Occlusion, "rng": 0, **arguments}
    with pytest.raises(error, match=message):
        explain_text(arguments.pop("model"), TEXT, **arguments)


def test_tokens_stay_tokens():
    tokens = ["a", "dull", "film"]
    with pytest.raises(TypeError, match="`noise` must return a list of tokens for a list of tokens, got str"):
        explain_text(model, tokens, method=Occlusion, noise=lambda row, rng: " ".join(row))

    def retold(row, rng):
        return [*row[:2], str(rng.choice(["tale", "story"]))]

    same = explain_text(model, tuple(tokens), method=Occlusion, noise=retold, n_samples=9, rng=0)
    assert same.words == tuple(tokens)


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")  # the model reads one word alone
@pytest.mark.parametrize(
    ("tokens", "many"),
    [
        (["A charming film.", "A dull film."], "2 tokens, of which 2 hold white space, such as 'A charming film.'"),
        (["a dull film"], "1 token, of which 1 hold white space"),
        (["dull", "a dull film"], "2 tokens, of which 1 hold white space"),
    ],
)
def test_tokens_that_look_like_texts_are_warned_of(tokens, many):
    with pytest.warns(metfa.MetfaWarning, match=many) as caught:
        explain_text(model, tokens, method=Occlusion, noise=lambda row, rng: [*row[:-1], str(rng.random())], rng=0)
    assert "for several texts make one call each" in str(caught[0].message)


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")  # the model reads one word alone
def test_a_few_tokens_may_hold_blanks():
    """As the synonym "motion picture", or a name."""
    tokens = ["a", "dull", "motion picture"]
    for noise in (lambda row, rng: [*row[:-1], str(rng.random())], Synonyms(0.5)):
        assert explain_text(model, tokens, method=Occlusion, noise=noise, rng=0).words == tuple(tokens)


def test_a_pipeline_of_scikit_learn_is_told_of_its_probabilities():
    class Pipeline:
        def predict_proba(self, texts):
            return model(texts)

    with pytest.raises(TypeError, match=r"got Pipeline: write `model.predict_proba`"):
        explain_text(Pipeline(), TEXT)


def test_warnings_do_not_call_noisy_copies_texts():
    def even(texts):
        return np.full((len(texts), 2), 0.5)

    with pytest.warns(metfa.DegenerateAttributionsWarning) as caught:
        explain_text(even, TEXT, method=Occlusion, noise=Synonyms(0.5), n_samples=50, rng=0)
    said = [str(one.message) for one in caught if "occlusion's scores" in str(one.message)]
    assert said
    assert all(re.search(r"of \d+ rows? of one call \(inputs, or noisy copies of them\)", one) for one in said)


def test_other_ways_to_sample_hold_noise_to_texts_too():
    for sampled in (
        lambda noise: metfa.explain(Occlusion(model), [TEXT], noise=noise, n_samples=2),
        lambda noise: metfa.Smoothed(Occlusion(model), noise=noise)([TEXT], 1),
        lambda noise: metfa.metrics.robust(metfa.text.fdt, noise=noise)(model, [TEXT], [np.arange(4.0)]),
    ):
        with pytest.raises(TypeError, match="`noise` must return a text for a text, got list"):
            sampled(lambda text, rng: text.split())
    longer = metfa.metrics.robust(metfa.text.fdt, noise=lambda text, rng: text + " too")
    with pytest.raises(ValueError, match=r"a noise must keep the number of words"):
        longer(model, [TEXT], [np.arange(4.0)])


def test_a_network_is_left_as_found():
    class Net(torch.nn.Module):
        def forward(self, texts):
            assert not self.training
            return torch.tensor(model(texts))

    net = Net()
    with pytest.warns(metfa.ModelStateWarning, match="training mode"):
        explain_text(net, TEXT, method=lambda net: lambda texts, target: net(texts).repeat(1, 2), n_samples=2,
                     noise=shout, rng=0)  # fmt: skip
    assert net.training


@pytest.mark.parametrize("metric", [metfa.text.fdt, metfa.text.st])
@pytest.mark.parametrize(
    ("target", "error", "message"),
    [("a", TypeError, "got the text 'a'"), ([0, 1], ValueError, "got 2 entries"), (-1, ValueError, "not be negative")],
)
def test_a_target_of_the_wrong_kind_shows_before_the_model_is_asked(metric, target, error, message):
    def never(texts):
        raise AssertionError(texts)

    with pytest.raises(error, match=message):
        metric(never, [TEXT], [np.arange(4.0)], target)


def shout(text, rng):
    return text.upper() if rng.random() < 0.5 else text


def slight(texts):
    """Probabilities that move by a hundredth, and of which a linear model explains half."""
    odd = np.array([0.01 * (("dull" in text.lower()) ^ ("film" in text.lower())) for text in texts])
    return np.stack([0.5 - odd, 0.5 + odd], axis=1)


slight_names = ("plain", "odd")


class Named:
    class_names = slight_names

    def __call__(self, texts):
        return slight(texts)


class TestFacts:
    @pytest.mark.filterwarnings("ignore:a sum over the words")  # one of two words, but not both, is no sum
    def test_what_scaling_hides_is_kept_and_shown(self, tmp_path):
        explainer = lambda model: LEMNA(model, n_perturbations=200)  # noqa: E731
        settings = {"noise": shout, "n_samples": 6, "rng": 0}
        sample = explain_text(Named(), TEXT, 1, method=explainer, run=metfa.Run(store=tmp_path / "kept"), **settings)
        facts = sample.provenance["text"]
        raw = explain_text(
            slight, TEXT, 1, method=lambda model: LEMNA(model, n_perturbations=200, scale=False), **settings
        )
        assert facts["unscaled"] == [raw.vanilla.min(), raw.vanilla.max()]
        assert facts["r2"] == raw.provenance["text"]["r2"]
        assert 0 < facts["r2"] < 0.5
        assert sample.provenance["class_names"] == list(slight_names)
        assert sample.provenance["noise"] == "shout"
        assert "unscaled" not in raw.provenance["text"]
        assert metfa.load(tmp_path / "kept").provenance["text"] == facts
        shown = " ".join(render_terminal(sample, threshold=0.5, colour=False, width=80).split())
        low, high = (f"{value:.3g}" for value in facts["unscaled"])
        assert f"the text itself: scores from {low} to {high} before they are scaled to [0, 1]; R² of the" in shown
        assert "class 1 (odd); predicted: class 0 (plain); explained by LEMNA; N = 6" in shown

    @pytest.mark.parametrize(
        ("noise", "said"),
        [
            (SenseSynonyms(0.5), "1 of 3 can be replaced by this noise (film); the others stay the same in every copy"),
            (
                OnlyClose(SenseSynonyms(0.5), lambda texts: np.ones((len(texts), 2))),
                "1 of 3 can be replaced by this noise (film); the others stay the same in every copy",
            ),
            (SenseSynonyms(0.5, part_of_speech=lambda words: ["other"] * len(words)), "0 of 3 can be replaced by this "
             "noise; all stay the same in every copy"),
            (shout, None),
        ],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
    def test_words_that_never_change_are_said_in_every_view(self, noise, said):
        sample = explain_text(slight, "no film with", 1, method=Occlusion, noise=noise, n_samples=8, rng=0)
        assert dict(sample.provenance.get("notes", [])).get("words that change") == said
        line = re.escape(f"words that change: {said}").replace(r":\ ", r":\s+").replace(r"\ ", r"\s+")
        for view in (str(sample.summary()[0]), render_terminal(sample, colour=False)):
            assert (re.search(line, view) is not None) == (said is not None)

    @pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
    def test_each_word_that_changes_is_named_once(self):
        sample = explain_text(slight, "film film film with", 1, method=Occlusion, n_samples=6, rng=0)
        assert "3 of 4 can be replaced by this noise (film); " in dict(sample.provenance["notes"])["words that change"]

    def test_of_other_explainers(self):
        sample = explain_text(slight, TEXT, 1, method=Occlusion, noise=shout, n_samples=2, rng=0)
        np.testing.assert_allclose(sample.provenance["text"]["unscaled"], [-0.01, 0], atol=1e-12)
        own = explain_text(slight, TEXT, 1, method=lambda m: lambda texts, target: m(texts) @ np.eye(2, 4),
                           noise=shout, n_samples=2, rng=0)  # fmt: skip
        assert own.provenance["text"] == {}
