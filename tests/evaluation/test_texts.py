"""Studies of texts: words as features, another number of them in every text."""

import functools

import numpy as np
import pytest

import metfa
from metfa import ModelOutputWarning, Study, evaluate, text
from metfa.evaluation import prepare, read_study
from metfa.text import LEMNA, Occlusion, Synonyms

TEXTS = [
    "a dull , lifeless film with one good joke in the middle",
    "warm and funny , it is the best picture of the year for children",
    ["a", "great", "movie"],
    "a bad movie , and a long one , that nobody should see twice in a life",
]
GOOD, BAD = {"good", "best", "warm", "funny", "great"}, {"dull", "lifeless", "bad"}


def counting(texts):
    """Probability of a favourable text by its words."""
    words = [set(row.split() if isinstance(row, str) else row) for row in texts]
    positive = 1 / (1 + np.exp(-np.array([len(row & GOOD) - len(row & BAD) for row in words], dtype=float)))
    return np.stack([1 - positive, positive], axis=1)


STUDY = Study(
    model=counting,
    inputs=[row for row in TEXTS if isinstance(row, str)],
    explainers={"occlusion": "occlusion", "LEMNA": functools.partial(LEMNA, n_perturbations=60, n_components=1)},
    sampling={"synonyms": Synonyms(0.3)},
    outer={"synonyms": Synonyms(0.5)},
    metrics={
        "mstd": {}, "top_k_overlap": {"k": 3}, "interval_width": {}, "prediction_agreement": {},
        "word_faithfulness": {"n": 4}, "robust_word_faithfulness": {"n": 4},
    },
    n_samples=6,
    n_outer=3,
    version="1",
)  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return evaluate(STUDY, store=tmp_path_factory.mktemp("store"))


def scores(result, index, metric, aggregate="vanilla", explainer="occlusion"):
    (row,) = (
        row
        for row in result.rows
        if (row["input"], row["metric"], row["aggregate"], row["explainer"]) == (index, metric, aggregate, explainer)
    )
    return row


def test_nothing_fails(result):
    assert repr(result) == "Evaluation(6 of 6 units, 0 failed)"


@pytest.mark.parametrize("index", [0, 1])
def test_figures_equal_the_public_interface(result, index):
    texts = STUDY.inputs
    one = [texts[index]]
    goal = [int(counting(one).argmax())]
    maps = Occlusion(counting)(one, goal)[0]
    others = {"FDT": {}, "ST": {}, "FAT": {"others": texts}}
    for name, settings in others.items():
        metric = getattr(text, name.lower())
        expected = metric(counting, one, maps, goal, n=4, **settings)
        row = scores(result, str(index), name)
        assert row["raw"] == pytest.approx(expected.raw[0])
        assert row["score"] == pytest.approx(expected.score[0])
        judged = metfa.metrics.robust(metric, noise=Synonyms(0.5), n_outer=3, rng=STUDY.seed)
        expected = judged(counting, one, maps, goal, n=4, **settings)
        assert scores(result, str(index), f"R{name}")["raw"] == pytest.approx(expected.raw[0])


def test_a_text_of_the_users_own_explainer_by_explain_text(result):
    """The samples of a unit are those of `metfa.explain` at the unit's address."""
    unit = next(unit for unit in result.units if (unit.index, unit.explainer) == (0, "occlusion"))
    sample = metfa.explain(
        Occlusion(counting),
        [STUDY.inputs[0]],
        noise=Synonyms(0.3),
        n_samples=6,
        rng=STUDY.seed,
        run=metfa.Run(input_names=[unit.digest]),
    )
    expected = metfa.metrics.interval_width(sample, 0.95)
    assert scores(result, "0", "interval_width", "samples")["score"] == pytest.approx(expected.score[0])


def test_tables(result):
    assert "FDT" in str(result.table("word_faithfulness"))
    assert "RFAT" in str(result.table("robust_word_faithfulness"))
    assert "mstd" in str(result.table("mstd", explainer="LEMNA"))


def test_the_longest_text_has_no_other_to_be_planted_in(tmp_path):
    study = Study(
        model=counting, inputs=TEXTS[::2][:1] + TEXTS[3:], explainers={"occlusion": "occlusion"},
        metrics={"word_faithfulness": {"n": 2}}, version="1",
    )  # fmt: skip
    found = evaluate(study, store=tmp_path)
    assert not found.failures
    short, long = scores(found, "0", "FAT"), scores(found, "1", "FAT")
    assert short["score"] is not None
    assert (long["score"], long["reason"]) == (None, "no other text of as many words")
    assert scores(found, "1", "FDT")["score"] is not None


def test_tokens(tmp_path):
    study = Study(
        model=counting, inputs=[row.split() for row in STUDY.inputs], explainers={"occlusion": "occlusion"},
        outer={"synonyms": Synonyms(0.5)}, metrics={"mstd": {}, "word_faithfulness": {}}, n_outer=3, version="1",
    )  # fmt: skip
    assert not evaluate(study, store=tmp_path).failures


def test_short_texts_lack_the_overlap_alone(tmp_path):
    study = Study(
        model=counting, inputs=["it was funny", TEXTS[0]], explainers={"occlusion": "occlusion"}, n_outer=3,
        version="1", outer={"synonyms": Synonyms(0.5)}, metrics={"top_k_overlap": {"k": 5}, "word_faithfulness": {}},
    )  # fmt: skip
    result = evaluate(study, store=tmp_path)
    assert not result.failures
    assert scores(result, "0", "top_k_overlap")["reason"] == "fewer than 5 features"
    assert scores(result, "0", "FDT")["score"] > 0
    assert scores(result, "1", "top_k_overlap")["score"] > 0


def test_an_estimate(tmp_path):
    cost = prepare(STUDY, store=tmp_path).estimate()
    assert cost.units == 6
    assert not cost.not_counted


def test_a_study_file(tmp_path):
    (tmp_path / "texts.csv").write_text("text,target\n" + "".join(f'"{row}",1\n' for row in STUDY.inputs))
    (tmp_path / "study.toml").write_text(
        """
        [study]
        n_samples = 6
        n_outer = 2
        [model]
        name = "sentiment"
        [data]
        inputs = "texts.csv"
        limit = 1
        [explainers]
        Occlusion = "occlusion"
        Gradient = "gradient-x-input"
        [sampling]
        synonyms = "synonyms:0.3"
        [outer]
        synonyms = "synonyms:0.5"
        [metrics]
        mstd = {}
        """
    )
    study = read_study(tmp_path / "study.toml")
    assert study.noises == {"synonyms": Synonyms(0.3)}
    found = evaluate(study, store=tmp_path / "store")
    assert not found.failures
    assert {row["explainer"] for row in found.rows} == {"Occlusion", "Gradient"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"explainers": {"g": "gradient"}},
            r"`explainers\['g'\]`: the method must be one of lemna, .*, got 'gradient'",
        ),
        ({"metrics": ["faithfulness"]}, "`metrics`: faithfulness is for images, but the inputs are not"),
        ({"inputs": np.zeros((2, 3))}, "must be one of gradient, .*, got 'occlusion'"),
        ({"metrics": {"word_faithfulness": {"n": 0}}}, "`n` must be at least 1, got 0"),
    ],
)
def test_what_is_not_of_texts(settings, message):
    plain = {"explainers": {"o": "occlusion"}, "metrics": ["word_faithfulness"]}
    described = {"model": counting, "inputs": TEXTS[:2], **plain}
    with pytest.raises(ValueError, match=message):
        Study(**{**described, **settings})


@pytest.mark.parametrize("name", ["fdt", "FDT", "st", "fat", "RFDT", "rst", "top_n_overlap"])
def test_figures_are_told_from_measures(name):
    of = (
        "top_k_overlap"
        if name == "top_n_overlap"
        else "robust_word_faithfulness"
        if name[0] in "Rr"
        else "word_faithfulness"
    )
    with pytest.raises(ValueError, match=f"got '{name}'.* did you mean '{of}'"):
        Study(model=counting, inputs=TEXTS[:1], explainers={"o": "occlusion"}, metrics=[name])


def test_texts_come_in_one_form():
    with pytest.raises(TypeError, match=r"word_faithfulness plants .* some lists of tokens: give all in one form"):
        Study(model=counting, inputs=TEXTS[1:3], explainers={"o": "occlusion"}, metrics=["word_faithfulness"])


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        (metfa.noise.Uniform(0.1), TypeError, "is not a noise for the texts: "),
        (lambda row, rng: row.split(), TypeError, "`noise` must return a text for a text, got list"),
        (lambda row, rng: f"{row} too", ValueError, "keep the number of words, but made 12 of 11"),
        (Synonyms, TypeError, "must be a noise, got the class Synonyms"),
    ],
)
@pytest.mark.parametrize("table", ["sampling", "outer"])
def test_a_noise_that_is_none_of_texts_is_refused_before_any_unit(noise, error, message, table, tmp_path):
    with pytest.raises(error, match=rf"`{table}\['x'\]`.*{message}"):
        evaluate(
            Study(
                model=counting, inputs=TEXTS[:2], explainers={"o": "occlusion"}, metrics=["mstd"], version="1",
                **{"sampling": {"s": Synonyms(0.3)}, "outer": {"s": Synonyms(0.3)}, table: {"x": noise}},
            ),
            store=tmp_path,
        )  # fmt: skip


def logits(texts):
    return 3 * np.stack([-np.ones(len(texts)), np.array([len(text) for text in texts])], axis=1)


def test_doubts_about_the_model_are_told_once(tmp_path):
    study = Study(
        model=logits, inputs=TEXTS[:2], explainers={"o": "occlusion"}, metrics=["word_faithfulness"], version="1"
    )
    for _ in range(2):  # also when all is in the store
        with pytest.warns(ModelOutputWarning, match=r"in 2 of 2 units the model's scores are no probabilities") as told:
            evaluate(study, store=tmp_path)
        assert len(told) == 1
