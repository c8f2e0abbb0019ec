"""The script that makes the shipped table of synonyms makes the very same again."""

import runpy
import sys
from importlib import resources
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_synonyms.py"
FOLDER = Path("/usr/share/wordnet")  # of Debian's wordnet-base
COPYRIGHT = Path("/usr/share/doc/wordnet-base/copyright")

pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="Debian's wordnet-base is not installed"),
    pytest.mark.skipif(not SCRIPT.is_file(), reason="the scripts are in the repository only"),
]


def shipped(name):
    return (resources.files("metfa.text") / "data" / name).read_bytes()


def test_table_and_licence_are_made_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(FOLDER), "--out", str(tmp_path / "data")])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    made = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert sorted(made) == ["WORDNET-LICENSE.txt", "synonyms.tsv.xz"]
    assert made == {name: shipped(name) for name in made}


def test_licence_is_the_one_that_debian_names():
    words = COPYRIGHT.read_text("utf-8").split("License: WordNet3.0\n")[1].split("Files: debian/*")[0].split()
    ours = shipped("WORDNET-LICENSE.txt").decode().split()
    assert ours[-len(words) + words.count(".") :] == [word for word in words if word != "."]
