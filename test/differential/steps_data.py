"""Writing records: Produce, good and bad, and sequences."""

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
INIT_PRODUCER_ID = 22

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


def fetch_back() -> Step:
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
        [Step('produce', PRODUCE, lambda c: produce(c, records(c))), fetch_back()],
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
        versions='high',
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
    _bad('negative timestamp', lambda c: at_time(c, -1), versions='2+'),
    _bad('future timestamp', lambda c: at_time(c, c.now_ms + 86_400_000 * 30), versions='2+'),
]


def at_time(c: Any, timestamp: int) -> bytes:
    """Return one record of another time."""
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
            fetch_back(),
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
            fetch_back(),
        ],
        versions='3+',
    ),
    Scenario(
        'many sequences',
        (PRODUCE,),
        [
            Step(
                'init',
                INIT_PRODUCER_ID,
                lambda c: {'transactional_id': None, 'transaction_timeout_ms': 1000},
                keep=_keep_producer,
            ),
            *(_sequence('write %d' % n, n, count=1) for n in range(7)),
            *(_sequence('write %d again' % n, n, count=1) for n in range(7)),
            _sequence('two again as one', 5),
            _sequence('one again and a new one', 6),
            _sequence('next', 7, count=1),
            _sequence('last of all sequences', 2**31 - 1, count=1),
            _sequence('newer epoch by far', 0, epoch=50),
            _sequence('epoch between', 2, epoch=20),
            fetch_back(),
        ],
        versions='high',
        since=(0, 11),
    ),
]


SCRIPT = [*PRODUCE_SCRIPT, *SEQUENCE_SCRIPT]
