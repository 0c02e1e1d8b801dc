"""How a case is judged: the same job by both connectors, and what came of it in a word.

Owns what counts as equal. ``judge()`` returns a Verdict and raises nothing of what connectors do;
tests and the page (table.py) go by it. Does not own the cases (cases.py).
"""

from __future__ import annotations

import itertools
from typing import Any, List, NamedTuple

from servers.releases import Release
from test.spark import cases, topics
from test.spark.cases import Case
from test.spark.comparing import both, refuses, text
from test.spark.oracle import KAFKA, OURS

_numbers = itertools.count(1)


class Verdict(NamedTuple):
    """What came of a case.

    word: 'equal', 'refused' (by both, for the same kind of reason), 'explained' or 'different';
    told: for the page; why: what both brought, where they differ.
    """

    word: str
    told: str
    why: str = ''

    @property
    def is_good(self) -> bool:
        """Whether there is nothing to explain that is not explained."""
        return self.word != 'different'


def lacks(case: Case, release: Release) -> bool:
    """Tell whether brokers of a release cannot have what a case is about."""
    return case.group == 'formats' and release.version >= (3, 0)


def judge(oracle: Any, broker: Any, case: Case, folder: Any) -> Verdict:
    """Run a case with both connectors. Arguments: folder: a new one, for checkpoints."""
    return _JUDGES[case.group](oracle, broker, case, folder)


def _differ(theirs: Any, ours: Any) -> Verdict:
    return Verdict('different', 'different', 'theirs: %s\nours:   %s' % (theirs, ours))


def _same(theirs: Any, ours: Any, is_empty: bool = False) -> Verdict:
    """Judge outcomes that are to be equal, and to have rows or none."""
    count = len(ours.rows) + sum(map(len, ours.batches))
    if theirs.failure is not None or ours != theirs or bool(count) == is_empty:
        return _differ(theirs, ours)
    told = 'equal, %d row%s' % (count, '' if count == 1 else 's')
    if len(ours.batches) > 1:
        told += ' in %d batches' % len(ours.batches)
    return Verdict('equal', told)


def _read(oracle: Any, broker: Any, case: Case, _: Any) -> Verdict:
    return _same(*both(oracle, broker, 'read', case.what), case.name in cases.NOTHING)


def _stream(oracle: Any, broker: Any, case: Case, folder: Any) -> Verdict:
    options = {name: value for name, value in case.what.items() if value}
    return _same(*both(oracle, broker, 'stream', options, folder))


def _formats(oracle: Any, broker: Any, case: Case, folder: Any) -> Verdict:
    job, options = case.what
    if options.get('startingOffsets') == 'within':
        count = len(topics.codecs_of(options['subscribe']))
        options = {
            **options,
            'startingOffsets': text(**{options['subscribe']: [50] * count}),
            'endingOffsets': text(**{options['subscribe']: [111] * count}),
        }
    return _same(*both(oracle, broker, job, options, folder if job == 'stream' else None))


def _tasks(oracle: Any, broker: Any, case: Case, _: Any) -> Verdict:
    sizes = dict(zip(('minPartitions', 'maxRecordsPerPartition'), case.what))
    theirs, ours = both(oracle, broker, 'tasks', {'subscribe': 'uneven', **sizes})
    if ours != theirs or len(ours.ranges) < 3:
        return _differ(theirs, ours)
    return Verdict('equal', 'equal, %d tasks' % len(ours.ranges))


def _refused(oracle: Any, broker: Any, case: Case, folder: Any) -> Verdict:
    job = 'read' if case.group == 'refused' else 'stream'
    more = [] if job == 'read' else [folder]
    theirs, ours = both(oracle, broker, job, case.what, *more)
    alike = refuses(theirs, case.kind, KAFKA) and refuses(ours, case.kind, OURS)
    if not alike or case.named.lower() not in ours.failure.text.lower():
        return _differ(theirs, ours)
    return Verdict('refused', 'both refuse: %s' % case.kind)


def _stricter(oracle: Any, broker: Any, case: Case, _: Any) -> Verdict:
    theirs, ours = both(oracle, broker, 'read', case.what)
    is_so = theirs.failure is None and refuses(ours, 'option', OURS)
    if not is_so or case.named not in ours.failure.text:
        return _differ(theirs, ours)
    return Verdict('explained', 'explained')


# ---------------------------------------------------------------- topics that change


def _changed(oracle: Any, broker: Any, case: Case, folder: Any) -> Verdict:
    """A stream of which a part is read; then the topic changes, then the rest is read."""
    kind, fails, error = case.what
    outcomes = []
    for connector in (KAFKA, OURS):
        topic = _new_name('changing')
        broker.create_topic(topic, 2, config=topics.KEPT)
        topics.fill(broker, topic, topics.numbered(2, 10))
        options = {
            'kafka.bootstrap.servers': broker.bootstrap,
            'subscribe': topic,
            'startingOffsets': 'earliest',
            'failOnDataLoss': fails,
            'kafkaConsumer.pollTimeoutMs': '10000',
            'fetchOffset.numRetries': '20',  # a topic that is being made anew is not there
            'fetchOffset.retryIntervalMs': '500',
        }
        checkpoint = str(folder / connector)
        change = (broker.bootstrap, kind, topic)
        if case.group == 'change at work':
            found = oracle.do('changing', connector, options, checkpoint, 20, change, error)
        else:
            first = oracle.do('stream', connector, options, checkpoint)
            topics.change(*change)
            found = oracle.do('stream', connector, options, checkpoint)
            found = found._replace(batches=first.batches + found.batches)
        rows = sorted(row[1:2] + row[3:5] for batch in found.batches for row in batch)
        outcomes.append(found._replace(batches=(tuple(rows),)))
    theirs, ours = outcomes
    if error is None:
        return _same(theirs, ours)
    alike = refuses(theirs, error, KAFKA) and refuses(ours, error, OURS)
    if not alike or theirs.batches != ours.batches:
        return _differ(theirs, ours)
    return Verdict('refused', 'both fail: %s, after %d rows' % (error, len(ours.batches[0])))


def _alternating(oracle: Any, broker: Any, case: Case, folder: Any) -> Verdict:
    """Three runs over one checkpoint, in turn: each has what came since the one before."""
    first, second = case.what
    topic = _new_name('alternating')
    broker.create_topic(topic, 12, config=topics.KEPT)
    options = {
        'kafka.bootstrap.servers': broker.bootstrap,
        'subscribe': topic,
        'startingOffsets': 'earliest',
        'maxOffsetsPerTrigger': '20',
    }
    for number, connector in enumerate((first, second, first)):
        written = sorted(b'%d-%d' % (number, each) for each in range(30))
        records = [{'partition': n % 12, 'value': value} for n, value in enumerate(written)]
        topics.fill(broker, topic, records)
        done = oracle.do('stream', connector, options, str(folder / 'checkpoint'))
        values = sorted(row[1] for batch in done.batches for row in batch)
        if done.failure is not None or values != written:
            return Verdict('different', 'different', '%s in run %d: %s' % (connector, number, done))
    return Verdict('equal', 'nothing lost or doubled, 90 rows')


# ---------------------------------------------------------------- sinks


def _write(oracle: Any, broker: Any, case: Case, connector: str, partitions: int) -> Any:
    """Write what a query brings into a new topic, that it names or an option; return both."""
    topic = _new_name('written')
    broker.create_topic(topic, partitions)
    options = {'kafka.bootstrap.servers': broker.bootstrap}
    if '{}' not in case.what and 'topic' not in case.name:
        options['topic'] = topic
    done = oracle.do('write', connector, case.what.replace('{}', topic), options)
    return done, _content(oracle, broker, topic)


def _content(oracle: Any, broker: Any, topic: str) -> List[Any]:
    """Return the records with a key, and those without, as the JVM connector reads them.

    In their order, each: ours sends those without a key in an order of their own.
    """
    options = {'kafka.bootstrap.servers': broker.bootstrap, 'subscribe': topic}
    found = oracle.do('read', KAFKA, {**options, 'includeHeaders': 'true'})
    assert found.failure is None, found
    records = [(row[3], row[0], row[1], row[-1]) for row in found.rows]
    return [[each for each in records if (each[1] is None) == has_none] for has_none in (0, 1)]


def _written(oracle: Any, broker: Any, case: Case, _: Any) -> Verdict:
    partitions = 2 if case.name == 'partitions' else 1
    found = [_write(oracle, broker, case, each, partitions) for each in (KAFKA, OURS)]
    (theirs, before), (ours, after) = found
    count = sum(map(len, after))
    is_good = theirs.failure is None and ours.failure is None and before == after
    if not is_good or bool(count) == (case.name == 'no rows'):
        return _differ(*found)
    return Verdict('equal', 'equal, %d record%s' % (count, '' if count == 1 else 's'))


def _unwritable(oracle: Any, broker: Any, case: Case, _: Any) -> Verdict:
    found = [_write(oracle, broker, case, each, 1) for each in (KAFKA, OURS)]
    is_refused = all(done.failure is not None for done, _ in found)
    if not is_refused or any(map(any, (stored for _, stored in found))):
        return _differ(*found)
    if case.named not in found[1][0].failure.text:
        return _differ(*found)
    return Verdict('refused', 'both refuse')


def _new_name(of: str) -> str:
    return '%s_%d' % (of, next(_numbers))


_JUDGES = {
    'read': _read,
    'tasks': _tasks,
    'formats': _formats,
    'refused': _refused,
    'stricter': _stricter,
    'stream': _stream,
    'change at rest': _changed,
    'change at work': _changed,
    'alternating': _alternating,
    'refused stream': _refused,
    'written': _written,
    'refused sink': _unwritable,
}
