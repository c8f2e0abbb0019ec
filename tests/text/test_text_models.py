"""The recurrent text classifier: an LSTM by hand, rows that do not touch, and files that mean harm."""

import contextlib
import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import metfa.text
from metfa._base.warnings import ModelStateWarning
from metfa.text.models import BiLSTM, EmbeddedTextModel, TrainedBiLSTM, embedded, load_model, save_model, tokens_of
from metfa.text.words import words_of

VOCABULARY = ("a", "dull", "film", "fine", "moving", "not", "so", "very", "!", ",", "’")
ROWS = ["a fine, moving film!", "", "dull", "so very, very dull. Not a film!", ["a", "fine", "film"], [], "..."]


def network(dtype=torch.float32, **sizes):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BiLSTM(len(VOCABULARY) + 2, 3, **{"embedding_size": 5, "n_units": 4, "n_hidden": 6, **sizes}).to(dtype)


def classifier(dtype=torch.float32):
    return TrainedBiLSTM(network(dtype).eval(), VOCABULARY, ("bad", "so-so", "good"))


@pytest.fixture(scope="module")
def sentiment():
    return load_model("sentiment")


class TestTokens:
    @pytest.mark.parametrize(
        ("row", "tokens", "words"),
        [
            ("Great film!", ["great", "film", "!"], [0, 1, None]),
            ("great film !", ["great", "film", "!"], [0, 1, None]),
            (["Great", "film", "!"], ["great", "film", "!"], [0, 1, 2]),
            ('"So-so"...', ['"', "so-so", '"', ".", ".", "."], [None, 0, None, None, None, None]),
            ("Don’t, don't", ["don't", ",", "don't"], [0, None, 1]),
            (["well , well", "!?"], ["well", ",", "well", "!", "?"], [0, 0, 0, 1, 1]),
            ("", [], []),
            (" \t", [], []),
            ([], [], []),
            ((), [], []),
            (" .. ", [".", "."], [None, None]),
            ("ÉTÉ 电影。 😀", ["été", "电影", "。", "😀"], [0, 1, None, 2]),
            (
                "雨です。「家！」はい",
                ["雨です", "。", "「", "家", "！", "」", "はい"],
                [0, None, None, 1, None, None, 2],
            ),
            ([" "], [], []),
        ],
    )
    def test_cases(self, row, tokens, words):
        assert tokens_of(row) == (tokens, words)

    @pytest.mark.parametrize(
        "row", ["  (a) b-c, d!", "a\u00a0b", "«שלום», עולם!", "雨です。「家！」はい", ["x", "y.", "(z)"]]
    )
    def test_words_are_those_that_are_explained(self, row):
        words = words_of(row).words
        tokens, index = tokens_of(row)
        joined = ["".join(t for t, i in zip(tokens, index, strict=True) if i == place) for place in range(len(words))]
        assert joined == [word.lower() for word in words]

    @pytest.mark.parametrize(
        ("row", "error", "message"),
        [
            (None, TypeError, "a text must be a string or the list of its tokens, got NoneType"),
            (["a", 3], TypeError, "a list of tokens must hold texts, got int: 3"),
            (["a", ""], ValueError, "must not hold empty ones"),
        ],
    )
    def test_unfit(self, row, error, message):
        with pytest.raises(error, match=message):
            tokens_of(row)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(vectors, state, suffix):
    """States of one direction, one step after the other."""
    inner, outer = state[f"lstm.weight_ih_l0{suffix}"], state[f"lstm.weight_hh_l0{suffix}"]
    bias = state[f"lstm.bias_ih_l0{suffix}"] + state[f"lstm.bias_hh_l0{suffix}"]
    hidden = cell = np.zeros(outer.shape[1])
    found = []
    for vector in vectors:
        i, f, g, o = np.split(inner @ vector + outer @ hidden + bias, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        found.append(hidden)
    return np.array(found)


def probabilities_by_hand(model, row):
    state = {name: value.double().numpy() for name, value in model.module.state_dict().items()}
    ids = [VOCABULARY.index(t) + 2 if t in VOCABULARY else 1 for t in tokens_of(row)[0]] or [0]
    vectors = state["embedding.weight"][ids]
    states = np.hstack([lstm_by_hand(vectors, state, ""), lstm_by_hand(vectors[::-1], state, "_reverse")[::-1]])
    hidden = np.maximum(state["hidden.weight"] @ states.max(axis=0) + state["hidden.bias"], 0)
    powers = np.exp(state["output.weight"] @ hidden + state["output.bias"])
    return powers / powers.sum()


class TestNetwork:
    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
    def test_equals_an_lstm_by_hand(self, dtype, tolerance):
        model = classifier(dtype)
        found = model(ROWS)
        assert found.shape == (len(ROWS), 3)
        assert found.dtype == str(dtype).removeprefix("torch.")
        for row, scores in zip(ROWS, found, strict=True):
            np.testing.assert_allclose(scores, probabilities_by_hand(model, row), rtol=tolerance)

    def test_a_row_is_independent_of_its_neighbours(self):
        model = classifier()
        together = model([*ROWS, "a very long film " * 50])
        for row, scores in zip(ROWS, together[:-1], strict=True):
            np.testing.assert_allclose(model([row])[0], scores, atol=1e-7)
        np.testing.assert_array_equal(together[1], together[5])  # no words: as text, and as tokens

    def test_padding_is_never_read(self):
        model = network().eval()
        vectors, mask = torch.rand(2, 6, 5), torch.arange(6) < torch.tensor([[6], [2]])
        with torch.no_grad():
            spoilt = vectors.masked_fill(~mask[..., None], torch.nan)
            torch.testing.assert_close(model.forward_embedded(spoilt, mask), model.forward_embedded(vectors, mask))
            short = model.forward_embedded(vectors[1:, :2], mask[1:, :2])
        torch.testing.assert_close(model.forward_embedded(vectors, mask)[1:], short)

    def test_forward_takes_ids(self):
        model = classifier()
        ids = torch.tensor([[2, 5, 4], [3, 0, 0]])
        with torch.no_grad():
            logits = model.module(ids)
        np.testing.assert_allclose(logits.softmax(1), model(["a fine film", "dull"]), atol=1e-7)

    def test_rows_in_many_batches(self, monkeypatch):
        model = classifier()
        rows = [row for row in ROWS if row] * 3
        expected = model(rows)
        for limit in (1, 7, 20):
            monkeypatch.setattr(embedded, "TOKENS_AT_ONCE", limit)
            sizes = [batch.ids.numel() for batch in embedded.token_batches(model, rows)]
            assert max(sizes) <= max(limit, 10)  # tokens of the longest row
            np.testing.assert_allclose(model(rows), expected, atol=1e-7)

    def test_a_text_of_ten_thousand_words(self, sentiment):
        row = "a dull film and a moving story " * 1429
        assert len(words_of(row)) > 10_000
        np.testing.assert_allclose(sentiment([row, "fine"]).sum(axis=1), 1, rtol=1e-6)

    def test_it_offers_the_protocol(self):
        assert isinstance(classifier(), EmbeddedTextModel)
        assert not isinstance(network(), EmbeddedTextModel)

    @pytest.mark.parametrize("fail", [False, True])
    def test_is_left_as_found(self, fail):
        model = classifier()
        model.module.train()
        state = torch.get_rng_state()
        rows = [*ROWS, 3] if fail else list(ROWS)
        kept = list(rows)
        outcome = pytest.raises(TypeError, match="got int: 3") if fail else contextlib.nullcontext()
        with pytest.warns(ModelStateWarning, match="training mode"), outcome:
            model(rows)
        assert all(module.training for module in model.module.modules())
        assert all(p.requires_grad and p.grad is None for p in model.module.parameters())
        assert torch.equal(torch.get_rng_state(), state)
        assert rows == kept

    @pytest.mark.parametrize(
        ("rows", "error", "message"),
        [
            ("a film", TypeError, "a list of rows .* is needed, got str"),
            ([], ValueError, "the list of rows is empty"),
            ([None], TypeError, "got NoneType"),
        ],
    )
    def test_unfit_rows(self, rows, error, message):
        with pytest.raises(error, match=message):
            classifier()(rows)


class TestBundled:
    PRAISE = (
        "A warm, funny and touching comedy with a wonderful cast.",
        "one of the most powerful and moving films of the year",
        "Superbly acted, beautifully photographed, and gripping to the last minute!",
        "a smart, charming and thoroughly enjoyable entertainment",
        "The performances are excellent and the story is told with heart and wit.",
        "an honest, delicate and rewarding portrait of a family",
    )
    BLAME = (
        "A dull, lifeless comedy with a terrible script.",
        "one of the worst and most boring films of the year",
        "Badly acted, poorly directed, and tedious to the last minute!",
        "a stupid, predictable and thoroughly pointless mess",
        "The jokes fail, the plot is a waste of time and the dialogue is flat.",
        "an unfunny, bland and annoying sequel",
    )

    @pytest.mark.parametrize("form", [str, str.upper, str.split])
    def test_tells_praise_from_blame(self, sentiment, form):
        assert sentiment.class_names == ("negative", "positive")
        scores = sentiment([form(text) for text in [*self.PRAISE, *self.BLAME]])
        assert (scores.argmax(axis=1) == [1] * 6 + [0] * 6).all()
        np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)

    def test_blanks_before_punctuation_do_not_matter(self, sentiment):
        together, apart = sentiment(["Great film!", "great film !"])
        np.testing.assert_array_equal(together, apart)

    def test_a_text_without_words_is_undecided(self, sentiment):
        scores = sentiment(["", [], "so 😀"])
        assert 0.3 < scores[0, 1] < 0.7
        np.testing.assert_array_equal(scores[0], scores[1])

    def test_same_numbers_every_time(self, sentiment):
        rows, state = [*self.PRAISE, *self.BLAME], torch.get_rng_state()
        np.testing.assert_array_equal(sentiment(rows), load_model("sentiment")(rows))
        assert torch.equal(torch.get_rng_state(), state)

    def test_file_is_small_and_holds_no_pickles(self):
        path = Path(metfa.text.models.__file__).with_name("sentiment.npz")
        assert path.stat().st_size < 2 * 2**20
        with np.load(path, allow_pickle=False) as arrays:
            assert {array.dtype.name for array in arrays.values()} == {"float16", "uint8"}

    def test_state(self, sentiment):
        assert not sentiment.module.training
        assert {p.dtype for p in sentiment.module.parameters()} == {torch.float32}
        assert all(p.requires_grad for p in sentiment.module.parameters())
        assert "sentiment" not in repr(sentiment.vocabulary[:0])
        assert repr(sentiment) == "TrainedBiLSTM(class_names=('negative', 'positive'))"


class TestFile:
    def test_round_trip(self, tmp_path):
        model = classifier()
        path = save_model(model, tmp_path / "model.npz")
        read = load_model(path)
        assert (read.vocabulary, read.class_names) == (model.vocabulary, model.class_names)
        for name, value in model.module.state_dict().items():
            assert torch.equal(read.module.state_dict()[name], value.half().float())
        np.testing.assert_allclose(read(ROWS), model(ROWS), atol=2e-3)
        np.testing.assert_array_equal(load_model(str(path))(ROWS), read(ROWS))

    def test_same_model_same_bytes(self, tmp_path):
        first, second = (save_model(classifier(), tmp_path / name) for name in ("a.npz", "b.npz"))
        assert first.read_bytes() == second.read_bytes()

    def test_a_file_of_another_stays(self, tmp_path):
        path = save_model(classifier(), tmp_path / "model.npz")
        before = path.read_bytes()
        assert save_model(classifier(), path, overwrite=True).read_bytes() == before
        np.savez(path, mine=np.zeros(3))
        with pytest.raises(FileExistsError, match=r"model\.npz is no such file"):
            save_model(classifier(), path, overwrite=True)
        assert list(np.load(path)) == ["mine"]

    def test_weights_that_half_precision_does_not_hold(self, tmp_path):
        model = classifier()
        with torch.no_grad():
            model.module.hidden.bias[0] = 1e6
        with pytest.raises(
            ValueError, match=r"`model\.module\.hidden\.bias` holds numbers that half precision cannot store"
        ):
            save_model(model, tmp_path / "model.npz")

    @pytest.mark.parametrize(
        ("name", "error", "message"),
        [
            (3, TypeError, "`name_or_path` must be a name or a path, got int"),
            ("sentimant", ValueError, "'sentimant' is not a known model, did you mean 'sentiment'"),
            ("nowhere.npz", FileNotFoundError, r"no such file: nowhere\.npz"),
            (Path("sentiment"), FileNotFoundError, "no such file: sentiment"),
        ],
    )
    def test_unknown(self, name, error, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(error, match=message):
            load_model(name)


class Harm:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def npy(array, **settings):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **settings)
    return file.getvalue()


def header(shape, dtype="<f2", fortran=False):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return file.getvalue()


def text(content):
    return npy(np.frombuffer(content.encode(), dtype=np.uint8))


def about(**changes):
    sizes = {"embedding_size": 5, "n_units": 4, "n_hidden": 6}
    return text(json.dumps({"version": 1, "class_names": ["a", "b", "c"], **sizes, **changes}))


def test_only_a_trained_model_is_saved(tmp_path):
    with pytest.raises(TypeError, match="`model` must be a TrainedBiLSTM, got str"):
        save_model("x", tmp_path / "x.npz")


class TestHostileFile:
    @pytest.fixture
    def parts(self, tmp_path):
        with zipfile.ZipFile(save_model(classifier(), tmp_path / "good.npz")) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def written(self, path, parts, **settings):
        with zipfile.ZipFile(path, "w", **settings) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        return path

    def test_the_parts_are_a_model_as_they_are(self, parts, tmp_path):
        assert load_model(self.written(tmp_path / "m.npz", parts)).vocabulary == VOCABULARY
        assert load_model(self.written(tmp_path / "n.npz", {**parts, "about.npy": about()})).class_names[2] == "c"

    @pytest.mark.parametrize(
        ("part", "content", "message"),
        [
            ("hidden.bias", npy(np.array([Harm()] * 6, dtype=object), allow_pickle=True), r"object of shape \(6,\)"),
            ("hidden.bias", pickle.dumps(Harm()), "magic string is not correct"),
            ("hidden.bias", npy(np.zeros(6, np.float32)), r"float32 of shape \(6,\), not float16"),
            ("hidden.bias", npy(np.zeros(7, np.float16)), r"float16 of shape \(7,\), not float16 of shape \(6,\)"),
            ("hidden.bias", header((10**12,)) + bytes(12), r"shape \(1000000000000,\), not"),
            ("hidden.bias", header((6,)) + bytes(10), "holds 10 bytes, not the 12 of its shape"),
            ("hidden.bias", header((6,)) + bytes(14), "holds 14 bytes, not the 12 of its shape"),
            ("hidden.bias", npy(np.full(6, np.nan, np.float16)), "hidden.bias holds NaN or infinity"),
            ("hidden.bias", npy(np.zeros(6, np.float16), version=(2, 0)), "another version than 1.0"),
            ("hidden.bias", b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535, "Header info length .* is large"),
            ("hidden.weight", header((6, 8), fortran=True) + bytes(96), "Fortran order"),
            ("vocabulary", header((10**15,), "|u1") + b"a", "holds 1 bytes, not the 1000000000000000"),
            ("vocabulary", text("\n".join(VOCABULARY[:-1])), r"embedding.weight is float16 of shape \(13, 5\), not"),
            ("vocabulary", text("\n".join(VOCABULARY[:-1]) + "\na"), "a token twice"),
            ("vocabulary", text("\n".join(VOCABULARY[:-1]) + "\n"), "an empty one"),
            ("vocabulary", npy(np.full(9, 255, np.uint8)), "can't decode"),
            ("about", text("[" * 100_000), "damaged: "),
            ("about", text("{"), "damaged: "),
            ("about", text("[]"), "its version is not 1"),
            ("about", about(version=2), "its version is not 1"),
            ("about", about(class_names="ab"), "`class_names` are no list of texts"),
            ("about", about(class_names=["a"]), "`class_names` are no list of texts"),
            ("about", about(class_names=["a", "b"]), r"shape \(3, 6\), not float16 of shape \(2, 6\)"),
            (
                "about",
                about(n_units=10**4),
                r"lstm.weight_ih_l0 is float16 of shape \(16, 5\), not float16 of shape \(40000, 5\)",
            ),
            ("about", about(n_units=10**9), "damaged: "),
            ("about", about(n_units=10**30), "damaged: "),
            ("about", about(n_units=0), "`n_units` must be at least 1, got 0"),
            ("about", about(n_hidden=6.0), "`n_hidden` must be an integer, got float"),
            ("about", text('{"version": 1}'), "damaged: 'class_names'"),
            ("extra", npy(np.zeros(3)), "instead of a BiLSTM's weights"),
        ],
    )
    def test_one_bad_part(self, parts, tmp_path, part, content, message):
        path = self.written(tmp_path / "bad.npz", {**parts, f"{part}.npy": content})
        with pytest.raises(ValueError, match=message) as caught:
            load_model(path)
        assert str(caught.value).startswith(f"{path} is no text model of metfa, or is damaged: ")

    @pytest.mark.parametrize("part", ["about", "vocabulary", "hidden.bias"])
    def test_a_missing_part(self, parts, tmp_path, part):
        del parts[f"{part}.npy"]
        with pytest.raises(ValueError, match="is no text model of metfa"):
            load_model(self.written(tmp_path / "bad.npz", parts))

    def test_a_part_twice(self, parts, tmp_path):
        path = self.written(tmp_path / "bad.npz", parts)
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("hidden.bias.npy", parts["hidden.bias.npy"])
        with pytest.raises(ValueError, match="instead of a BiLSTM's weights"):
            load_model(path)

    def test_a_bomb_is_not_unpacked(self, parts, tmp_path):
        bomb = {**parts, "vocabulary.npy": header((2**27,), "|u1") + bytes(2**27)}
        path = self.written(tmp_path / "bomb.npz", bomb, compression=zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 2**20
        with pytest.raises(ValueError, match=r"unpacks to 1342\d+ bytes, more than the 67108864"):
            load_model(path)

    def test_a_file_that_is_too_large(self, tmp_path):
        path = tmp_path / "large.npz"
        with path.open("wb") as file:
            file.truncate(2**27)
        with pytest.raises(ValueError, match="has 134217728 bytes, more than the 67108864 that are read"):
            load_model(path)

    def test_other_compressions(self, parts, tmp_path):
        path = self.written(tmp_path / "bad.npz", parts, compression=zipfile.ZIP_LZMA)
        with pytest.raises(ValueError, match="about is compressed in an unknown way"):
            load_model(path)

    @pytest.mark.parametrize("content", [b"", b"PK", b"\x80\x04N.", npy(np.zeros(3))])
    def test_no_archive(self, tmp_path, content):
        path = tmp_path / "bad.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no text model of metfa"):
            load_model(path)

    @pytest.mark.slow
    def test_damaged_bytes_never_give_another_model(self, tmp_path):
        good = save_model(classifier(), tmp_path / "good.npz")
        expected, content, rng = load_model(good)(ROWS), good.read_bytes(), np.random.default_rng(0)
        refused, path = 0, tmp_path / "bad.npz"
        for trial in range(300):
            damaged = bytearray(content)
            if trial % 3:
                damaged[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
            else:
                del damaged[rng.integers(len(content)) :]
            path.write_bytes(damaged)
            try:
                np.testing.assert_array_equal(load_model(path)(ROWS), expected)
            except ValueError:
                refused += 1
        assert refused > 200
