"""The store over the S3 protocol, spoken to a server on the loopback interface."""

import pickle
import re

import numpy as np
import pytest

import metfa
from metfa.evaluation.store import UnitStore

pytest.importorskip("s3fs")

RESULT = {"input": "0", "explainer": "sizes", "rows": [{"metric": "mstd", "score": 0.5}], "record": {"threads": 1}}
ADDRESSES = [f"{number:032x}" for number in (1, 2, 2**127)]


@pytest.fixture
def url(bucket_options, request):
    """A folder of a bucket of the test's own."""
    import s3fs

    bucket = re.sub("[^a-z0-9]+", "-", request.node.name)[:60].strip("-")
    s3fs.S3FileSystem(**bucket_options).mkdir(bucket)
    return f"s3://{bucket}/studies/one"


def names(store):
    store.fs.invalidate_cache()
    return sorted(path.removeprefix(f"{store.root}/") for path in store.fs.find(store.root))


def test_results_and_failures(url, bucket_options):
    store = UnitStore(url, bucket_options)
    assert store.read(ADDRESSES) == store.read_failures(ADDRESSES) == {}
    for number, address in enumerate(ADDRESSES[:2]):
        store.write(address, {**RESULT, "input": str(number)})
    store.write_failure(ADDRESSES[2], {"error": "ValueError: no"})
    other = UnitStore(url, bucket_options)  # as another process reads it
    assert other.read(ADDRESSES) == {address: {**RESULT, "input": str(n)} for n, address in enumerate(ADDRESSES[:2])}
    assert other.read_failures(ADDRESSES) == {ADDRESSES[2]: {"error": "ValueError: no"}}
    assert names(store) == [
        f"failures/80/{ADDRESSES[2]}.json", f"units/00/{ADDRESSES[0]}.json", f"units/00/{ADDRESSES[1]}.json"
    ]  # fmt: skip


def test_a_failure_is_forgotten_once_there_is_a_result(url, bucket_options):
    store = UnitStore(url, bucket_options)
    store.write_failure(ADDRESSES[0], {"error": "ValueError: no"})
    store.forget_failure(ADDRESSES[0])
    store.forget_failure(ADDRESSES[0])
    assert store.read_failures(ADDRESSES) == {}


def test_writing_again_replaces(url, bucket_options):
    store = UnitStore(url, bucket_options)
    store.write(ADDRESSES[0], RESULT)
    store.write(ADDRESSES[0], {**RESULT, "input": "again"})
    assert store.read(ADDRESSES) == {ADDRESSES[0]: {**RESULT, "input": "again"}}


def test_what_can_be_written_to(url, bucket_options):
    store = UnitStore(url, bucket_options)
    store.check_writable()
    assert names(store) == []


def test_no_bucket_is_made(bucket_options):
    import s3fs

    with pytest.raises(OSError, match=r"`store`: nothing can be written to s3://no-such-bucket/study: .*bucket"):
        UnitStore("s3://no-such-bucket/study", bucket_options).check_writable()
    assert not s3fs.S3FileSystem(**bucket_options).exists("no-such-bucket")


DAMAGES = {
    "cut off": lambda content: content[:-20],
    "empty": lambda content: b"",
    "changed": lambda content: content.replace(b"0.5", b"0.6"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_object_counts_as_missing(url, bucket_options, damage):
    store = UnitStore(url, bucket_options)
    for address in ADDRESSES[:2]:
        store.write(address, RESULT)
    path = f"{store.root}/units/00/{ADDRESSES[0]}.json"
    store.fs.pipe_file(path, damage(store.fs.cat_file(path)))
    assert store.read(ADDRESSES) == {ADDRESSES[1]: RESULT}
    store.write(ADDRESSES[0], RESULT)
    assert list(store.read(ADDRESSES)) == ADDRESSES[:2]


def test_more_objects_than_are_read_at_once(url, bucket_options, monkeypatch):
    monkeypatch.setattr("metfa.evaluation.store.READ_AT_ONCE", 2)
    store = UnitStore(url, bucket_options)
    addresses = [f"{number:032x}" for number in range(5)]
    for number, address in enumerate(addresses):
        store.write(address, {**RESULT, "input": str(number)})
    assert [result["input"] for result in store.read(addresses).values()] == ["0", "1", "2", "3", "4"]


def test_a_store_travels_to_other_processes(url, bucket_options):
    store = UnitStore(url, bucket_options)
    store.write(ADDRESSES[0], RESULT)
    assert pickle.loads(pickle.dumps(store)).read(ADDRESSES) == {ADDRESSES[0]: RESULT}


def study(explained):
    def model(rows):
        return np.stack([rows.sum(axis=1), -rows.sum(axis=1)], axis=1)

    return metfa.Study(
        model=model,
        inputs=np.eye(4) + 1,
        explainers={"sizes": lambda model: explained},
        metrics=["mstd", "interval_width"],
        sampling={"normal": metfa.noise.Gaussian(0.1)},
        outer={"uniform": metfa.noise.Uniform(0.1)},
        n_samples=6,
        n_outer=2,
        version="1",
    )


def test_a_study_goes_on_where_it_was(url, bucket_options, tmp_path):
    calls = []

    def explained(inputs, target):
        calls.append(len(inputs))
        if stop and inputs[0].argmax() == 2:
            raise KeyboardInterrupt
        return np.abs(inputs)

    stop = True
    with pytest.raises(KeyboardInterrupt):
        metfa.evaluate(study(explained), store=url, store_options=bucket_options)
    store = UnitStore(url, bucket_options)
    assert len(names(store)) == 2
    stop = False
    prepared = metfa.evaluation.prepare(study(explained), store=url, store_options=bucket_options)
    assert len(prepared.todo) == 2
    found = prepared.run()
    calls.clear()
    again = metfa.evaluate(study(explained), store=url, store_options=bucket_options)
    assert not calls  # all of it was in the store
    local = metfa.evaluate(study(explained), store=tmp_path / "store")
    frames = [run.to_dataframe().to_csv() for run in (found, again, local)]
    assert frames[0] == frames[1] == frames[2]
    assert len(names(store)) == 4
    assert not [name for name in names(store) if name.endswith(".tmp")]
