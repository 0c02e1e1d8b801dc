"""Streams and sinks against Spark's own connector, on a real broker: the same, or both refuse."""

from __future__ import annotations

import pytest

from test.spark import topics
from test.spark.comparing import both, refuses, text
from test.spark.oracle import KAFKA, OURS
from test.spark.topics import BEGAN

pytestmark = pytest.mark.spark

PLAIN = {'subscribe': 'plain', 'startingOffsets': 'earliest'}
LATE = '4000000000000'

# What is read -> options; the batches are the same.
READ = {
    'all': PLAIN,
    'headers': {**PLAIN, 'subscribe': 'headers', 'includeHeaders': 'true'},
    'from offsets': {**PLAIN, 'startingOffsets': text(plain=[-1, 3, -2])},
    'from a time': {**PLAIN, 'startingTimestamp': str(BEGAN + 20500)},
    'partitions': {**PLAIN, 'subscribe': '', 'assign': '{"plain":[2],"wide":[1,4]}'},
    'a pattern': {'subscribePattern': 'ai', 'startingOffsets': 'earliest'},
    'small batches': {**PLAIN, 'subscribe': 'uneven', 'maxOffsetsPerTrigger': '37'},
    'at least so many': {**PLAIN, 'minOffsetsPerTrigger': '1000'},
    'committed transactions': {
        'subscribe': 'transactions',
        'startingOffsets': 'earliest',
        'kafka.isolation.level': 'read_committed',
    },
}

# What is wrong -> options, the kind of error, what ours names.
REFUSED = {
    'an end': ({**PLAIN, 'endingOffsets': 'latest'}, 'option', 'endingOffsets'),
    'ends in time': (
        {**PLAIN, 'endingOffsetsByTimestamp': text(plain=[0, 0, 0])},
        'option',
        'endingOffsetsByTimestamp',
    ),
    'more at least than at most': (
        {**PLAIN, 'minOffsetsPerTrigger': '6', 'maxOffsetsPerTrigger': '5'},
        'option',
        'minOffsetsPerTrigger',
    ),
    'a delay': ({**PLAIN, 'maxTriggerDelay': 'x'}, 'option', 'maxTriggerDelay'),
    'at most': ({**PLAIN, 'maxOffsetsPerTrigger': 'x'}, 'option', 'maxOffsetsPerTrigger'),
    'a start': ({**PLAIN, 'startingOffsets': 'x'}, 'option', 'startingOffsets'),
    'a start of some partitions': (
        {**PLAIN, 'startingOffsets': text(plain=[1])},
        'other partitions',
        'startingOffsets',
    ),
    'a topic that is not there': ({**PLAIN, 'subscribe': 'not-there'}, 'no topic', 'not-there'),
    'a time to come': ({**PLAIN, 'startingTimestamp': LATE}, 'no record', 'startingTimestamp'),
}

HEADERS = "array(named_struct('key', 'h', 'value', X'00'), named_struct('key', 'n', 'value', null))"
# What is written -> a query; {} becomes the topic.
WRITTEN = {
    'text': "select 'k' key, 'v' value",
    'bytes': "select X'00ff' key, X'ff00' value",
    'many': 'select if(id % 3 = 0, null, string(id)) key, string(id) value from range(0, 50, 1, 1)',
    'null values': "select 'k' key, cast(null as string) value",
    'no key': "select 'v' value",
    'a topic in a column': "select '{}' topic, 'v' value",
    'partitions': 'select string(id) value, int(id % 2) partition from range(0, 6, 1, 1)',
    'headers': "select 'v' value, %s headers" % HEADERS,
    'no headers': "select 'v' value, if(1 = 0, %s, null) headers" % HEADERS,
    'other columns': "select 'v' value, 5 other, current_timestamp() timestamp",
    'no rows': "select 'v' value where 1 = 0",
}

# What cannot be written -> a query, and what ours names.
UNWRITABLE = {
    'no value': ("select 'k' key", 'value'),
    'names in capitals': ("select 'k' KEY, 'v' VALUE", 'value'),
    'a number as value': ('select 1 value', 'value'),
    'a number as key': ("select 1 key, 'v' value", 'key'),
    'a number as topic': ("select 1 topic, 'v' value", 'topic'),
    'a null topic': ("select cast(null as string) topic, 'v' value", 'topic'),
    'no topic': ("select 'v' value", 'topic'),
    'a long partition': ("select '{}' topic, 'v' value, 1L partition", 'partition'),
    'a partition below 0': ("select '{}' topic, 'v' value, -1 partition", 'partition'),
    'headers of text': ("select '{}' topic, 'v' value, array('x') headers", 'headers'),
    'a header without key': (
        "select '{}' topic, 'v' value, %s headers" % HEADERS.replace("'n'", 'null'),
        'header',
    ),
    'a value too large': ("select '{}' topic, repeat('v', 2000000) value", '2000'),
}


@pytest.mark.parametrize('case', READ)
def test_both_stream_the_same_batches(oracle, kinds, tmp_path, case):
    options = {name: value for name, value in READ[case].items() if value}
    theirs, ours = both(oracle, kinds, 'stream', options, tmp_path)
    assert theirs.failure is None
    assert ours == theirs
    assert any(ours.batches)


@pytest.mark.parametrize('case', REFUSED)
def test_both_refuse_to_stream(oracle, kinds, tmp_path, case):
    options, kind, name = REFUSED[case]
    theirs, ours = both(oracle, kinds, 'stream', options, tmp_path)
    assert refuses(theirs, kind, KAFKA), theirs
    assert refuses(ours, kind, OURS), ours
    assert name.lower() in ours.failure.text.lower()


@pytest.mark.parametrize('first, second', [(KAFKA, OURS), (OURS, KAFKA)])
def test_a_query_goes_on_with_the_other_connector(
    oracle, real_broker, new_name, checkpoint, first, second
):
    """And back again: each run has what came since the one before, over one checkpoint."""
    topic = new_name()
    real_broker.create_topic(topic, 12, config=topics.KEPT)
    options = {
        'kafka.bootstrap.servers': real_broker.bootstrap,
        'subscribe': topic,
        'startingOffsets': 'earliest',
        'maxOffsetsPerTrigger': '20',
    }
    for number, connector in enumerate((first, second, first)):
        written = {b'%d-%d' % (number, each) for each in range(30)}
        records = [{'partition': n % 12, 'value': value} for n, value in enumerate(sorted(written))]
        topics.fill(real_broker, topic, records)
        done = oracle.do('stream', connector, options, checkpoint)
        assert done.failure is None, done
        values = [row[1] for batch in done.batches for row in batch]
        assert sorted(values) == sorted(written)


def write(oracle, broker, connector, query, topic, option):
    """Write what a query brings into a topic that the query names, or an option."""
    options = {'kafka.bootstrap.servers': broker.bootstrap}
    if option:
        options['topic'] = topic
    return oracle.do('write', connector, query.replace('{}', topic), options)


def content(oracle, broker, topic):
    """Return the records with a key, and those without, as the JVM connector reads them.

    In their order, each: ours sends those without a key in an order of their own.
    """
    options = {'kafka.bootstrap.servers': broker.bootstrap, 'subscribe': topic}
    found = oracle.do('read', KAFKA, {**options, 'includeHeaders': 'true'})
    assert found.failure is None
    records = [(row[3], row[0], row[1], row[-1]) for row in found.rows]
    return [[each for each in records if (each[1] is None) == has_none] for has_none in (0, 1)]


@pytest.mark.parametrize('case', WRITTEN)
def test_both_write_the_same(oracle, real_broker, new_name, case):
    found = []
    for connector in (KAFKA, OURS):
        topic = new_name()
        real_broker.create_topic(topic, 2 if case == 'partitions' else 1)
        query = WRITTEN[case]
        done = write(oracle, real_broker, connector, query, topic, 'topic' not in case)
        assert done.failure is None, done
        found.append(content(oracle, real_broker, topic))
    assert found[0] == found[1]
    assert any(found[1]) == (case != 'no rows')


@pytest.mark.parametrize('case', UNWRITABLE)
def test_both_refuse_to_write(oracle, real_broker, new_name, case):
    query, name = UNWRITABLE[case]
    topic = new_name()
    real_broker.create_topic(topic, 1)
    option = '{}' not in query and 'topic' not in case
    for connector in (KAFKA, OURS):
        done = write(oracle, real_broker, connector, query, topic, option)
        assert done.failure is not None
    assert name in done.failure.text
    assert not any(content(oracle, real_broker, topic))
