"""Both connectors case by case, as a page: docs/spark_differential.rst.

    python -m test.spark.table 4.4.0 3.9.2 2.8.2   all cases on brokers of these releases, written
    python -m test.spark.table --only change 4.4.0 the cases in whose names that stands, written
    python -m test.spark.table                     nothing is run: the page of what was noted

Owns the page between its markers, and test/spark/differential.json, in which stands what came of
each case when it was run last. Nothing is typed in; a test checks that both have the cases of
cases.py and that the page says what the file does. Needs the environment of the tests with Spark,
Maven for the JVM connector's jars, and the releases.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from servers.cluster import IMPATIENT, Cluster
from servers.releases import chosen, problem
from test.spark import cases, topics
from test.spark.cases import Case

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs' / 'spark_differential.rst'
NOTED = ROOT / 'test' / 'spark' / 'differential.json'
BEGIN, END = '.. BEGIN differential-table\n', '.. END differential-table\n'
RELEASES = ('4.4.0', '3.9.2', '2.8.2')
NOT_RUN, LACKING = 'not run', 'there is none'

GROUPS = {
    'read': 'Batches: equal schemas, and equal rows in every column',
    'tasks': 'Tasks of a batch, by minPartitions and maxRecordsPerPartition: equal ranges',
    'formats': 'Formats v0, v1 and v2 of messages, each codec that they know',
    'refused': 'Batches that both refuse, for the same kind of reason; ours names the option',
    'stricter': 'Batches that only ours refuses, for a reason',
    'stream': 'Streams: equal schemas, and equal rows in equal batches',
    'change at rest': 'Streams over a topic that changes between two runs of a query',
    'change at work': 'Streams over a topic that changes while the query runs',
    'alternating': 'A query that goes on by the other connector, and back, over one checkpoint',
    'refused stream': 'Streams that both refuse',
    'written': 'Sinks: equal topics, headers included',
    'refused sink': 'What both sinks refuse, and nothing of it is stored',
}
FORMATS = (
    '- ``v0``, ``v1``, ``v2``: A partition for each codec that this format of messages knows, on'
    ' brokers before 3.0, which write the old ones.'
)
Noted = Dict[str, Dict[str, Dict[str, str]]]


def noted() -> Noted:
    """Return {release: {case: {'word': ..., 'told': ...}}} of the last runs."""
    return dict(json.loads(NOTED.read_text())) if NOTED.exists() else {}


def write(found: Noted) -> None:
    """Write what came of the cases, and the page; cases that are no more are left out."""
    names = {str(each) for each in cases.ALL}
    kept = {
        release: {name: told for name, told in sorted(of.items()) if name in names}
        for release, of in found.items()
    }
    NOTED.write_text(json.dumps(kept, indent=1, sort_keys=True) + '\n')
    PAGE.write_text(page(PAGE.read_text(), kept))


def run(release_name: str, wanted: Sequence[Case], oracle: Any) -> Dict[str, Dict[str, str]]:
    """Run cases on a broker of a release."""
    from test.spark.judging import judge, lacks  # late: the page alone needs no connectors

    (release,) = chosen(release_name)
    found = {}
    with Cluster(release, settings={**IMPATIENT, **topics.SETTINGS}) as broker:
        topics.make_all(broker)
        if release.version < (3, 0):
            topics.make_formats(broker)
        for case in wanted:
            if lacks(case, release):
                continue
            with tempfile.TemporaryDirectory() as folder:
                verdict = judge(oracle, broker, case, Path(folder))
            sys.stdout.write('%s  %s: %s %s\n' % (release_name, case, verdict.told, verdict.why))
            sys.stdout.flush()
            found[str(case)] = {'word': verdict.word, 'told': verdict.told}
    return found


# ---------------------------------------------------------------- the page


def page(text: str, found: Noted) -> str:
    """Return the page with its tables written anew."""
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    return head + BEGIN + '\n' + tables(found) + '\n' + END + tail


def tables(found: Noted) -> str:
    """Return what stands between the markers."""
    lines = [
        *_list_table(['broker', 'cases', 'equal', 'both refuse', 'explained', 'not explained']),
        *(line for release in RELEASES for line in _row(_counts(release, found))),
        '',
        'The topics:',
        '',
        *('- ``%s``: %s' % (name, _first(make.__doc__)) for name, make in topics.MAKERS.items()),
        FORMATS,
    ]
    for group, title in GROUPS.items():
        lines += ['', title, '-' * len(title), '', *_of_group(group, found)]
    return '\n'.join(lines) + '\n'


def _of_group(group: str, found: Noted) -> List[str]:
    lines = _list_table(['case', _HEADS.get(group, 'options'), *RELEASES])
    for case in cases.ALL:
        if case.group == group:
            told = [_told(case, release, found) for release in RELEASES]
            lines += _row([case.name, _what(case), *told])
    return lines


_HEADS = {
    'tasks': 'what is read',
    'written': 'what is written',
    'refused sink': 'what is written',
    'alternating': 'the order',
    'change at rest': 'failOnDataLoss',
    'change at work': 'failOnDataLoss',
    'stricter': 'options, and the reason',
}


def _told(case: Case, release: str, found: Noted) -> str:
    told: Optional[Mapping[str, str]] = found.get(release, {}).get(str(case))
    if told is not None:
        return told['told']
    is_lacking = case.group == 'formats' and release != '2.8.2'
    return LACKING if is_lacking else NOT_RUN


def _what(case: Case) -> str:
    """Return what a case is about, as rst."""
    what = case.what
    if case.group == 'tasks':
        return '``uneven``'
    if case.group.startswith('change'):
        return what[1]
    if case.group == 'alternating':
        return ', '.join((*what, what[0]))
    if isinstance(what, str):
        return _literal(what.replace('{}', 'TOPIC'))
    if case.group == 'formats':
        what = what[1]
    told = ', '.join(_literal('%s=%s' % each) for each in what.items()) or 'none'
    return told + ('. ' + case.reason if case.reason else '')


def _literal(text: str) -> str:
    """Return text as a literal, without blanks at its ends, where rst has none."""
    return '``%s``' % text.replace('`', "'").strip()


def _counts(release: str, found: Noted) -> List[str]:
    of = found.get(release, {})
    words = Counter(told['word'] for told in of.values())
    kinds = ('equal', 'refused', 'explained', 'different')
    return [release, str(len(of)), *(str(words[each]) for each in kinds)]


def _list_table(heads: Sequence[str]) -> List[str]:
    return ['.. list-table::', '   :header-rows: 1', '', *_row(heads)]


def _row(cells: Iterable[str]) -> List[str]:
    return ['   %s %s' % ('* -' if not at else '  -', cell) for at, cell in enumerate(cells)]


def _first(doc: Optional[str]) -> str:
    return (doc or '').split('\n')[0]


def main() -> int:
    """Run what is asked for and write the page; 1 if anything is not explained."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('releases', nargs='*')
    parser.add_argument('--only', default='', help='a part of the names of cases')
    options = parser.parse_args()
    found = noted()
    if options.releases:
        from test.spark.oracle import Oracle  # late: the page alone needs none

        wanted = [each for each in cases.ALL if options.only in str(each)]
        reasons = [problem(each) for release in options.releases for each in chosen(release)]
        if any(reasons):  # before anything is run
            raise SystemExit('; '.join(filter(None, reasons)))
        for release in options.releases:
            with Oracle() as oracle:  # theirs keeps consumers of a group, wherever the brokers are
                found.setdefault(release, {}).update(run(release, wanted, oracle))
            write(found)
    write(found)
    words = {told['word'] for of in found.values() for told in of.values()}
    return int('different' in words)


if __name__ == '__main__':
    sys.exit(main())
