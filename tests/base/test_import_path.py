"""Import of what a user named: from where, and what is said where it fails."""

import sys

import pytest

from metfa._base.import_path import also_of_current_folder, imported


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with a module of its own, one named like an installed package, and one that needs a third."""
    files = {
        "made_here": "number = 3",
        "colorsys": "number = 4",
        "beside": "def later():\n    from made_here import number\n    return number + 1",
        "rude": "import os, sys; sys.path.remove(os.getcwd()); number = 5",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in files:
        sys.modules.pop(name, None)


def test_the_library_does_not_look_into_the_current_folder(here):
    with pytest.raises(ValueError, match=r"^the method 'made_here:number' cannot be imported .* named 'made_here'$"):
        imported("made_here:number", "the method")


def test_a_command_does(here):
    before = list(sys.path)
    with also_of_current_folder():
        assert imported("made_here:number", "the method") == 3
        assert sys.path == [*before, str(here)]  # what it imports when it is called lies here, too
        assert imported("beside:later", "the method")() == 4
        assert imported("rude:number", "the method") == 5


def test_nothing_else_is_looked_for_here(here):
    before = list(sys.path)
    with also_of_current_folder():
        imported("math:pi", "the method")
        with pytest.raises(ValueError, match="no attribute 'other'"):
            imported("math:other", "the method")
    assert sys.path == before
    with pytest.raises(ValueError, match="made_here"):
        imported("made_here:number", "the method")


def test_a_file_here_takes_no_installed_module_s_place(here):
    with also_of_current_folder(), pytest.raises(ValueError, match="no attribute 'number'"):
        imported("colorsys:number", "the method")
