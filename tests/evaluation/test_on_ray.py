"""Studies on Ray: the figures of a local run, whatever dies meanwhile. One small cluster serves all tests here."""

import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import torch

import metfa
from metfa.evaluation.store import UnitStore
from metfa.evaluation.units import units_of

ray = pytest.importorskip("ray")

from metfa.evaluation import on_ray  # noqa: E402 - needs ray

INPUTS = np.random.default_rng(0).random((4, 8, 8), dtype=np.float32)


WEIGHTS = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32) / 8


def network(inputs):
    """Scores of five classes; without torch, which takes a worker more than a second to load."""
    return np.tanh(inputs.reshape(len(inputs), -1)) @ WEIGHTS.T


def gradient(model, met=lambda index: None):
    """Explainer, and something that happens to it at an input of a known place."""

    def explained(inputs, target):
        for row in inputs:
            met(int(abs(row - INPUTS).mean(axis=(1, 2)).argmin()))
        return abs((1 - np.tanh(inputs) ** 2) * WEIGHTS[target].reshape(inputs.shape))

    return explained


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.from_numpy(WEIGHTS))

    def forward(self, inputs):
        return torch.tanh(inputs.flatten(1)) @ self.weights.T


def study(met=None, **settings):
    explainer = gradient if met is None else functools.partial(gradient, met=met)
    return metfa.Study(
        **{
            "model": network,
            "inputs": INPUTS,
            "explainers": {"gradient": explainer},
            "metrics": {"mstd": {}, "faithfulness": {"steps": 4}, "interval_width": {}},
            "sampling": {"uniform": metfa.noise.Uniform(0.1)},
            "outer": {"normal": metfa.noise.Gaussian(0.1)},
            "n_samples": 6,
            "n_outer": 3,
            "version": "1",
            **settings,
        }
    )


def of_torch():
    return study(
        model=Network().eval(),
        inputs=torch.from_numpy(INPUTS),
        explainers={"gradient": metfa.explainers.Gradient},
    )


def on_cluster(described, store, workers=2, **settings):
    """Failures by input of a run in the store."""
    kept = UnitStore(store)
    running = on_ray.run_on_ray(described, units_of(described, described.model), kept, workers, **settings)
    return {unit.index: failure for unit, failure in running}


def read(described, store):
    """What the store holds of a study; nothing may be left to do."""
    run = metfa.evaluation.prepare(described, store=store)
    assert not run.todo
    return run.run()


def figures(evaluation):
    return {address: json.dumps(result["rows"]) for address, result in evaluation.results.items()}


def tables(evaluation):
    return [table.to_csv() for table in evaluation.tables()]


def once(folder):
    """True the first time that a process on this machine asks."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not appear"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster():
    """A head node with two CPUs; tests add others. Functions of this file go to it by value."""
    from ray import cloudpickle
    from ray.cluster_utils import Cluster

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        running = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        ray.init(address=running.address, log_to_driver=False, logging_level="ERROR")
        yield running
        ray.shutdown()
        running.shutdown()
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The study measured in this process."""
    return metfa.evaluate(study(), store=tmp_path_factory.mktemp("local") / "store")


@pytest.fixture(scope="module")
def local_of_torch(tmp_path_factory):
    """A study of a network of torch, measured in this process on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield metfa.evaluate(of_torch(), store=tmp_path_factory.mktemp("local") / "store")
    torch.set_num_threads(before)


def test_equal_records_give_equal_bytes(cluster, local_of_torch, tmp_path):
    local = local_of_torch
    found = metfa.evaluate(of_torch(), store=tmp_path, executor="ray", workers=2)
    assert {result["record"]["threads"] for result in found.results.values()} == {1}
    records = [[r["record"] | {"seconds": 0} for r in run.results.values()] for run in (found, local)]
    for record in records[0] + records[1]:
        record["versions"] = {name: record["versions"][name] for name in ("metfa", "numpy", "python", "torch")}
    assert records[0] == records[1]
    assert figures(found) == figures(local)
    assert found.to_dataframe().to_csv() == local.to_dataframe().to_csv()
    assert tables(found) == tables(local)
    assert not list(tmp_path.rglob("*.tmp"))
    assert ray.is_initialized()  # a connection that was there stays


def test_other_thread_counts_agree_to_rounding(cluster, local_of_torch, tmp_path):
    on_cluster(of_torch(), tmp_path, workers=1, threads=2)
    found = read(of_torch(), tmp_path)
    assert {result["record"]["threads"] for result in found.results.values()} == {2}
    for column in ("score", "raw", "clean"):
        ours, theirs = (run.to_dataframe()[column] for run in (found, local_of_torch))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_workers_write_into_a_bucket(cluster, local, bucket_options):
    import s3fs

    s3fs.S3FileSystem(**bucket_options).mkdir("bucket")
    found = metfa.evaluate(study(), store="s3://bucket/x", store_options=bucket_options, executor="ray")
    assert tables(found) == tables(local)


def test_a_unit_that_fails_is_recorded_and_the_rest_goes_on(cluster, local, tmp_path):
    def met(index):
        if index == 1:
            raise ArithmeticError("no explanation for 1")

    with pytest.warns(metfa.FailedUnitsWarning, match="1 of 4 units failed, the first with ArithmeticError: no expl"):
        found = metfa.evaluate(study(met), store=tmp_path, executor="ray")
    (failure,) = found.failures.values()
    assert (failure["input"], failure["error"]) == ("1", "ArithmeticError: no explanation for 1")
    assert "in met" in failure["traceback"]
    rows = local.to_dataframe()
    assert found.to_dataframe().to_csv(index=False) == rows[rows["input"] != "1"].to_csv(index=False)


def test_a_worker_killed_in_a_unit_loses_that_unit_only(cluster, local, tmp_path):
    def met(index):
        if index == 2 and once(tmp_path / "killed"):
            os.kill(os.getpid(), signal.SIGKILL)

    described = study(met)
    assert on_cluster(described, tmp_path / "store") == dict.fromkeys(range(4))
    assert (tmp_path / "killed").exists()
    assert tables(read(described, tmp_path / "store")) == tables(local)


def test_a_unit_that_kills_its_workers_is_given_up(cluster, tmp_path):
    def met(index):
        if index == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    described = study(met)
    found = on_cluster(described, tmp_path, workers=1)
    message = "RuntimeError: 3 workers died while they measured this unit"
    assert found == {0: message, 1: None, 2: None, 3: None}
    units = units_of(described, described.model)
    failures = UnitStore(tmp_path).read_failures([unit.address for unit in units])
    assert {address: failure["error"] for address, failure in failures.items()} == {units[0].address: message}
    assert "ActorDiedError" in failures[units[0].address]["traceback"]


def test_a_node_removed_in_the_middle(cluster, local, tmp_path):
    node = cluster.add_node(num_cpus=1)
    doomed = node.node_id

    def met(index):
        if ray.get_runtime_context().get_node_id() == doomed:
            (tmp_path / "begun").touch()
            time.sleep(120)
        else:
            wait_for(tmp_path / "begun")  # leaves a unit for the doomed node

    def remove():
        wait_for(tmp_path / "begun")
        cluster.remove_node(node)

    remover = threading.Thread(target=remove)
    remover.start()
    described = study(met)
    found = on_cluster(described, tmp_path / "store", workers=3)
    remover.join()
    assert found == dict.fromkeys(range(4))
    assert tables(read(described, tmp_path / "store")) == tables(local)


def test_workers_hold_one_unit_each_and_end_with_the_run(cluster, tmp_path):
    def met(index):
        (tmp_path / f"{index}-{os.getpid()}").touch()

    described = study(met)
    running = on_ray.run_on_ray(described, units_of(described, described.model), UnitStore(tmp_path / "s"), 1)
    next(running)
    wait_for(tmp_path / "s")
    time.sleep(0.5)
    begun = {path.name.partition("-")[0] for path in tmp_path.glob("*-*")}
    assert begun == {"0", "1"}  # the one that is done, and the next one
    (worker,) = {int(path.name.partition("-")[2]) for path in tmp_path.glob("*-*")}
    running.close()  # as an exception does, Ctrl-C among them
    end = time.monotonic() + 30
    while alive(worker):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_inputs_can_be_written_to_as_in_a_local_run(cluster, tmp_path):
    def model(rows):
        assert rows.flags.writeable
        return np.stack([rows.sum(axis=(1, 2)), -rows.sum(axis=(1, 2))], axis=1)

    def sizes(inputs, target):
        return np.abs(inputs)

    described = study(model=model, inputs=INPUTS, metrics=["interval_width"], explainers={"sizes": lambda model: sizes})
    assert on_cluster(described, tmp_path, workers=1) == dict.fromkeys(range(4))


def test_what_loading_raises_goes_up(cluster, tmp_path):
    def broken(model):
        raise LookupError("no such layer: 42")

    with pytest.raises(LookupError, match="no such layer: 42"):
        on_cluster(study(explainers={"broken": broken}), tmp_path, workers=1)


def test_code_that_the_workers_do_not_have(cluster, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def explainer(model):\n    return None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # pyright: ignore[reportMissingImports]

    with pytest.raises(ImportError, match=r"every node must have its code: .*No module named 'only_here'"):
        on_cluster(study(explainers={"theirs": only_here.explainer}), tmp_path / "store", workers=1)


def test_what_the_store_raises_goes_up(cluster, tmp_path):
    (tmp_path / "units").write_text("in the way of a folder")
    with pytest.raises(ValueError, match="units is a link or no folder"):
        on_cluster(study(), tmp_path, workers=1)


def test_workers_that_die_while_they_start(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "DEATHS", 2)

    def broken(model):
        os._exit(1)

    with pytest.raises(RuntimeError, match="no worker can be started: 2 died one after the other"):
        on_cluster(study(explainers={"broken": broken}), tmp_path, workers=1)


def test_no_node_has_room_for_a_worker(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "PATIENCE", 0.2)
    with pytest.raises(
        RuntimeError, match="no worker can be started: each takes 64 CPU and 0 GPU, more than any of the"
    ):
        on_cluster(study(), tmp_path, threads=64)


def test_other_versions_on_a_node(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "versions", lambda: {"numpy": "1.2.3"})
    with pytest.raises(RuntimeError, match=f"numpy {np.__version__}, but the units were addressed with 1.2.3"):
        on_cluster(study(), tmp_path, workers=1)


def test_what_cannot_work_is_refused(cluster, tmp_path):
    with pytest.raises(ValueError, match="`store` is 'memory://x', which only this process can read"):
        on_cluster(study(), "memory://x")
    with pytest.raises(ValueError, match="`device` is 'cuda:1', but Ray gives each worker its GPU"):
        on_cluster(study(device="cuda:1"), tmp_path)
    with pytest.raises(ValueError, match="`device` is 'cuda', but Ray finds no GPU"):
        on_cluster(study(device="cuda"), tmp_path)
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"`study` must be picklable to be sent to the workers of Ray: .*lock"):
        on_cluster(study(lambda index: lock), tmp_path)


@pytest.mark.parametrize(
    ("workers", "gpus", "share"), [(1, 1, 1), (2, 8, 1), (3, 1, 0.3333), (6, 4, 0.5), (6, 1, 0.1666)]
)
def test_workers_share_the_gpus(monkeypatch, workers, gpus, share):
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"GPU": float(gpus)})
    assert on_ray._gpus_each("cuda", workers) == share
    assert sum(int(1 / share) for _ in range(gpus)) >= workers  # every worker finds a place
    assert on_ray._gpus_each("cpu", workers) == 0


@pytest.mark.ray
def test_ray_is_started_and_stopped_where_none_is_named(tmp_path):
    """A process of its own, in which every warning is an error, and a relative store."""
    script = """
        import os, numpy as np, ray, metfa

        def model(rows):
            return np.stack([rows.sum(axis=1), -rows.sum(axis=1)], axis=1)

        def sizes(model):
            return lambda inputs, target: np.abs(inputs)

        study = metfa.Study(
            model=model, inputs=np.eye(3) + 1, explainers={"sizes": sizes}, metrics=["interval_width"],
            sampling={"normal": metfa.noise.Gaussian(0.1)}, version="1",
        )
        found = metfa.evaluate(study, store="store", executor="ray", workers=1)
        assert len(found.results) == 3, found
        assert not ray.is_initialized()
        assert "RAY_USAGE_STATS_ENABLED" not in os.environ
        print("complete")
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "complete\n"), done.stderr
    assert len(list((tmp_path / "store" / "units").rglob("*.json"))) == 3
