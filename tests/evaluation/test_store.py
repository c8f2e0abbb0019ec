"""The store of units: whole files only, by address, under any name of a folder."""

import json
import os
import threading
import uuid
from pathlib import Path

import pytest

from metfa.evaluation import UnitStore
from metfa.evaluation.store import READ_AT_ONCE


def result(value):
    return {"rows": [{"score": value, "metric": "mstd"}], "record": {"threads": 1}}


def address(number):
    return f"{number:032x}"[::-1]


@pytest.fixture(params=["folder", "odd name", "URL", "memory"])
def store(request, tmp_path):
    """A store of every kind that is at hand."""
    return UnitStore(
        {
            "folder": tmp_path / "store",
            "odd name": tmp_path / "store [1] *?%20#" / "ü" / "x",
            "URL": f"file://{tmp_path}/store/",
            "memory": f"memory://{uuid.uuid4().hex}/store",
        }[request.param]
    )


def test_what_is_written_is_read(store):
    n = 2 * READ_AT_ONCE + 3
    for number in range(n):
        store.write(address(number), result(number))
    found = store.read([address(number) for number in range(n + 5)])
    assert found == {address(number): result(number) for number in range(n)}
    assert store.read([address(3), address(n + 1)]) == {address(3): result(3)}
    assert store.read([]) == {}
    assert UnitStore(store.url).read([address(1)]) == {address(1): result(1)}


def test_an_empty_store_holds_nothing(store):
    assert store.read([address(1)]) == {}
    assert store.read_failures([address(1)]) == {}
    store.forget_failure(address(1))


def test_writing_again_replaces(store):
    store.write(address(1), result(1))
    store.write(address(1), result(2.5))
    assert store.read([address(1)]) == {address(1): result(2.5)}


def test_failures_are_kept_and_forgotten(store):
    failure = {"error": "ValueError: ü\ud800", "traceback": "..."}
    store.write_failure(address(1), failure)
    assert store.read_failures([address(1), address(2)]) == {address(1): failure}
    assert store.read([address(1)]) == {}
    store.forget_failure(address(1))
    store.forget_failure(address(1))
    assert store.read_failures([address(1)]) == {}


def test_what_is_no_json_is_refused_by_the_writer(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write(address(1), result(float("nan")))
    assert store.read([address(1)]) == {}


# Damage


@pytest.fixture
def folder(tmp_path):
    store = UnitStore(tmp_path)
    for number in range(3):
        store.write(address(number), result(number))
    return store


def path_of(store, number):
    (found,) = (path for path in store_files(store) if path.stem == address(number))
    return found


def store_files(store):
    return sorted(Path(store.root).rglob("*.json"))


def test_a_file_is_below_its_address(folder, tmp_path):
    expected = f"units/{address(0)[:2]}/{address(0)}.json"
    assert store_files(folder)[0].relative_to(tmp_path).as_posix() == expected
    assert set(json.loads(path_of(folder, 1).read_bytes())) == {"digest", "result"}


@pytest.mark.parametrize("at", range(0, 140, 7))
def test_any_changed_byte_is_noticed(folder, at):
    path = path_of(folder, 1)
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1
    path.write_bytes(content)
    assert folder.read([address(number) for number in range(3)]) == {address(n): result(n) for n in (0, 2)}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x00" * 100, os.urandom(1000), b"[" * 500_000, b'{"a":' * 500_000, b"[]", b"{}", b"null", b'"text"',
        b'{"digest": "x", "result": {"rows": []}}', b'{"digest": null, "result": {"rows": [NaN]}}', b'{"result": [1]}',
        b'{"result": ' + b'{"rows":[' + b"[" * 900 + b"]" * 900 + b"]}}",
    ],
)  # fmt: skip
def test_what_is_no_unit_counts_as_missing(folder, content):
    path_of(folder, 1).write_bytes(content)
    assert folder.read([address(1)]) == {}
    folder.write(address(1), result(1))
    assert folder.read([address(1)]) == {address(1): result(1)}


def test_a_file_at_another_units_address_counts_as_missing(folder):
    path_of(folder, 1).write_bytes(path_of(folder, 2).read_bytes())
    assert set(folder.read([address(1), address(2)])) == {address(2)}


def test_a_truncated_file_counts_as_missing(folder):
    path = path_of(folder, 1)
    whole = path.read_bytes()
    for length in range(0, len(whole), 11):
        path.write_bytes(whole[:length])
        assert folder.read([address(1)]) == {}


def test_a_folder_in_place_of_a_file(folder):
    path = path_of(folder, 1)
    path.unlink()
    path.mkdir()
    assert folder.read([address(1)]) == {}
    folder.write(address(1), result(1))
    assert folder.read([address(1)]) == {address(1): result(1)}
    path.unlink()
    path.mkdir()
    (path / "of somebody").write_text("kept")
    with pytest.raises(OSError, match=address(1)):
        folder.write(address(1), result(1))
    assert (path / "of somebody").read_text() == "kept"


def test_a_file_that_cannot_be_opened(folder):
    path = path_of(folder, 1)
    path.unlink()
    path.symlink_to("nowhere")
    assert folder.read([address(1)]) == {}
    folder.write(address(1), result(1))
    assert not path.is_symlink()
    assert folder.read([address(1)]) == {address(1): result(1)}


def test_leftovers_of_a_killed_process_do_no_harm(folder):
    path = path_of(folder, 1)
    path.with_name(f"{path.name}.0123456789ab.tmp").write_bytes(b'{"digest"')
    assert len(folder.read([address(number) for number in range(3)])) == 3


def test_a_damaged_failure_counts_as_missing(folder):
    folder.write_failure(address(1), {"error": "x"})
    next(path for path in store_files(folder) if "failures" in path.parts).write_bytes(b"[")
    assert folder.read_failures([address(1)]) == {}


def test_many_writers_at_once(store):
    errors = []

    def write():
        try:
            own = UnitStore(store.url)
            for number in range(30):
                own.write(address(number), result(number))
                own.write_failure(address(number), {"error": "x"})
                own.forget_failure(address(number))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.read([address(number) for number in range(30)]) == {address(n): result(n) for n in range(30)}


# What it is given


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("s4://bucket", ValueError, "`store` must be a folder or a URL of file, .*, got 's4://bucket'"),
        ("memry://x", ValueError, "got 'memry://x', did you mean 'memory'"),
        ("https://host/folder", ValueError, "`store` must be a folder or a URL of file, .*, got 'https://host/folder'"),
        ("simplecache::s3://bucket", ValueError, "got 'simplecache::s3://bucket'"),
        ("memory://a[1]", ValueError, r"`store` must be a URL without \*, \? and \["),
        ("", TypeError, "`store` must be a folder or a URL, got str: ''"),
        (None, TypeError, "`store` must be a folder or a URL, got NoneType"),
        (3, TypeError, "got int: 3"),
    ],
)
def test_what_is_no_store(url, error, message):
    with pytest.raises(error, match=message):
        UnitStore(url)


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match=r"`store` must be a folder, but .*file is a file"):
        UnitStore(tmp_path / "file")
    with pytest.raises(TypeError, match="`store_options` must be a dict, got list"):
        UnitStore(tmp_path, [1])


def test_what_can_be_written_to(tmp_path):
    store = UnitStore(tmp_path / "store")
    store.check_writable()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    (tmp_path / "store" / "units").rmdir()
    (tmp_path / "store" / "units").write_text("in the way")
    with pytest.raises(OSError, match=r"`store`: nothing can be written to .*store: .*units"):
        store.check_writable()


def test_nothing_is_written_before_there_is_something(tmp_path):
    store = UnitStore(tmp_path / "new")
    store.read([address(1)])
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_through_links(tmp_path):
    """A folder of results may come from a stranger."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "units").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="units is a link or no folder"):
        UnitStore(tmp_path / "a").check_writable()
    folder = tmp_path / "b" / "units" / address(1)[:2]
    folder.mkdir(parents=True)
    (folder / f"{address(1)}.json").symlink_to(tmp_path / "secret")
    store = UnitStore(tmp_path / "b")
    store.write(address(1), result(1))
    assert store.read([address(1)]) == {address(1): result(1)}
    assert (tmp_path / "secret").read_text() == "mine"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_run_sweeps_what_killed_runs_left(tmp_path):
    store = UnitStore(tmp_path)
    store.write(address(1), result(1))
    (tmp_path / "units" / address(1)[:2] / ".metfa-0123456789abcdef").write_bytes(b"half")
    store.check_writable()
    assert not list(tmp_path.rglob(".metfa-*"))
    assert store.read([address(1)]) == {address(1): result(1)}
