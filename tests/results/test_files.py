"""Saving and loading: exact, all or nothing, and hard on folders that somebody else wrote."""

import gc
import json
import os
import pickle
import resource
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import metfa
from metfa.results import files, manifests
from metfa.results.arrays import digest_of
from metfa.results.sample import AttributionSample

rng = np.random.default_rng(0)
INPUTS = {
    "array": rng.random((2, 3, 4)),
    "tuple": (rng.integers(0, 9, (2, 5)), rng.random((2, 3)) > 0.5),
    "dict": {"tokens": rng.integers(0, 9, (2, 5)), "mask/../x": np.ones((2, 5), dtype=np.int8)},
    "texts": ["plain", "ünï\ncode \ud800 \x00"],
    "tokens": [["plain", "words"], ["ünï\ncode", ""]],
    "complex": rng.random((2, 3)) + 1j,
    "strings": np.array(["one", "two"]),
    "dates": np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]"),
    "big-endian": rng.random((2, 3)).astype(">f4"),
    "fortran": np.asfortranarray(rng.random((2, 3, 4))),
}


def make(n=6, batch=2, shape=(3, 4), dtype=np.float32, **fields):
    values = np.random.default_rng(1).random((n, batch, *shape)).astype(dtype)
    defaults = {
        "inputs": INPUTS["array"],
        "target": (3, 1),
        "vanilla": values[0].copy(),
        "scores": np.random.default_rng(2).random((batch, 5)),
        "predictions": np.zeros((n, batch), dtype=np.int64),
        "sample_ids": tuple(range(4, 4 + n)),
        "input_names": tuple(f"id{row}" for row in range(batch)),
        "provenance": {"explainer": "E", "noise": "N", "rng": "0x1", "seconds": 1.5, "versions": {"numpy": "2"}},
    }
    return AttributionSample(values=values, **{**defaults, **fields})


def parts(inputs):
    return (
        list(inputs.values()) if isinstance(inputs, dict) else list(inputs) if isinstance(inputs, tuple) else [inputs]
    )


def assert_same(a, b):
    for name in ("values", "vanilla", "scores", "predictions"):
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    for name in ("target", "sample_ids", "input_names", "feature_names", "provenance"):
        assert getattr(a, name) == getattr(b, name)
    assert type(a.inputs) is type(b.inputs)
    if isinstance(a.inputs, list):
        assert a.inputs == b.inputs
    else:
        assert not isinstance(a.inputs, dict) or list(a.inputs) == list(b.inputs)
        for one, other in zip(parts(a.inputs), parts(b.inputs), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def saved(tmp_path):
    return make().save(tmp_path / "saved")


def edit(folder, change):
    """Rewrite the manifest as an attacker could."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


# Round trips


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_of_every_kind_come_back(kind, tmp_path):
    sample = make(inputs=INPUTS[kind])
    assert_same(metfa.load(sample.save(tmp_path / "s")), sample)


@pytest.mark.parametrize(
    "fields",
    [
        {"target": ((1, 2), (0, 3))},
        {"target": (None, None)},
        {"scores": None, "predictions": None},
        {"feature_names": tuple("abcd"), "shape": (4,)},
        {"dtype": np.float16},
        {"dtype": np.float64},
        {"n": 1, "batch": 1, "shape": (1,), "inputs": np.zeros((1, 1)), "target": (0,)},
        {"shape": (2, 3, 4)},
        {"shape": (0,)},
        {"provenance": {}},
    ],
)
def test_fields_of_every_kind_come_back(fields, tmp_path):
    sample = make(**fields)
    assert_same(metfa.load(sample.save(tmp_path / "s")), sample)


def test_a_loaded_sample_is_saved_again(saved, tmp_path):
    first = metfa.load(saved)
    again = first.save(tmp_path / "again")
    assert_same(metfa.load(again), first)
    assert (again / "values.npy").read_bytes() == (saved / "values.npy").read_bytes()


def test_samples_are_mapped_and_read_only(saved):
    sample = metfa.load(saved)
    assert isinstance(sample.values, np.memmap)
    for array in (sample.values, sample.vanilla, sample.scores, sample.predictions, sample.inputs):
        assert not array.flags.writeable


@pytest.mark.slow
def test_more_results_than_files_may_be_open(saved):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        held = [metfa.load(saved) for _ in range(400)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len({float(sample.values.sum()) for sample in held}) == 1


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="it shows which files are mapped")
def test_a_file_is_mapped_as_long_as_its_samples_are_used(saved):
    def mapped():
        return Path("/proc/self/maps").read_text().count(str(saved / "values.npy"))

    sample = metfa.load(saved)
    row = sample.values[2, 1]
    expected = row.copy()
    del sample
    gc.collect()
    np.testing.assert_array_equal(row, expected)
    assert mapped() == 1
    del row
    gc.collect()
    assert mapped() == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scores": np.zeros((2, 0))}, r"`scores` must be numbers for one or more classes, got float64 \(2, 0\)"),
        ({"scores": np.full((2, 3), np.nan)}, "`scores` holds NaN"),
        ({"vanilla": np.full((2, 3, 4), np.inf)}, "`vanilla` holds NaN or infinity"),
        ({"provenance": {"seconds": "soon"}}, r"`provenance\['seconds'\]` must be a finite number, .*got str: 'soon'"),
        ({"provenance": {"versions": 5}}, r"`provenance\['versions'\]` must be texts by name, got int: 5"),
        ({"feature_names": ("a", "b")}, "`feature_names` does not fit values of shape"),
    ],
)
def test_what_could_not_be_read_back_is_not_saved(fields, message, tmp_path):
    with pytest.raises(ValueError, match=f"{message}.*, so the result cannot be saved"):
        make(**fields).save(tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_bytes_are_no_inputs(tmp_path):
    with pytest.raises(TypeError, match=r"to be saved, got an array of \|S3"):
        make(inputs=np.array([b"one", b"two"])).save(tmp_path / "s")


def test_loading_takes_no_room_for_the_samples(tmp_path):
    sample = make(n=200, batch=1, shape=(200, 200), inputs=np.zeros((1, 2)), target=(0,))  # 32 MB
    path = sample.save(tmp_path / "s")
    del sample
    tracemalloc.start()
    metfa.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


def test_statistics_of_a_loaded_sample_are_the_same(saved):
    np.testing.assert_array_equal(metfa.load(saved).significance_map(0.5), make().significance_map(0.5))


def test_the_files_are_plain_npy(saved):
    np.testing.assert_array_equal(np.load(saved / "values.npy", allow_pickle=False), make().values)
    assert sorted(p.name for p in saved.iterdir()) == [
        *("inputs_0.npy", "manifest.json", "predictions.npy", "scores.npy", "values.npy", "vanilla.npy")
    ]


def test_the_folder_has_the_usual_permissions(saved, tmp_path):
    (tmp_path / "plain").mkdir()
    assert saved.stat().st_mode == (tmp_path / "plain").stat().st_mode


# Where it is saved


def test_relative_and_home_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    make().save("new/er/folder")
    make().save("~/result")
    assert (tmp_path / "new/er/folder/manifest.json").exists()
    assert (tmp_path / "home/result/manifest.json").exists()
    assert_same(metfa.load("~/result"), metfa.load("new/er/folder"))


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link", "saved"])
def test_nothing_is_overwritten(kind, tmp_path):
    path = tmp_path / "there"
    {
        "folder": path.mkdir,
        "file": lambda: path.write_text("mine"),
        "dangling link": lambda: path.symlink_to(tmp_path / "nowhere"),
        "saved": lambda: make(n=7).save(path),
    }[kind]()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileExistsError, match=r"`path` exists already: .*there; choose a new folder"):
        make().save(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_path_below_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        make().save(tmp_path / "file" / "s")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("broken", ["write_array", "write_json", "describe_array"])
def test_a_failure_midway_leaves_nothing(broken, error, tmp_path, monkeypatch):
    calls = []
    real = getattr(files, broken)

    def fails(*args, **kwargs):
        calls.append(args)
        if len(calls) > 1 or broken == "write_json":
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(files, broken, fails)
    with pytest.raises(type(error)):
        make().save(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_appears_meanwhile_is_left_alone(tmp_path, monkeypatch):
    real = files.write_manifest

    def slow(folder, sample):
        real(folder, sample)
        (tmp_path / "s").mkdir()

    monkeypatch.setattr(files, "write_manifest", slow)
    with pytest.raises(FileExistsError, match="`path` exists already"):
        make().save(tmp_path / "s")
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"inputs": [object(), "text"]},
            "`inputs` must be arrays or a list of texts or of tokens to be saved, got a list of object",
        ),
        ({"inputs": np.array([object(), None])}, "to be saved, got an array of object"),
        ({"inputs": np.zeros(2, dtype=[("a", "f4")])}, "to be saved, got an array of \\[\\('a', '<f4'\\)\\]"),
        ({"inputs": {1: np.zeros((2, 3))}}, "a dict with text keys to be saved, got \\[1\\]"),
        ({"inputs": "text"}, "to be saved, got str"),
        ({"target": ("cat", "dog")}, "`target` must be integers or tuples of integers to be saved, got str"),
        ({"target": (np.zeros((2, 2)),) * 2}, "to be saved, got ndarray"),
        ({"target": (0.5, 0.5)}, "to be saved, got float"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_anything_is_written(fields, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        make(**fields).save(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_more_text_than_is_read_back_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "MAX_JSON_BYTES", 1000)
    with pytest.raises(ValueError, match=r"inputs.json would have \d+ bytes, more than the 1000"):
        make(inputs=["x" * 600, "y" * 600]).save(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


# Damaged folders


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*nowhere"):
        metfa.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*file"):
        metfa.load(tmp_path / "file")


def test_a_folder_without_manifest(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} is not a saved result: it has no manifest.json"):
        metfa.load(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(
        ValueError, match=f"unfinished run: to resume it, repeat the call with `run=metfa.Run\\(store='{tmp_path}'\\)`"
    ):
        metfa.load(tmp_path)


@pytest.mark.parametrize("name", ["values", "vanilla", "scores", "predictions", "inputs_0"])
@pytest.mark.parametrize("damage", ["truncated", "padded", "empty", "flipped", "missing", "renamed", "link", "folder"])
def test_a_damaged_array_is_named(name, damage, saved, tmp_path):
    path = saved / f"{name}.npy"
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-1])
    elif damage == "padded":
        path.write_bytes(content + b"\0")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "flipped":
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    elif damage == "renamed":
        (saved / f"{name}.bak.npy").write_bytes(content)
    elif damage == "link":
        (tmp_path / "elsewhere.npy").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere.npy")
    elif damage == "folder":
        path.mkdir()
    says = {
        "truncated": "is truncated or padded: .* bytes, .* expected",
        "padded": "is truncated or padded",
        "empty": "is no array file",
        "flipped": "was changed after it was saved",
        "missing": "is missing: the folder is incomplete",
        "renamed": "is missing",
        "link": "is a link or no plain file, and is not followed",
        "folder": "is a link or no plain file",
    }[damage]
    with pytest.raises(ValueError, match=f"{name}.npy {says}"):
        metfa.load(saved)


def test_every_byte_of_a_header_matters(saved):
    path = saved / "vanilla.npy"
    content = path.read_bytes()
    for position in range(128):
        for flip in (1, 0x55):
            path.write_bytes(content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :])
            with pytest.raises(ValueError, match=r"vanilla\.npy"):
                metfa.load(saved)


def test_arrays_that_changed_places_are_noticed(saved):
    a, b = saved / "vanilla.npy", saved / "inputs_0.npy"
    contents = a.read_bytes(), b.read_bytes()
    a.write_bytes(contents[1])
    b.write_bytes(contents[0])
    with pytest.raises(ValueError, match=r"vanilla.npy holds float64"):
        metfa.load(saved)


def test_changed_texts_are_noticed(tmp_path):
    folder = make(inputs=["one", "two"]).save(tmp_path / "s")
    (folder / "inputs.json").write_text('["one", "owt"]')
    with pytest.raises(ValueError, match=r"inputs.json was changed after it was saved"):
        metfa.load(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "manifest.json is damaged: Expecting value"),
        ("{", "manifest.json is damaged"),
        ("[]", "manifest.json is damaged: an object is needed, got list"),
        ("null", "an object is needed, got NoneType"),
        ("{}", "schema version None; this metfa reads version 1"),
        ('{"schema_version": 2}', "schema version 2"),
        ('{"schema_version": "1"}', "schema version '1'"),
        ('{"schema_version": 1}', "is damaged: KeyError at 'arrays'"),
        ("[" * 200_000, "manifest.json is damaged"),
        ('{"schema_version": ' + "9" * 5000 + "}", "manifest.json is damaged"),
        ("\xff", "manifest.json is damaged: .*codec can't decode"),
    ],
)
def test_manifests_that_are_none(text, message, saved):
    (saved / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message) as caught:
        metfa.load(saved)
    assert len(str(caught.value)) < 600


def test_a_huge_manifest_is_not_read(saved):
    with (saved / "manifest.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match=r"manifest.json has 1099511627776 bytes, more than the 67108864 allowed"):
        metfa.load(saved)


@pytest.mark.parametrize("link", ["manifest.json", "values.npy"])
def test_links_are_not_followed(link, saved, tmp_path):
    (saved / link).rename(tmp_path / link)
    (saved / link).symlink_to(tmp_path / link)
    with pytest.raises(ValueError, match=f"{link} is a link or no plain file"):
        metfa.load(saved)


def test_pipes_are_not_waited_for(saved):
    (saved / "values.npy").unlink()
    os.mkfifo(saved / "values.npy")
    with pytest.raises(ValueError, match=r"values.npy is a link or no plain file"):
        metfa.load(saved)


WRONG = [1, 1.5, "x", [], {}, None, True, [1, 2], ["a", "b"], {"a": 1}, [[1], [2]], 1e999, float("nan"), -1]


@pytest.mark.parametrize(
    "place",
    [
        ("arrays",),
        ("arrays", "values"),
        ("arrays", "values", "dtype"),
        ("arrays", "values", "shape"),
        ("arrays", "values", "digest"),
        ("arrays", "vanilla"),
        ("arrays", "predictions", "shape"),
        ("inputs",),
        ("inputs", "kind"),
        ("inputs", "keys"),
        ("target",),
        ("sample_ids",),
        ("input_ids",),
        ("feature_names",),
        ("provenance",),
    ],
    ids="-".join,
)
def test_manifests_with_entries_of_a_wrong_kind(place, saved):
    original = (saved / "manifest.json").read_text()
    allowed = {
        ("target",): ([1, 2], [[1], [2]]),
        ("input_ids",): (["a", "b"],),
        ("feature_names",): (None,),
        ("provenance",): ({}, {"a": 1}),
    }.get(place, ())
    for wrong in [*WRONG, ...]:
        (saved / "manifest.json").write_text(original)

        def change(manifest, wrong=wrong):
            for name in place[:-1]:
                manifest = manifest[name]
            if wrong is ...:
                del manifest[place[-1]]
            else:
                manifest[place[-1]] = wrong

        edit(saved, change)
        if any(wrong is a or (type(wrong) is type(a) and wrong == a) for a in allowed):
            metfa.load(saved)
            continue
        with pytest.raises(ValueError, match=r"manifest\.json|\.npy"):
            metfa.load(saved)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sample_ids", [4, 5, 6, 7, 8, 8]),
        ("sample_ids", [4, 5, 6, 7, 8, 9, 10]),
        ("sample_ids", [4, 5, 6, 7, 8, -9]),
        ("sample_ids", [4, 5, 6, 7, 8, True]),
        ("sample_ids", ["4", "5", "6", "7", "8", "9"]),
        ("input_ids", ["a"]),
        ("target", [1, 2, 3]),
        ("target", [1, "x"]),
        ("target", [1, [2, [3]]]),
        ("feature_names", [1, 2]),
    ],
)
def test_manifests_whose_parts_do_not_fit(name, wrong, saved):
    edit(saved, lambda manifest: manifest.update({name: wrong}))
    with pytest.raises(ValueError, match=r"manifest.json is damaged: .*(does not fit values of shape|TypeError)"):
        metfa.load(saved)


@pytest.mark.parametrize(
    "shape", [[10**6, 2, 3, 4], [2**62, 2**62], [10**400], [10**9] * 10**5, [-1, 2, 3, 4], [6, 2, 3, 4.0]]
)
def test_absurd_shapes_take_no_room_and_no_time(shape, saved):
    edit(saved, lambda manifest: manifest["arrays"]["values"].update(shape=shape))
    tracemalloc.start()
    with pytest.raises(
        ValueError, match=r"manifest\.json is damaged: values has the shape|values\.npy holds"
    ) as caught:
        metfa.load(saved)
    assert len(str(caught.value)) < 600
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * 2**20


def test_inputs_of_another_length_are_noticed(tmp_path):
    folder = make().save(tmp_path / "s")
    forge(folder, "inputs_0", lambda file: np.save(file, np.zeros((3, 3, 4))))
    edit(folder, lambda manifest: manifest["arrays"]["inputs_0"].update(shape=[3, 3, 4]))
    with pytest.raises(ValueError, match=r"inputs does not fit values of shape \(6, 2, 3, 4\)"):
        metfa.load(folder)


def forge(folder, name, write):
    """Replace an array by anything, with a manifest that agrees as far as it can."""
    path = folder / f"{name}.npy"
    with path.open("wb") as file:
        write(file)
    edit(folder, lambda manifest: manifest["arrays"][name].update(digest=digest_of(path)))


@pytest.mark.parametrize("name", ["values", "inputs_0"])
@pytest.mark.parametrize("dtype", ["|O", "O", "object"])
def test_pickles_are_never_opened(dtype, name, saved, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    bombs = np.empty((6, 2, 3, 4), dtype=object)
    bombs[...] = Bomb()
    forge(saved, name, lambda file: np.save(file, bombs, allow_pickle=True))
    edit(saved, lambda manifest: manifest["arrays"][name].update(dtype=dtype, shape=[6, 2, 3, 4]))
    with pytest.raises(ValueError, match=f"manifest.json is damaged: {name} has the dtype object"):
        metfa.load(saved)
    edit(saved, lambda manifest: manifest["arrays"][name].update(dtype="<f4"))
    with pytest.raises(ValueError, match=f"{name}.npy holds object"):
        metfa.load(saved)
    forge(saved, name, lambda file: pickle.dump(Bomb(), file))
    with pytest.raises(ValueError, match=f"{name}.npy is no array file"):
        metfa.load(saved)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'fortran_order': True, 'shape': (6, 2, 3, 4)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 2, 3, 4)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"9" * 5000 + b",)}",
        b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6, 2, 3, 4)}",
        b"__import__('os').system('true')",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 2, 3, 4)",
        b"(" * 5000,
        b"{" * 100 + b"'",
        b"\x00\xff",
        b"",
    ],
)
def test_hostile_headers(header, saved):
    def write(file):
        padded = header + b" " * 8 + b"\n"
        file.write(b"\x93NUMPY\x02\x00" + len(padded).to_bytes(4, "little") + padded + make().values.tobytes())

    forge(saved, "values", write)
    with pytest.raises(ValueError, match=r"values\.npy (is no array file|holds)"):
        metfa.load(saved)


def test_names_in_a_manifest_are_no_paths_and_import_nothing(saved, monkeypatch, tmp_path):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))

    def change(manifest):
        manifest["arrays"]["../../etc/passwd"] = {"dtype": "<f4", "shape": [1], "digest": "x"}
        manifest["provenance"]["explainer"] = "evil_module:run"
        manifest["provenance"]["noise"] = "evil_module.Noise"
        manifest["evil"] = {"__reduce__": "os.system"}

    edit(saved, change)
    sample = metfa.load(saved)
    assert sample.provenance["explainer"] == "evil_module:run"
    assert "evil_module" not in sys.modules


def test_loading_imports_neither_torch_nor_matplotlib(saved):
    code = f"""
        import sys, metfa
        metfa.load({str(saved)!r}).summary(0.5)
        assert not {{"torch", "matplotlib"}} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=600)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize("locked", ["folder", "values.npy", "manifest.json"])
def test_unreadable_files_are_the_systems_errors(locked, saved):
    """As a user without rights: an OSError that names the file, no traceback from deep inside."""
    for folder in (*saved.parents[:-2], saved):
        folder.chmod(0o755)
    (saved if locked == "folder" else saved / locked).chmod(0)
    code = f"""
        import os, metfa
        metfa.load
        os.setgid(65534); os.setuid(65534)
        try:
            metfa.load({str(saved)!r})
        except (OSError, ValueError) as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=600, check=False
    )
    (saved if locked == "folder" else saved / locked).chmod(0o755)
    assert done.stderr == ""
    assert "PermissionError" in done.stdout
    assert (saved.name if locked == "folder" else locked) in done.stdout
