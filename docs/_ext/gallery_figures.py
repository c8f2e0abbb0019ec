"""The gallery's pages: figures that pyplot does not know, such as those of `metfa.plot.figure`, and their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakSet

from matplotlib._pylab_helpers import Gcf
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.sorting import FileNameSortKey


class ByNumber(FileNameSortKey):
    """plot_10_... after plot_9_..."""

    def __call__(self, filename: Any) -> int:
        """Number of an example."""
        return int(Path(filename).name.split("_")[1])


_seen: WeakSet[Figure] = WeakSet()


def unregistered_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:  # noqa: ARG001
    """Save each new figure of a block that pyplot's own scraper would miss."""
    for manager in Gcf.get_all_fig_managers():
        _seen.add(manager.canvas.figure)
    paths = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and value not in _seen:
            _seen.add(value)
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1], dpi=110)
    return figure_rst(paths, gallery_conf["src_dir"])
