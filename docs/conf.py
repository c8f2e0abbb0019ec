"""Sphinx configuration: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "metfa"
author = "The metfa developers"
copyright = "The metfa developers, Apache-2.0"
release = metadata.version("metfa")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx.ext.extlinks",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "checked_doctests",
    "generated_parts",
    "mathml_renderer",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "generated/parts", "generated/run"]
default_role = "py:obj"
add_module_names = False
html_math_renderer = "mathml"
nitpicky = False
extlinks = {"doi": ("https://doi.org/%s", "doi:%s"), "arxiv": ("https://arxiv.org/abs/%s", "arXiv:%s")}

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__\.py|train_|planted_",  # scripts that examples use, or that need data of their own
    "within_subsection_order": "gallery_figures.ByNumber",
    "image_scrapers": ("gallery_figures.unregistered_figures", "matplotlib"),
    "download_all_examples": False,
    "parallel": 2,
    "show_memory": False,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "show_signature": False,
    "capture_repr": ("__repr__",),
    "backreferences_dir": None,
}

html_theme = "pydata_sphinx_theme"
html_title = f"metfa {release}"
html_static_path = ["_static"]
html_css_files = ["metfa.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_nav_level": 2,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {name: [] for name in ("index", "tutorial", "changelog", "bibliography", "contributing", "versions")}
