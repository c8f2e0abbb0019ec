"""A tiny model and a way to run the command in this process."""

import sys
import textwrap
from dataclasses import dataclass

import pytest
import torch

import metfa.cli
from metfa.cli import app

TINY = '''
    """A model and methods of a user's own, for --model tiny:model and --method tiny:slow."""

    import os
    import pathlib
    import time

    import torch
    from torch import nn

    from metfa.explainers import Gradient, heatmap
    from metfa.models import CentreCrop, LoadedModel, WholePicture


    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            generator = torch.Generator().manual_seed(0)
            self.conv = nn.Conv2d(3, 4, 5, stride=4)
            self.head = nn.Linear(4, 3)
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)

        def forward(self, x):
            return self.head(self.conv(x).relu().mean((2, 3)))


    def model():
        return LoadedModel(Tiny().eval(), CentreCrop(96))


    def named():
        return LoadedModel(Tiny().eval(), CentreCrop(96), ("cup", "pot", "plate"))


    def module():
        return Tiny().eval()


    class Scenes(nn.Module):
        """Class 1, an object, is what is red in a scene whose left edge is green; class 2 is never found."""

        def forward(self, x):
            red, green = x[:, :1], x[:, 1:2, :, :4].mean((2, 3), keepdim=True)
            found = 12 * red * green - 3
            return {"out": torch.cat([0 * red, found, 0 * red - 9], 1)}


    def scenes():
        return Scenes().eval()


    def named_scenes():
        return LoadedModel(scenes(), WholePicture(), ("ground", "object", "nothing"))


    def likely_scenes():
        class Likely(Scenes):
            def forward(self, x):
                return super().forward(x)["out"].softmax(1)

        return LoadedModel(Likely().eval(), WholePicture(), ("ground", "object", "nothing"))


    def broken():
        raise ValueError("out of order\\nin two lines")


    def none():
        return None


    class slow(Gradient):
        """Tells when some of its maps or units are kept, and waits for the interruption."""

        def __call__(self, inputs, target=None):
            waiting = os.environ.get("METFA_TEST_WAITS")
            maps = (any(path.read_bytes()) for path in pathlib.Path().glob("*/sample/done.bin"))
            units = (path.is_file() and path.suffix == ".json" for path in pathlib.Path("store").rglob("*"))
            if waiting and (any(maps) or any(units)):
                open(waiting, "w").close()
                time.sleep(60)
            return super().__call__(inputs, target)


    def channels(module):
        return lambda inputs, target: inputs
'''


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Folder with a module `tiny`, importable here."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "tiny.py").write_text(textwrap.dedent(TINY))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(autouse=True)
def quiet_process(monkeypatch):
    """Keep the malloc of the tests' process as it is, and to one thread."""
    monkeypatch.setattr(app, "keep_freed_memory", lambda: True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def every_figure_quickly(quick_figures):
    """On the layout of its figures a command spends nine tenths of its time."""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def error(self):
        """The one line that a mistake is answered by."""
        lines = self.err.splitlines()
        assert self.code == 2, self
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        assert self.out == ""
        assert lines[0].isprintable()
        return lines[0]


@pytest.fixture
def metfa_command(monkeypatch, capsys, tmp_path):
    """Run ``metfa`` with arguments, in this process and in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["metfa", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            metfa.cli.main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(exit_.value.code or 0, captured.out, captured.err)

    return run


@pytest.fixture
def explain(metfa_command, tiny):
    """Run ``metfa explain`` with the tiny model and few samples."""

    def run(*arguments, samples=8):
        few = () if samples is None else ("--samples", samples)
        return metfa_command("explain", *arguments, "--model", "tiny:model", *few)

    return run
