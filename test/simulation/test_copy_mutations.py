"""Mistakes in copying exactly once are found by the simulation of copies."""

from __future__ import annotations

import pytest

from test.simulation.copy_mutations import MOST, MUTATIONS
from test.simulation.copy_runs import run_copy
from test.simulation.mutations import found_by


@pytest.mark.once
@pytest.mark.parametrize('mutation', MUTATIONS, ids=lambda each: each.__name__)
def test_a_mistake_is_found_by(mutation):
    seeds = [MUTATIONS[mutation], *range(MOST)]
    assert found_by(mutation, seeds, run_copy) is not None
