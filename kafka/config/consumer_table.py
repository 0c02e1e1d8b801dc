"""The options of KafkaConsumer alone, and those of the one of 0.9.5.

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


#: Those of the package; kafka/coordinator/assignors/adapt.py knows the classes.
_ASSIGNORS = ('range', 'roundrobin', 'sticky', 'cooperative-sticky')


def _is_assignor(value: Any) -> bool:
    return value in _ASSIGNORS if isinstance(value, str) else hasattr(value, 'assign')


def _accept(offsets: Any, response: Any) -> bool:
    """Take note of a commit, whatever became of it: the callback of who has none."""
    return True


_GROUP: Table = table(
    Option(
        'group_id',
        text(),
        None,
        'C',
        'The group to join, and in whose name offsets are stored. None: no group, no commits.',
        until=(('1.2', 'C', 'kafka-python-default-group'),),
    ),
    Option(
        'group_instance_id',
        text(convert=_instance_id),
        None,
        'C',
        'A name of this member that outlives the process (KIP-345).',
        since='2.3',
    ),
    Option(
        'group_protocol',
        choice(['classic', 'consumer'], fold=str.lower),
        'classic',
        'C',
        'How the group shares partitions: by its members, or by the coordinator (KIP-848).',
        since='',
    ),
    Option(
        'group_remote_assignor',
        text(),
        None,
        'C',
        "How the coordinator shares partitions: 'uniform', 'range'. None: as it is set up to.",
        since='',
    ),
    Option(
        'session_timeout_ms',
        milliseconds(1, INT32_MAX),
        45000,
        'C',
        'For how long the coordinator may hear nothing before it takes the member for gone.'
        ' 30000 on brokers before 3.0.',
        until=(('1.2', 'C', 30000), ('2.3', 'C', 10000)),
    ),
    Option(
        'heartbeat_interval_ms',
        milliseconds(1, INT32_MAX),
        3000,
        'C',
        'How often it hears something; a third of session_timeout_ms at most, usually.',
    ),
    Option(
        'max_poll_interval_ms',
        milliseconds(1, INT32_MAX),
        300000,
        'C',
        'The longest pause between two calls of poll(); then the group goes on without.',
        since='1.4',
    ),
    Option(
        'partition_assignment_strategy',
        listed('assignors: classes, instances, or names of ' + ', '.join(_ASSIGNORS), _is_assignor),
        (),
        'C',
        'How a group shares partitions, what it likes best first. Empty: range, roundrobin.',
    ),
    Option(
        'enable_auto_commit',
        FLAG,
        True,
        'C',
        'Whether positions are committed by themselves.',
    ),
    Option(
        'auto_commit_interval_ms',
        milliseconds(0),
        5000,
        'C',
        'How often; positions that are stored already, every 30 s.',
    ),
    Option(
        'default_offset_commit_callback',
        function(none=False),
        _accept,
        'C',
        'Called with offsets and answer, or error, of a commit that has no callback.',
        java=None,
    ),
    Option(
        'exclude_internal_topics',
        FLAG,
        True,
        'C',
        'Whether patterns, and topics(), pass over topics such as ``__consumer_offsets``.',
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
        'Makes keys of bytes.',
    ),
    Option(
        'value_deserializer',
        function('deserialize'),
        None,
        'C',
        'Makes values of bytes.',
    ),
    Option(
        'fetch_min_bytes',
        size(0),
        1,
        'C',
        'For how many bytes a broker waits before it answers',
    ),
    Option(
        'fetch_max_wait_ms',
        milliseconds(0, INT32_MAX),
        500,
        'C',
        'and for how long at most. Where it is not given and fetch_min_bytes is 1, a broker that'
        ' had nothing for a while waits for up to 5 s; it answers as soon as there is a record.',
        dotted=('fetch.wait.max.ms',),
    ),
    Option(
        'fetch_max_bytes',
        size(0),
        52428800,
        'C',
        'The largest answer; one batch always comes.',
        since='1.3.3',
    ),
    Option(
        'max_partition_fetch_bytes',
        size(0),
        1048576,
        'C',
        'The largest part of it for one partition; one batch always comes.',
        dotted=('fetch.message.max.bytes',),
    ),
    Option(
        'fetch_max_buffered_bytes',
        size(1),
        52428800,
        'C',
        'How much is fetched ahead of what is handed out, at most; one batch always comes.',
        java=None,
        since='',
    ),
    Option(
        'max_poll_records',
        whole(1, infinite=True),
        500,
        'C',
        'How many records poll() returns at most.',
        until=(('1.2', 'C', math.inf),),
        since='1.3.2',
    ),
    Option(
        'auto_offset_reset',
        anything('text'),
        'latest',
        'C',
        "Where to begin without a committed offset, and where one is out of range: 'earliest',"
        " 'latest', or 'by_duration:PT1H30M', so long ago (KIP-1106). Any other word: raise.",
    ),
    Option(
        'check_crcs',
        FLAG,
        True,
        'C',
        'Whether the checksums of what is read are looked at.',
    ),
    Option(
        'isolation_level',
        choice(['read_uncommitted', 'read_committed']),
        'read_uncommitted',
        'C',
        'Whether records of transactions that are open or aborted are seen.',
        since='2.2',
    ),
    Option(
        'consumer_timeout_ms',
        milliseconds(0, never=True),
        math.inf,
        'C',
        'How long iteration waits for a record before it ends. Infinite or negative: for ever.',
        until=(('1.2', 'C', -1),),
        java='consumer.timeout.ms',
    ),
    Option(
        'enable_incremental_fetch_sessions',
        FLAG,
        True,
        'C',
        'Whether requests name only what changed (KIP-227).',
        java=None,
        since='2.1',
    ),
    Option(
        'client_rack',
        text(none=False, empty=True),
        '',
        'C',
        'Where this client is, so that it may read from a replica that is there (KIP-392).',
        since='3.0',
    ),
)

CONSUMING: Table = {**_GROUP, **_FETCHING}


def _of_0_9_5(name: str, default: Any, doc: str, is_ignored: bool = False, old: str = '') -> Option:
    names = (old,) if old else ()
    return Option(name, anything(), default, 'T', doc, (), None, (), names, is_ignored, '0.9.5')


def _as_it_is(message: Any) -> Any:
    return message


#: What they may be is told in kafka.consumer.arguments_09.
OF_0_9_5: Table = table(
    _of_0_9_5('client_id', 'kafka.consumer.kafka', 'What brokers call this client.'),
    _of_0_9_5('group_id', None, 'In whose name offsets are stored.'),
    _of_0_9_5('bootstrap_servers', [], 'Where to begin.', old='metadata_broker_list'),
    _of_0_9_5('socket_timeout_ms', 30 * 1000, 'How long a broker may take to answer.'),
    _of_0_9_5('fetch_message_max_bytes', 1024 * 1024, 'The largest part for one partition.'),
    _of_0_9_5('auto_offset_reset', 'largest', "Where to begin: 'smallest', 'largest'; else raise."),
    _of_0_9_5('fetch_min_bytes', 1, 'For how many bytes a broker waits before it answers'),
    _of_0_9_5('fetch_wait_max_ms', 100, 'and for how long at most.'),
    _of_0_9_5('refresh_leader_backoff_ms', 200, 'How long to wait after an error.'),
    _of_0_9_5('deserializer_class', _as_it_is, 'Makes values of bytes.'),
    _of_0_9_5('auto_commit_enable', False, 'Whether offsets are committed by themselves,'),
    _of_0_9_5('auto_commit_interval_ms', 60 * 1000, 'how often,'),
    _of_0_9_5('auto_commit_interval_messages', None, 'and after how many messages.'),
    _of_0_9_5('consumer_timeout_ms', -1, 'How long iteration waits; negative: for ever.'),
    _of_0_9_5('socket_receive_buffer_bytes', 64 * 1024, 'Of no effect, as in 0.9.5.', True),
    _of_0_9_5('num_consumer_fetchers', 1, 'Of no effect, as in 0.9.5.', True),
    _of_0_9_5('default_fetcher_backoff_ms', 1000, 'Of no effect, as in 0.9.5.', True),
    _of_0_9_5('queued_max_message_chunks', 10, 'Of no effect, as in 0.9.5.', True),
    _of_0_9_5('rebalance_max_retries', 4, 'Of no effect, as in 0.9.5.', True),
    _of_0_9_5('rebalance_backoff_ms', 2000, 'Of no effect, as in 0.9.5.', True),
)
