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
        'Converts a key to bytes: called with the key, or its serialize() with topic, headers,'
        ' key.',
    ),
    Option(
        'value_serializer',
        _SERIALIZER,
        None,
        'P',
        'Converts a value to bytes, in the same way.',
    ),
    Option(
        'partitioner',
        function('partition'),
        None,
        'P',
        'Chooses the partition; partitioners of all eras are accepted. None: by a hash of the'
        ' key, and'
        ' for records without a key one partition per batch (KIP-794).',
        java='partitioner.class',
    ),
    Option(
        'partitioner_adaptive_partitioning_enable',
        FLAG,
        True,
        'P',
        'Whether slow brokers get fewer of the records without a key (KIP-794).',
        since='',
    ),
    Option(
        'partitioner_availability_timeout_ms',
        milliseconds(0),
        0,
        'P',
        'A broker that has accepted none of its ready batches for this long gets no more records'
        ' without a key as long as others are available (KIP-794). 0: never.',
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
        'Interceptors, which see and change records that are sent or consumed and are notified of'
        ' the'
        ' results; see kafka.interceptors.',
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
        'Which replicas must have stored a record before it is acknowledged: 0 none, 1 the leader,'
        " 'all' or -1 all in-sync replicas.",
        until=(('2.3', 'P', 1),),
        dotted=('request.required.acks',),
    ),
    Option(
        'retries',
        whole(0, INT32_MAX, infinite=True),
        math.inf,
        'P',
        'How many times a batch may be sent again, within delivery_timeout_ms.',
        until=(('2.0', 'P', 0),),
        dotted=('message.send.max.retries',),
    ),
    Option(
        'delivery_timeout_ms',
        milliseconds(1),
        120000,
        'P',
        'The longest time from send() to the result; after it the future fails with'
        ' KafkaTimeoutError. It must be at least linger_ms + request_timeout_ms: the default is'
        ' raised'
        ' to their sum. If only this option is given, request_timeout_ms is shortened to fit.'
        ' Values'
        ' that contradict each other, or not above linger_ms, are refused.',
        dotted=('message.timeout.ms',),
        since='2.2',
    ),
    Option(
        'busy_poll_us',
        whole(0, 10**6),
        0,
        'P',
        'How many microseconds get() polls the socket for the response to a single outstanding'
        ' record before it blocks (Linux only). Polling takes processor time and saves latency;'
        ' 300 suits a broker that is close. It stops where responses take longer, or other'
        ' processes need the processor. 0: never.',
        since='',
    ),
    Option(
        'enable_idempotence',
        FLAG,
        True,
        'P',
        "Whether retries neither duplicate nor reorder records. Requires acks 'all', retries, at"
        ' most 5 requests in flight, and brokers from 0.11 on; disabled if another option rules'
        ' it out.',
        until=(('2.3', 'P', False),),
        since='2.2',
    ),
    Option(
        'transactional_id',
        text(),
        None,
        'P',
        'A name that stays the same across restarts of the process; enables transactions.',
        since='2.2',
    ),
    Option(
        'transaction_timeout_ms',
        milliseconds(1, INT32_MAX),
        60000,
        'P',
        'The time after which the coordinator aborts an open transaction.',
        since='2.2',
    ),
    Option(
        'raise_on_too_large',
        FLAG,
        False,
        'P',
        'Whether send() raises MessageSizeTooLargeError, as in 3.0, or returns a future that failed'
        ' with it, as in earlier releases.',
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
        'The compression codec of batches; snappy, lz4 and zstd need a package.',
        dotted=('compression.codec',),
    ),
    Option(
        'compression_level',
        whole(-131072, 22, none=True),
        None,
        'P',
        "The compression level: gzip 1 to 9, lz4 1 to 12, zstd up to 22. None: the codec's"
        ' default.',
        java='compression.gzip.level',
        dotted=('compression.level', 'compression.lz4.level', 'compression.zstd.level'),
        since='',
    ),
    Option(
        'batch_size',
        size(0),
        16384,
        'P',
        'The maximum size of a batch of one partition, before compression; 0: one record per'
        ' batch.',
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
        'The memory for records that wait to be sent; send() blocks when it is used up.',
        dotted=('queue.buffering.max.kbytes', 'queue.buffering.max.messages'),
    ),
    Option(
        'max_block_ms',
        milliseconds(0),
        60000,
        'P',
        'How long send(), partitions_for() and transactional calls wait for metadata, memory or the'
        ' coordinator before they raise KafkaTimeoutError.',
    ),
    Option(
        'metadata_max_idle_ms',
        milliseconds(5000),
        300000,
        'P',
        'The time without a record after which the metadata and the metrics of a topic are dropped;'
        ' the next record for it requests its metadata again (KIP-526).',
        java='metadata.max.idle.ms',
        since='',
    ),
    Option(
        'max_request_size',
        size(1),
        1048576,
        'P',
        'The maximum size of a request, and of a record.',
        dotted=('message.max.bytes',),
    ),
)

PRODUCING: Table = {**_RECORDS, **_DELIVERY, **_BATCHES}
