"""The demo's photographs."""

import pytest

from metfa.cli.demo import demo_photo


def test_photographs_of_the_demo():
    assert demo_photo("coffee").size == (600, 400)
    assert demo_photo("cat").size == (451, 300)
    with pytest.raises(ValueError, match=r"`--photo` must be one of \['cat', 'coffee'\], got 'dog'"):
        demo_photo("dog")
