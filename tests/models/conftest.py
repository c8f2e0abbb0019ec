import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """One torch thread: two of them beside another busy process are many times slower than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
