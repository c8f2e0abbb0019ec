"""Synonyms in a word's most frequent sense: which, how inflected, and by whose counts."""

import json
import pickle

import numpy as np
import pytest
from scipy import stats as scipy_stats

import metfa
from metfa._base.provenance import describe
from metfa.text import OnlyClose, SenseSynonyms, Synonyms
from metfa.text import _wordnet as wordnet
from metfa.text._inflection import inflected, readings


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("word", "synonyms"),
    [
        ("film", ("movie",)),  # 38 of its 66 counts; "movie" has one sense
        ("Movies", ("films",)),
        ("bought", ("purchased",)),
        ("imagined", ("envisaged",)),
        ("children", ("kids", "minors", "youngsters")),
        ("woods", ("forest",)),
        ("cast", ()),  # a noun in 11 of 32 counts; as a verb 15
        ("flat", ()),
        ("fall", ()),
        ("brilliant", ()),  # 11 of 25 counts are its first sense
        ("in", ()),
        ("despite", ()),
        ("one", ()),
        ("1", ()),
        ("xyzzy", ()),
        ("nicer", ()),  # comparatives are not put onto other words
    ],
)
def test_only_the_most_frequent_sense_counts(word, synonyms):
    assert SenseSynonyms(1).candidates([word]) == (synonyms,)


def test_the_paper_s_form_is_another_noise():
    assert "retch" in Synonyms(1).candidates(["cast"])[0]
    assert SenseSynonyms(1).candidates(["film"])[0] < Synonyms(1).candidates(["film"])[0]


def test_a_smaller_share_takes_more_senses():
    assert SenseSynonyms(1, share=0.4).candidates(["brilliant"]) == (("superb",),)
    assert set(SenseSynonyms(1, share=0.2).candidates(["brilliant"])[0]) > {"superb"}


def test_a_part_of_speech_leaves_the_counts_of_the_others_out():
    text = "attempts fall"
    assert SenseSynonyms(1).candidates(text) == ((), ())
    nouns = SenseSynonyms(1, part_of_speech=lambda words: ["noun"] * len(words))
    assert nouns.candidates(text) == (("efforts", "tries"), ("autumn",))
    by_part = SenseSynonyms(1, part_of_speech=lambda words: ["verb", "other"])
    assert by_part.candidates(text) == (("essays", "tries"), ())
    assert "parts of speech by a function" in by_part.notes["noise on words"]


def test_case_punctuation_and_draws_are_those_of_synonyms():
    noise = SenseSynonyms(0.7)
    text = ["movie", "xyzzy", "MOVIES", "Film"] * 500
    noisy = noise(text, rng(1))
    assert set(noisy) == {"movie", "film", "xyzzy", "MOVIES", "FILMS", "Film", "Movie"}
    changed = np.array(noisy)[::4] != "movie"
    assert scipy_stats.binomtest(int(changed.sum()), 500, 0.7).pvalue > 1e-6
    assert noise("«Movies», 1 film!", rng(4)) in {"«Films», 1 movie!", "«Movies», 1 movie!", "«Films», 1 film!"}
    plain = Synonyms(0.7)(text, rng(1))
    assert ((np.array(plain) != text)[::4] == changed).all()


@pytest.mark.parametrize(
    ("word", "part", "ending", "form"),
    [
        ("film", "noun", "s", "films"),
        ("story", "noun", "s", "stories"),
        ("day", "noun", "s", "days"),
        ("church", "noun", "s", "churches"),
        ("hero", "noun", "s", "heroes"),
        ("tango", "noun", "s", None),  # tangos, but cargoes
        ("tidings", "noun", "s", None),
        ("child", "noun", "s", "children"),
        ("plan", "verb", "ed", "planned"),
        ("plan", "verb", "ing", "planning"),
        ("try", "verb", "ed", "tried"),
        ("narrate", "verb", "ed", "narrated"),
        ("narrate", "verb", "ing", "narrating"),
        ("agree", "verb", "ing", "agreeing"),
        ("lie", "verb", "ing", "lying"),
        ("tell", "verb", "ed", None),
        ("fix", "verb", "s", "fixes"),
        ("good", "adj", "", "good"),
    ],
)
def test_inflection(word, part, ending, form):
    known = wordnet.wordnet_of(None)
    assert inflected(word, part, ending, known) == form
    if form is not None:  # and back
        assert (word, part, ending) in readings(form, known)


def test_the_table_has_senses_counts_and_irregular_forms():
    known = wordnet.wordnet_of(None)
    first, second, *_ = known.of("film", "noun")
    assert (first.uses, first.synonyms[:2], second) == (38, ("movie", "picture"), (16, ("cinema", "celluloid")))
    assert (known.of("xyzzy", "noun"), known.roots("told", "verb")) == ([], ["tell"])


def test_is_a_value_and_says_who_decides():
    noise = SenseSynonyms(0.7)
    assert describe(noise) == "SenseSynonyms(p=0.7, share=0.5, part_of_speech='counts', wordnet=None)"
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert noise.notes["noise on words"].startswith(
        "synonyms in a word's most frequent sense (at least 50% of its counts in WordNet), parts of speech by WordNet's"
    )


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"p": 2}, ValueError, "`p` must be at most 1, got 2"),
        ({"share": 0}, ValueError, "`share` must be"),
        ({"share": 1.1}, ValueError, "`share` must be at most 1, got 1.1"),
        ({"part_of_speech": "noun"}, ValueError, '`part_of_speech` must be "counts", "nltk" or a function'),
        ({"part_of_speech": lambda: ["noun"]}, TypeError, "part_of_speech"),
        ({"wordnet": "no/folder"}, FileNotFoundError, r"lacks index\.noun"),
    ],
)
def test_bad_arguments(settings, error, match):
    with pytest.raises(error, match=match):
        SenseSynonyms(**{"p": 0.5, **settings})


class TestByNltk:
    def test_without_its_data(self, monkeypatch):
        nltk = pytest.importorskip("nltk")
        monkeypatch.setattr(nltk.data, "path", [])
        with pytest.raises(
            LookupError, match=r'which is not on this machine .* `nltk\.download\("averaged_perceptron_'
        ):
            SenseSynonyms(0.5, part_of_speech="nltk")

    def test_with_a_tagger_of_ours(self, monkeypatch, tmp_path):
        """Its three files, in the form that nltk reads, for a tagger that knows a few words."""
        nltk = pytest.importorskip("nltk")
        folder = tmp_path / "taggers" / "averaged_perceptron_tagger_eng"
        folder.mkdir(parents=True)
        tags = {"they": "PRP", "attempts": "NNS", "direct": "VBP", "Bush": "NNP", "movies": "NNS"}
        for name, content in (("weights", {}), ("tagdict", tags), ("classes", sorted(set(tags.values())))):
            (folder / f"averaged_perceptron_tagger_eng.{name}.json").write_text(json.dumps(content))
        monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
        noise = SenseSynonyms(1, part_of_speech="nltk")
        assert noise.candidates("they direct movies Bush attempts") == (
            (), (), ("films",), (), ("efforts", "tries"),
        )  # fmt: skip
        assert "by nltk's tagger" in noise.notes["noise on words"]


class TestOnlyClose:
    def letters(self, texts):
        return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])

    def test_copies_are_those_that_are_close(self):
        text = "A terrible movie, sadly!"
        close = OnlyClose(Synonyms(0.5), self.letters, similarity=0.8, tries=3)
        copies = [close(text, rng(seed)) for seed in range(60)]
        vectors = self.letters([text, *copies]).astype(float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        assert (vectors[1:] @ vectors[0] >= 0.8).all()
        assert len(set(copies)) > 2
        drawn, kept, left = close._tally.drawn, close._tally.kept, close._tally.left
        assert kept + left == 60
        assert drawn >= kept + 3 * left
        assert left > 0
        first = [Synonyms(0.5)(text, rng(seed)) for seed in range(60)]  # the first try is the noise's own
        same = [a == b for a, b in zip(first, copies, strict=True)]
        assert 0 < sum(same) < 60
        assert f"{left} noisy texts are the text itself, as 3 copies in turn" in close.notes["copies that are close"]

    def test_what_was_kept_is_said_of_this_call_alone(self):
        noise = OnlyClose(SenseSynonyms(0.9), self.letters, similarity=0.5)
        noise("movies and films", rng())
        settings = {"target": 0, "method": metfa.text.Occlusion, "n_samples": 6, "rng": 0}
        sample = metfa.text.explain_text(
            lambda texts: np.array([[0.5 + 0.01 * ("movie" in text), 0.3] for text in texts]),
            "movies and films",
            noise=noise,
            **settings,
        )
        notes = dict(sample.provenance["notes"])
        assert "noise on words" in notes
        assert notes["copies that are close"].startswith("100.0% of 6 drawn")  # looks at the noise do not count
        assert noise._tally.kept == 1  # that of the direct call
        assert "kept, with a cosine of at least 0.5 by the encoder TestOnlyClose" in str(sample.summary()[0])

    def test_an_encoder_may_be_the_model_that_is_explained(self):
        model = metfa.text.load_model("sentiment")

        def encoder(texts):
            return model.module.embedding.weight[[len(text) for text in texts]]

        noise = OnlyClose(SenseSynonyms(0.9), encoder, similarity=-1)
        sample = metfa.text.explain_text(
            model, "movies and films", noise=noise, method=metfa.text.Occlusion, n_samples=3, rng=0
        )
        assert "copies that are close" in dict(sample.provenance["notes"])

    @pytest.mark.parametrize(
        ("settings", "error", "match"),
        [
            ({"similarity": 1.5}, ValueError, r"`similarity` must be a cosine, from -1 to 1, got 1\.5"),
            ({"tries": 0}, ValueError, "`tries` must be"),
            ({"encoder": "all-MiniLM"}, TypeError, "`encoder` must be a function"),
            ({"noise": Synonyms}, TypeError, "`noise` must be a function, such as metfa"),
            ({"encoder": lambda texts: np.zeros((2, 3))}, ValueError, "`encoder` returned NaN, infinity or only zeros"),
            (
                {"encoder": lambda texts: np.zeros(2)},
                ValueError,
                r"one vector a text, \(batch, size\), got shape \(2,\)",
            ),
        ],
    )
    def test_bad_arguments(self, settings, error, match):
        with pytest.raises(error, match=match):
            OnlyClose(**{"noise": Synonyms(1), "encoder": self.letters, **settings})("movie", rng())
