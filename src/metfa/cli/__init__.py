"""The command line: the entry point of ``metfa``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the command ``metfa``: exit code 0, 2 after a mistake in the command, 130 if interrupted."""
    try:
        from metfa.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "metfa").partition(".")[0] == "metfa":
            raise
        sys.stderr.write(f"error: the command line needs {error.name}: pip install 'metfa[image]'\n")
        sys.exit(2)
    run()
