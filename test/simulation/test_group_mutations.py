"""Mistakes in the consumer and its membership are found by the simulation of groups."""

from __future__ import annotations

import pytest

from test.simulation.group_mutations import MOST, MUTATIONS
from test.simulation.group_runs import run_group
from test.simulation.mutations import found_by


@pytest.mark.once
@pytest.mark.parametrize('mutation', MUTATIONS, ids=lambda each: each.__name__)
def test_a_mistake_is_found_by(mutation):
    seeds = [MUTATIONS[mutation], *range(MOST)]
    assert found_by(mutation, seeds, run_group) is not None
