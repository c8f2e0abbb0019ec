"""Parts of an input that a person asks about: superpixels, boxes, objects, sentences, variables, windows, blocks.

Every function here returns a `metfa.Regions`, and `tree` several. They are made from the clean input, or from the
shape of its maps, and never from the samples that are tested.
"""

from metfa._base.lazy import lazy_names

_HOME = {
    "RegionTree": "metfa.regions.trees",
    "blocks": "metfa.regions.cells",
    "boxes": "metfa.regions.rectangles",
    "grid": "metfa.regions.cells",
    "objects": "metfa.regions.segmentations",
    "phrases": "metfa.regions.texts",
    "sentences": "metfa.regions.texts",
    "superpixels": "metfa.regions.colours",
    "tree": "metfa.regions.trees",
    "variables": "metfa.regions.columns",
    "windows": "metfa.regions.cells",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.regions", _HOME)
