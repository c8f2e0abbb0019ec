"""Samples streamed to a folder: the same numbers as in memory, whatever interrupts the run, and little memory."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa.results import sample as result
from metfa.stats import _thresholds

INPUTS = np.linspace(0.2, 0.8, 24).reshape(2, 3, 4)
N = 9
LOOK = 5  # rows of the first batch, and one of them alone


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
    for name in ("started", "seconds", "maps_made", "versions"):  # the last: of the libraries that are loaded
        del manifest["provenance"][name]
    manifest["provenance"].pop("torch_threads", None)  # only where torch is loaded
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
    if stop_at >= LOOK + 2:
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
    done = (
        0 if stop_at < LOOK + 2 else 4 + (stop_at - LOOK - 2) // 4 * 4
    )  # the first batch is written after the clean maps
    alone = {1: 0, 2: 2}.get(min(batch_size, 2 * N - done), 1)
    assert explainer.rows == alone + 2 + 2 * N - done


def test_a_run_interrupted_twice_resumes(tmp_path, whole):
    folder = interrupted(interrupted(tmp_path / "s", 8), 8)
    explainer = Explainer()
    run(folder, explainer)
    assert contents(folder) == contents(whole)
    assert explainer.rows == 1 + 2 + 2 * N - 8  # a row alone, the clean maps and what was missing


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
    from metfa.sampling import folder as store

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
        before(Path, "replace", 4)
    elif point == "half a batch":
        before(store, "put", 3)  # four maps, four classes, four flags
    elif point == "maps without done":
        before(store, "put", 21)
    elif point == "half of the flags":
        before(store, "put", 24)
    elif point == "before scores":
        before(store, "write_array", 2)
    elif point == "before the manifest":
        before(store, "write_manifest")
    elif point == "manifest not yet whole":
        before(files, "write_json")
    elif point == "before the tidying":
        before(store.StoreSink, "_tidy")
    test_store.run(Path({folder!r}), explainer)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "computed"),
    [
        ("explainer", 4),
        ("before run.json", 0),
        ("after run.json", 0),
        ("values not yet whole", 0),
        ("before done.bin", 0),
        ("half a batch", 0),
        ("maps without done", 4),
        ("half of the flags", 7),
        ("before scores", 2 * N),
        ("before the manifest", 2 * N),
        ("manifest not yet whole", 2 * N),
        ("before the tidying", 2 * N),
    ],
)
def test_a_killed_run_resumes(point, computed, tmp_path, whole):
    folder = tmp_path / "s"
    code = textwrap.dedent(KILLED).format(point=point, folder=str(folder), tests=str(Path(__file__).parent))
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    explainer = Explainer()
    run(folder, explainer)
    assert contents(folder) == contents(whole)
    alone = {0: 0, 1: 0, 2: 2}.get(2 * N - computed, 1)
    assert explainer.rows == alone + 2 + 2 * N - computed


@pytest.mark.slow
@pytest.mark.parametrize("locks", ["with", "without"])
def test_two_processes_give_right_maps_or_an_error(locks):
    """120 triples of points, half of them with locks, at which both are stopped and the first is killed."""
    script = [sys.executable, str(Path(__file__).with_name("kill_points.py")), "60", locks]
    done = subprocess.run(script, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] == 60
    assert found["events"] > 30
    assert not found["wrong"], done.stderr


# Another call, another folder


OTHER_CALLS = [
    ({"n_samples": 10}, "with n_samples=9, this call has 10"),
    ({"first_sample": 5}, "with first_sample=0, this call has 5"),
    ({"rng": 1}, "with rng=0x0, this call has 0x1"),
    ({"noise": metfa.noise.Uniform(0.2)}, r"with noise=Uniform\(radius=0.1, .*this call has Uniform\(radius=0.2"),
    ({"target": 2}, r"with target=\(1, 1\), this call has \(2, 2\)"),
    ({"inputs": INPUTS + 0.01}, r"of another input: input_ids=\[.*this call has \["),
    ({"explainer": lambda inputs, target: inputs**2}, "with explainer=Explainer, this call has .*lambda"),
    ({"explainer": Explainer(weight=1.1)}, "of another model: the clean input's attributions differ"),
]


@pytest.mark.parametrize(("changed", "message"), OTHER_CALLS)
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


def test_a_finished_call_returns_its_result(tmp_path):
    first = run(tmp_path / "s")
    before = contents(tmp_path / "s")
    explainer = Explainer()
    again = run(tmp_path / "s", explainer)
    assert explainer.rows == 2  # the clean maps, which show that the model is the same
    assert contents(tmp_path / "s") == before
    np.testing.assert_array_equal(again.values, first.values)
    assert again.provenance == first.provenance


def test_a_finished_call_with_a_fresh_seed_returns_its_result(tmp_path):
    first = run(tmp_path / "s", rng=None)
    assert run(tmp_path / "s", rng=None).provenance == first.provenance
    with pytest.raises(FileExistsError, match=f"with rng={first.provenance['rng']}, this call has 0x5"):
        run(tmp_path / "s", rng=5)


def test_a_finished_call_until_returns_its_result(tmp_path):
    rule = metfa.Until(undecided=0.5, threshold=0.2, max_samples=40)
    first = run(tmp_path / "s", n_samples=rule)
    again = run(tmp_path / "s", n_samples=rule)
    assert again.stopping == first.stopping
    assert again.provenance == first.provenance
    other = metfa.Until(undecided=0.4, threshold=0.2, max_samples=40)
    for n_samples in (other, 40, first.n_samples):
        with pytest.raises(FileExistsError, match="holds a finished result with "):
            run(tmp_path / "s", n_samples=n_samples)


def test_names_are_those_of_the_call(tmp_path):
    inputs = np.linspace(0, 1, 6).reshape(2, 3)
    named = {"run": metfa.Run(store=tmp_path / "s", feature_names=list("abc")), "inputs": inputs}
    assert run(None, **named).feature_names == ("a", "b", "c")
    named["run"] = metfa.Run(store=tmp_path / "s", feature_names=list("xyz"))
    assert run(None, **named).feature_names == ("x", "y", "z")


@pytest.mark.parametrize(("changed", "message"), OTHER_CALLS)
def test_a_finished_result_of_another_call_is_kept(changed, message, tmp_path, whole):
    shutil.copytree(whole, tmp_path / "s")
    before = contents(tmp_path / "s")
    with pytest.raises(FileExistsError, match=f"`store` holds a finished result {message}.*metfa.load.*give another"):
        run(tmp_path / "s", **changed)
    assert contents(tmp_path / "s") == before


# Ownership


def test_two_calls_of_one_process_do_not_share_a_store(tmp_path):
    class Again(Explainer):
        def __call__(self, inputs, target):
            if self.rows == 10:
                with pytest.raises(
                    BlockingIOError, match=rf"`store` is being written by another call \(process {os.getpid()} on "
                ):
                    run(tmp_path / "s")
            return super().__call__(inputs, target)

    Again.__qualname__ = Again.__name__ = "Explainer"
    run(tmp_path / "s", Again())


def test_a_lock_of_a_dead_process_stops_nobody(tmp_path, whole):
    folder = interrupted(tmp_path / "s")
    (folder / ".lock").write_text("process 1 on elsewhere")
    run(folder)
    assert contents(folder) == contents(whole)


def test_maps_that_were_changed_are_made_again(tmp_path, whole):
    """As a power failure may leave them: flags on disk, numbers not."""
    folder = interrupted(tmp_path / "s", 12)
    with (folder / "values.npy").open("r+b") as file:
        file.seek(-18 * 12 * 8 + 3 * 12 * 8, os.SEEK_END)  # the map of job 3
        file.write(bytes(12 * 8))
    explainer = Explainer()
    run(folder, explainer)
    assert contents(folder) == contents(whole)
    assert explainer.rows == LOOK + 2 + 2 * N - 7  # what is damaged is found after the first batch, made of other jobs


def test_classes_that_were_lost_are_made_again(tmp_path, whole):
    folder = interrupted(tmp_path / "s", 12)
    (folder / "predictions.npy").unlink()
    run(folder)
    assert contents(folder) == contents(whole)


@pytest.mark.parametrize("name", ["values.npy", "done.bin"])
def test_a_store_that_is_changed_meanwhile_is_no_result(name, tmp_path, whole):
    class Meddles(Explainer):
        def __call__(self, inputs, target):
            if self.rows > 12:
                path = tmp_path / "s" / name
                content = path.read_bytes()
                quarter = len(content) // 4
                path.write_bytes(content[:quarter] + bytes(16) + content[quarter + 16 :])
            return super().__call__(inputs, target)

    Meddles.__qualname__ = Meddles.__name__ = "Explainer"
    with pytest.raises(ValueError, match=r"was changed while it was written: \d+ of 18 maps are not what this call"):
        run(tmp_path / "s", Meddles())
    run(tmp_path / "s")
    assert contents(tmp_path / "s") == contents(whole)


def test_flags_without_digests_are_not_believed(tmp_path, whole):
    """Runs that an older version began."""
    folder = interrupted(tmp_path / "s", 12)
    (folder / "done.bin").write_bytes(b"\1" * 18)
    run(folder)
    assert contents(folder) == contents(whole)


def test_a_full_disk_names_the_file_and_what_is_kept(tmp_path, whole):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Fills(Explainer):
        def __call__(self, inputs, target):
            if self.rows > 8:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
            return super().__call__(inputs, target)

    Fills.__qualname__ = Fills.__name__ = "Explainer"
    try:
        with pytest.raises(OSError, match=r"the maps so far are kept: mend it, and repeat the call.*/s/values\.npy'"):
            run(tmp_path / "s", Fills())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    explainer = Explainer()
    run(tmp_path / "s", explainer)
    assert contents(tmp_path / "s") == contents(whole)
    assert explainer.rows < 2 + 2 * N


# Links: a store may come from a stranger

NAMES = [
    *("run.json", "values.npy", "vanilla.npy", "predictions.npy", "done.bin", "scores.npy", "inputs_0.npy"),
    *("manifest.json", ".lock", ".run.json.tmp", ".values.npy.tmp", ".predictions.npy.tmp", ".done.bin.tmp"),
]


@pytest.mark.parametrize("kind", ["symbolic", "second name"])
@pytest.mark.parametrize("stage", ["new", "begun", "half"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_written_through_a_link(name, stage, kind, tmp_path):
    folder = tmp_path / "s"
    if stage == "half":
        interrupted(folder, 12)
    else:
        folder.mkdir()
    if stage == "begun":  # what makes a folder an unfinished run, and no more
        shutil.copy(interrupted(tmp_path / "other", 12) / "run.json", folder)
    path, secret = folder / name, tmp_path / "secret"
    content = path.read_bytes() if path.exists() else b"mine"
    path.unlink(missing_ok=True)
    secret.write_bytes(content)
    path.symlink_to(secret) if kind == "symbolic" else path.hardlink_to(secret)
    with suppress(ValueError, FileExistsError):
        run(folder)
    assert secret.read_bytes() == content


def test_a_linked_store_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"`store` must be a folder, and .*/s is a link: write '.*/elsewhere'"):
        run(tmp_path / "s")
    assert run(tmp_path / "elsewhere").n_samples == N
    assert metfa.load(tmp_path / "s").n_samples == N


def test_what_a_killed_process_left_is_swept(tmp_path):
    folder = interrupted(tmp_path / "s")
    (folder / ".metfa-0123456789abcdef").write_bytes(b"half")
    run(folder)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


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


@pytest.mark.parametrize("length", [1, 17, 19, 143, 1000])
def test_a_progress_file_of_a_wrong_length_is_named(length, tmp_path):
    folder = interrupted(tmp_path / "s")
    (folder / "done.bin").write_bytes(b"\1" * length)
    with pytest.raises(
        ValueError, match=f"done.bin is damaged.*: it has {length} bytes for 18 maps, 8 each; give another"
    ):
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
    assert explainer.rows <= LOOK + 2


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
    monkeypatch.setattr(_thresholds, "SORTED_IN_MEMORY", 0)
    before = sorted((tmp_path / "s").iterdir())
    np.testing.assert_array_equal(sample.threshold(stats.jenks), expected)
    assert sorted((tmp_path / "s").iterdir()) == before
    half = result.AttributionSample(
        **{
            **{f: getattr(sample, f) for f in sample.__dataclass_fields__},
            "values": sample.values.astype(np.float16),
        }
    )
    stored = metfa.load(half.save(tmp_path / "half"))
    for rule in (None, stats.jenks):
        np.testing.assert_array_equal(stored.threshold(rule), half.threshold(rule))


def test_inputs_that_cannot_be_saved_are_refused_before_anything_is_explained(tmp_path):
    def explainer(inputs, target):
        pytest.fail("not reached")

    with pytest.raises(TypeError, match="a list of texts or of tokens to be saved, got a list of object"):
        metfa.explain(
            explainer, [object()], 0, noise=lambda x, rng: x, run=metfa.Run(input_names=["a"], store=tmp_path / "run")
        )
    assert not (tmp_path / "run").exists()


def test_a_finished_run_without_a_seed_returns_for_an_explainer_that_draws(tmp_path):
    @metfa.randomised
    def masked(inputs, target, *, rngs):
        return inputs * np.stack([rng.random(inputs.shape[1:]) for rng in rngs])

    first, again = (run(tmp_path / "s", masked, rng=None) for _ in range(2))
    assert np.array_equal(first.values, again.values)
    assert first.provenance["rng"] == again.provenance["rng"]
