"""The batch reader against Spark's own connector, on real brokers: the same rows, or both refuse.

Each case is options, read by both in one session. What both refuse is of one kind, and ours names
the option. Where the two differ on purpose the case stands in STRICTER, with the reason.
"""

from __future__ import annotations

import pytest

from servers.cluster import Cluster
from servers.releases import chosen, problem
from test.spark import topics
from test.spark.comparing import both, refuses, text
from test.spark.oracle import KAFKA, OURS
from test.spark.topics import BEGAN

pytestmark = pytest.mark.spark


PLAIN = {'subscribe': 'plain'}
COMMITTED = {'kafka.isolation.level': 'read_committed'}
LATE = '4000000000000'
IMPATIENTLY = {
    'kafka.default.api.timeout.ms': '2000',
    'kafka.request.timeout.ms': '1000',
    'fetchOffset.numRetries': '1',
}

# What is read -> options. Each has records, but for those that stand in NOTHING.
READ = {
    'one topic': PLAIN,
    'two topics': {'subscribe': ' plain , wide,,plain'},
    'a pattern anywhere in a name': {'subscribePattern': 'ai'},
    'a pattern': {'subscribePattern': '^(plain|w.d[ef])$'},
    'a pattern of nothing': {'subscribePattern': 'nothing-at-all'},
    'an empty topic': {'subscribe': 'empty'},
    'an empty topic beside another': {'subscribe': 'plain,empty'},
    'partitions': {'assign': '{"plain":[0,2],"wide":[4]}'},
    'partitions of which one is not there': {'assign': '{"plain":[1,9]}'},
    'no partitions': {'assign': '{}'},
    'names of options in any case': {'SUBSCRIBE': 'plain', 'STARTINGOFFSETS': 'Earliest'},
    'earliest': {**PLAIN, 'startingOffsets': ' earliest '},
    'from offsets': {**PLAIN, 'startingOffsets': text(plain=[3, 0, -2])},
    'up to offsets': {**PLAIN, 'endingOffsets': text(plain=[3, -1, 0])},
    'between offsets': {
        **PLAIN,
        'startingOffsets': text(plain=[1, 2, 3]),
        'endingOffsets': text(plain=[5, 2, 4]),
    },
    'offsets given twice': {**PLAIN, 'startingOffsets': '{"plain":{"0":1,"0":9,"1":2,"2":-2}}'},
    'from the end': {**PLAIN, 'startingOffsets': text(plain=[14, 14, 14])},
    'from a time': {**PLAIN, 'startingTimestamp': str(BEGAN + 20500)},
    'up to a time': {**PLAIN, 'endingTimestamp': str(BEGAN + 20500)},
    'between times': {
        **PLAIN,
        'startingTimestamp': str(BEGAN + 10000),
        'endingTimestamp': str(BEGAN + 20000),
    },
    'up to a time to come': {**PLAIN, 'endingTimestamp': LATE},
    'from a time to come, leniently': {
        **PLAIN,
        'startingTimestamp': LATE,
        'startingOffsetsByTimestampStrategy': 'LATEST',
    },
    'from times': {**PLAIN, 'startingOffsetsByTimestamp': text(plain=[BEGAN, BEGAN + 9000, 0])},
    'up to times': {**PLAIN, 'endingOffsetsByTimestamp': text(plain=[BEGAN, BEGAN + 9000, 0])},
    'from a time, up to offsets': {
        **PLAIN,
        'startingTimestamp': str(BEGAN + 9000),
        'endingOffsets': text(plain=[9, 9, 9]),
    },
    'a time counts more than times and offsets': {
        **PLAIN,
        'startingTimestamp': str(BEGAN + 9000),
        'startingOffsetsByTimestamp': 'not looked at',
        'startingOffsets': 'nor that',
    },
    'times count more than offsets': {
        **PLAIN,
        'endingOffsetsByTimestamp': text(plain=[BEGAN + 9000] * 3),
        'endingOffsets': 'not looked at',
    },
    'headers': {'subscribe': 'headers', 'includeHeaders': 'true'},
    'headers where there are none': {**PLAIN, 'includeHeaders': 'True'},
    'without headers': {'subscribe': 'headers', 'includeHeaders': 'false'},
    'every codec': {'subscribe': 'codecs'},
    'every codec from within batches': {
        'subscribe': 'codecs',
        'startingOffsets': text(codecs=[50] * 5),
        'endingOffsets': text(codecs=[111] * 5),
    },
    'gaps of compaction': {'subscribe': 'compacted'},
    'from within a gap': {'subscribe': 'compacted', 'startingOffsets': text(compacted=[2])},
    'transactions': {'subscribe': 'transactions'},
    'committed transactions': {'subscribe': 'transactions', **COMMITTED},
    'committed transactions, in small parts': {
        'subscribe': 'transactions',
        'minPartitions': '9',
        **COMMITTED,
    },
    'a log that begins late': {'subscribe': 'trimmed'},
    'more tasks than partitions': {'subscribe': 'wide', 'minPartitions': '14'},
    'small tasks': {**PLAIN, 'minPartitions': '4', 'maxRecordsPerPartition': '3'},
    'a group': {**PLAIN, 'kafka.group.id': 'a-group', 'failOnDataLoss': 'FALSE'},
    'a prefix of groups': {**PLAIN, 'groupIdPrefix': 'ours'},
    'options of streams': {**PLAIN, 'maxOffsetsPerTrigger': '5', 'minOffsetsPerTrigger': '3'},
    'options of fetching': {
        **PLAIN,
        'kafka.fetch.max.bytes': '1000',
        'kafka.max.partition.fetch.bytes': '1000',
        'kafka.max.poll.records': '2',
        'kafkaConsumer.pollTimeoutMs': '30000',
        'fetchOffset.numRetries': '5',
        'fetchOffset.retryIntervalMs': '20',
    },
}
NOTHING = {
    'a pattern of nothing',
    'an empty topic',
    'no partitions',
    'from the end',
    'from a time to come, leniently',
}

# What is wrong -> options, the kind of error, and what our text names.
REFUSED = {
    'nothing to read': ({}, 'option', 'subscribe'),
    'two ways to say what to read': ({**PLAIN, 'assign': '{"plain":[0]}'}, 'option', 'assign'),
    'no topic in the list': ({'subscribe': ' , '}, 'option', 'subscribe'),
    'an empty pattern': ({'subscribePattern': ''}, 'option', 'subscribePattern'),
    'a broken pattern': ({'subscribePattern': 'e['}, 'option', 'subscribePattern'),
    'partitions that are no JSON': ({'assign': 'plain'}, 'option', 'assign'),
    'partitions as text': ({'assign': '{"plain":["0"]}'}, 'option', 'assign'),
    'a topic that is not there': ({'subscribe': 'not-there'}, 'no topic', 'not-there'),
    'partitions of a topic that is not there': ({'assign': '{"gone":[0]}'}, 'no topic', 'gone'),
    'no servers': ({**PLAIN, 'kafka.bootstrap.servers': ''}, 'option', 'bootstrap.servers'),
    'servers that are nowhere': (
        {**PLAIN, 'kafka.bootstrap.servers': 'nowhere.invalid:9092', **IMPATIENTLY},
        'nowhere',
        'nowhere.invalid',
    ),
    'to start at the end': ({**PLAIN, 'startingOffsets': 'latest'}, 'option', 'startingOffsets'),
    'to start at one end': (
        {**PLAIN, 'startingOffsets': text(plain=[0, -1, 0])},
        'option',
        'startingOffsets',
    ),
    'a start that is no word': ({**PLAIN, 'startingOffsets': 'new'}, 'option', 'startingOffsets'),
    'a start as text': (
        {**PLAIN, 'startingOffsets': '{"plain":{"0":"1"}}'},
        'option',
        'startingOffsets',
    ),
    'a start as list': ({**PLAIN, 'startingOffsets': '{"plain":[1]}'}, 'option', 'startingOffsets'),
    'a start of some partitions': (
        {**PLAIN, 'startingOffsets': text(plain=[1])},
        'other partitions',
        'startingOffsets',
    ),
    'a start of too many partitions': (
        {**PLAIN, 'startingOffsets': text(plain=[1] * 4)},
        'other partitions',
        'startingOffsets',
    ),
    'a start of another topic': (
        {**PLAIN, 'startingOffsets': text(wide=[1] * 12)},
        'other partitions',
        'startingOffsets',
    ),
    'a start behind the log': (
        {**PLAIN, 'startingOffsets': text(plain=[99, 0, 0])},
        'start behind end',
        'startingOffsets',
    ),
    'to end at the start': ({**PLAIN, 'endingOffsets': 'earliest'}, 'option', 'endingOffsets'),
    'to end at one start': (
        {**PLAIN, 'endingOffsets': text(plain=[-2, 1, 1])},
        'option',
        'endingOffsets',
    ),
    'an end of some partitions': (
        {**PLAIN, 'endingOffsets': text(plain=[1])},
        'other partitions',
        'endingOffsets',
    ),
    'a start behind the end': (
        {
            **PLAIN,
            'startingOffsets': text(plain=[3, 3, 3]),
            'endingOffsets': text(plain=[3, 2, 3]),
        },
        'option',
        'startingOffsets',
    ),
    'a time behind the end': (
        {
            **PLAIN,
            'startingOffsetsByTimestamp': text(plain=[BEGAN + 9000] * 3),
            'endingOffsetsByTimestamp': text(plain=[BEGAN] * 3),
        },
        'option',
        'startingOffsetsByTimestamp',
    ),
    'a time that is a word': ({**PLAIN, 'startingTimestamp': 'now'}, 'option', 'startingTimestamp'),
    'a time to come': ({**PLAIN, 'startingTimestamp': LATE}, 'no record', 'startingTimestamp'),
    'times of some partitions': (
        {**PLAIN, 'startingOffsetsByTimestamp': text(plain=[BEGAN])},
        'other partitions',
        'startingOffsetsByTimestamp',
    ),
    'ends in time of some partitions': (
        {**PLAIN, 'endingOffsetsByTimestamp': text(plain=[BEGAN])},
        'other partitions',
        'endingOffsetsByTimestamp',
    ),
    'times that are no JSON': (
        {**PLAIN, 'startingOffsetsByTimestamp': 'earliest'},
        'option',
        'startingOffsetsByTimestamp',
    ),
    'a strategy that is none': (
        {**PLAIN, 'startingTimestamp': LATE, 'startingOffsetsByTimestampStrategy': 'x'},
        'option',
        'startingOffsetsByTimestampStrategy',
    ),
    'failOnDataLoss': ({**PLAIN, 'failOnDataLoss': 'maybe'}, 'option', 'failOnDataLoss'),
    'includeHeaders': ({**PLAIN, 'includeHeaders': 'yes'}, 'option', 'includeHeaders'),
    'no tasks': ({**PLAIN, 'minPartitions': '0'}, 'option', 'minPartitions'),
    'a part of a task': ({**PLAIN, 'minPartitions': '1.5'}, 'option', 'minPartitions'),
    'no records': ({**PLAIN, 'maxRecordsPerPartition': '0'}, 'option', 'maxRecordsPerPartition'),
    'retries': ({**PLAIN, 'fetchOffset.numRetries': 'x'}, 'option', 'fetchOffset.numRetries'),
    'a timeout': ({**PLAIN, 'kafkaConsumer.pollTimeoutMs': 'x'}, 'option', 'pollTimeoutMs'),
    'less than no time': (
        {**PLAIN, 'kafkaConsumer.pollTimeoutMs': '-1'},
        'option',
        'pollTimeoutMs',
    ),
    'a protocol that is none': (
        {**PLAIN, 'kafka.security.protocol': 'x'},
        'option',
        'security.protocol',
    ),
    'an isolation that is none': ({**PLAIN, 'kafka.isolation.level': 'x'}, 'option', 'isolation'),
    **{
        'kafka.' + name: ({**PLAIN, 'kafka.' + name: 'x'}, 'option', name)
        for name in (
            'auto.offset.reset',
            'enable.auto.commit',
            'interceptor.classes',
            'key.deserializer',
            'value.deserializer',
        )
    },
    'offsets that are gone': (
        {'subscribe': 'trimmed', 'startingOffsets': text(trimmed=[0, 0])},
        'lost',
        'trimmed',
    ),
    'offsets that never were': (
        {
            'subscribe': 'trimmed',
            'endingOffsets': text(trimmed=[99, 10]),
            'kafkaConsumer.pollTimeoutMs': '3000',
        },
        'lost',
        'trimmed',
    ),
}

# What the JVM connector takes, and we refuse, naming the option: -> options, the name, the reason.
STRICTER = {
    'a part of an offset': (
        {**PLAIN, 'startingOffsets': '{"plain":{"0":1.5,"1":0,"2":0}}'},
        'startingOffsets',
        'it cuts 1.5 to 1; an offset that is no whole number is a mistake',
    ),
    'an unknown name of Kafka': (
        {**PLAIN, 'kafka.no.such': 'x'},
        'kafka.no.such',
        'it passes over what it does not know, and with it every wrong spelling',
    ),
    'a name that is nearly right': (
        {**PLAIN, 'startingOffset': 'earliest'},
        'startingOffsets',
        'it passes over what it does not know, and reads from elsewhere than was meant',
    ),
}


@pytest.fixture(scope='session')
def formats():
    """A broker of 2.8.2, the last that writes the formats v0 and v1."""
    (release,) = chosen('2.8.2')
    reason = problem(release)
    if reason:
        pytest.skip(reason)
    with Cluster(release) as running:
        topics.make_formats(running)
        yield running


@pytest.mark.parametrize('case', READ)
def test_both_read_the_same(oracle, kinds, case):
    theirs, ours = both(oracle, kinds, 'read', READ[case])
    assert theirs.failure is None
    assert ours == theirs
    assert bool(ours.rows) == (case not in NOTHING)


@pytest.mark.parametrize('case', REFUSED)
def test_both_refuse(oracle, kinds, case):
    options, kind, name = REFUSED[case]
    theirs, ours = both(oracle, kinds, 'read', options)
    assert refuses(theirs, kind, KAFKA), theirs
    assert refuses(ours, kind, OURS), ours
    assert name.lower() in ours.failure.text.lower()


@pytest.mark.parametrize('case', STRICTER)
def test_we_refuse_what_the_other_takes(oracle, kinds, case):
    options, name, _ = STRICTER[case]
    theirs, ours = both(oracle, kinds, 'read', options)
    assert theirs.failure is None
    assert refuses(ours, 'option', OURS), ours
    assert name in ours.failure.text


@pytest.mark.parametrize('format', topics.FORMATS)
def test_both_read_the_formats_of_old_brokers(oracle, formats, format):
    theirs, ours = both(oracle, formats, 'read', {'subscribe': format})
    assert theirs.failure is None
    assert ours == theirs
    assert len(ours.rows) > 200


@pytest.mark.parametrize(
    'least, most', [('1', '1000'), ('5', '1000'), ('12', '1000'), ('6', '50'), ('5', '30')]
)
def test_both_cut_the_same_tasks(oracle, kinds, least, most):
    sizes = {'minPartitions': least, 'maxRecordsPerPartition': most}
    theirs, ours = both(oracle, kinds, 'tasks', {'subscribe': 'uneven', **sizes})
    assert ours == theirs
    assert len(ours.ranges) >= 3
