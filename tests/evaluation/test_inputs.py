"""Inputs of a study: folders, CSV files, arrays, sequences, iterables, data sets."""

import csv
import os

import numpy as np
import pytest
import torch
from PIL import Image

from metfa.evaluation.inputs import Texts, study_inputs


def save(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((4, 4, 3), value, dtype=np.uint8)).save(path, format="PNG")
    return path


# Folders


def test_a_folder_recursive_sorted_and_in_any_case(tmp_path):
    for name in ("b.PNG", "a.jpeg", "sub/c.Jpg", "sub/deeper/d.png", "A.png"):
        save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "folder.png").mkdir()
    data = study_inputs(tmp_path, None, None)
    assert data.names == ("A.png", "a.jpeg", "b.PNG", "sub/c.Jpg", "sub/deeper/d.png")
    assert data.targets == (None,) * 5
    assert study_inputs(str(tmp_path), None, 2).names == ("A.png", "a.jpeg")


def test_hidden_files_and_folders_are_no_data(tmp_path):
    save(tmp_path / ".hidden" / "data" / "cat.png")  # a data folder may lie in a hidden one
    save(tmp_path / ".hidden" / "data" / "._cat.png")
    save(tmp_path / ".hidden" / "data" / ".checkpoints" / "cat.png")
    assert study_inputs(tmp_path / ".hidden" / "data", None, None).names == ("cat.png",)


def test_the_digest_is_of_the_content_alone(tmp_path):
    save(tmp_path / "a.png"), save(tmp_path / "b.png"), save(tmp_path / "c.png", 1)
    data = study_inputs(tmp_path, None, None)
    assert data.digest(0) == data.digest(1) != data.digest(2)
    pixels = data.load(2, np.asarray)
    assert pixels.shape == (4, 4, 3)
    assert (pixels == 1).all()
    with pytest.raises(ValueError, match="`model` has no preprocessing for pictures"):
        data.load(0, None)


def test_a_name_that_is_no_utf8_can_be_written(tmp_path):
    save(tmp_path / "a.png").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    (name,) = study_inputs(tmp_path, None, None).names
    assert name == "\\udcff.png"
    name.encode()


def test_folders_that_do_not_serve(tmp_path):
    with pytest.raises(ValueError, match=r"`inputs`: no pictures \(\.png, .*\) in"):
        study_inputs(tmp_path, None, None)
    with pytest.raises(FileNotFoundError, match=r"`inputs`: no such folder or file: .*missing"):
        study_inputs(tmp_path / "missing", None, None)
    (tmp_path / "list.txt").write_text("path\n")
    with pytest.raises(ValueError, match=r"`inputs` must be a folder or a \.csv file, got .*list\.txt"):
        study_inputs(tmp_path / "list.txt", None, None)


# CSV files


def index(tmp_path, text, name="index.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_an_index_relative_absolute_and_above(tmp_path):
    save(tmp_path / "above.png"), save(tmp_path / "data" / "a,b.png"), save(tmp_path / "elsewhere.png")
    elsewhere = tmp_path / "elsewhere.png"
    path = index(
        tmp_path / "data", f'\ufeffpath,target,note\n"a,b.png",3,x\n../above.png, 0 ,\n\n{elsewhere},,\n', "index.CSV"
    )
    data = study_inputs(path, None, None)
    assert data.names == ("a,b.png", "../above.png", str(elsewhere))
    assert data.targets == (3, 0, None)
    assert all(file.is_file() for file in data.paths)
    assert study_inputs(path, None, 1).names == ("a,b.png",)


def test_a_picture_listed_twice_has_two_names(tmp_path):
    save(tmp_path / "a.png")
    data = study_inputs(index(tmp_path, "path,target\na.png,0\na.png,1\n"), None, None)
    assert len(set(data.names)) == 2
    assert data.names[0] == "a.png"
    assert data.targets == (0, 1)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("file,target\na.png,0\n", ValueError, r"index\.csv must have a column 'path' .*, it has file, target"),
        ("", ValueError, r"must have a column 'path' \(pictures\) or 'text', it has none"),
        ("path\n", ValueError, r"index\.csv has no lines"),
        ("path\na.png\nb.png\n", FileNotFoundError, r"line 3: no such picture: b\.png"),
        ("path\n\n\nb.png\n", FileNotFoundError, r"line 4: no such picture: b\.png"),
        ("target,path\n3\n", FileNotFoundError, "line 2: no such picture: nothing is named"),
        ("path,target\na.png,cat\n", ValueError, "line 2: `target` must be a class index or empty, got 'cat'"),
        ("path,target\na.png,-1\n", ValueError, "line 2: `target` must be a class index or empty, got '-1'"),
        ("path,target\na.png,1.0\n", ValueError, "line 2: `target` must be a class index or empty, got '1.0'"),
        (b"path\n\xff\xfe.png\n", ValueError, r"index\.csv is not a CSV file in UTF-8"),
        ("path\n" + "x" * 200_000 + "\n", ValueError, r"index\.csv is not a CSV file in UTF-8: field larger"),
    ],
)
def test_an_index_that_does_not_serve(text, error, message, tmp_path):
    save(tmp_path / "a.png")
    with pytest.raises(error, match=message):
        study_inputs(index(tmp_path, text), None, None)
    csv.field_size_limit()  # as before, whatever came


def test_targets_of_an_index_are_its_own(tmp_path):
    save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="`targets` must be None for a CSV file: write them in its column 'target'"):
        study_inputs(index(tmp_path, "path\na.png\n"), [0], None)


# Arrays


ROWS = np.arange(12.0).reshape(4, 3)


class DataSet(torch.utils.data.Dataset):
    """Arrays, made when they are asked for."""

    def __init__(self, make=lambda row: torch.tensor(row)):
        self.make, self.asked = make, []

    def __len__(self):
        return len(ROWS)

    def __getitem__(self, index):
        self.asked.append(index)
        return self.make(ROWS[index])


@pytest.mark.parametrize(
    "inputs",
    [ROWS, torch.tensor(ROWS), list(ROWS), ROWS.tolist(), tuple(ROWS), (row for row in ROWS), DataSet(), iter(ROWS)],
    ids=["array", "tensor", "list", "lists", "tuple", "generator", "data set", "iterator"],
)
def test_arrays_of_any_kind(inputs):
    data = study_inputs(inputs, None, None)
    assert len(data) == 4
    assert data.names == ("0", "1", "2", "3")
    for position in range(4):
        np.testing.assert_array_equal(data.load(position, None), ROWS[position])
    assert len({data.digest(position) for position in range(4)}) == 4
    assert data.digest(1) == study_inputs(ROWS, None, None).digest(1)


def test_nothing_is_loaded_before_its_turn():
    inputs = DataSet()
    data = study_inputs(inputs, None, 2)
    assert inputs.asked == []
    data.load(1, None)
    assert inputs.asked == [1]


def test_a_limit_takes_no_more_of_an_iterator():
    inputs = iter(ROWS)
    assert len(study_inputs(inputs, None, 2)) == 2
    np.testing.assert_array_equal(next(inputs), ROWS[2])
    assert len(study_inputs(ROWS, None, 9)) == 4


def test_a_seed_gives_a_random_part_that_keeps_names_and_targets():
    arrays = np.arange(40.0).reshape(20, 2)
    whole = study_inputs(arrays, list(range(20)), None)
    part = study_inputs(arrays, list(range(20)), 8, 3)
    assert len(part) == 8
    chosen = [int(name) for name in part.names]
    assert chosen == list(part.targets) != sorted(chosen)
    for index, place in enumerate(chosen):
        assert np.array_equal(part.load(index, None), arrays[place])
        assert part.digest(index) == whole.digest(place)
    assert study_inputs(arrays, None, 8, 3).names == part.names
    assert study_inputs(arrays, None, 5, 3).names == part.names[:5]
    assert study_inputs(arrays, None, 8, 4).names != part.names
    assert sorted(study_inputs(arrays, None, None, 3).names) == list(whole.names)


def test_files_and_texts_are_shuffled_too(tmp_path):
    for name in "abcdef":
        Image.new("RGB", (2, 2), (ord(name), 0, 0)).save(tmp_path / f"{name}.png")
    pictures = study_inputs(tmp_path, None, 4, 0)
    assert [f"{path.stem}.png" for path in pictures.paths] == list(pictures.names) != sorted(pictures.names)
    texts = study_inputs(["one", "two", "three", "four"], None, None, 0)
    assert [["one", "two", "three", "four"][int(name)] for name in texts.names] == list(texts.texts)


@pytest.mark.parametrize("seed", [-1, 0.5, "a"])
def test_a_seed_that_is_none(seed):
    with pytest.raises((TypeError, ValueError), match="`shuffle`"):
        study_inputs(np.ones((3, 2)), None, None, seed)


def test_names_sort_as_numbers():
    names = study_inputs(np.zeros((11, 2)), None, None).names
    assert names == tuple(sorted(names)) == tuple(f"{index:02d}" for index in range(11))


def test_a_digest_depends_on_every_number_the_dtype_and_the_shape():
    changed = ROWS.copy()
    changed[1, 2] = np.nextafter(changed[1, 2], 99)
    digests = {
        study_inputs(inputs, None, None).digest(1)
        for inputs in (ROWS, changed, ROWS.astype(np.float32), ROWS[:, :, None], ROWS[:, None])
    }
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"x": ROWS}, TypeError, "`inputs` must be a folder of pictures, .* got dict"),
        ({1, 2}, TypeError, "got set"),
        (3, TypeError, "got int"),
        (None, TypeError, "got NoneType"),
        ([], ValueError, "`inputs` is empty"),
        (np.zeros((0, 3)), ValueError, "`inputs` is empty"),
        (ROWS[0], ValueError, r"`inputs` must have a batch axis and features, got an array of shape \(3,\)"),
    ],
)
def test_inputs_of_no_known_kind(inputs, error, message):
    with pytest.raises(error, match=message):
        study_inputs(inputs, None, None)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            DataSet(lambda row: (row, 3)),
            r"`inputs\[2\]` must be an array, got tuple: if the data set holds pairs, give only the arrays",
        ),
        (DataSet(lambda row: {"image": row}), r"`inputs\[2\]` must be an array, got dict"),
        (DataSet(lambda row: None), r"`inputs\[2\]` must be an array"),
    ],
)
def test_an_input_that_is_no_array_is_named(inputs, message):
    data = study_inputs(inputs, None, None)
    with pytest.raises(TypeError, match=message):
        data.load(2, None)
    with pytest.raises(TypeError, match=message):
        data.digest(2)


# Targets


@pytest.mark.parametrize(
    "targets", [[0, 3, None, 1], (0, 3, None, 1), np.array([0, 3, 2, 1]), torch.tensor([0, 3, 2, 1])]
)
def test_targets_one_an_input(targets):
    found = study_inputs(ROWS, targets, None).targets
    assert found[:2] == (0, 3)
    assert len(found) == 4
    assert all(type(target) is int or target is None for target in found)
    assert study_inputs(ROWS, targets, 2).targets == (0, 3)  # of all inputs
    assert study_inputs(ROWS, targets[:2], 2).targets == (0, 3)  # of those that are taken


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        ([0, 1], ValueError, "`targets` must hold one class index for each of the 4 inputs, got 2"),
        ([0] * 5, ValueError, "`targets` must hold one class index for each of the 4 inputs, got 5"),
        (3, TypeError, "`targets` must be a sequence with one class index for each input, got 3"),
        ("0123", TypeError, "`targets` must be a sequence .*, got '0123'"),
        ([0, 1, -1, 2], ValueError, r"`targets\[2\]` must be at least 0, got -1"),
        ([0, 1, 1.5, 2], TypeError, r"`targets\[2\]` must be an integer, got float: 1.5"),
        ([0, True, 1, 2], TypeError, r"`targets\[1\]` must be an integer, got bool"),
        (np.array([0.0, 1, 2, 3]), TypeError, r"`targets\[0\]` must be an integer, got float"),
    ],
)
def test_targets_that_do_not_fit(targets, error, message):
    with pytest.raises(error, match=message):
        study_inputs(ROWS, targets, None)


TEXTS = ["a dull film", ["a", "warm", "film"], "one good joke"]


@pytest.mark.parametrize("inputs", [TEXTS, tuple(TEXTS), iter(TEXTS)])
def test_texts(inputs):
    data = study_inputs(inputs, [1, None, 0], None)
    assert isinstance(data, Texts)
    assert data.names == ("0", "1", "2")
    assert data.targets == (1, None, 0)
    assert [data.load(index, None) for index in range(3)] == TEXTS
    assert len({data.digest(index) for index in range(3)}) == 3
    assert data.digest(0) == study_inputs(TEXTS[:1], None, None).digest(0)


def test_an_index_of_texts(tmp_path):
    path = tmp_path / "index.csv"
    path.write_text('text,target\n"a dull, lifeless film",0\none good joke,\n', encoding="utf-8")
    data = study_inputs(path, None, None)
    assert isinstance(data, Texts)
    assert data.texts == ("a dull, lifeless film", "one good joke")
    assert data.targets == (0, None)
    assert len(study_inputs(path, None, 1)) == 1


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (["a film", 3], TypeError, r"`inputs\[1\]` must be a text or a list of tokens like the first, got 3"),
        (["a film", "..."], ValueError, r"`inputs\[1\]`: .*the text '...' holds no words"),
        (["a film", ["a", ""]], ValueError, r"`inputs\[1\]`: .*a list of tokens must not hold empty ones"),
        (["a.png", "b.JPG"], ValueError, r"holds names of pictures \('a.png', ...\): give a folder"),
    ],
)
def test_what_is_no_text(inputs, error, message):
    with pytest.raises(error, match=message):
        study_inputs(inputs, None, None)


def test_an_index_of_texts_without_words(tmp_path):
    (tmp_path / "index.csv").write_text("text,target\na film,0\n,1\n")
    with pytest.raises(ValueError, match=r"index\.csv: `inputs\[1\]`: .*the text '' holds no words"):
        study_inputs(tmp_path / "index.csv", None, None)
    (tmp_path / "index.csv").write_text("text,path\na film,a.png\n")
    with pytest.raises(ValueError, match=r"must have a column 'path' \(pictures\) or 'text', it has text, path"):
        study_inputs(tmp_path / "index.csv", None, None)
