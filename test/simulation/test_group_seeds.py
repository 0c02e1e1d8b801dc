"""Seeds of groups that a change has to pass, in pieces: ``python -m test.simulation --groups``.

What fails names its seed, and the command that runs that one alone.
"""

from __future__ import annotations

import pytest

from test.simulation.group_runs import run_group

#: Together 3,000, from 0 on; a change is checked by the first of them.
PIECES, SIZE, ORDINARY = 60, 50, 2


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
def test_seeds_of_groups(piece):
    for seed in range(piece * SIZE, (piece + 1) * SIZE):
        run_group(seed)
