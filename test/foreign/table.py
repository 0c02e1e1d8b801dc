"""The page docs/foreign_clients.rst, from what the runs found.

Owns the layout of the page and the file of outcomes: a run of a part replaces that part of the last
run's outcomes, so that one client can be looked at without running all of them again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, Iterable, List, Sequence

from test.foreign.clients import CACHE
from test.foreign.console import TOOL_STEPS
from test.foreign.plan import STEPS
from test.foreign.running import Outcome

KEPT = CACHE / 'outcomes.json'

PAGE = """\
Clients of others
=================

Clients that nobody here wrote, at work on embedded brokers (:doc:`testing`), three of each release,
as ``Cluster(brokers=3, version=...)`` makes them. Each client runs in an environment of its own. It
writes with every codec it has, for which the log is looked at, and which the other clients read. It
looks up offsets, reads in a group of two that one leaves and a third one resumes, and in a share
group, writes idempotently while answers are lost, commits and aborts transactions, goes on when a
leader dies, logs in over TLS, and does what its admin client can. Beside them Kafka's command-line
tools write, read and administer.

Made by ``python -m test.foreign --write docs/foreign_clients.rst``, from a run. What needs but one
broker that nobody hurts runs on a real one, too: ``python -m test.foreign.real 2.8.2``.

A number is that of checks passed. Each compares contents: records read with records written,
offsets, settings.

"""


def keep(outcomes: Iterable[Outcome]) -> List[Outcome]:
    """Add outcomes to those of earlier runs and return all."""
    found = [Outcome(*each) for each in json.loads(KEPT.read_text())] if KEPT.exists() else []
    by_name: Dict[Sequence[str], Outcome] = {each[:3]: each for each in found}
    by_name.update({each[:3]: each for each in outcomes})
    KEPT.write_text(json.dumps(list(by_name.values()), indent=0))
    return list(by_name.values())


def page(outcomes: Sequence[Outcome], clients: Sequence[str], releases: Sequence[str]) -> str:
    """Return the page: the table of clients, then one table of steps for each."""
    parts = [PAGE, _table(clients, releases, outcomes, 'client')]
    for client in clients:
        own = [each for each in outcomes if each.client == client and each.release in releases]
        own.sort(key=lambda each: releases.index(each.release))
        done = {each.step for each in own}
        steps = [each.name for each in [*STEPS, *TOOL_STEPS] if each.name in done]
        parts += ['\n\n', client, '\n', '-' * len(client), '\n\n']
        parts.append(_table(steps, releases, own, 'step'))
        parts.append(_reasons(own))
    return ''.join(parts).rstrip('\n') + '\n'


def _table(
    rows: Sequence[str], releases: Sequence[str], outcomes: Sequence[Outcome], by: str
) -> str:
    shown = [['\\' if by == 'client' else 'step', *releases]]
    for row in rows:
        cells = []
        for release in releases:
            found = [e for e in outcomes if getattr(e, by) == row and e.release == release]
            cells.append(_cell(found))
        shown.append([row, *cells])
    widths = [max(len(line[column]) for line in shown) for column in range(len(shown[0]))]
    rule = '  '.join('=' * max(width, 1) for width in widths)
    lines = ['  '.join(t.ljust(w) for t, w in zip(line, widths)).rstrip() for line in shown]
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule]) + '\n'


def _cell(found: Sequence[Outcome]) -> str:
    if not found:
        return '?'  # not run yet
    if any(each.failed for each in found):
        return '**%d failed**' % sum(1 for each in found if each.failed)
    if all(each.absent for each in found):
        return '–'
    return str(sum(each.passed for each in found))


def _reasons(outcomes: Sequence[Outcome]) -> str:
    """Return why steps are absent and which failed; outcomes are sorted by release."""
    steps: Dict[str, List[str]] = {}
    for each in outcomes:
        if each.absent and each.step not in steps.setdefault(each.absent, []):
            steps[each.absent].append(each.step)
    every = {each.step for each in outcomes}
    lines = []
    for reason, names in sorted(steps.items(), key=lambda item: len(item[1])):
        what = ', '.join(names)
        others = {each.step for each in outcomes if each.absent not in ('', reason)}
        if not reason.startswith('needs') and len(names) > 1 and others.union(names) == every:
            what = 'all steps' if set(names) == every else 'all other steps'
        last = [each.release for each in outcomes if each.absent == reason][-1]
        if not reason.startswith('needs') and last != outcomes[-1].release:
            what += ', up to ' + last
        lines.append('- %s: %s' % (what, reason))
    failed = ['- failed: %s' % str(each).replace('*', r'\*') for each in outcomes if each.failed]
    lines += failed
    return '\n' + '\n'.join(lines) + '\n' if lines else ''


def write(path: Path, text: str) -> None:
    """Write the page."""
    path.write_text(text, encoding='utf-8')
