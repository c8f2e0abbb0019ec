"""Samples streamed to a folder: the same numbers as in memory, whatever interrupts the run, and little memory."""

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa.results import decisions
from metfa.results import sample as result

INPUTS = np.linspace(0.2, 0.8, 24).reshape(2, 3, 4)
N = 9


class Explainer:
    """Squares, with scores; counts its calls and may fail at one of them."""

    rows_independent = True

    def __init__(self, weight=1.0, stop_at=None, error=KeyboardInterrupt):
        self.weight, self.stop_at, self.error, self.rows = weight, stop_at, error, 0

    def __call__(self, inputs, target):
        self.rows += len(inputs)
        if self.stop_at is not None and self.rows > self.stop_at:
            raise self.error
        return self.weight * inputs**2, inputs.reshape(len(inputs), -1)[:, :3]


def run(store, explainer=None, **settings):
    return metfa.explain(
        explainer or Explainer(),
        settings.pop("inputs", INPUTS),
        settings.pop("target", 1),
        **{
            "noise": metfa.noise.Uniform(0.1),
            "n_samples": N,
            "batch_size": 4,
            "rng": 0,
            "predict": lambda inputs: inputs.reshape(len(inputs), -1)[:, :3],
            "run": metfa.Run(store=store, first_sample=settings.pop("first_sample", 0)),
            **settings,
        },
    )


def contents(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("started", "seconds", "maps_made"):
        del manifest["provenance"][name]
    return {**files, "manifest.json": manifest}


def interrupted(folder, stop_at=12):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Explainer(stop_at=stop_at))
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "store"
    run(folder)
    return folder


def test_the_numbers_are_those_of_a_run_in_memory(tmp_path):
    stored, kept = run(tmp_path / "s"), run(None)
    for name in ("values", "vanilla", "scores", "predictions", "inputs"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(kept, name))
        assert getattr(stored, name).dtype == getattr(kept, name).dtype
    for name in ("target", "sample_ids", "input_names"):
        assert getattr(stored, name) == getattr(kept, name)
    np.testing.assert_array_equal(stored.flip_rate, kept.flip_rate)
    assert 0 < stored.flip_rate.max() < 1
    np.testing.assert_array_equal(stored.significance_map(), kept.significance_map())


def test_the_result_is_the_folder_read_again(tmp_path):
    stored = run(tmp_path / "s")
    again = metfa.load(tmp_path / "s")
    assert isinstance(stored.values, np.memmap)
    np.testing.assert_array_equal(stored.values, again.values)
    assert stored.provenance == again.provenance
    assert not {"run.json", "done.bin"} & {path.name for path in (tmp_path / "s").iterdir()}
    copy = metfa.load(stored.save(tmp_path / "copy"))
    np.testing.assert_array_equal(copy.values, stored.values)


def test_an_explainer_without_scores(tmp_path):
    sample = run(tmp_path / "s", lambda inputs, target: inputs**2, predict=None)
    assert (sample.scores, sample.predictions, sample.flip_rate) == (None, None, None)


def test_home_and_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    run("a/b")
    run("~/c")
    assert (tmp_path / "a/b/manifest.json").exists()
    assert (tmp_path / "home/c/manifest.json").exists()


def test_precision_of_the_clean_map_is_kept_for_all(tmp_path):
    """An explainer whose single rows are float64 and whose batches are float32 must not shift the file's rows."""

    def explainer(inputs, target):
        return (inputs**2).astype(np.float64 if len(inputs) == 1 else np.float32)

    explainer.rows_independent = True
    arguments = {"inputs": INPUTS[:1], "n_samples": 6, "predict": None}
    stored, kept = run(tmp_path / "s", explainer, **arguments), run(None, explainer, **arguments)
    assert stored.values.dtype == np.float64
    np.testing.assert_array_equal(stored.values, kept.values)


# Interrupted and resumed


@pytest.mark.parametrize("batch_size", [1, 4, 50])
@pytest.mark.parametrize("stop_at", [0, 1, 2, 5, 10, 19])
def test_an_interrupted_run_resumes(stop_at, batch_size, tmp_path, whole):
    folder = interrupted(tmp_path / "s", stop_at)
    if stop_at > 2:
        with pytest.raises(
            ValueError,
            match=rf"{folder} holds an unfinished run: to resume it, repeat the call with `run=metfa.Run\(store=",
        ):
            metfa.load(folder)
    explainer = Explainer()
    run(folder, explainer, batch_size=batch_size)
    expected, found = contents(whole), contents(folder)
    del expected["manifest.json"]["provenance"]["batch_size"], found["manifest.json"]["provenance"]["batch_size"]
    assert found == expected
    done = max(0, (stop_at - 2) // 4 * 4)  # two clean maps come first, then batches of four
    assert explainer.rows == 2 + 2 * N - done


def test_a_run_interrupted_twice_resumes(tmp_path, whole):
    folder = interrupted(interrupted(tmp_path / "s", 8), 8)
    explainer = Explainer()
    run(folder, explainer)
    assert contents(folder) == contents(whole)
    assert explainer.rows == 2 + 2 * N - 8


def test_a_fresh_seed_is_kept_for_resuming(tmp_path):
    folder = tmp_path / "s"
    with pytest.raises(KeyboardInterrupt):
        run(folder, Explainer(stop_at=12), rng=None)
    root = json.loads((folder / "run.json").read_text())["rng"]
    sample = run(folder, rng=None)
    assert sample.provenance["rng"] == root
    np.testing.assert_array_equal(sample.values, run(None, rng=int(root, 16)).values)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    import numpy as np
    import metfa, test_store
    from metfa.results import files
    from metfa.sampling import store

    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    class Dies(test_store.Explainer):
        def __call__(self, inputs, target):
            output = super().__call__(inputs, target)
            if self.rows > 10:
                die()
            return output

    Dies.__qualname__ = Dies.__name__ = "Explainer"
    explainer = test_store.Explainer()

    def before(owner, name, count=1):
        real, calls = getattr(owner, name), []
        def wrapped(*args, **kwargs):
            calls.append(args)
            if len(calls) == count:
                die()
            return real(*args, **kwargs)
        setattr(owner, name, wrapped)

    point = {point!r}
    if point == "explainer":
        explainer = Dies()
    elif point == "before run.json":
        before(Path, "replace")
    elif point == "after run.json":
        before(store.StoreSink, "_new_array")
    elif point == "values not yet whole":
        before(Path, "replace", 2)
    elif point == "before done.bin":
        before(Path, "replace", 3)
    elif point == "half a batch":
        def half(self, name, shape, jobs, rows, _real=store.StoreSink._write_rows):
            _real(self, name, shape, jobs[:1], rows[:1])
            die()
        store.StoreSink._write_rows = half
    elif point == "maps without done":
        before(store.StoreSink, "_write_rows", 4)
    elif point == "before scores":
        before(store.np, "save", 2)
    elif point == "before the manifest":
        before(store, "write_manifest")
    elif point == "manifest not yet whole":
        before(files, "write_json")
    elif point == "before the tidying":
        before(Path, "unlink")
    test_store.run(Path({folder!r}), explainer)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "computed"),
    [
        ("explainer", 8),
        ("before run.json", 0),
        ("after run.json", 0),
        ("values not yet whole", 0),
        ("before done.bin", 0),
        ("half a batch", 0),
        ("maps without done", 4),
        ("before scores", 2 * N),
        ("before the manifest", 2 * N),
        ("manifest not yet whole", 2 * N),
        ("before the tidying", None),
    ],
)
def test_a_killed_run_resumes(point, computed, tmp_path, whole):
    folder = tmp_path / "s"
    code = textwrap.dedent(KILLED).format(point=point, folder=str(folder), tests=str(Path(__file__).parent))
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if computed is None:  # all was done but for two files that nobody reads
        assert (metfa.load(folder).values == metfa.load(whole).values).all()
        with pytest.raises(FileExistsError, match="`store` already holds a finished result"):
            run(folder)
        return
    explainer = Explainer()
    run(folder, explainer)
    assert contents(folder) == contents(whole)
    assert explainer.rows == 2 + 2 * N - computed


# Another call, another folder


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_samples": 10}, "with n_samples=9, this call has 10"),
        ({"first_sample": 5}, "with first_sample=0, this call has 5"),
        ({"rng": 1}, "with rng=0x0, this call has 0x1"),
        ({"noise": metfa.noise.Uniform(0.2)}, r"with noise=Uniform\(radius=0.1, .*this call has Uniform\(radius=0.2"),
        ({"target": 2}, r"with target=\(1, 1\), this call has \(2, 2\)"),
        ({"inputs": INPUTS + 0.01}, "with input_ids="),
        ({"explainer": lambda inputs, target: inputs**2}, "with explainer=Explainer, this call has .*lambda"),
        ({"explainer": Explainer(weight=1.1)}, "of another model: the clean input's attributions differ"),
    ],
)
def test_a_changed_call_is_not_resumed(changed, message, tmp_path):
    folder = interrupted(tmp_path / "s")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=message):
        run(folder, **changed)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_features_of_another_shape_are_not_resumed(tmp_path):
    folder = interrupted(tmp_path / "s")

    class Other(Explainer):
        def __call__(self, inputs, target):
            return super().__call__(inputs, target)[0][:, :2], None

    Other.__qualname__ = Other.__name__ = "Explainer"
    with pytest.raises(ValueError, match=r"values.npy holds float64 \(9, 2, 3, 4\), expected float64 \(9, 2, 2, 4\)"):
        run(folder, Other())


def test_a_finished_store_is_kept(tmp_path):
    folder = tmp_path / "s"
    run(folder)
    before = contents(folder)
    with pytest.raises(FileExistsError, match=f"finished result: metfa.load\\('{folder}'\\) reads it; give another"):
        run(folder)
    assert contents(folder) == before


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"`store` holds files, but no unfinished run: .*give a new or empty"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(FileExistsError, match=r"`store` must be a folder, but .*mine\.txt is a file"):
        run(tmp_path / "mine.txt")
    with pytest.raises(OSError, match=r"mine.txt"):
        run(tmp_path / "mine.txt" / "below")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_an_empty_folder_is_used(tmp_path):
    assert run(tmp_path).n_samples == N


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "run.json is damaged"),
        ("{", "run.json is damaged"),
        ("[]", "run.json is damaged and cannot be resumed"),
        ('"rng"', "run.json is damaged and cannot be resumed"),
        ("{}", "run.json is damaged and cannot be resumed: give another folder"),
        ('{"rng": 5}', "run.json is damaged and cannot be resumed"),
        ('{"rng": "zz"}', "run.json is damaged and cannot be resumed"),
        ('{"rng": "0x0"}', "with explainer=None, this call has Explainer"),
        ("[" * 100_000, "run.json is damaged"),
    ],
)
def test_a_damaged_description_is_named(text, message, tmp_path):
    folder = interrupted(tmp_path / "s")
    (folder / "run.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        run(folder)


@pytest.mark.parametrize("length", [1, 17, 19, 1000])
def test_a_progress_file_of_a_wrong_length_is_named(length, tmp_path):
    folder = interrupted(tmp_path / "s")
    (folder / "done.bin").write_bytes(b"\1" * length)
    with pytest.raises(ValueError, match=f"done.bin is damaged.*: it has {length} bytes for 18 maps; give another"):
        run(folder)


@pytest.mark.parametrize("name", ["values.npy", "vanilla.npy"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "empty", "link"])
def test_damaged_files_are_named(damage, name, tmp_path):
    folder = interrupted(tmp_path / "s")
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-5])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "link":
        (tmp_path / name).write_bytes(content)
        path.symlink_to(tmp_path / name)
    says = {"missing": "is missing", "truncated": "is truncated", "empty": "is no array file", "link": "is a link"}
    with pytest.raises(ValueError, match=f"{name} {says[damage]}"):
        run(folder)


def test_a_linked_progress_file_is_not_written_through(tmp_path):
    folder = interrupted(tmp_path / "s")
    (folder / "done.bin").rename(tmp_path / "elsewhere")
    (folder / "done.bin").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"done.bin is a link or no plain file"):
        run(folder)


def test_targets_that_could_not_be_saved_are_refused_before_sampling(tmp_path):
    explainer = Explainer()
    with pytest.raises(TypeError, match="`target` must be integers or tuples of integers to be saved, got ndarray"):
        run(tmp_path / "s", explainer, target=[np.zeros((2, 2)), np.zeros((2, 2))])
    assert explainer.rows <= 2


# Memory

MEASURED = """
    import sys, threading, time
    import numpy as np
    import metfa

    def anonymous():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    def explainer(inputs, target):
        return np.abs(inputs)

    explainer.rows_independent = True
    peak, stop = [0], threading.Event()

    def watch():
        while not stop.is_set():
            peak[0] = max(peak[0], anonymous())
            time.sleep(0.001)

    def go(n, folder, side):
        sample = metfa.explain(
            explainer, np.full((1, side, side), 0.5, np.float32), 0, noise=metfa.noise.Uniform(0.1),
            n_samples=n, rng=0, run=metfa.Run(store=folder),
        )
        sample.threshold()
        sample.significance_map()
        sample.confidence_interval()
        sample.smoothed()
        sample.mean()
        sample.std()

    go(7, sys.argv[2] + "-warm", 8)
    watcher = threading.Thread(target=watch)
    start = anonymous()
    watcher.start()
    go(int(sys.argv[1]), sys.argv[2], 256)
    stop.set()
    watcher.join()
    print(peak[0] - start)
"""


def peak_memory(n, folder):
    code = textwrap.dedent(MEASURED)
    done = subprocess.run(
        [sys.executable, "-c", code, str(n), str(folder)], capture_output=True, text=True, timeout=120, check=True
    )
    return int(done.stdout) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's process status")
def test_memory_is_flat_in_the_number_of_samples(tmp_path):
    """Samples of 0.25 MB: 12 MB for N = 50, 125 MB for N = 500, statistics with natural breaks included."""
    few, many = peak_memory(50, tmp_path / "few"), peak_memory(500, tmp_path / "many")
    assert few < 40, f"{few} MB for N = 50"
    assert many < few + 25, f"{few} MB for N = 50, {many} MB for N = 500"


def test_natural_breaks_on_file_are_those_in_memory(tmp_path, monkeypatch):
    sample = run(tmp_path / "s")
    expected = [stats.jenks(np.array(sample.values[:, row])) for row in range(2)]
    monkeypatch.setattr(decisions, "SORTED_IN_MEMORY", 0)
    before = sorted((tmp_path / "s").iterdir())
    np.testing.assert_array_equal(sample.threshold(), expected)
    assert sorted((tmp_path / "s").iterdir()) == before
    half = result.AttributionSample(
        **{
            **{f: getattr(sample, f) for f in sample.__dataclass_fields__},
            "values": sample.values.astype(np.float16),
        }
    )
    stored = metfa.load(half.save(tmp_path / "half"))
    np.testing.assert_array_equal(stored.threshold(), half.threshold())


def test_inputs_that_cannot_be_saved_are_refused_before_anything_is_explained(tmp_path):
    def explainer(inputs, target):
        pytest.fail("not reached")

    with pytest.raises(TypeError, match="a list of texts or of tokens to be saved, got a list of object"):
        metfa.explain(
            explainer, [object()], 0, noise=lambda x, rng: x, run=metfa.Run(input_names=["a"], store=tmp_path / "run")
        )
    assert not (tmp_path / "run").exists()
