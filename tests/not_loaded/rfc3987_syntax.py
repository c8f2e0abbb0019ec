"""In the way of the package of this name, which `tests/conftest.py` says more about."""

raise ImportError("jsonschema does without")
