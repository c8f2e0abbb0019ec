"""The command line: metfa demo | explain | show."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the command ``metfa``: exit code 0, 2 for a mistake of the user's, 130 when interrupted."""
    try:
        from metfa.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "metfa").partition(".")[0] == "metfa":
            raise
        sys.stderr.write(f"error: the command line needs {error.name}: pip install 'metfa[image]'\n")
        sys.exit(2)
    run()
