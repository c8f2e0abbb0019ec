"""The one place that writes: all or nothing, through no link, under names that are swept if their process is dead."""

import ast
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metfa
from metfa import report
from metfa._base.locks import locked
from metfa._base.owner import LOCK, Owner
from metfa._base.writing import changed_file, check_replaceable, folder_below, new_file, new_folder, put, sweep

HELD = """
    import sys, time
    from pathlib import Path
    from metfa._base.owner import Owner
    from metfa._base.writing import new_file, new_folder

    folder = Path({folder!r})
    with Owner(folder, "store"), new_file(folder / "file") as file, new_folder(folder / "new"):
        file.write(b"half")
        file.flush()
        print("ready", flush=True)
        time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that owns the folder, and is writing a file and a folder in it."""
    code = "\n".join(line[4:] for line in HELD.format(folder=str(tmp_path)).splitlines())
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_whole_or_is_not_there(tmp_path):
    with new_file(tmp_path / "a") as file:
        file.write(b"one")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"one"
    stopped = new_file(tmp_path / "b")
    stopped.__enter__().write(b"half")
    assert not stopped.__exit__(KeyError, KeyError(), None)
    taken = new_file(tmp_path / "a")
    taken.__enter__().write(b"other")
    with pytest.raises(FileExistsError, match=r"`path` exists already: .*a; choose a new file"):
        taken.__exit__(None, None, None)
    assert (tmp_path / "a").read_bytes() == b"one"
    with new_file(tmp_path / "a", replace=True) as file:
        file.write(b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert names(tmp_path) == ["a"]


def test_files_have_the_usual_permissions(tmp_path):
    with new_file(tmp_path / "a"):
        pass
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_links_are_replaced_and_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"mine")
    (tmp_path / "a").symlink_to(tmp_path / "secret")
    (tmp_path / "b").hardlink_to(tmp_path / "secret")
    for name in "ab":
        with pytest.raises(ValueError, match=f"{name} is a link or no plain file, and is not followed"):
            changed_file(tmp_path / name).__enter__()
        with new_file(tmp_path / name, replace=True) as file:
            file.write(b"new")
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "secret").read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["folder", "pipe", "nothing"])
def test_what_is_no_file_is_not_changed(kind, tmp_path):
    path = tmp_path / "a"
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "nothing": lambda: None}[kind]()
    with pytest.raises(ValueError, match="is missing" if kind == "nothing" else "a is a link or no plain file"):
        changed_file(path).__enter__()


def test_folders_below_are_no_links(tmp_path):
    assert folder_below(tmp_path, "a") == folder_below(tmp_path, "a") == tmp_path / "a"
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "c").touch()
    for name in "bc":
        with pytest.raises(ValueError, match=f"{name} is a link or no folder"):
            folder_below(tmp_path, name)


def test_changes_in_place(tmp_path):
    (tmp_path / "a").write_bytes(b"abcdef")
    with changed_file(tmp_path / "a") as file:
        put(file, 2, b"XY")
    assert (tmp_path / "a").read_bytes() == b"abXYef"


def full_disk(work):
    """What `work` raises on a disk that is full after 100 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return caught.value


def test_a_full_disk_names_the_file(tmp_path):
    def file():
        with new_file(tmp_path / "a") as file:
            file.write(bytes(1000))

    def folder():
        with new_folder(tmp_path / "b") as folder, new_file(folder / "c") as file:
            file.write(bytes(1000))

    def change():
        with changed_file(tmp_path / "d") as file:
            put(file, 0, bytes(1000))

    (tmp_path / "d").touch()
    for work, name in ((file, "a"), (folder, "b/c"), (change, "d")):
        assert full_disk(work).filename == str(tmp_path / name)
    assert f"(nothing of {tmp_path / 'b'} is kept)" in full_disk(folder).strerror
    assert names(tmp_path) == ["d"]


def test_what_the_dead_left_is_swept_and_what_the_living_write_stays(other, tmp_path):
    sweep(tmp_path)
    assert len([name for name in names(tmp_path) if name.startswith(".metfa-")]) == 2
    other.send_signal(signal.SIGKILL)
    other.wait()
    (tmp_path / "mine").touch()
    (tmp_path / ".metfa-link").symlink_to(tmp_path / "mine")
    sweep(tmp_path)
    assert names(tmp_path) == [LOCK, ".metfa-link", "mine"]


def test_saving_sweeps(other, tmp_path):
    other.send_signal(signal.SIGKILL)
    other.wait()
    with new_folder(tmp_path / "a"):
        pass
    assert names(tmp_path) == [LOCK, "a"]


def test_one_owner_at_a_time(other, tmp_path):
    with pytest.raises(BlockingIOError, match=rf"`store` is being written by another call \(process {other.pid} on"):
        Owner(tmp_path, "store")
    other.send_signal(signal.SIGKILL)  # a dead owner stops nobody
    other.wait()
    with Owner(tmp_path, "store"), pytest.raises(BlockingIOError, match=rf"\(process {os.getpid()} on"):
        Owner(tmp_path, "store")
    assert LOCK not in names(tmp_path)
    with Owner(tmp_path, "store"):
        pass


@pytest.mark.parametrize("kind", ["symlink_to", "hardlink_to"])
def test_a_linked_lock_is_not_written(kind, tmp_path):
    (tmp_path / "secret").write_bytes(b"mine")
    getattr(tmp_path / LOCK, kind)(tmp_path / "secret")
    with pytest.raises(ValueError, match=r"\.lock is a link or no plain file"):
        Owner(tmp_path, "store")
    assert (tmp_path / "secret").read_bytes() == b"mine"


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def none(handle, how):
        raise OSError(37, "No locks available")

    (tmp_path / ".metfa-0123").touch()
    monkeypatch.setattr("metfa._base.locks.fcntl.flock", none)
    sweep(tmp_path)  # nothing is known of its writer
    with Owner(tmp_path, "store"), new_file(tmp_path / "a") as file:
        file.write(b"one")
    assert names(tmp_path) == [".metfa-0123", "a"]


def test_locks_are_of_one_opening(tmp_path):
    (tmp_path / "a").touch()
    with (tmp_path / "a").open() as one, (tmp_path / "a").open() as other:
        assert locked(one.fileno())
        assert not locked(other.fileno())


WRITERS = {"write_text", "write_bytes", "touch", "savefig"}


def test_nobody_else_opens_files_for_writing():
    """But for what is written into memory."""
    root = Path(metfa.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            texts = [arg.value for arg in given if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            opens = called in ("open", "fdopen") and any(re.fullmatch("r?[bt]?[wax+][bt+]*", text) for text in texts)
            if opens or (called in WRITERS and "buffer" not in ast.unparse(node)):
                found.append(name)
    assert set(found) == {"_base/writing.py"}


class TestOverwrite:
    """One rule: an earlier output of the same kind is replaced, and nothing else."""

    @pytest.mark.parametrize("kind", ["folder", "file"])
    def test_without_it_nothing_is_replaced(self, kind, tmp_path):
        (tmp_path / "kept.html").touch()
        with pytest.raises(FileExistsError, match="nothing is overwritten unless you write overwrite=True"):
            check_replaceable(tmp_path / "kept.html", None, kind=kind)
        check_replaceable(tmp_path / "new", None, kind=kind)

    def test_a_folder_of_another_kind_stays(self, tmp_path):
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.png").touch()
        with (
            pytest.raises(FileExistsError, match="photos is no such folder"),
            new_folder(tmp_path / "photos", replaces="manifest.json"),
        ):
            pass
        (tmp_path / "link").symlink_to(tmp_path / "photos")
        (tmp_path / "photos" / "manifest.json").touch()
        with pytest.raises(FileExistsError, match="link is no such folder"):
            check_replaceable(tmp_path / "link", "manifest.json")
        assert (tmp_path / "photos" / "cat.png").exists()

    def test_the_earlier_folder_stays_until_the_new_one_is_whole(self, tmp_path):
        target = tmp_path / "out"
        target.mkdir()
        (target / "manifest.json").write_text("old")
        with pytest.raises(RuntimeError), new_folder(target, replaces="manifest.json"):
            raise RuntimeError
        assert (target / "manifest.json").read_text() == "old"
        with new_folder(target, replaces="manifest.json") as folder:
            (folder / "manifest.json").write_text("new")
        assert (target / "manifest.json").read_text() == "new"
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    @pytest.mark.parametrize("name", ["thesis.tex", "weights.npy", "notes.txt", "before/mine.npy", "mine/notes.md"])
    def test_files_of_others_are_never_removed(self, name, tmp_path):
        target = tmp_path / "out"
        (target / name).parent.mkdir(parents=True)
        (target / "manifest.json").write_text("old")
        (target / name).write_text("mine")
        with (
            pytest.raises(FileExistsError, match=f"{name} is something else, which would be lost"),
            new_folder(target, replaces="manifest.json"),
        ):
            pass
        assert (target / name).read_text() == "mine"

    def test_every_output_has_it(self, tmp_path):
        sample = metfa.explain(
            lambda inputs, target: np.abs(inputs * [3, 1, 0]),
            np.ones((1, 3)),
            0,
            noise=metfa.noise.Uniform(0.1),
            n_samples=8,
            rng=0,
        )
        for write, path in ((sample.save, tmp_path / "result"), (sample.report, tmp_path / "page.html")):
            write(path)
            with pytest.raises(FileExistsError, match="overwrite=True"):
                write(path)
            write(path, overwrite=True)
        again = metfa.load(tmp_path / "result")
        again.save(tmp_path / "result", overwrite=True)  # its arrays are files of the folder that is replaced
        assert np.array_equal(metfa.load(tmp_path / "result").values, sample.values)
        assert np.array_equal(again.values, sample.values)
        with pytest.raises(FileExistsError, match=r"page\.html is no such folder"):
            sample.save(tmp_path / "page.html", overwrite=True)

    @pytest.mark.parametrize("content", ["", "<!DOCTYPE html>\n<title>My thesis</title>"])
    def test_files_of_others_stay(self, content, tmp_path):
        mine = tmp_path / "thesis.html"
        mine.write_text(content)
        with pytest.raises(FileExistsError, match=r"thesis\.html is no such file"):
            report.write(mine, [], overwrite=True)
        assert mine.read_text() == content
