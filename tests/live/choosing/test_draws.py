"""A round's random number is a function of seed, writer and round, however rounds come together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stopwise.live.choosing.draws import RoundDraws


@given(st.lists(st.integers(1, 1500), min_size=1, max_size=6))
def test_batches_of_any_size_have_the_numbers_of_their_rounds(sizes):
    draws, first = RoundDraws(3, 1), 1
    alone = RoundDraws(3, 1)
    for size in sizes:
        found = draws.uniforms(first, size)
        assert found.shape == (size,)
        assert found[0] == alone.uniform(first)
        assert found[-1] == alone.uniform(first + size - 1)
        found[:] = 0  # the caller's own: what is kept for the next batch must not change
        first += size
    again = RoundDraws(3, 1).uniforms(1, first - 1)
    assert np.array_equal(again, [alone.uniform(at) for at in range(1, first)])
