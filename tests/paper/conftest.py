from pathlib import Path

import pytest
import torch

if not (Path(__file__).parents[2] / "paper").is_dir():  # it is in the repository only
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """One torch thread: two of them beside another busy process are many times slower than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
