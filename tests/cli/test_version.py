"""`metfa --version`, and the same from Python."""

from importlib import metadata

from typer.testing import CliRunner

import metfa
from metfa.cli.app import app


def test_it_is_that_of_the_package():
    assert metfa.__version__ == metadata.version("metfa")
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"metfa {metfa.__version__}\n")
