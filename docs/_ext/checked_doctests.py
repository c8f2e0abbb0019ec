"""Run the ``>>>`` blocks of every hand-written page while it is read, so that no snippet can rot.

The blocks of a page share their names and run in order, in an empty folder of the page's own below ``generated/run``:
a block may write a picture that an ``image`` directive further down shows. A wrong output is a warning, and warnings
fail the build. Where a page leaves a part of the output open ("..."), the reader sees what came out.
"""

from __future__ import annotations

import doctest
import os
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ELSEWHERE = ("generated/", "gallery/")  # docstrings are run by pytest, examples by sphinx-gallery
FOLDER = "generated/run"


class _Runner(doctest.DocTestRunner):
    """Says nothing while examples run; remembers what those that are right have printed."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=FLAGS)
        self.printed: list[tuple[str, str]] = []

    def report_start(self, out: Any, test: Any, example: Any) -> None: ...

    def report_success(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:  # noqa: ARG002
        self.printed.append((example.want, got))


def run_page(app: Any, doctree: nodes.document) -> None:
    docname = app.env.docname
    blocks = list(doctree.findall(nodes.doctest_block))
    if not blocks or docname.startswith(ELSEWHERE):
        return
    folder = Path(app.srcdir, FOLDER, docname)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parser, runner, names = doctest.DocTestParser(), _Runner(), {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks:
            runner.printed.clear()
            failures: list[str] = []
            test = parser.get_doctest(block.astext(), names, docname, app.env.doc2path(docname), block.line or 0)
            runner.run(test, out=failures.append, clear_globs=False)
            names = test.globs
            if failures:
                logger.warning("a snippet does not do what it shows:\n%s", "".join(failures), location=docname)
            else:
                _show_output(block, runner.printed)
    finally:
        os.chdir(before)


def _show_output(block: nodes.doctest_block, printed: list[tuple[str, str]]) -> None:
    text, start = block.astext() + "\n", 0
    for want, got in printed:
        at = text.find(want, start)
        if "..." in want and at >= 0 and not want.startswith("Traceback"):
            text = text[:at] + got + text[at + len(want) :]
            start = at + len(got)
        else:
            start = max(start, at + len(want))
    block.rawsource = text.rstrip("\n")
    block[:] = [nodes.Text(block.rawsource)]


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", run_page, priority=100)  # before Sphinx looks for the page's images
    return {"parallel_read_safe": False}
