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
        "beside": "from made_here import number",
        "rude": "import os, sys; sys.path.remove(os.getcwd()); number = 5",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in files:
        sys.modules.pop(name, None)


def test_the_library_does_not_look_into_the_current_folder(here):
    with pytest.raises(ValueError, match=r"^the method 'made_here:number' cannot be imported .* named 'made_here'$"):
        imported("made_here:number", "the method")


def test_a_command_does_and_only_while_it_imports(here):
    before = list(sys.path)
    with also_of_current_folder():
        assert imported("made_here:number", "the method") == 3
        assert imported("beside:number", "the method") == 3
        assert imported("rude:number", "the method") == 5
        assert sys.path == before
    assert sys.path == before
    del sys.modules["made_here"]
    with pytest.raises(ValueError, match="made_here"):
        imported("made_here:number", "the method")


def test_a_file_here_takes_no_installed_module_s_place(here):
    with also_of_current_folder(), pytest.raises(ValueError, match="no attribute 'number'"):
        imported("colorsys:number", "the method")
