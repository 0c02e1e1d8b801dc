"""The options of KafkaProducer alone. Rows of the option table, see ``option.py``."""

from __future__ import annotations

import math

from kafka.config.kinds import (
    ACKS,
    FLAG,
    INT32_MAX,
    Kind,
    choice,
    function,
    has_method,
    listed,
    milliseconds,
    size,
    text,
    whole,
)
from kafka.config.option import Option, Table, table

__all__ = ['PRODUCING']

_SERIALIZER: Kind = function('serialize')
_INTERCEPTED = ('on_send', 'on_acknowledgement', 'on_consume', 'on_commit')

_RECORDS: Table = table(
    Option(
        'key_serializer',
        _SERIALIZER,
        None,
        'P',
        'Makes bytes of keys; called with the key, a method also with topic and headers.',
    ),
    Option(
        'value_serializer',
        _SERIALIZER,
        None,
        'P',
        'Makes bytes of values, likewise.',
    ),
    Option(
        'partitioner',
        function('partition'),
        None,
        'P',
        'Chooses partitions, in the form of any era. None: by the hash of the key, records without'
        ' one in batches (KIP-794).',
        java='partitioner.class',
    ),
    Option(
        'partitioner_adaptive_partitioning_enable',
        FLAG,
        True,
        'P',
        'Whether partitions of slow brokers get fewer of the records without a key (KIP-794).',
        since='',
    ),
    Option(
        'partitioner_availability_timeout_ms',
        milliseconds(0),
        0,
        'P',
        'After how long a broker that takes nothing of what is ready for it gets no more of the'
        ' records without a key, as long as there are others (KIP-794). 0: never.',
        since='',
    ),
    Option(
        'interceptors',
        listed(
            'objects, or their classes, with one of the methods of kafka.interceptors',
            lambda each: any(has_method(name)(each) for name in _INTERCEPTED),
        ),
        [],
        'PC',
        'See and change what is sent or consumed, and learn what became of it; see'
        ' kafka.interceptors.',
        java='interceptor.classes',
        since='',
    ),
)

_DELIVERY: Table = table(
    Option(
        'acks',
        ACKS,
        -1,
        'P',
        "Who has to have a record before it counts as stored: 0 nobody, 1 the leader, 'all' or -1"
        ' every replica that is in sync.',
        until=(('2.3', 'P', 1),),
        dotted=('request.required.acks',),
    ),
    Option(
        'retries',
        whole(0, INT32_MAX, infinite=True),
        math.inf,
        'P',
        'How often a batch may be sent again, within delivery_timeout_ms.',
        until=(('2.0', 'P', 0),),
        dotted=('message.send.max.retries',),
    ),
    Option(
        'delivery_timeout_ms',
        milliseconds(1),
        120000,
        'P',
        'The time from send() to the outcome; then the future fails with KafkaTimeoutError. It has'
        ' room for linger_ms and one request_timeout_ms: where it is not given it is their sum'
        ' if that is more; given alone, it shortens request_timeout_ms to what linger_ms leaves;'
        ' with a request_timeout_ms that does not fit, or not above linger_ms, it is refused.',
        dotted=('message.timeout.ms',),
        since='2.2',
    ),
    Option(
        'busy_poll_us',
        whole(0, 10**6),
        300,
        'P',
        'For how many microseconds get() of a record that is sent alone asks for the answer again'
        ' and again before it sleeps, on Linux: that takes more of an idle processor and less time.'
        ' Not where answers take longer than that, nor while others want the processor. 0: never.',
        since='',
    ),
    Option(
        'enable_idempotence',
        FLAG,
        True,
        'P',
        "Whether retries store no record twice nor out of order. Needs acks 'all', retries, at most"
        ' 5 requests in flight, brokers of 0.11; off by itself where another option forbids it.',
        until=(('2.3', 'P', False),),
        since='2.2',
    ),
    Option(
        'transactional_id',
        text(),
        None,
        'P',
        'A name that outlives the process; makes transactions possible.',
        since='2.2',
    ),
    Option(
        'transaction_timeout_ms',
        milliseconds(1, INT32_MAX),
        60000,
        'P',
        'After how long the coordinator aborts a transaction that was left open.',
        since='2.2',
    ),
    Option(
        'raise_on_too_large',
        FLAG,
        False,
        'P',
        'Whether send() raises MessageSizeTooLargeError, as in 3.0, or returns a future that failed'
        ' with it, as before.',
        until=(('2.3', 'P', False), ('3.0', 'P', True)),
        java=None,
        since='',
    ),
)

_BATCHES: Table = table(
    Option(
        'compression_type',
        choice(['gzip', 'snappy', 'lz4', 'zstd'], none=True, also={'none': None}),
        None,
        'P',
        'How batches are compressed; snappy, lz4 and zstd need a package.',
        dotted=('compression.codec',),
    ),
    Option(
        'compression_level',
        whole(-131072, 22, none=True),
        None,
        'P',
        "How hard to try: gzip 1 to 9, lz4 1 to 12, zstd up to 22. None: the codec's own choice.",
        java='compression.gzip.level',
        dotted=('compression.level', 'compression.lz4.level', 'compression.zstd.level'),
        since='',
    ),
    Option(
        'batch_size',
        size(0),
        16384,
        'P',
        'Bytes of a batch of one partition, before compression; 0: one record each.',
        dotted=('batch.num.messages',),
    ),
    Option(
        'linger_ms',
        milliseconds(0, 10 * INT32_MAX),
        0,
        'P',
        'How long a batch that is not full waits for more records.',
        dotted=('queue.buffering.max.ms',),
    ),
    Option(
        'buffer_memory',
        size(1, 2**62),
        33554432,
        'P',
        'Bytes of records that may wait to be sent; then send() blocks.',
        dotted=('queue.buffering.max.kbytes', 'queue.buffering.max.messages'),
    ),
    Option(
        'max_block_ms',
        milliseconds(0),
        60000,
        'P',
        'How long send(), partitions_for() and calls of transactions wait for metadata, memory or'
        ' the coordinator; then they raise KafkaTimeoutError.',
    ),
    Option(
        'metadata_max_idle_ms',
        milliseconds(5000),
        300000,
        'P',
        'After how long without a record a topic is forgotten: what is known of it, its metrics;'
        ' the next record for it asks for its partitions again (KIP-526).',
        java='metadata.max.idle.ms',
        since='',
    ),
    Option(
        'max_request_size',
        size(1),
        1048576,
        'P',
        'Bytes of a request, and of a record.',
        dotted=('message.max.bytes',),
    ),
)

PRODUCING: Table = {**_RECORDS, **_DELIVERY, **_BATCHES}
