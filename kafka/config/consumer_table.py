"""The options of KafkaConsumer alone, and those of the KafkaConsumer of 0.9.5.

Rows of the option table, see ``option.py``.
"""

from __future__ import annotations

import math
import re
from typing import Any

from kafka.config.kinds import (
    FLAG,
    INT32_MAX,
    Unfit,
    anything,
    choice,
    function,
    listed,
    milliseconds,
    size,
    text,
    whole,
)
from kafka.config.option import Option, Table, table

__all__ = ['CONSUMING', 'OF_0_9_5']

_INSTANCE = re.compile(r'[A-Za-z0-9._-]{1,249}\Z')


def _instance_id(value: str) -> str:
    if value in ('.', '..') or not _INSTANCE.match(value):
        raise Unfit('1 to 249 of A-Z, a-z, 0-9, ".", "_" and "-"')
    return value


#: The assignors of the package; kafka/coordinator/assignors/adapt.py maps them to classes.
_ASSIGNORS = ('range', 'roundrobin', 'sticky', 'cooperative-sticky')


def _is_assignor(value: Any) -> bool:
    return value in _ASSIGNORS if isinstance(value, str) else hasattr(value, 'assign')


def _accept(offsets: Any, response: Any) -> bool:
    """The default callback for the result of a commit: do nothing."""
    return True


_GROUP: Table = table(
    Option(
        'group_id',
        text(),
        None,
        'C',
        'The consumer group to join and to commit offsets for. None: no group and no commits.',
        until=(('1.2', 'C', 'kafka-python-default-group'),),
    ),
    Option(
        'group_instance_id',
        text(convert=_instance_id),
        None,
        'C',
        'The static member id, which stays the same across restarts of the process (KIP-345).',
        since='2.3',
    ),
    Option(
        'group_protocol',
        choice(['classic', 'consumer'], fold=str.lower),
        'classic',
        'C',
        "The rebalance protocol: 'classic', assigned by the group leader, or 'consumer', assigned"
        ' by'
        ' the coordinator (KIP-848).',
        since='',
    ),
    Option(
        'group_remote_assignor',
        text(),
        None,
        'C',
        "The assignor of the coordinator (KIP-848): 'uniform', 'range'. None: the broker's"
        ' default.',
        since='',
    ),
    Option(
        'session_timeout_ms',
        milliseconds(1, INT32_MAX),
        45000,
        'C',
        'The session timeout: without a heartbeat for this long the coordinator removes the member'
        ' from the group. 30000 on brokers before 3.0.',
        until=(('1.2', 'C', 30000), ('2.3', 'C', 10000)),
    ),
    Option(
        'heartbeat_interval_ms',
        milliseconds(1, INT32_MAX),
        3000,
        'C',
        'The time between heartbeats; at most, and usually, a third of session_timeout_ms.',
    ),
    Option(
        'max_poll_interval_ms',
        milliseconds(1, INT32_MAX),
        300000,
        'C',
        'The longest time between two calls of poll(); after it the member leaves the group.',
        since='1.4',
    ),
    Option(
        'partition_assignment_strategy',
        listed(
            'assignors: classes, instances, or the names ' + ', '.join(_ASSIGNORS), _is_assignor
        ),
        (),
        'C',
        'The assignors that the member supports, in order of preference. Empty: range, roundrobin.',
    ),
    Option(
        'enable_auto_commit',
        FLAG,
        True,
        'C',
        'Whether the offsets of returned records are committed periodically in the background.',
    ),
    Option(
        'auto_commit_interval_ms',
        milliseconds(0),
        5000,
        'C',
        'The time between automatic commits; unchanged offsets are committed again every 30 s.',
    ),
    Option(
        'default_offset_commit_callback',
        function(none=False),
        _accept,
        'C',
        'Called with the offsets and the response, or the error, of a commit without a callback.',
        java=None,
    ),
    Option(
        'exclude_internal_topics',
        FLAG,
        True,
        'C',
        'Whether patterns and topics() leave out internal topics such as ``__consumer_offsets``.',
        until=(('1.2', 'C', False),),
        since='1.3',
    ),
)

_FETCHING: Table = table(
    Option(
        'key_deserializer',
        function('deserialize'),
        None,
        'C',
        'Converts the bytes of a key to an object.',
    ),
    Option(
        'value_deserializer',
        function('deserialize'),
        None,
        'C',
        'Converts the bytes of a value to an object.',
    ),
    Option(
        'fetch_min_bytes',
        size(0),
        1,
        'C',
        'The number of bytes that a broker collects before it answers a fetch request.',
    ),
    Option(
        'fetch_max_wait_ms',
        milliseconds(0, INT32_MAX),
        500,
        'C',
        'The longest time that a broker waits for fetch_min_bytes. If this is not given and'
        ' fetch_min_bytes is 1, a broker that had no records for a while is allowed to wait for'
        ' up to'
        ' 5 s; it still answers as soon as there is a record.',
        dotted=('fetch.wait.max.ms',),
    ),
    Option(
        'fetch_max_bytes',
        size(0),
        52428800,
        'C',
        'The maximum size of a fetch response; the first batch is returned even if it is larger.',
        since='1.3.3',
    ),
    Option(
        'max_partition_fetch_bytes',
        size(0),
        1048576,
        'C',
        'The maximum size per partition in a fetch response; the first batch is always returned.',
        dotted=('fetch.message.max.bytes',),
    ),
    Option(
        'fetch_max_buffered_bytes',
        size(1),
        52428800,
        'C',
        'The maximum size of fetched records that wait for poll(); one batch is always fetched.',
        java=None,
        since='',
    ),
    Option(
        'max_poll_records',
        whole(1, infinite=True),
        500,
        'C',
        'The maximum number of records that one poll() returns.',
        until=(('1.2', 'C', math.inf),),
        since='1.3.2',
    ),
    Option(
        'auto_offset_reset',
        anything('text'),
        'latest',
        'C',
        'Where to start without a committed offset, or when it is out of range:'
        " 'earliest', 'latest', or 'by_duration:PT1H30M' for an offset by age (KIP-1106). Any other"
        ' word: raise an error.',
    ),
    Option(
        'check_crcs',
        FLAG,
        True,
        'C',
        'Whether the CRC checksums of fetched batches are verified.',
    ),
    Option(
        'isolation_level',
        choice(['read_uncommitted', 'read_committed']),
        'read_uncommitted',
        'C',
        "Which transactional records are returned: all ('read_uncommitted'), or only those of"
        " committed transactions ('read_committed').",
        since='2.2',
    ),
    Option(
        'consumer_timeout_ms',
        milliseconds(0, never=True),
        math.inf,
        'C',
        'How long iteration waits for a record before it ends. Infinite or negative: forever.',
        until=(('1.2', 'C', -1),),
        java='consumer.timeout.ms',
    ),
    Option(
        'enable_incremental_fetch_sessions',
        FLAG,
        True,
        'C',
        'Whether incremental fetch sessions are used (KIP-227).',
        java=None,
        since='2.1',
    ),
    Option(
        'client_rack',
        text(none=False, empty=True),
        '',
        'C',
        'The rack of this client, to fetch from a replica in the same rack (KIP-392).',
        since='3.0',
    ),
)

CONSUMING: Table = {**_GROUP, **_FETCHING}


def _of_0_9_5(name: str, default: Any, doc: str, is_ignored: bool = False, old: str = '') -> Option:
    names = (old,) if old else ()
    return Option(name, anything(), default, 'T', doc, (), None, (), names, is_ignored, '0.9.5')


def _as_it_is(message: Any) -> Any:
    return message


#: Their values are checked in kafka.consumer.arguments_09.
OF_0_9_5: Table = table(
    _of_0_9_5('client_id', 'kafka.consumer.kafka', 'The client id in requests.'),
    _of_0_9_5('group_id', None, 'The group to commit offsets for.'),
    _of_0_9_5(
        'bootstrap_servers', [], 'The brokers to connect to first.', old='metadata_broker_list'
    ),
    _of_0_9_5('socket_timeout_ms', 30 * 1000, 'The longest wait for a response.'),
    _of_0_9_5('fetch_message_max_bytes', 1024 * 1024, 'The maximum size per partition.'),
    _of_0_9_5('auto_offset_reset', 'largest', "Where to start: 'smallest', 'largest'; else raise."),
    _of_0_9_5('fetch_min_bytes', 1, 'The bytes that a broker collects before it answers.'),
    _of_0_9_5('fetch_wait_max_ms', 100, 'The longest time that a broker waits for them.'),
    _of_0_9_5('refresh_leader_backoff_ms', 200, 'The wait before a retry after an error.'),
    _of_0_9_5('deserializer_class', _as_it_is, 'Converts the bytes of a value to an object.'),
    _of_0_9_5('auto_commit_enable', False, 'Whether offsets are committed automatically.'),
    _of_0_9_5('auto_commit_interval_ms', 60 * 1000, 'The time between automatic commits.'),
    _of_0_9_5('auto_commit_interval_messages', None, 'Messages between automatic commits.'),
    _of_0_9_5('consumer_timeout_ms', -1, 'How long iteration waits; negative: forever.'),
    _of_0_9_5('socket_receive_buffer_bytes', 64 * 1024, 'No effect, as in 0.9.5.', True),
    _of_0_9_5('num_consumer_fetchers', 1, 'No effect, as in 0.9.5.', True),
    _of_0_9_5('default_fetcher_backoff_ms', 1000, 'No effect, as in 0.9.5.', True),
    _of_0_9_5('queued_max_message_chunks', 10, 'No effect, as in 0.9.5.', True),
    _of_0_9_5('rebalance_max_retries', 4, 'No effect, as in 0.9.5.', True),
    _of_0_9_5('rebalance_backoff_ms', 2000, 'No effect, as in 0.9.5.', True),
)
