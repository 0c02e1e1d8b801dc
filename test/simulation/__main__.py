"""Run the simulation of a producer: ``python -m test.simulation --seeds 2000``, or ``--seed 7``.

With ``--groups`` that of the members of a group, with ``--copies`` that of ExactlyOnce, with
``--workers`` that of threads that share a producer.

Prints how to repeat a run that failed, and ends with status 1 then. What it prints last is the
history of the runs, a digest: it is the same wherever the same seeds are run; that of threads is
empty.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import logging
import sys
import time

from test.simulation.checks import Wrong
from test.simulation.copy_runs import run_copy
from test.simulation.group_runs import run_group
from test.simulation.runs import run
from test.simulation.worker_runs import run_workers


def main(arguments=None):
    """Run seeds one after the other; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seeds', type=int, default=100, help='how many, from 0 (or --first) on')
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--seed', type=int, help='only this one')
    parser.add_argument('--groups', action='store_true', help='of groups, not of producers')
    parser.add_argument('--copies', action='store_true', help='of programs that copy exactly once')
    parser.add_argument('--workers', action='store_true', help='of threads hit by exceptions')
    parser.add_argument('--verbose', action='store_true', help='print what happens in a group')
    parser.add_argument('--most', type=int, default=10, help='failures after which it ends')
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + given.seeds) if given.seed is None else [given.seed]
    logging.getLogger('kafka').addHandler(logging.NullHandler())  # of trouble that is wanted
    one = run
    if given.groups or given.copies:
        one = functools.partial(run_copy if given.copies else run_group, verbose=given.verbose)
    elif given.workers:
        one = run_workers
    failed, start, history = [], time.process_time(), hashlib.sha256()
    for seed in seeds:
        try:
            history.update(one(seed).history.encode())
        except Wrong as error:
            failed.append(seed)
            sys.stdout.write('%s\n' % error)
            if given.seed is not None:
                raise
            if len(failed) >= given.most:
                break
    seconds = time.process_time() - start
    sys.stdout.write(
        '%d seeds, %d failed, %.1f s of a core, history %s\n'
        % (len(seeds), len(failed), seconds, history.hexdigest()[:16])
    )
    return len(failed)


if __name__ == '__main__':
    sys.exit(1 if main() else 0)
