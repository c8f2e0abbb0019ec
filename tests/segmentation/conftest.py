"""The test bed of ``examples/planted_context.py``, and its small network, trained once for all."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[2] / "examples"))  # which is no package


@pytest.fixture(scope="session")
def biased():
    """The network that finds a 3 by the grass."""
    import planted_context

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # another number gives another network, by rounding
    network, _ = planted_context.small_biased_network(seed=0)
    torch.set_num_threads(before)
    return network
