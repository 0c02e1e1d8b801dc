"""All seeds that a change has to pass: ``python -m test.simulation --seeds 2000``, in pieces."""

from __future__ import annotations

import pytest

from test.simulation.runs import run

#: Together 2,000, from 0 on; a change is checked by the first of them.
PIECES, SIZE, ORDINARY = 40, 50, 10


@pytest.mark.once
@pytest.mark.parametrize(
    'piece',
    [
        pytest.param(piece, marks=[pytest.mark.thorough] if piece >= ORDINARY else [])
        for piece in range(PIECES)
    ],
)
def test_seeds(piece):
    for seed in range(piece * SIZE, (piece + 1) * SIZE):
        run(seed)
