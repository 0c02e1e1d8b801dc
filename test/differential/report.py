"""The page docs/differential.rst: what was asked of each release, what is equal, what is not.

Owns the counting and the text; everything on the page comes from recordings of real releases and
from runs of the embedded broker against them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple
from typing import Counter as CounterOf

from kafka.protocol.api import request_class
from kafka.testing.releases import broker_release
from test.differential import recordings
from test.differential.answers import IDS, LEFT_OUT, NUMBERED, PLACES, SIZES
from test.differential.compare import TEXTS, compare, explanation
from test.differential.comparisons import SCRIPT, SECURED, Comparison
from test.differential.deviations import Deviation
from test.differential.runner import Recording
from test.differential.script import cases
from test.differential.secured_logins import DIALOGUES
from test.differential.secured_people import LEFT_OUT as NOT_ASKED_OF_PEOPLE

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'differential.rst'
COMMAND = 'python -m test.differential --report'
_NO_RECEIVER = (
    'real brokers serve it only where a plugin receives the metrics of clients (KIP-714), and'
    ' those asked here have none'
)
#: APIs of clients that no step asks, and why.
NOT_ASKED = {71: _NO_RECEIVER, 72: _NO_RECEIVER}


class Count(NamedTuple):
    """Requests of one API to one release: all, and those whose answers differ."""

    requests: int = 0
    explained: int = 0
    unexplained: int = 0


class Result(NamedTuple):
    """What came of one release; ``reasons`` are the places of deviations in their list."""

    release: str
    fields: int
    apis: Dict[int, Count]
    reasons: CounterOf[int]

    @property
    def total(self) -> Count:
        """The sum over all APIs."""
        return Count(*(sum(column) for column in zip(*self.apis.values())))


def result_of(comparison: Comparison, release: str, real: Recording, ours: Recording) -> Result:
    """Compare what a real and an embedded broker said to everything."""
    deviations = comparison.deviations
    version = broker_release(release).version
    worst: Dict[str, int] = {}  # step -> 1 for explained, 2 for not
    reasons: CounterOf[int] = Counter()
    for difference in compare(real, ours):
        found = explanation(difference, version, deviations)
        worst[difference.where] = max(worst.get(difference.where, 0), 1 if found else 2)
        if found is not None:
            reasons[deviations.index(found)] += 1
    apis = _apis(release)
    counts: Dict[int, List[int]] = {}
    for name in real:
        row = counts.setdefault(apis.get(name, -1), [0, 0, 0])
        row[0] += 1
        if name in worst:
            row[worst[name]] += 1
    fields = sum(_leaves(entry.get('answer')) for entry in real.values())
    return Result(release, fields, {api: Count(*row) for api, row in counts.items()}, reasons)


def kept_results(comparison: Comparison) -> List[Result]:
    """Run the embedded broker against all kept recordings."""
    results = []
    for release in comparison.all_kept():
        real = comparison.kept(release)
        ours = comparison.of_embedded(release, '', real)
        results.append(result_of(comparison, release, real, ours))
    return sorted(results, key=_version)


def _apis(release: str) -> Dict[str, int]:
    """Return the API of each step of the script; malformed requests belong to none."""
    return {
        '%s/%s' % (case.label, step.name): -1 if step.frame is not None else step.api
        for case in cases(recordings.ALL, broker_release(release))
        for step in case.scenario.steps
    }


def _leaves(answer: Any) -> int:
    if isinstance(answer, dict):
        return sum(map(_leaves, answer.values()))
    return sum(map(_leaves, answer)) if isinstance(answer, list) else 1


def _version(result: Result) -> Tuple[int, ...]:
    return tuple(map(int, result.release.split('.')))


# ---------------------------------------------------------------- the page


def page() -> str:
    """Return the whole page; that takes a minute."""
    script, secured = map(kept_results, (SCRIPT, SECURED))
    parts = [
        _HEAD % COMMAND,
        _table(_RELEASE_COLUMNS, map(release_row, script)),
        _SECURED % len(DIALOGUES),
        _table(_RELEASE_COLUMNS, map(release_row, secured)),
        _NOT_ASKED_OF_PEOPLE,
        *_left_out(),
        _FIELDS % _names(),
        _DEVIATIONS,
        *_reasons(SCRIPT, script),
        _SECURED_DEVIATIONS,
        *_reasons(SECURED, secured),
        _APIS,
        _table(*_by_api(script)),
        _NOT_ASKED,
        *('- %s: %s.' % (_api_name(api), why) for api, why in NOT_ASKED.items()),
    ]
    return '\n'.join(parts) + '\n'


_HEAD = """.. Written by ``%s``; do not edit.

========================================
The embedded broker beside real releases
========================================

One script (``test/differential``) is sent to a real broker of a release and to an embedded one of
the same. It asks every API that clients use in every version that the release serves, well and
badly, and versions that it refuses, and bytes that are no request. Each answer, or the closed
connection or the silence in its place, is written down and compared field by field. What real
brokers said is kept in ``test/differential/recorded``; every test run sends the script to the
embedded broker of each release, and the integration tests send it to real brokers again.

*equal* are requests whose answers have no difference at all, *explained* those whose only
differences are in the list of deviations below, *not explained* the others.
"""

_SECURED = """
Several people and their logins
===============================

A second comparison is about who may do what, and what brokers then tell. A broker with SASL and
ACLs is asked the same by several people: ``alice`` has rights for some topics, groups and
transactional ids and asks in every version, ``bob`` has none, ``dave`` and ``carol`` have some
for the cluster. Up to %d logins, good and bad, with PLAIN, SCRAM and OAUTHBEARER come on top; each
counts as one request here. Recordings are in ``test/differential/recorded_secured``.
"""

_NOT_ASKED_OF_PEOPLE = """
Left out, with the reason:
"""

_FIELDS = """
Fields of which less is compared
================================

%s
"""

_DEVIATIONS = """
Deviations
==========

Differences that stay. With each reason: the steps and the fields that it is about, as regular
expressions, and how many fields it explained in which release.
"""

_SECURED_DEVIATIONS = """
The same of the secured brokers:
"""

_NOT_ASKED = """
APIs of clients that are not asked, with the reason:
"""

_APIS = """
Requests by API
===============

The number of requests to each release; in parentheses those of them with an explained difference.
"""

_RELEASE_COLUMNS = ('release', 'requests', 'fields', 'equal', 'explained', 'not explained')


def release_row(result: Result) -> Sequence[str]:
    """Return the line of a release in the first table."""
    total = result.total
    equal = total.requests - total.explained - total.unexplained
    counts = (total.requests, result.fields, equal, total.explained, total.unexplained)
    return (result.release, *(f'{count:,}' for count in counts))


def _names() -> str:
    def listed(names: Iterable[str]) -> str:
        return ', '.join('``%s``' % name for name in sorted(names))

    return '\n'.join(
        '- %s: %s.' % line
        for line in (
            ('Ids, by the order in which they appear in a case', listed(NUMBERED)),
            ('Ids of topics, by the name of the topic', listed(['topic_id'])),
            ('Ids, only whether there is one', listed(IDS)),
            ('Where the broker is', listed(PLACES)),
            ('Sizes on disk, only whether there is one', listed(SIZES)),
            ('Texts of errors, only whether there is one', listed(TEXTS)),
            ('Not compared', listed(LEFT_OUT)),
            ('Times that brokers make up', 'to the hour'),
            ('The order of topics, partitions and other elements with a name', 'not compared'),
        )
    )


def _left_out() -> Iterable[str]:
    for who, ask, reason in NOT_ASKED_OF_PEOPLE:
        yield '- %s is not asked to %s: %s.' % (who, ask, reason)


def _reasons(comparison: Comparison, results: Sequence[Result]) -> Iterable[str]:
    for place, deviation in enumerate(comparison.deviations):
        found = [(result.release, result.reasons[place]) for result in results]
        used = ', '.join('%s: %d' % each for each in found if each[1]) or 'none'
        yield '- %s.\n\n  ``%s``, ``%s``; %s' % (_sentence(deviation), *deviation[:2], used)


def _sentence(deviation: Deviation) -> str:
    return deviation.reason[0].upper() + deviation.reason[1:]


def _by_api(results: Sequence[Result]) -> Tuple[Sequence[str], Iterable[Sequence[str]]]:
    keys = sorted({api for result in results for api in result.apis})
    rows = [
        [_api_name(api), *(_cell(result.apis.get(api, Count())) for result in results)]
        for api in keys
    ]
    return ['API', *(result.release for result in results)], rows


def _api_name(api: int) -> str:
    if api < 0:
        return 'no good request'
    return '%d %s' % (api, request_class(api).__name__[: -len('Request')])


def _cell(count: Count) -> str:
    if not count.requests:
        return '–'
    if count.unexplained:
        return '%d (%d, %d not)' % count
    return '%d (%d)' % count[:2] if count.explained else str(count.requests)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as reStructuredText has them."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rule = ' '.join('=' * width for width in widths)
    text = [' '.join(cell.ljust(width) for cell, width in zip(line, widths)) for line in lines]
    return '\n'.join([rule, text[0].rstrip(), rule, *(line.rstrip() for line in text[1:]), rule])
