"""From documents to sentences: what is opened, what is asked, how alpha is spent, and what is kept."""

import math

import numpy as np
import pytest

import metfa
from metfa.text import AnswerTree, explain_answer_tree, load_answer_tree, render_terminal
from metfa.text.answers._levels import OfPieces, Piece, cut_finer, keys_of

LOG2 = math.log(2)
DOCUMENTS = {
    "chronicle": "It was a long year. It was opened in 1932. Dr. Smith came.\n\nIt rained. Nobody liked it.",
    "recipe": "Whisk two eggs. Bake them.",
    "map": "Sydney is on the coast. It has a harbour.",
    "weather": "It rained all day.",
}


def texts_of(rows):
    return [" ".join(row) for row in rows]


def scorer(rows):
    return np.array([[5.0 * ("1932" in text), 3.0 * ("Sydney" in text)] for text in texts_of(rows)])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = tmp_path_factory.mktemp("tree") / "store"
    settings = {"levels": ("paragraphs", "sentences"), "delta": LOG2, "rng": 0, "run": metfa.Run(store=store)}
    return explain_answer_tree(scorer, DOCUMENTS, n_samples=30, **settings), store, settings


def test_only_what_matters_is_opened_and_each_level_has_its_share(made):
    tree, _, _ = made
    assert tree.found(0) == (("chronicle",), ("chronicle, paragraph 1",), ("chronicle, paragraph 1, sentence 2",))
    assert tree.found(1) == (("map",), (), ("map, sentence 1",))
    assert [level.n_features for level in tree.levels] == [4, 2, 5]
    assert tree.parents[2] == ("chronicle, paragraph 1",) * 3 + ("map",) * 2  # the map has one paragraph, and waits
    assert all(level.terms().alpha == 0.05 / 3 for level in tree.levels)
    assert all(level.terms().correction == "holm" for level in tree.levels)
    assert [level.feature_names[0] for level in tree.levels][1:] == [
        "chronicle, paragraph 1", "chronicle, paragraph 1, sentence 1",
    ]  # fmt: skip
    said = str(tree)
    assert "With probability at least 95%, no part of any level that adds at most 0.693 in every context" in said
    assert "for each answer by itself" in said
    shown = " ".join(render_terminal(tree.levels[2], colour=False).split())
    assert "Level 3 of 3, at alpha 0.0167 of 0.05 for all levels: parts of chronicle, paragraph 1; map" in shown


@pytest.mark.slow
def test_it_is_kept_level_by_level_and_a_call_that_failed_goes_on(made, tmp_path):
    tree, store, settings = made
    loaded = load_answer_tree(store)
    saved = load_answer_tree(tree.save(tmp_path / "saved"))
    for other in (loaded, saved):
        assert str(other) == str(tree)
        assert other._repr_html_() == tree._repr_html_()
        assert other.parents == tree.parents

    again = {**settings, "run": metfa.Run(store=tmp_path / "again")}
    fails = {"after": 12}

    def service(rows):
        fails["after"] -= 1
        if fails["after"] < 0:
            raise ConnectionError("no answer")
        return scorer(rows)

    with pytest.raises(ConnectionError):
        explain_answer_tree(service, DOCUMENTS, n_samples=30, **again)
    with pytest.raises(ValueError, match="holds no tree of an answer, or an unfinished one"):
        load_answer_tree(tmp_path / "again")
    fails["after"] = 1000
    found = explain_answer_tree(service, DOCUMENTS, n_samples=30, **again)
    for one, other in zip(found.levels, tree.levels, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    with pytest.raises(ValueError, match="answers to other sources or settings"):
        explain_answer_tree(service, DOCUMENTS, n_samples=30, **{**again, "levels": "sentences"})
    with pytest.raises(ValueError, match=r"read it with `metfa\.text\.load_answer_tree`"):
        metfa.load(store)


def test_the_scorer_reads_what_is_left_of_each_document():
    asked = []
    documents = ("A one. A two.\n", "B one. B two.")
    pieces = [Piece(0, 0, len(documents[0]), "a"), Piece(1, 0, len(documents[1]), "b")]
    pieces, new, uncut = cut_finer(documents, pieces, {0}, "sentences")
    assert (new, uncut) == ([0, 1], set())
    assert [piece.name for piece in pieces] == ["a, sentence 1", "a, sentence 2", "b"]
    of_pieces = OfPieces(lambda rows: asked.extend(rows) or [0.0] * len(rows), documents, tuple(pieces))
    keys = keys_of(documents, pieces)
    of_pieces([keys, [keys[1]], [keys[0], keys[2]], []])
    assert asked == [list(documents), ["A two."], ["A one.", "B one. B two."], []]


def test_it_ends_where_nothing_is_found():
    tree = explain_answer_tree(lambda rows: [0.0] * len(rows), DOCUMENTS, delta=LOG2, n_samples=20, rng=0)
    assert len(tree.levels) == 1
    assert tree.found() == ((),)
    assert "none" in str(tree)
    assert isinstance(tree, AnswerTree)


def test_a_rule_decides_by_bonferroni_at_the_share_of_the_level():
    rule = metfa.Until(undecided=0.0, max_samples=60)
    tree = explain_answer_tree(
        lambda rows: scorer(rows)[:, 0], list(DOCUMENTS.values())[:2], delta=LOG2, n_samples=rule, rng=0
    )
    assert tree.found() == (("document 0",), ("document 0, sentence 2",))
    assert {(level.terms().alpha, level.terms().correction) for level in tree.levels} == {(0.025, "bonferroni")}


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"levels": "words"}, "`levels` must be .*, got 'words'"),
        ({"levels": ("sentences", "paragraphs")}, "`levels` must become finer"),
        ({"levels": ()}, "`levels` must be"),
        ({"levels": 3}, "`levels` must be"),
        ({"levels": lambda: 1}, "`levels` must be a function that is called as"),
        ({"alpha": 0.7}, "`alpha` must lie between"),
        ({"delta": None}, "`delta` must be given"),
        ({"n_samples": 5}, "`n_samples` must be at least 8, got 5: with fewer none of 4 documents"),
        ({"documents": []}, "`sources` is empty"),
    ],
)
def test_bad_input_is_refused_before_the_scorer_is_asked(settings, match):
    def never(rows):
        raise AssertionError("asked")

    given = {"documents": DOCUMENTS, "delta": LOG2, "n_samples": 20, "rng": 0, **settings}
    with pytest.raises((TypeError, ValueError), match=match):
        explain_answer_tree(never, **given)


def test_parts_that_are_not_the_text_are_refused():
    with pytest.raises(ValueError, match="`levels`: a function must cut a text into parts that are the text"):
        explain_answer_tree(scorer, DOCUMENTS, levels=str.split, delta=LOG2, n_samples=20, rng=0)


def test_a_store_with_other_files_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"`store` holds mine\.txt, and no levels"):
        explain_answer_tree(scorer, DOCUMENTS, delta=LOG2, run=metfa.Run(store=tmp_path))
