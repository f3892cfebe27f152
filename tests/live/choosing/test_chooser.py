"""Depths of many rounds, drawn at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stopwise.live.choosing.chooser import sums_reached

quarters = st.integers(0, 8).map(lambda n: n / 4)


@given(st.lists(quarters, max_size=12).map(sorted), st.lists(quarters, max_size=20))
def test_few_sums_and_many_are_reached_alike(sums: list[float], numbers: list[float]) -> None:
    found = sums_reached(np.array(sums, dtype=float), np.array(numbers, dtype=float))
    assert found.dtype == np.int64
    assert found.tolist() == [sum(number >= one for one in sums) for number in numbers]
