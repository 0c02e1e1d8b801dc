"""Looking for mistakes that were put into the package by the seeds of a simulation."""

from __future__ import annotations

import sys

import pytest

from test.simulation.checks import Wrong


def found_by(mutation, seeds, run):
    """Return the first of some seeds that finds a mistake, and how; None if none does."""
    with pytest.MonkeyPatch.context() as patch:
        mutation(patch)
        for seed in seeds:
            try:
                run(seed)
            except Wrong as error:
                return seed, str(error)
    return None


def search(mutations, run, names):
    """Print for each mistake, or those that are named, the first seed that finds it."""
    for each in mutations:
        if each.__name__ in names or not names:
            sys.stdout.write('%s: %s\n' % (each.__name__, found_by(each, range(150), run)))
            sys.stdout.flush()
