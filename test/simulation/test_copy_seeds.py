"""Seeds of programs that copy exactly once: ``python -m test.simulation --copies``, in pieces.

What fails names its seed, and the command that runs that one alone.
"""

from __future__ import annotations

import pytest

from test.simulation.copy_runs import run_copy

#: Together 400, from 0 on; a change is checked by the first of them.
PIECES, SIZE, ORDINARY = 16, 25, 1


@pytest.mark.parametrize(
    'piece',
    [
        pytest.param(
            piece,
            marks=[pytest.mark.thorough] if piece >= ORDINARY else [],
            id='%d-%d' % (piece * SIZE, (piece + 1) * SIZE - 1),
        )
        for piece in range(PIECES)
    ],
)
def test_seeds_of_copies(piece):
    for seed in range(piece * SIZE, (piece + 1) * SIZE):
        run_copy(seed)
