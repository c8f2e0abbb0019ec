"""Sentences, phrases and variables: which words and columns belong together, and what is refused."""

import nltk
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import metfa
from metfa import regions
from metfa.text.words import words_of


def pieces(found, of):
    words = words_of(of).words
    return [
        " ".join(word for word, at in zip(words, found.masks[0], strict=True) if at == k) for k in range(len(found))
    ]


SENTENCES = {
    "It is good. It is long! Is it? Yes": ["It is good", "It is long", "Is it", "Yes"],
    "Mr. Smith met Dr. J. R. Jones, i.e. Jim. They left.": ["Mr Smith met Dr J R Jones i.e Jim", "They left"],
    "It costs 3.50 at 10 a.m. in town.": ["It costs 3.50 at 10 a.m in town"],
    'He said "no." Then he left.': ["He said no", "Then he left"],
    '"Really?" he asked. "Wow!" Then silence.': ["Really he asked", "Wow", "Then silence"],
    "Well... maybe. Well... Maybe… not": ["Well maybe", "Well", "Maybe not"],
    "the film is long . it is dull .": ["the film is long", "it is dull"],
    "A title\n\nthen the text": ["A title", "then the text"],
    "wow!!! so good!! yes": ["wow", "so good", "yes"],
    "It was I. You know.": ["It was I", "You know"],
    "यह अच्छी है। वह लंबी है।": ["यह अच्छी है", "वह लंबी है"],
    "很好。 不长！ 是 吗？": ["很好", "不长", "是 吗"],
    "今日は雨です。「家にいます！」本当？！はい": ["今日は雨です", "家にいます", "本当", "はい"],
    "one": ["one"],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text):
    found = regions.sentences(text)
    assert pieces(found, text) == SENTENCES[text]
    assert [name.partition(": ")[0] for name in found.names] == [str(k) for k in range(len(found))]


def test_sentences_of_tokens():
    tokens = ["Dr.", "Who", "is", "good", ".", "is", "it", "?", "!", "yes"]
    found = regions.sentences(tokens)
    assert found.masks[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert found.names == ("0: Dr. Who is good .", "1: is it ? !", "2: yes")
    assert regions.phrases(["long", ",", "but", "good"]).masks[0].tolist() == [0, 0, 1, 1]


def test_phrases():
    text = "A long film (of three hours), slow but - in the end - good; go: now. Well-known, don't miss it"
    assert pieces(regions.phrases(text), text) == [
        *(
            "A long film",
            "of three hours",
            "slow but",
            "in the end",
            "good",
            "go",
            "now",
            "Well-known",
            "don't miss it",
        ),
    ]


def test_a_long_name_is_cut():
    (name,) = regions.sentences("word " * 20).names
    assert name == "0: " + "word " * 7 + "wo..."


def test_a_mark_that_opens_what_follows_is_not_in_the_name():
    names = regions.sentences("今日は雨です。「家にいます！」本当？").names
    assert names == ("0: 今日は雨です。", "1: 家にいます！」", "2: 本当？")


def test_the_same_sentence_twice_has_two_names():
    assert regions.sentences("So good. So good.").names == ("0: So good.", "1: So good.")


class TestSplit:
    TEXT = "  “One of a kind.” (Dr. Who) – seen twice. Three"

    def test_by_a_function(self):
        parts = ["“One of a kind.”", "(Dr. Who) – seen twice.", "Three"]
        assert regions.sentences(self.TEXT, split=lambda text: parts).masks[0].tolist() == [0] * 4 + [1] * 4 + [2]

    def test_by_nltk(self):
        tokenizer = nltk.tokenize.RegexpTokenizer(r"[^.]+\.?")
        found = regions.sentences("One. Two three. Four", split=tokenizer.tokenize)
        assert found.masks[0].tolist() == [0, 1, 1, 2]

    @pytest.mark.parametrize(
        ("split", "error", "message"),
        [
            (
                lambda text: ["Two"],
                ValueError,
                "`split` must return pieces of the text in their order, but 'Two' is none",
            ),
            (lambda text: ["Three", "kind"], ValueError, "in their order, but 'kind' is none"),
            (lambda text: [], ValueError, "`split` must return at least one piece of the text, got none"),
            (lambda text: "One", TypeError, "`split` must be a function that returns a list of texts, got str: 'One'"),
            (lambda text: [1], TypeError, "`split` must return a list of texts, but it holds int: 1"),
            ("nltk", TypeError, r"`split` must be a function, called as split\(text\), got str: 'nltk'"),
        ],
    )
    def test_what_is_refused(self, split, error, message):
        with pytest.raises(error, match=message):
            regions.sentences(self.TEXT, split=split)

    def test_tokens_are_not_split(self):
        with pytest.raises(ValueError, match="`split` cuts a text, but `of` holds tokens: leave `split` out"):
            regions.sentences(["a", "b"], split=str.split)


def explained(text):
    def explainer(texts, target):
        return np.array([[len(word) for word in words_of(one).words] for one in texts], float)

    return metfa.explain(explainer, [text], 0, noise=metfa.text.Synonyms(0.5), n_samples=12, rng=0)


def test_of_a_result():
    sample = explained("A good film. The bad one was long.")
    found = regions.sentences(sample, against="rest")
    assert found.masks[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    expected = sample.values[:, 0, :3].mean(1) - sample.values[:, 0, 3:].mean(1)
    np.testing.assert_allclose(sample.over(found).values[:, 0, 0], expected)


@pytest.mark.parametrize("make", [regions.sentences, regions.phrases])
@pytest.mark.parametrize(
    ("of", "error", "message"),
    [
        ("", ValueError, "`of`: the text '' holds no words"),
        (" ... ", ValueError, "`of`: the text .* holds no words"),
        ([], ValueError, "holds no words"),
        (["a", ""], ValueError, "`of`: a list of tokens must not hold empty ones"),
        (["a", 3], TypeError, "`of`: a list of tokens must hold texts, got int: 3"),
        (3, TypeError, "`of` must be the result of a text, a text, or a list of its tokens, got int: 3"),
    ],
)
def test_texts_that_are_refused(make, of, error, message):
    with pytest.raises(error, match=message):
        make(of)


def test_a_result_of_no_text_is_refused():
    sample = metfa.explain(lambda x, target: x, np.ones((1, 3)), 0, noise=metfa.noise.Uniform(0.1), n_samples=3, rng=0)
    with pytest.raises(ValueError, match="`of` must be of a text"):
        regions.sentences(sample)


class TestVariables:
    TABLE = pd.DataFrame({"age": [1, 2, 3], "age_group": ["a", "b", "b"], "colour": ["red", "blue", "dark_red"]})

    def test_names_of_scikit_learn(self):
        encoder = OneHotEncoder().fit(self.TABLE[["age_group", "colour"]])
        found = regions.variables(encoder.get_feature_names_out(), encoder.feature_names_in_)
        assert found.names == ("age_group", "colour")
        assert found.masks[0].tolist() == [0, 0, 1, 1, 1]
        assert found.how == "sum"

    @pytest.mark.parametrize("prefixes", [True, False])
    def test_names_of_a_column_transformer(self, prefixes):
        encoder = ColumnTransformer(
            [("numbers", StandardScaler(), ["age"]), ("words", OneHotEncoder(), ["age_group", "colour"])],
            verbose_feature_names_out=prefixes,
        ).fit(self.TABLE)
        found = regions.variables(encoder.get_feature_names_out(), encoder.feature_names_in_)
        assert found.names == ("age", "age_group", "colour")
        assert found.masks[0].tolist() == [0, 1, 1, 2, 2, 2]

    def test_names_of_pandas(self):
        found = regions.variables(pd.get_dummies(self.TABLE).columns, self.TABLE.columns)
        assert found.masks[0].tolist() == [0, 1, 1, 2, 2, 2]

    def test_by_a_dict(self):
        found = regions.variables(["x", "y", "time", "z"], {"place": ["y", 0, np.int64(3)]})
        assert found.names == ("place", "time")
        assert found.masks[0].tolist() == [0, 0, 1, 0]

    def test_of_a_result_sums_up(self):
        table = np.random.default_rng(0).random((2, 3))
        sample = metfa.explain(
            lambda x, target: x, table, 0, noise=metfa.noise.Uniform(0.1), n_samples=12, rng=0,
            run=metfa.Run(feature_names=("age", "colour=red", "colour=blue")),
        )  # fmt: skip
        found = regions.variables(sample)
        np.testing.assert_allclose(sample.over(found).values[:, 0, 1], sample.values[:, 0, 1:].sum(1))
        assert regions.variables(sample, how="mean", against="rest").against == "rest"

    @pytest.mark.parametrize(
        ("columns", "variables", "error", "message"),
        [
            (["a_b", "a_c"], None, ValueError, "no name has the form 'colour=red': .* `encoder.feature_names_in_`"),
            (["a_b_c", "a_d"], ["a", "a_b"], ValueError, "column 'a_b_c' could belong to 'a' or to 'a_b': give a dict"),
            (["a_b", "c"], ["a"], ValueError, "column 'c' belongs to none: give a dict"),
            (["a", "b"], {"v": ["a", "B"]}, ValueError, "0 columns have the name 'B'"),
            (["a", "a"], {"v": ["a"]}, ValueError, "2 columns have the name 'a'"),
            (["a", "b"], {"v": ["a"], "w": [0]}, ValueError, "column 'a' belongs to 'v' and to 'w'"),
            (["a", "b", "c"], {"c": ["a", "b"]}, ValueError, "'c' is also a column that no variable holds"),
            (["a", "b"], {"v": [2]}, ValueError, "`variables` must be at most 1, got 2"),
            (["a", "b"], {"v": [1.5]}, TypeError, "names or indices of columns, got float: 1.5"),
            (["a", "b"], {1: ["a"]}, TypeError, "`variables` must be a list of texts, but holds int: 1"),
            ([], None, ValueError, "`of` must name at least one column, got none"),
            ([1, 2], None, TypeError, "`of` must be a list of texts, but holds int: 1"),
            ("age", None, TypeError, "`of` must be a list of texts, got str: 'age'"),
        ],
    )
    def test_what_is_refused(self, columns, variables, error, message):
        with pytest.raises(error, match=message):
            regions.variables(columns, variables)

    def test_a_result_without_names_is_refused(self):
        sample = metfa.explain(
            lambda x, target: x, np.ones((1, 3)), 0, noise=metfa.noise.Uniform(0.1), n_samples=3, rng=0
        )
        with pytest.raises(
            ValueError, match=r"`of` must be a result with `feature_names`: .* `metfa.Run\(feature_names"
        ):
            regions.variables(sample)
