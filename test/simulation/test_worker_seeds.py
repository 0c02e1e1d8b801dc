"""Seeds of threads that are hit by exceptions, and the mistakes that these seeds find.

``python -m test.simulation --workers --seeds 3000`` runs more of them.
"""

from __future__ import annotations

import pytest

from test.raising import needs_attempts, needs_points
from test.simulation.mutations import found_by
from test.simulation.worker_mutations import MOST, MUTATIONS, OF_ATTEMPTS
from test.simulation.worker_runs import run_workers

#: Together 300, from 0 on.
PIECES, SIZE = 6, 50

pytestmark = needs_points


@pytest.mark.parametrize(
    'piece',
    [0, *(pytest.param(piece, marks=pytest.mark.thorough) for piece in range(1, PIECES))],
)
def test_seeds_of_workers(piece):
    hits = sum(run_workers(piece * SIZE + number).hits for number in range(SIZE))
    assert hits > SIZE  # or next to nothing was tried


@pytest.mark.once
@pytest.mark.parametrize(
    'mutation',
    [
        pytest.param(mutation, marks=needs_attempts if mutation in OF_ATTEMPTS else ())
        for mutation in MUTATIONS
    ],
    ids=lambda each: each.__name__,
)
def test_a_mistake_is_found_by(mutation):
    seeds = [MUTATIONS[mutation], *range(MOST)]
    assert found_by(mutation, seeds, run_workers) is not None
