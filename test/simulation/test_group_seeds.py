"""Seeds of groups that a change has to pass: ``python -m test.simulation --groups``, in pieces."""

from __future__ import annotations

import pytest

from test.simulation.group_runs import run_group

#: Together 300, from 0 on: about 45 seconds of one core.
PIECES, SIZE = 30, 10


@pytest.mark.once
@pytest.mark.parametrize('piece', range(PIECES))
def test_seeds_of_groups(piece):
    for seed in range(piece * SIZE, (piece + 1) * SIZE):
        run_group(seed)
