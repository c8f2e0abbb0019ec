"""The package as a whole."""

import subprocess
import sys

from metfa import stats


def test_public_names_exist():
    assert stats.__all__ == sorted(stats.__all__)
    assert all(hasattr(stats, name) for name in stats.__all__)


def test_importing_it_loads_numpy_alone():
    heavy = "{'scipy', 'torch', 'jax', 'matplotlib', 'pandas'}"
    code = f"import metfa.stats, sys; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
