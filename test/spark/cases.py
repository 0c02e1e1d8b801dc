"""The cases in which this package and Spark's own connector are compared: data, and nothing done.

Owns what is read, streamed and written, by which options, and what is refused; where the two differ
on purpose, the reason. Does not own: the topics (topics.py), how a case is judged (judging.py), the
page with all of them (table.py).
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence

from test.spark import topics
from test.spark.comparing import text
from test.spark.topics import BEGAN

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
    'an offset with an exponent': {**PLAIN, 'startingOffsets': '{"plain":{"0":1e1,"1":0,"2":0}}'},
    'a partition with a leading zero': {
        **PLAIN,
        'startingOffsets': '{"plain":{"00":1,"1":0,"2":0}}',
    },
    'a topic given twice': {
        **PLAIN,
        'startingOffsets': '{"plain":{"0":9,"1":9,"2":9},"plain":{"0":2,"1":0,"2":0}}',
    },
    'a partition named twice': {'assign': '{"plain":[0,0]}'},
    'a topic named twice': {'assign': '{"plain":[0],"plain":[1]}'},
    'a number with a sign': {**PLAIN, 'minPartitions': '+5'},
    'a time with blanks': {**PLAIN, 'startingTimestamp': ' 5 '},
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

#: Odd values, which neither takes: option -> values.
ODD = {
    'startingOffsets': (
        '', '  ', '{"plain":{"0":NaN,"1":0,"2":0}}', '{"plain":{"0":true,"1":0,"2":0}}',
        '{"plain":{"x":0,"0":1,"1":0,"2":0}}', "{'plain':{'0':1,'1':0,'2':0}}",
    ),
    'minPartitions': ('', '-1', '99999999999', '1_0', '0x5'),
    'startingTimestamp': ('', '1.5', '9999999999999999999999999'),
    'failOnDataLoss': ('', '1', ' true '),
    'assign': ('', '[]'),
}  # fmt: skip
REFUSED.update(
    (
        '%s=%s' % (name, value or 'nothing'),
        ({**({} if name == 'assign' else PLAIN), name: value}, 'option', name),
    )
    for name, values in ODD.items()
    for value in values
)

# What the JVM connector takes, and we refuse, naming the option: -> options, the name, the reason.
STRICTER = {
    'a part of an offset': (
        {**PLAIN, 'startingOffsets': '{"plain":{"0":1.5,"1":0,"2":0}}'},
        'startingOffsets',
        'it cuts 1.5 to 1; an offset that is no whole number is a mistake',
    ),
    'null as offset': (
        {**PLAIN, 'startingOffsets': '{"plain":{"0":null,"1":0,"2":0}}'},
        'startingOffsets',
        'it takes null for 0',
    ),
    'something behind the offsets': (
        {**PLAIN, 'startingOffsets': text(plain=[1, 0, 0]) + ' x'},
        'startingOffsets',
        'it reads no further than the first object; what stands behind it was meant too',
    ),
    'a partition below 0': (
        {'assign': '{"plain":[-1]}'},
        'assign',
        'it reads nothing, without a word',
    ),
    'a part of a partition': (
        {'assign': '{"plain":[0.5]}'},
        'assign',
        'it cuts 0.5 to 0',
    ),
    'a partition too large for a number': (
        {'assign': '{"plain":[99999999999]}'},
        'assign',
        'it reads another partition or none, as what is cut off the number has it',
    ),
    'null as partitions': (
        {'assign': '{"plain":null}'},
        'assign',
        'it reads nothing, without a word',
    ),
    'a time before 1970': (
        {**PLAIN, 'startingTimestamp': '-1'},
        'startingTimestamp',
        'it asks the broker for the time -1, which means the end of the log there',
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

STREAMED = {**PLAIN, 'startingOffsets': 'earliest'}
# What is read -> options; the batches are the same.
STREAMS = {
    'all': STREAMED,
    'headers': {**STREAMED, 'subscribe': 'headers', 'includeHeaders': 'true'},
    'from offsets': {**STREAMED, 'startingOffsets': text(plain=[-1, 3, -2])},
    'from a time': {**STREAMED, 'startingTimestamp': str(BEGAN + 20500)},
    'partitions': {**STREAMED, 'subscribe': '', 'assign': '{"plain":[2],"wide":[1,4]}'},
    'a pattern': {'subscribePattern': 'ai', 'startingOffsets': 'earliest'},
    'small batches': {**STREAMED, 'subscribe': 'uneven', 'maxOffsetsPerTrigger': '37'},
    'at least so many': {**STREAMED, 'minOffsetsPerTrigger': '1000'},
    'committed transactions': {
        'subscribe': 'transactions',
        'startingOffsets': 'earliest',
        'kafka.isolation.level': 'read_committed',
    },
}

# What is wrong -> options, the kind of error, what ours names.
REFUSED_STREAMS = {
    'an end': ({**STREAMED, 'endingOffsets': 'latest'}, 'option', 'endingOffsets'),
    'ends in time': (
        {**STREAMED, 'endingOffsetsByTimestamp': text(plain=[0, 0, 0])},
        'option',
        'endingOffsetsByTimestamp',
    ),
    'more at least than at most': (
        {**STREAMED, 'minOffsetsPerTrigger': '6', 'maxOffsetsPerTrigger': '5'},
        'option',
        'minOffsetsPerTrigger',
    ),
    'a delay': ({**STREAMED, 'maxTriggerDelay': 'x'}, 'option', 'maxTriggerDelay'),
    'at most': ({**STREAMED, 'maxOffsetsPerTrigger': 'x'}, 'option', 'maxOffsetsPerTrigger'),
    'a start': ({**STREAMED, 'startingOffsets': 'x'}, 'option', 'startingOffsets'),
    'a start of some partitions': (
        {**STREAMED, 'startingOffsets': text(plain=[1])},
        'other partitions',
        'startingOffsets',
    ),
    'a topic that is not there': ({**STREAMED, 'subscribe': 'not-there'}, 'no topic', 'not-there'),
    'a time to come': ({**STREAMED, 'startingTimestamp': LATE}, 'no record', 'startingTimestamp'),
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

#: On brokers before 3.0: each format of messages, and how each is read.
FORMATS = {
    '%s, %s' % (format, how): (job, {'subscribe': format, **options})
    for format in topics.FORMATS
    for how, job, options in (
        ('all', 'read', {}),
        ('in small tasks', 'read', {'minPartitions': '9'}),
        ('from within batches', 'read', {'startingOffsets': 'within', 'endingOffsets': 'within'}),
        ('streamed', 'stream', {'startingOffsets': 'earliest', 'maxOffsetsPerTrigger': '150'}),
    )
}
#: minPartitions and maxRecordsPerPartition.
TASKS = [('1', '1000'), ('5', '1000'), ('12', '1000'), ('6', '50'), ('5', '30')]
#: What happens to a topic of two partitions with ten records each, of which five are read -> the
#: change, failOnDataLoss, and the kind of error both end with, None for none.
CHANGES = {
    'partitions are added': ('grow', 'true', None),
    'deleted, and made anew with fewer records': ('recreate', 'true', 'lost'),
    'deleted, and made anew, loss allowed': ('recreate', 'false', None),
    'retention takes what was not read': ('trim', 'true', 'lost'),
    'retention takes what was not read, loss allowed': ('trim', 'false', None),
}


class Case(NamedTuple):
    """One comparison. `kind` and `named` are of refusals: see judging.py."""

    group: str
    name: str
    what: Any
    kind: str = ''
    named: str = ''
    reason: str = ''

    def __str__(self) -> str:
        return '%s: %s' % (self.group, self.name)


def refusals(group: str, table: Dict[str, Any]) -> List[Case]:
    return [Case(group, name, *told) for name, told in table.items()]


def plain(group: str, table: Dict[str, Any]) -> List[Case]:
    return [Case(group, name, what) for name, what in table.items()]


def is_usual(case: Case) -> bool:
    """Tell whether a case is run with the other tests; those that are not are for the page alone.

    Odd values are refused before a broker is asked, which is tested without one (test_options.py).
    """
    if case.group == 'formats':
        return case.name.endswith((', all', 'v1, streamed'))
    return not (case.group == 'refused' and case.what.get(case.named) in ODD.get(case.named, ()))


#: All cases, by the parts of the page.
ALL: Sequence[Case] = (
    *plain('read', READ),
    *(Case('tasks', 'at least %s, %s records at most' % each, each) for each in TASKS),
    *plain('formats', FORMATS),
    *refusals('refused', REFUSED),
    *(Case('stricter', name, told[0], '', *told[1:]) for name, told in STRICTER.items()),
    *plain('stream', STREAMS),
    *plain('change at rest', CHANGES),
    *(
        Case('change at work', name, what)
        for name, what in CHANGES.items()
        if what[0] != 'trim'  # a query at work may read what is about to go
    ),
    *(
        Case('alternating', '%s begins' % first, order)
        for first, order in (
            ('the JVM connector', ('kafka', 'kafka-py')),
            ('kafka-py', ('kafka-py', 'kafka')),
        )
    ),
    *refusals('refused stream', REFUSED_STREAMS),
    *plain('written', WRITTEN),
    *(Case('refused sink', name, query, '', named) for name, (query, named) in UNWRITABLE.items()),
)
