"""Headings name a file, and not where it lies."""

import pytest

from metfa.cli.titles import title_of

SAID = {"explained": "cup (0.9)", "model": "resnet", "method": "rise"}


@pytest.mark.parametrize("path", ["/home/ann/secret/cat.png", "C:\\Users\\ann\\cat.png", "cat.png", "./in/cat.png"])
def test_no_folder_is_in_a_title(path):
    assert title_of({"image": path, **SAID}) == "cat.png: why “cup (0.9)”? rise of resnet"
    assert (
        title_of({"image": path, "object": "9 pixels", **SAID})
        == "cat.png: what does “cup (0.9)” need around it? resnet"
    )
    assert title_of({"image": path, "compared": "a and b", **SAID}) == "cat.png: what changed? rise; resnet"


def test_other_titles():
    assert title_of({}) is None
    assert title_of({**SAID, "model": "/home/ann/mine.npz"}) == "Why “cup (0.9)”? rise of mine.npz"
    assert title_of({**SAID, "model": "timm:org/net"}) == "Why “cup (0.9)”? rise of timm:org/net"
    assert title_of({**SAID, "random_weights": True}) == "Why “cup (0.9)”? rise of resnet, untrained"
    assert title_of({"image": "scikit-image's coffee", **SAID}).startswith("scikit-image's coffee: why")
