"""Words replaced by synonyms: how many, which, and everything that stays."""

import lzma
import pickle
import shutil
import time
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

import metfa
from metfa._base.provenance import describe
from metfa.text import SenseSynonyms, Synonyms
from metfa.text import _wordnet as wordnet
from metfa.text.words import words_of

ALARM = 1e-6  # a test of a law fails with this probability on a right law; the seeds are fixed, so it passes or not
FOLDER = Path("/usr/share/wordnet")  # of Debian's wordnet-base
N = 10_000

needs_wordnet = pytest.mark.skipif(not FOLDER.is_dir(), reason="Debian's wordnet-base is not installed")


def rng(seed=0):
    return np.random.default_rng(seed)


def by_hand(word, part, *, table):
    """Synonyms of a word read off the shipped text by another way."""
    lines = [line.split("\t") for line in table.splitlines()]
    senses = next((line[2].split("|") for line in lines if line[:2] == [word, part]), [])
    return list(dict.fromkeys(synonym for sense in senses for synonym in sense.split(" ")[1:]))


@pytest.fixture(scope="module")
def table():
    return lzma.decompress((resources.files("metfa.text") / "data" / "synonyms.tsv.xz").read_bytes()).decode()


@pytest.mark.parametrize("p", [0.3, 0.5, 0.7])
def test_words_are_replaced_independently_with_their_probability(p):
    replaced = np.array(Synonyms(p)(["movie"] * N, rng(3))) != "movie"
    assert scipy_stats.binomtest(int(replaced.sum()), N, p).pvalue > ALARM
    both = replaced[::2] & replaced[1::2]
    assert scipy_stats.binomtest(int(both.sum()), N // 2, p * p).pvalue > ALARM


@pytest.mark.parametrize("p", [0.3, 1.0])
@pytest.mark.parametrize("word", ["movie", "terrible", "do"])
def test_each_synonym_comes_equally_often(word, p):
    noise = Synonyms(p)
    (synonyms,) = noise.candidates([word])
    noisy = noise([word] * N, rng(1))
    drawn, counts = np.unique([synonym for synonym in noisy if synonym != word], return_counts=True)
    assert sorted(synonyms) == drawn.tolist()
    assert scipy_stats.chisquare(counts).pvalue > ALARM


def test_share_of_a_real_sentence_is_what_coverage_says():
    text = "a gripping , funny and moving film about an old man and his terrible neighbours"
    noise, words = Synonyms(0.5), words_of(text).words
    able = noise.coverage(text)
    fixed = [word for word, can in zip(words, able, strict=True) if not can]
    assert fixed == ["a", "and", "moving", "an", "and", "his", "neighbours"]
    trials = 2000
    noisy = [words_of(noise(text, rng(seed))).words for seed in range(trials)]
    changed = sum(new != old for row in noisy for new, old in zip(row, words, strict=True))
    assert scipy_stats.binomtest(changed, trials * sum(able), 0.5).pvalue > ALARM


def test_larger_probability_replaces_the_same_words_and_more():
    text = ["movie", "xyzzy", "terrible", "of", "good"] * 40
    texts = [Synonyms(p)(text, rng(5)) for p in (0.0, 0.3, 0.5, 0.7, 1.0)]
    assert texts[0] == text
    for fewer, more in pairwise(texts):
        assert fewer != more
        assert all(a in (w, b) for w, a, b in zip(text, fewer, more, strict=True))


def test_what_becomes_of_a_word_does_not_depend_on_the_words_before_it():
    noise = Synonyms(0.5)
    known, unknown = (noise([first] * 50 + ["movie"] * 50, rng(2)) for first in ("terrible", "xyzzy"))
    assert known[50:] == unknown[50:]
    assert unknown[:50] == ["xyzzy"] * 50
    assert noise(["movie"] * 50, rng(2)) == noise(["movie"] * 80, rng(2))[:50]


def test_same_seed_same_text_and_no_other_source_of_numbers():
    text = "a terrible film with a good idea " * 10
    before = np.random.get_state()[1].copy()
    assert Synonyms(0.5)(text, rng(4)) == Synonyms(0.5)(text, rng(4)) != Synonyms(0.5)(text, rng(6))
    assert (np.random.get_state()[1] == before).all()


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("movie", {"film", "picture", "pic", "flick"}),
        ("Movie", {"Film", "Picture", "Pic", "Flick"}),
        ("MOVIE!", {"FILM!", "PICTURE!", "PIC!", "FLICK!"}),
        ("mOvIe", {"film", "picture", "pic", "flick"}),
        ("  («movie»)...\n", {"  («film»)...\n", "  («picture»)...\n", "  («pic»)...\n", "  («flick»)...\n"}),
        ("\u200fmovie\u200f", {"\u200ffilm\u200f", "\u200fpicture\u200f", "\u200fpic\u200f", "\u200fflick\u200f"}),
        ("1st", {"first"}),
        ("Inaugural", {"First", "Inauguration", "Initiative", "Initiatory", "Maiden"}),
    ],
)
def test_case_and_punctuation_are_kept(text, pattern):
    drawn = {Synonyms(1)(text, rng(seed)) for seed in range(80)}
    assert drawn == pattern


@pytest.mark.parametrize(
    "text",
    [
        "xyzzy 12345 films filmed the of a I 's 2nd-rate-ish",
        "😀 👩‍👩‍👧 ❤️",
        "שלום, עולם! مرحبا",
        "电影 很好。",
        "यह फिल्म अच्छी है।",
        "<b>movie</b> http://movie.example/film",
        ["##movie", "movie ", " ", "film\tnoun", "İ", "ß", "s", "I"],
    ],
)
def test_words_without_synonyms_stay(text):
    noise = Synonyms(1.0, multi_word=True)
    assert noise(text, rng()) == text
    assert not any(noise.coverage(text))


def test_one_word_for_one_word_among_all_scripts():
    text = "So 😀, שלום! the film (电影) was TERRIBLE; film film — good-looking, isn't it?"
    parsed = words_of(text)
    for seed in range(50):
        for multi_word in (False, True):
            noisy = words_of(Synonyms(0.7, multi_word=multi_word)(text, rng(seed)))
            assert len(noisy) == len(parsed)
            assert noisy.gaps == parsed.gaps
            assert all(noisy.words)
            assert [noisy.words[k] for k in (1, 2, 5)] == ["😀", "שלום", "电影"]


@pytest.mark.slow
def test_every_synonym_is_one_word_wherever_it_is_put(table):
    noise = Synonyms(1.0, multi_word=True)
    words = [line.split("\t") for line in table.splitlines()]
    words = sorted({word for word, part, senses in words if part in wordnet.PARTS and " " in senses})
    for form in (str.lower, str.capitalize, str.upper):
        text = " , ".join(map(form, words))
        noisy = words_of(noise(text, rng(8)))
        assert len(noisy) == len(words) > 47_000
        assert noisy.gaps == words_of(text).gaps
        able = noise.coverage(text)
        assert sum(able) > 47_000  # of a few the only synonym is the same word without its hyphen
        assert [new != form(old) for new, old in zip(noisy.words, words, strict=True)] == list(able)


def test_kinds_of_rows():
    assert Synonyms(0)("A  film,\tgood .", rng()) == "A  film,\tgood ."
    assert Synonyms(0)(["A", "film"], rng()) == ["A", "film"]
    assert Synonyms(0)(("A", "film"), rng()) == ("A", "film")
    tokens = ["film"]
    assert Synonyms(1)(tokens, rng()) != tokens == ["film"]
    assert isinstance(Synonyms(1)("film", rng()), str)


def test_synonyms_of_several_words_stay_one_word():
    assert Synonyms(1.0).candidates("movie") == (("film", "picture", "pic", "flick"),)
    noise = Synonyms(1.0, multi_word=True)
    assert noise.candidates("Movie")[0][:4] == ("film", "picture", "moving-picture", "moving-picture-show")
    assert noise.candidates(["Movie"])[0][:4] == ("film", "picture", "moving picture", "moving-picture show")
    assert "Moving-picture" in {noise("Movie", rng(seed)) for seed in range(80)}
    assert "MOVING PICTURE" in {noise(["MOVIE"], rng(seed))[0] for seed in range(80)}
    for found in noise.candidates("hotdog email cooperate"):  # joined, some are the word itself or equal to another
        assert len(set(found)) == len(found) > 0


def test_first_senses_come_first(table):
    assert Synonyms(1, part_of_speech="noun").candidates("film bank") == (
        ("movie", "picture", "pic", "flick", "cinema", "celluloid"),
        tuple(synonym for synonym in by_hand("bank", "noun", table=table) if "_" not in synonym),
    )


class TestPartOfSpeech:
    def test_names(self, table):
        verb, noun = (Synonyms(1, part_of_speech=part).candidates("film")[0] for part in ("verb", "noun"))
        assert verb == ("shoot", "take") == tuple(by_hand("film", "verb", table=table))
        assert Synonyms(1, part_of_speech={"verb", "noun"}).candidates("film") == (noun + verb,)
        assert Synonyms(1).candidates("film") == (noun + verb,)
        assert Synonyms(1, part_of_speech="adv").candidates("film") == ((),)

    def test_order_and_kind_of_names_do_not_matter(self):
        noises = [Synonyms(1, part_of_speech=parts) for parts in (["verb", "adj"], ("adj", "verb"), {"adj", "verb"})]
        assert len(set(noises)) == len(set(map(repr, noises))) == 1

    def test_function_of_the_words(self):
        def tags(words):
            assert words == ["I", "film", "a", "film", "so", "what"]
            return ["other", "verb", None, "noun", "other", None]

        text = "I film a film; so what?"
        noise = Synonyms(1, part_of_speech=tags)
        assert noise.coverage(text) == (False, True, False, True, False, False)
        assert noise.candidates(text)[1] == ("shoot", "take")
        first, second, *_ = noise(text, rng()).split(" a ")
        assert first in ("I shoot", "I take")
        assert second.endswith("; so what?")

    def test_function_may_return_an_array(self):
        noise = Synonyms(1, part_of_speech=lambda words: np.array(["verb"] * len(words)))
        assert noise.candidates("film") == (("shoot", "take"),)

    @pytest.mark.parametrize(
        ("returned", "error", "message"),
        [
            (["noun"], ValueError, "must return one entry a word, got 1 for 2 words"),
            (["noun", "nuon"], ValueError, "must name noun, verb, adj, adv, other, got 'nuon', did you mean 'noun'"),
            (["noun", 1], TypeError, "must name noun, verb, adj, adv, other, got int: 1"),
            (None, TypeError, "must return a list with one entry a word, got NoneType"),
            ("nv", TypeError, "must return a list with one entry a word, got str"),
        ],
    )
    def test_function_that_returns_something_else(self, returned, error, message):
        with pytest.raises(error, match=message):
            Synonyms(0, part_of_speech=lambda words: returned)("good film", rng())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"p": 1.5}, ValueError, r"`p` must be a probability from 0 to 1, got 1\.5"),
        ({"p": -0.1}, ValueError, r"`p` must be finite and not negative, got -0\.1"),
        ({"p": float("nan")}, ValueError, "`p` must be finite and not negative, got nan"),
        ({"p": "0.3"}, TypeError, r"`p` must be a number, got str: '0\.3'"),
        ({"p": True}, TypeError, "`p` must be a number, got bool: True"),
        ({"multi_word": 1}, TypeError, "`multi_word` must be True or False, got int: 1"),
        ({"part_of_speech": "nouns"}, ValueError, "noun, verb, adj, adv, got 'nouns', did you mean 'noun'"),
        ({"part_of_speech": "other"}, ValueError, "must name noun, verb, adj, adv, got 'other'"),
        ({"part_of_speech": ["noun", 3]}, TypeError, "must name noun, verb, adj, adv, got int: 3"),
        ({"part_of_speech": set()}, ValueError, "`part_of_speech` is empty: it must name some of noun, verb, adj, adv"),
        ({"part_of_speech": 1}, TypeError, "a set of names or a function of the words, got int: 1"),
        ({"wordnet": 7}, TypeError, r"`wordnet` must be None, a folder or nltk\.corpus\.wordnet, got int: 7"),
        ({"wordnet": "no/folder"}, FileNotFoundError, r"WordNet's files, but .*folder lacks index\.noun"),
    ],
)
def test_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Synonyms(**{"p": 0.3, **arguments})


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ("", ValueError, "the text '' holds no words"),
        (" ... !", ValueError, r"the text ' \.\.\. !' holds no words"),
        ([], ValueError, "holds no words"),
        (["a", ""], ValueError, "must not hold empty ones"),
        (
            np.arange(3),
            TypeError,
            r"a text must be a string or the list of its tokens, got ndarray: array\(\[0, 1, 2\]\)",
        ),
        ([1, 2], TypeError, "must hold texts, got int: 1"),
        (b"film", TypeError, "must be a string or the list of its tokens, got bytes: b'film'"),
    ],
)
def test_rows_that_are_no_texts(row, error, message):
    for call in (lambda: Synonyms(0.3)(row, rng()), lambda: Synonyms(0.3).coverage(row)):
        with pytest.raises(error, match=message):
            call()


def test_is_a_value():
    noise = Synonyms(0.3, part_of_speech="noun")
    assert describe(noise) == "Synonyms(p=0.3, part_of_speech=('noun'), multi_word=False, wordnet=None)"
    assert repr(noise) == "Synonyms(p=0.3, part_of_speech=('noun',), multi_word=False, wordnet=None)"
    again = pickle.loads(pickle.dumps(noise))
    assert again == noise
    assert len(pickle.dumps(noise)) < 300  # the table does not travel along
    assert again("a good film", rng()) == noise("a good film", rng())
    with pytest.raises(AttributeError):
        noise.p = 0.5


def test_is_a_noise_of_explain():
    def length_of_words(texts, target):
        return np.array([[len(word) for word in words_of(text).words] for text in texts])

    texts = ["A terrible movie, sadly!", "a very good film", "A terrible movie, sadly!"]
    sample = metfa.explain(length_of_words, texts, 0, noise=Synonyms(0.5), n_samples=30, rng=0)
    assert sample.provenance["noise"] == "Synonyms(p=0.5, part_of_speech=None, multi_word=False, wordnet=None)"
    assert sample.vanilla.tolist() == [[1, 8, 5, 5], [1, 4, 4, 4], [1, 8, 5, 5]]
    assert (sample.values[:, :, 0] == 1).all()
    assert all((sample.values[:, 0, k] != sample.vanilla[0, k]).any() for k in (1, 2, 3))
    alone = metfa.explain(length_of_words, texts[1:2], 0, noise=Synonyms(0.5), n_samples=30, rng=0, batch_size=7)
    assert (alone.values[:, 0] == sample.values[:, 1]).all()


def test_ten_thousand_words_take_less_than_a_second():
    text = "A terrible movie, sadly! " * (N // 4)
    noise = Synonyms(0.7)
    noise("film", rng())  # reads the table
    start = time.perf_counter()
    noisy = noise(text, rng())
    assert time.perf_counter() - start < 1
    assert len(words_of(noisy)) == N


def test_table_is_small_and_stands_beside_its_licence():
    data = resources.files("metfa.text") / "data"
    assert len((data / "synonyms.tsv.xz").read_bytes()) < 700_000
    assert "WordNet 3.0 Copyright 2006 by Princeton University." in (data / "WORDNET-LICENSE.txt").read_text("utf-8")


def test_table_is_plain_text_of_single_lower_case_words(table):
    lines = table.splitlines()
    assert lines == sorted(lines)
    rows = [line.split("\t") for line in lines]
    assert {part for _, part, _ in rows} == {*wordnet.PARTS, "noun+", "verb+"}
    words = {word for word, part, _ in rows if "+" not in part}
    assert (len(rows), len(words)) == (61_125, 51_636)
    assert all(word.islower() and word.isascii() and "_" not in word for word in words)
    with_synonyms, single = [], set()
    for word, part, content in rows:
        if "+" in part:
            continue
        senses = [sense.split(" ") for sense in content.split("|")]
        assert all(count == "" or int(count) > 0 for count, *_ in senses)
        found = [synonym for _, *synonyms in senses for synonym in synonyms]
        assert word not in found
        assert all(s.islower() and s.isascii() and s[0].isalnum() and s[-1].isalnum() for s in found)
        with_synonyms += [word] * bool(found)
        single |= {word} if any("_" not in synonym for synonym in found) else set()
    assert (len(with_synonyms), len(set(with_synonyms)), len(single)) == (52_211, 47_792, 44_179)


def test_damaged_table_is_refused():
    def one(synonyms):
        senses = {part: {} for part in wordnet.PARTS} | {"noun": {"film": f"3 {synonyms}"}}
        return wordnet.packed(wordnet.WordNet(senses, {"noun": {"leaves": "leaf"}, "verb": {}}))

    content = one("movie")
    assert wordnet.unpacked(content).of("film", "noun") == [(3, ("movie",))]
    assert wordnet.unpacked(content).irregular("leaf", "noun") == ["leaves"]
    bomb = one("m" * wordnet.LARGEST)
    assert len(bomb) < 100_000
    for bad in (content[:-8], bomb):
        with pytest.raises(ValueError, match=f"the table of synonyms is damaged: .* more than {wordnet.LARGEST} bytes"):
            wordnet.unpacked(bad)


def write_wordnet(folder, *, index="index", data="data"):
    """A WordNet of two synsets: film and movie (but also the name Film), galore(ip) and plenty_of."""
    for part in wordnet.PARTS:
        (folder / f"index.{part}").write_text("  1 licence\n")
        (folder / f"data.{part}").write_text("  1 licence\n")
    (folder / "data.noun").write_text(
        "  1 licence\n"
        "00000012 10 n 02 Film 0 Movie_Town 0 000 | a town\n"
        "00000077 10 n 03 film 0 Cinematograph 0 moving_picture 1 001 @ 00000012 n 0000 | a film (movie) 01 x 0\n"
        "00000133 10 n 02 film 0 movie 1 000 | another  \n"
    )
    (folder / "index.noun").write_text(
        "  1 licence\nfilm n 3 1 @ 3 1 00000133 00000012 00000077  \nmovie n 1 0 1 0 00000133  \n"
        "moving_picture n 1 0 1 0 00000077\n"
    )
    (folder / "data.adj").write_text("00000000 00 s 02 galore(ip) 0 plentiful 0 000 | many\n")
    (folder / "index.adj").write_text("galore a 1 0 1 0 00000000\nplentiful a 1 0 1 0 00000000\n")


class TestFolder:
    def test_counts_and_irregular_forms(self, tmp_path):
        write_wordnet(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"lacks cntlist\.rev"):
            SenseSynonyms(1, wordnet=tmp_path)
        (tmp_path / "cntlist.rev").write_text(
            "film%1:06:00:: 1 6\nfilm%1:15:00:: 2 5\nmovie%1:06:00:: 1 2\ngalore%5:00:00:x:00 1 4\n"
        )
        (tmp_path / "noun.exc").write_text("filmen film\n")
        (tmp_path / "verb.exc").write_text("")
        noise = SenseSynonyms(1, wordnet=tmp_path)
        assert noise.candidates("Film films filmen movie galore plentiful") == (
            ("movie",), ("movies",), ("movies",), ("film",), (), ("galore",)
        )  # fmt: skip
        assert wordnet.wordnet_of(str(tmp_path)).irregular("film", "noun") == ["filmen"]
        assert SenseSynonyms(1, share=0.6, wordnet=tmp_path).candidates("film movie") == ((), ())

    def test_small(self, tmp_path):
        write_wordnet(tmp_path)
        noise = Synonyms(1, wordnet=tmp_path)
        assert noise.candidates("Film movie galore plentiful town") == (
            ("movie",), ("film",), ("plentiful",), ("galore",), ()
        )  # fmt: skip
        noise = Synonyms(1, wordnet=str(tmp_path), multi_word=True)
        assert noise.candidates(["film", "moving picture"]) == (("movie", "moving picture"), ())
        assert pickle.loads(pickle.dumps(noise))("FILM", rng(1)) in ("MOVIE", "MOVING-PICTURE")

    def test_relative_path(self, tmp_path, monkeypatch):
        write_wordnet(tmp_path)
        monkeypatch.chdir(tmp_path.parent)
        assert Synonyms(1, wordnet=tmp_path.name) == Synonyms(1, wordnet=tmp_path)

    @pytest.mark.parametrize(
        ("file", "content"),
        [
            ("data.noun", "00000133 10 n\n"),
            ("data.noun", "00000133 10 n xx film 0 movie 0 000 |\n"),
            ("index.verb", "film v 1 0 1 0 00000133\n"),
            ("index.verb", "film\n"),
        ],
    )
    def test_damaged(self, tmp_path, file, content):
        write_wordnet(tmp_path)
        (tmp_path / file).write_text(content)
        noise = Synonyms(1, wordnet=tmp_path)
        with pytest.raises(ValueError, match=rf"the files .* in .*{tmp_path.name} are damaged, or not WordNet's"):
            noise("film", rng())

    def test_missing_file(self, tmp_path):
        write_wordnet(tmp_path)
        (tmp_path / "data.adv").unlink()
        with pytest.raises(FileNotFoundError, match=rf"`wordnet` must be .*{tmp_path.name} lacks data\.adv"):
            Synonyms(0.3, wordnet=tmp_path)

    @needs_wordnet
    def test_wordnet_itself_equals_the_shipped_table(self):
        shipped, theirs = wordnet.look_up_in(None), wordnet.look_up_in(str(FOLDER))
        text = [w for w in ("movie", "Terrible", "so", "galore", "bank") for _ in range(20)]
        assert Synonyms(0.5, wordnet=FOLDER)(text, rng(2)) == Synonyms(0.5)(text, rng(2)) != text
        indexed = {
            (line.split(" ", 1)[0], part)
            for part in wordnet.PARTS
            for line in (FOLDER / f"index.{part}").read_text("utf-8").splitlines()
        }
        assert len(indexed) > 150_000
        assert all(shipped(word, part) == theirs(word, part) for word, part in indexed)


@needs_wordnet
def test_nltk_gives_the_same_synonyms(tmp_path, monkeypatch):
    nltk = pytest.importorskip("nltk")
    corpus = tmp_path / "corpora" / "wordnet"
    corpus.mkdir(parents=True)
    for name in (*wordnet.FILES, *(f"{part}.exc" for part in wordnet.PARTS)):
        shutil.copy(FOLDER / name, corpus)  # nltk follows no links
    # Debian has neither; nltk only needs as many names of lexicographers' files as the synsets refer to.
    (corpus / "lexnames").write_text("".join(f"{number:02d}\tname{number}\t1\n" for number in range(45)))
    (corpus / "index.sense").write_text("")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.warns(UserWarning, match="multilingual functions are not available"):
        corpus = nltk.corpus.reader.WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)

    noise, shipped = Synonyms(0.7, wordnet=corpus, multi_word=True), Synonyms(0.7, multi_word=True)
    text = "Terrible movies: so wound up, galore! May the films better it? Turkey 😀 " * 20
    assert noise(text, rng(3)) == shipped(text, rng(3)) != text
    theirs, ours = wordnet.look_up_in(corpus), wordnet.look_up_in(None)
    words = [line.split(" ", 1)[0] for line in (FOLDER / "index.noun").read_text("utf-8").splitlines()[::40]]
    for word in [*words, "saw", "left", "better", "films", "axes", "s", "Movie", "moving picture"]:
        assert all(list(theirs(word, part)) == list(ours(word, part)) for part in wordnet.PARTS)


def test_what_is_no_generator_and_files_without_synonyms(tmp_path):
    with pytest.raises(TypeError, match=r"`rng` must be a numpy\.random\.Generator, got int"):
        Synonyms(0.3)("a film", 0)
    with pytest.raises(ValueError, match="got 'adverb', did you mean 'adv'"):
        Synonyms(0.3, part_of_speech="adverb")
    for kind in ("index", "data"):
        for part in ("noun", "verb", "adj", "adv"):
            (tmp_path / f"{kind}.{part}").touch()
    with pytest.raises(ValueError, match="they hold no synonyms"):
        Synonyms(0.3, wordnet=tmp_path)("a film", np.random.default_rng(0))
