"""All seeds that a change has to pass: ``python -m test.simulation --seeds 2000``, in pieces."""

from __future__ import annotations

import pytest

from test.simulation.runs import run

#: Together 2,000, from 0 on.
PIECES, SIZE = 40, 50


@pytest.mark.apart
@pytest.mark.once
@pytest.mark.parametrize('piece', range(PIECES))
def test_seeds(piece):
    for seed in range(piece * SIZE, (piece + 1) * SIZE):
        run(seed)
