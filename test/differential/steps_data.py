"""Writing and reading records: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from kafka.codec import has_zstd
from test.differential.records import (
    made,
    natural_magic,
    with_attributes,
    with_field,
    with_right_crc,
    with_wrong_crc,
)
from test.differential.script import REFUSED_ABOVE, REFUSED_BELOW, Scenario, Step, one, request_of

PRODUCE = 0
FETCH = 1
LIST_OFFSETS = 2
CREATE_TOPICS = 19
DELETE_RECORDS = 21
INIT_PRODUCER_ID = 22
OFFSET_FOR_LEADER_EPOCH = 23

UNKNOWN_ID = b'\x07' * 16
CODECS = {'plain': 0, 'gzip': 1, 'snappy': 2, 'lz4': 3, 'zstd': 4}


def produce(
    c: Any,
    records: Optional[bytes],
    topic: Optional[str] = None,
    partition: int = 0,
    acks: int = 1,
    transactional_id: Optional[str] = None,
) -> Dict[str, Any]:
    """Return a Produce request for one partition; None: the case's own topic."""
    name = c.topic() if topic is None else topic
    known = topic is None or topic.startswith(c.label + '-') or topic == 'common'
    topic_id = c.topic_id(name) if known and c.version >= 13 else UNKNOWN_ID
    parts = [{'index': partition, 'records': records}]
    return {
        'transactional_id': transactional_id,
        'acks': acks,
        'timeout_ms': 1000,
        'topic_data': [{'name': name, 'topic_id': topic_id, 'partition_data': parts}],
    }


def batch(c: Any, **options: Any) -> bytes:
    """Return records in the format that belongs to the version of Produce."""
    magic = min(natural_magic(c.version), c.release.highest_magic)
    return made(options.pop('magic', magic), c.now_ms, **options)


def fetch(
    c: Any, offset: int = 0, partition: int = 0, topic: Optional[str] = None, **fields: Any
) -> Dict[str, Any]:
    """Return a Fetch request for one partition; fields of partition or request by name."""
    name = c.topic() if topic is None else topic
    part = {'partition': partition, 'fetch_offset': offset, 'partition_max_bytes': 1 << 20}
    for field in ('current_leader_epoch', 'last_fetched_epoch', 'partition_max_bytes'):
        if field in fields:
            part[field] = fields.pop(field)
    topic_id = UNKNOWN_ID
    if c.version >= 13 and (topic is None or topic.startswith(c.label + '-')):
        topic_id = c.topic_id(name)
    topics = [{'topic': name, 'topic_id': topic_id, 'partitions': [part]}]
    asked = {'max_wait_ms': 50, 'min_bytes': 0, 'max_bytes': 1 << 22, 'topics': topics}
    return dict(asked, **fields)


def _fetch_back() -> Step:
    """Return the step that shows what was stored, in the newest version of Fetch."""
    return Step('fetch back', FETCH, fetch)


def _format(name: str, magic: int, codec: int) -> Scenario:
    """Return a scenario that writes one format with one codec in every version."""

    def possible(c: Any) -> bool:
        # Before 0.10 nothing but magic 0 can be read; later messages in v3+ are refused on purpose.
        return c.release.highest_magic >= magic and (codec != 4 or has_zstd())

    return Scenario(
        'magic %d %s' % (magic, name),
        (PRODUCE,),
        [
            Step(
                'produce',
                PRODUCE,
                lambda c: produce(c, made(magic, c.now_ms, codec=codec)),
                when=possible,
            ),
            Step('fetch back', FETCH, fetch, when=possible),
        ],
        since=((0, 8), (0, 10), (0, 11))[magic],
    )


FORMATS = [
    _format(name, magic, codec)
    for magic in (0, 1, 2)
    for name, codec in CODECS.items()
    if codec != 4 or magic == 2
]


def _bad(name: str, records: Callable[[Any], Optional[bytes]], **options: Any) -> Scenario:
    """Return a scenario that writes something wrong and looks what is there."""
    return Scenario(
        name,
        (PRODUCE,),
        [Step('produce', PRODUCE, lambda c: produce(c, records(c))), _fetch_back()],
        **options,
    )


def _two_batches(c: Any) -> bytes:
    return batch(c) + batch(c, values=[b'three'])


def _no_offsets(c: Any) -> bytes:
    """Return a batch that claims a later base offset."""
    return (1000).to_bytes(8, 'big') + batch(c)[8:]


def _is_batch(c: Any) -> bool:
    return natural_magic(c.version) == 2 and c.release.highest_magic == 2


BAD_BATCHES = [
    _bad('wrong crc', lambda c: with_wrong_crc(batch(c, values=[b'one']))),
    _bad('wrong crc inside', lambda c: _wrong_inside(c)),
    # Real brokers fail inside, answer -1 and close, in either order: one connection for each.
    one(
        'null records',
        PRODUCE,
        frame=lambda c: c.frame(request_of(PRODUCE, produce(c, None), c.version), c.version),
    ),
    _bad('empty records', lambda c: b''),
    _bad('two batches', _two_batches),
    _bad('later offsets', _no_offsets),
    _bad('cut off', lambda c: batch(c)[:-3]),
    _bad('only a header', lambda c: batch(c)[:20]),
    _bad('garbage', lambda c: b'\x00' * 70),
    _bad('magic 3', lambda c: _with_magic(batch(c, values=[b'one']), 3)),
    _bad('magic -1', lambda c: _with_magic(batch(c, values=[b'one']), 255)),
    _bad('codec 5', lambda c: with_attributes(batch(c, values=[b'one']), 5)),
    _bad('codec 7', lambda c: with_attributes(batch(c, values=[b'one']), 7)),
    _bad('gzip that is none', lambda c: with_attributes(batch(c, values=[b'one']), 1)),
    _bad('null key and value', lambda c: batch(c, values=[None], key=None)),
    _bad('empty value', lambda c: batch(c, values=[b''], key=b'')),
    _bad('log append time', lambda c: with_attributes(batch(c, values=[b'one']), 8)),
    _bad('nothing in gzip', lambda c: batch(c, values=[], codec=1), versions='3+'),
    _bad('no records', lambda c: batch(c, values=[]), versions='3+'),
    _bad('control', lambda c: batch(c, control=True), versions='3+'),
    _bad('transactional', lambda c: batch(c, transactional=True), versions='3+'),
    _bad('count too high', lambda c: with_field(batch(c), 'i', 57, 3), versions='3+'),
    _bad('count too low', lambda c: with_field(batch(c), 'i', 57, 1), versions='3+'),
    _bad('count negative', lambda c: with_field(batch(c), 'i', 57, -1), versions='3+'),
    _bad('last delta wrong', lambda c: with_field(batch(c), 'i', 23, 5), versions='3+'),
    _bad('leader epoch given', lambda c: batch(c, partition_leader_epoch=9), versions='3+'),
    _bad('max timestamp wrong', lambda c: batch(c, max_timestamp=c.now_ms + 500), versions='3+'),
    _bad('negative timestamp', lambda c: _at(c, -1), versions='2+'),
    _bad('future timestamp', lambda c: _at(c, c.now_ms + 86_400_000 * 30), versions='2+'),
]


def _at(c: Any, timestamp: int) -> bytes:
    magic = min(natural_magic(c.version), c.release.highest_magic)
    return made(magic, timestamp, values=[b'one'])


def _with_magic(data: bytes, magic: int) -> bytes:
    changed = bytearray(data)
    changed[16] = magic
    return bytes(changed) if data[16] == 2 else with_right_crc(bytes(changed))


def _wrong_inside(c: Any) -> bytes:
    """Return a second message with a wrong checksum; batches have one for all."""
    return batch(c, values=[b'one']) + with_wrong_crc(batch(c, values=[b'two']))


def _large(c: Any) -> bytes:
    return batch(c, values=[bytes(1_100_000)])


PRODUCE_SCRIPT = [
    Scenario(
        'produce',
        (PRODUCE,),
        [
            Step('first', PRODUCE, lambda c: produce(c, batch(c))),
            Step('second', PRODUCE, lambda c: produce(c, batch(c), acks=-1)),
            Step('other partition', PRODUCE, lambda c: produce(c, batch(c), partition=1)),
            Step('unknown partition', PRODUCE, lambda c: produce(c, batch(c), partition=2)),
            Step('negative partition', PRODUCE, lambda c: produce(c, batch(c), partition=-1)),
            Step('unknown topic', PRODUCE, lambda c: produce(c, batch(c), topic='unknown')),
            Step('illegal topic', PRODUCE, lambda c: produce(c, batch(c), topic='a b')),
            Step('internal topic', PRODUCE, lambda c: produce(c, batch(c), '__consumer_offsets')),
            Step('acks 2', PRODUCE, lambda c: produce(c, batch(c), acks=2)),
            Step('acks 5', PRODUCE, lambda c: produce(c, batch(c), acks=5)),
            Step('acks -2', PRODUCE, lambda c: produce(c, batch(c), acks=-2)),
            Step('acks 0', PRODUCE, lambda c: produce(c, batch(c), acks=0), is_silent=True),
            Step(
                'acks 0 unknown topic',
                PRODUCE,
                lambda c: produce(c, batch(c), topic='unknown', acks=0),
                is_silent=True,
            ),
            Step(
                'acks 0 wrong crc',
                PRODUCE,
                lambda c: produce(c, with_wrong_crc(batch(c, values=[b'one'])), acks=0),
                is_silent=True,
            ),
            Step('no topics', PRODUCE, lambda c: dict(produce(c, b''), topic_data=[])),
            Step('too large', PRODUCE, lambda c: produce(c, _large(c))),
            Step('last', PRODUCE, lambda c: produce(c, batch(c, values=[b'last']))),
            _fetch_back(),
        ],
    ),
    *FORMATS,
    *BAD_BATCHES,
    one('produce', PRODUCE, lambda c: produce(c, batch(c)), versions=REFUSED_ABOVE),
    one('produce', PRODUCE, lambda c: produce(c, batch(c)), versions=REFUSED_BELOW),
]


def _keep_producer(c: Any, answer: Any) -> None:
    c.values['id'] = answer.producer_id
    c.values['epoch'] = answer.producer_epoch


def _in_order(c: Any, sequence: int, epoch: int = 0, producer_id: int = 0, count: int = 2) -> bytes:
    """Return a batch of the producer that was told its id."""
    return batch(
        c,
        values=[b'v'] * count,
        producer_id=producer_id or c.values['id'],
        producer_epoch=c.values['epoch'] + epoch,
        base_sequence=sequence,
    )


def _sequence(name: str, *arguments: Any, **options: Any) -> Step:
    return Step(name, PRODUCE, lambda c: produce(c, _in_order(c, *arguments, **options)))


SEQUENCE_SCRIPT = [
    Scenario(
        'sequences',
        (PRODUCE,),
        [
            Step(
                'init',
                INIT_PRODUCER_ID,
                lambda c: {'transactional_id': None, 'transaction_timeout_ms': 1000},
                keep=_keep_producer,
            ),
            _sequence('first', 0),
            _sequence('second', 2),
            _sequence('second again', 2),
            _sequence('first again', 0),
            _sequence('same sequence other count', 2, count=1),
            _sequence('gap', 9),
            _sequence('newer epoch gap', 5, epoch=1),
            _sequence('newer epoch', 0, epoch=1),
            _sequence('older epoch', 2, epoch=0),
            _sequence('unknown producer', 7, producer_id=987654321),
            _sequence('unknown producer at 0', 0, producer_id=987654322),
            _sequence('negative sequence', -2, epoch=1),
            _fetch_back(),
        ],
        versions='3+',
    )
]


def _fill(c: Any) -> Dict[str, Any]:
    """Return a Produce request of one record, in the newest version."""
    c.values['count'] = c.values.get('count', 0) + 1
    value = b'record %d' % c.values['count']
    return produce(c, batch(c, values=[value, b'and another']), acks=-1)


FILL = [Step('fill %d' % n, PRODUCE, _fill) for n in (1, 2, 3)]


def _session(c: Any, epoch: int, offset: int = 0, **fields: Any) -> Dict[str, Any]:
    return fetch(c, offset, session_id=c.values.get('session', 0), session_epoch=epoch, **fields)


def _keep_session(c: Any, answer: Any) -> None:
    c.values['session'] = answer.session_id


def _with_sessions(c: Any) -> bool:
    return bool(c.version >= 7)


def _with_epochs(c: Any) -> bool:
    return bool(c.version >= 9)


def _when(step: Step, when: Callable[[Any], bool]) -> Step:
    return step._replace(when=when)


def _f(name: str, *arguments: Any, **fields: Any) -> Step:
    """Return a step that fetches."""
    return Step(name, FETCH, lambda c: fetch(c, *arguments, **fields))


def _s(name: str, epoch: int, *arguments: Any, **fields: Any) -> Step:
    """Return a step of a fetch session."""
    step = Step(name, FETCH, lambda c: _session(c, epoch, *arguments, **fields))
    return step._replace(when=_with_sessions, keep=_keep_session)


def _forget(c: Any) -> Dict[str, Any]:
    topic_id = c.topic_id(c.topic())
    gone = [{'topic': c.topic(), 'topic_id': topic_id, 'partitions': [0]}]
    return dict(_session(c, 4), topics=[], forgotten_topics_data=gone)


def _stranger(c: Any, epoch: int) -> Dict[str, Any]:
    return dict(fetch(c), session_id=123456789, session_epoch=epoch)


FETCH_SCRIPT = [
    Scenario(
        'fetch',
        (FETCH,),
        [
            *FILL,
            _f('all'),
            _f('inside a batch', 1),
            _f('second batch', 2),
            _f('at the end', 6),
            _f('behind the end', 7),
            _f('negative offset', -1),
            _f('very negative offset', -5),
            _f('empty partition', 0, 1),
            _f('unknown partition', 0, 2),
            _f('negative partition', 0, -1),
            _f('unknown topic', topic='unknown'),
            _f('few bytes', partition_max_bytes=100),
            _f('too few bytes', partition_max_bytes=10),
            _f('no bytes', partition_max_bytes=0),
            _f('few bytes in all', max_bytes=100),
            _f('no bytes in all', max_bytes=0),
            _f('wait for more', 4, min_bytes=100000, max_wait_ms=100),
            _f('wait not', 6, min_bytes=1, max_wait_ms=0),
            _f('read committed', isolation_level=1),
            _when(_f('isolation 5', isolation_level=5), lambda c: c.version >= 4),
            _when(_f('epoch 0', current_leader_epoch=0), _with_epochs),
            _when(_f('later epoch', current_leader_epoch=5), _with_epochs),
            _when(_f('fetched epoch 0', last_fetched_epoch=0), lambda c: c.version >= 12),
            _when(_f('fetched epoch 5', last_fetched_epoch=5), lambda c: c.version >= 12),
            _when(_f('rack', rack_id='r1'), lambda c: c.version >= 11),
            _f('unknown replica', replica_id=-3),
            Step('no topics', FETCH, lambda c: dict(fetch(c), topics=[])),
            Step('topic twice', FETCH, lambda c: _twice(fetch(c))),
        ],
    ),
    Scenario(
        'fetch session',
        (FETCH,),
        [
            *FILL[:1],
            _s('new', 0),
            _s('nothing new', 1, 2),
            _when(
                Step('unchanged', FETCH, lambda c: dict(_session(c, 2), topics=[])), _with_sessions
            ),
            *FILL[1:2],
            _when(
                Step('changed', FETCH, lambda c: dict(_session(c, 3), topics=[])), _with_sessions
            ),
            _when(Step('forget', FETCH, _forget), _with_sessions),
            _when(Step('wrong epoch', FETCH, lambda c: _session(c, 9)), _with_sessions),
            _when(Step('unknown id', FETCH, lambda c: _stranger(c, 1)), _with_sessions),
            _when(Step('unknown id, new', FETCH, lambda c: _stranger(c, 0)), _with_sessions),
            _when(Step('close', FETCH, lambda c: _session(c, -1)), _with_sessions),
            _when(Step('after close', FETCH, lambda c: _session(c, 5)), _with_sessions),
            _when(Step('negative epoch', FETCH, lambda c: _stranger(c, -3)), _with_sessions),
        ],
        versions='7+',
    ),
    one('fetch', FETCH, fetch, versions=REFUSED_ABOVE),
    one('fetch', FETCH, fetch, versions=REFUSED_BELOW),
]


def _twice(values: Dict[str, Any]) -> Dict[str, Any]:
    return dict(values, topics=values['topics'] * 2)


def offsets(
    c: Any, timestamp: int, partition: int = 0, topic: Optional[str] = None, **fields: Any
) -> Dict[str, Any]:
    """Return a ListOffsets request for one partition; fields of partition or request by name."""
    part = {'partition_index': partition, 'timestamp': timestamp}
    for field in ('current_leader_epoch', 'max_num_offsets'):
        if field in fields:
            part[field] = fields.pop(field)
    topics = [{'name': c.topic() if topic is None else topic, 'partitions': [part]}]
    return dict({'replica_id': -1, 'topics': topics}, **fields)


def _o(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, LIST_OFFSETS, lambda c: offsets(c, *arguments, **fields))


def _at_base(name: str, distance_ms: int) -> Step:
    return Step(name, LIST_OFFSETS, lambda c: offsets(c, c.now_ms + distance_ms))


LIST_OFFSETS_SCRIPT = [
    Scenario(
        'list offsets',
        (LIST_OFFSETS,),
        [
            *FILL,
            *(_o('time %d' % time, time) for time in (-1, -2, -3, -4, -5, -6, -7, 0)),
            _at_base('first time', 0),
            _at_base('second time', 1),
            _at_base('behind all times', 2),
            _at_base('far behind all times', 36_000_000),
            _o('empty partition', -1, 1),
            _o('empty partition by time', 0, 1),
            _o('unknown partition', -1, 2),
            _o('unknown topic', -1, 0, 'unknown'),
            _o('no offsets', -1, max_num_offsets=0),
            _o('ten offsets', -1, max_num_offsets=10),
            _o('read committed', -1, isolation_level=1),
            _when(_o('isolation 5', -1, isolation_level=5), lambda c: c.version >= 2),
            _when(_o('epoch 0', -1, current_leader_epoch=0), lambda c: c.version >= 4),
            _when(_o('later epoch', -1, current_leader_epoch=5), lambda c: c.version >= 4),
            _o('debugging replica', -1, replica_id=-2),
            _o('some replica', -1, replica_id=5),
            Step('partition twice', LIST_OFFSETS, lambda c: _twice(offsets(c, -1))),
        ],
    ),
    one('list offsets', LIST_OFFSETS, lambda c: offsets(c, -1), versions=REFUSED_ABOVE),
]


def _epoch(
    c: Any, epoch: int, partition: int = 0, topic: Optional[str] = None, current: int = -1
) -> Dict[str, Any]:
    part = {'partition': partition, 'leader_epoch': epoch, 'current_leader_epoch': current}
    name = c.topic() if topic is None else topic
    return {'replica_id': -1, 'topics': [{'topic': name, 'partitions': [part]}]}


def _e(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, OFFSET_FOR_LEADER_EPOCH, lambda c: _epoch(c, *arguments, **fields))


EPOCH_SCRIPT = [
    Scenario(
        'leader epochs',
        (OFFSET_FOR_LEADER_EPOCH,),
        [
            _e('empty log', 0),
            *FILL[:1],
            _e('epoch 0', 0),
            _e('epoch 5', 5),
            _e('epoch -1', -1),
            _e('unknown partition', 0, 2),
            _e('unknown topic', 0, 0, 'unknown'),
            _e('current epoch', 0, current=0),
            _e('later current epoch', 0, current=5),
        ],
    )
]


def _delete(c: Any, offset: int, partition: int = 0, topic: Optional[str] = None) -> Dict[str, Any]:
    part = {'partition_index': partition, 'offset': offset}
    name = c.topic() if topic is None else topic
    return {'topics': [{'name': name, 'partitions': [part]}], 'timeout_ms': 5000}


def _d(name: str, *arguments: Any) -> Step:
    return Step(name, DELETE_RECORDS, lambda c: _delete(c, *arguments))


DELETE_RECORDS_SCRIPT = [
    Scenario(
        'delete records',
        (DELETE_RECORDS,),
        [
            *FILL,
            _d('behind the end', 7),
            _d('negative', -5),
            _d('unknown partition', 1, 2),
            _d('unknown topic', 1, 0, 'unknown'),
            _d('first', 1),
            _f('fetch before the start', 0),
            _f('fetch at the start', 1),
            _o('earliest', -2),
            _o('latest', -1),
            _d('before the start', 0),
            _d('up to 4', 4),
            _f('fetch from 4', 4),
            _d('all', -1),
            _o('earliest at last', -2),
            Step('fill later', PRODUCE, _fill),
            _f('fetch what came later', 6),
        ],
    )
]


def _topic_with(**configs: str) -> Callable[[Any], Dict[str, Any]]:
    """Return what creates the case's topic with configurations of it."""

    def create(c: Any) -> Dict[str, Any]:
        settings = [
            {'name': name.replace('_', '.'), 'value': value} for name, value in configs.items()
        ]
        topic = {'name': c.name('t'), 'num_partitions': 2, 'replication_factor': 1}
        return {'topics': [dict(topic, configs=settings)], 'timeout_ms': 10000}

    return create


def _topic_script(name: str, configs: Dict[str, str], *steps: Step) -> Scenario:
    create = Step('create', CREATE_TOPICS, _topic_with(**configs))
    return Scenario(name, (PRODUCE,), [create, *steps, _fetch_back()], since=(0, 10, 1))


def _p(name: str, records: Callable[[Any], bytes]) -> Step:
    return Step(name, PRODUCE, lambda c: produce(c, records(c)))


TOPIC_SCRIPT = [
    _topic_script(
        'compacted',
        {'cleanup_policy': 'compact'},
        _p('with key', batch),
        _p('without key', lambda c: batch(c, key=None)),
        _p('without value', lambda c: batch(c, values=[None])),
        _p('last', lambda c: batch(c, values=[b'last'])),
    ),
    _topic_script(
        'append time',
        {'message_timestamp_type': 'LogAppendTime'},
        _p('plain', batch),
        _p('gzip', lambda c: batch(c, codec=1)),
    ),
    _topic_script(
        'gzip topic',
        {'compression_type': 'gzip'},
        _p('plain', batch),
        _p('snappy', lambda c: batch(c, codec=2)),
    ),
    _topic_script(
        'plain topic', {'compression_type': 'uncompressed'}, _p('gzip', lambda c: batch(c, codec=1))
    ),
    _topic_script(
        'small messages',
        {'max_message_bytes': '200'},
        _p('small', batch),
        _p('large', lambda c: batch(c, values=[bytes(500)])),
        _p('large in gzip', lambda c: batch(c, values=[bytes(500)], codec=1)),
    ),
    _topic_script(
        'two replicas wanted',
        {'min_insync_replicas': '2'},
        _p('acks 1', batch),
        Step('acks -1', PRODUCE, lambda c: produce(c, batch(c), acks=-1)),
    ),
    _topic_script(
        'near times',
        {'message_timestamp_difference_max_ms': '60000'},
        _p('an hour ago', batch),
        _p('in an hour', lambda c: _at(c, c.now_ms + 7_200_000)),
    ),
    *(
        _topic_script(
            'stored as ' + version, {'message_format_version': version}, _p('produce', batch)
        )._replace(since=since, until=(3, 9))
        for version, since in (('0.9.0', (0, 10, 1)), ('0.10.0', (0, 10, 1)), ('0.11.0', (0, 11)))
    ),
    Scenario(
        'read back in old formats',
        (FETCH,),
        [
            Step('plain', PRODUCE, lambda c: produce(c, batch(c))),
            Step('gzip', PRODUCE, lambda c: produce(c, batch(c, codec=1))),
            _f('fetch'),
            _f('fetch inside', 3),
            _f('few bytes', partition_max_bytes=60),
        ],
        since=(0, 10),
    ),
]

SCRIPT = [
    *PRODUCE_SCRIPT,
    *SEQUENCE_SCRIPT,
    *FETCH_SCRIPT,
    *LIST_OFFSETS_SCRIPT,
    *EPOCH_SCRIPT,
    *DELETE_RECORDS_SCRIPT,
    *TOPIC_SCRIPT,
]
