"""The version that is installed."""

from importlib import metadata

__all__ = ["__version__"]

__version__ = metadata.version("metfa")
