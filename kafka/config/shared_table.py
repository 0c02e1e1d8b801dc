"""The options that several clients have: where the cluster is, times, sockets, versions, metrics.

Rows of the option table, see ``option.py``.
"""

from __future__ import annotations

from typing import Any, Optional

from kafka.config.kinds import CLIENT_ID as CLIENT_ID_KIND
from kafka.config.kinds import (
    FLAG,
    INT32_MAX,
    RELEASE,
    SERVERS,
    Kind,
    Unfit,
    UnfitType,
    anything,
    choice,
    has_method,
    listed,
    milliseconds,
    size,
    text,
    whole,
)
from kafka.config.option import Option, Table, dialect_of, table
from kafka.version import __version__

__all__ = ['RELEASED', 'SHARED']

CLIENT_ID = 'kafka-python-' + __version__
# IPPROTO_TCP and TCP_NODELAY, which are the same numbers wherever Python runs.
NO_DELAY = (6, 1, 1)

_REPORTER = has_method('init', 'metric_change', 'metric_removal', 'close')  # that are called


def _known_dialect(value: Any) -> Optional[str]:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UnfitType()
    found = dialect_of(value)
    if found is None and value != 'modern':
        raise Unfit()
    return found


RELEASED = Kind(
    "a release from '0.9.5' to '3.0', such as '2.0.2', or 'modern', or None", _known_dialect
)


_ADDRESSES: Table = table(
    Option(
        'bootstrap_servers',
        SERVERS,
        'localhost',
        'PCAK',
        'Where to begin: any brokers of the cluster, the others are found through them.',
        dotted=('metadata.broker.list',),
        old=('metadata_broker_list',),
    ),
    Option(
        'client_id',
        CLIENT_ID_KIND,
        CLIENT_ID,
        {'P': None, 'C': CLIENT_ID, 'A': CLIENT_ID, 'K': CLIENT_ID, 'N': CLIENT_ID},
        'What brokers call this client in their logs and quotas. None, for a producer:'
        ' ``kafka-python-producer-<n>``.',
    ),
    Option(
        'client_dns_lookup',
        choice(['use_all_dns_ips', 'resolve_canonical_bootstrap_servers_only']),
        'use_all_dns_ips',
        'PCAK',
        'Whether every address of a name is tried, or bootstrap servers are first turned into the'
        ' names that their addresses have (for Kerberos).',
        since='3.0',
    ),
    Option(
        'dialect',
        RELEASED,
        None,
        'PCAK',
        'A release such as ``2.0.2``: its defaults, and its way where releases contradict each'
        ' other. None: what ``KAFKA_LEGACY_DIALECT`` in the environment says, else what serves all'
        ' best.',
        java=None,
        since='',
    ),
)

_TIMES: Table = table(
    Option(
        'request_timeout_ms',
        milliseconds(1, INT32_MAX),
        30000,
        'PCAKN',
        'How long a broker may take to answer; then the connection is given up.',
        until=(('1.2', 'CKN', 40000), ('2.3', 'C', 305000)),
        dotted=('socket.timeout.ms',),
    ),
    Option(
        'bootstrap_timeout_ms',
        milliseconds(0),
        30000,
        'PCA',
        'How long the constructor looks for a broker when api_version is None.',
        java=None,
        since='3.0',
    ),
    Option(
        'api_version_auto_timeout_ms',
        milliseconds(0),
        2000,
        'PCAKN',
        'The same under its name of 1.3 to 2.3; the one that is given counts.',
        java=None,
        since='1.3',
    ),
    Option(
        'connections_max_idle_ms',
        milliseconds(0, never=True),
        540000,
        'PCAK',
        'After how long without a request a connection is closed. Negative: never.',
    ),
    Option(
        'reconnect_backoff_ms',
        milliseconds(0),
        50,
        'PCAKN',
        'How long to wait before the second try to connect to a broker; doubled for each further'
        ' one, with 20 % jitter.',
    ),
    Option(
        'reconnect_backoff_max_ms',
        milliseconds(0),
        30000,
        'PCAKN',
        'The longest such wait. If only reconnect_backoff_ms is given, that one does not grow.',
        until=(('2.0', 'PCAKN', 1000),),
        old=('reconnect_backoff_max',),
        since='1.4',
    ),
    Option(
        'socket_connection_setup_timeout_ms',
        milliseconds(1),
        10000,
        'PCAK',
        'How long connecting may take, TLS and login included; doubled for each further try.',
        java='socket.connection.setup.timeout.ms',
        since='',
    ),
    Option(
        'socket_connection_setup_timeout_max_ms',
        milliseconds(1),
        30000,
        'PCAK',
        'The longest such time.',
        java='socket.connection.setup.timeout.max.ms',
        since='',
    ),
    Option(
        'retry_backoff_ms',
        milliseconds(0),
        100,
        'PCAK',
        'How long to wait before a request is tried again.',
    ),
    Option(
        'retry_backoff_max_ms',
        milliseconds(0),
        1000,
        'PCAK',
        'The longest such wait: it doubles with each try.',
        since='',
    ),
    Option(
        'metadata_max_age_ms',
        milliseconds(0),
        300000,
        'PCAK',
        'How old what is known of the cluster may be before it is asked for again.',
        dotted=('topic.metadata.refresh.interval.ms',),
    ),
    Option(
        'metadata_recovery_strategy',
        choice(['rebootstrap', 'none']),
        'rebootstrap',
        'PCAK',
        'What to do when no broker that is known answers: begin anew, or go on trying (KIP-899).',
        since='',
    ),
    Option(
        'metadata_recovery_rebootstrap_trigger_ms',
        milliseconds(0),
        300000,
        'PCAK',
        'For how long nobody may have answered before the client begins anew (KIP-1102).',
        since='',
    ),
)

_CONNECTIONS: Table = table(
    Option(
        'max_in_flight_requests_per_connection',
        whole(1),
        5,
        'PCAKN',
        'How many requests may wait for their answers on one connection.',
        dotted=('max.in.flight',),
    ),
    Option(
        'receive_buffer_bytes',
        size(1, none=True),
        None,
        'PCAKN',
        'SO_RCVBUF; None: as the system has it.',
        java='receive.buffer.bytes',
        dotted=('socket.receive.buffer.bytes',),
    ),
    Option(
        'send_buffer_bytes',
        size(1, none=True),
        None,
        'PCAKN',
        'SO_SNDBUF; None: as the system has it.',
        dotted=('socket.send.buffer.bytes',),
    ),
    Option(
        'socket_options',
        listed(
            '(level, option, value)',
            lambda each: isinstance(each, (tuple, list)) and len(each) == 3,
        ),
        [NO_DELAY],
        'PCAKN',
        'Arguments of setsockopt; the default is TCP_NODELAY.',
        java=None,
        since='1.3',
    ),
    Option(
        'receive_message_max_bytes',
        size(1),
        100000000,
        'PCAKN',
        'The largest answer that is read; a larger one closes the connection.',
        java=None,
        dotted=('receive.message.max.bytes',),
        since='2.2.20',
    ),
    Option(
        'api_version',
        RELEASE,
        None,
        {'P': None, 'C': None, 'A': None, 'K': None, 'N': (0, 8, 2)},
        'The release of the brokers. None: found out, which needs one. If given, constructors'
        ' connect to nobody. From (2, 1) on brokers are not asked for their versions either; below'
        ' they are, as 4.0 has dropped some, and the release counts where they do not answer.',
        java=None,
        dotted=('broker.version.fallback',),
    ),
    Option(
        'allow_auto_create_topics',
        FLAG,
        True,
        'PCK',
        'Whether asking for a topic that there is not creates it, where brokers do that.',
        java='allow.auto.create.topics',
        since='2.1',
    ),
)

_METRICS: Table = table(
    Option(
        'metric_reporters',
        listed('reporters, or their classes', _REPORTER),
        [],
        'PCA',
        'Who is told of each metric; classes are made without arguments.',
        java='metric.reporters',
    ),
    Option(
        'metrics_num_samples',
        whole(1),
        2,
        'PCA',
        'Over how many windows of time rates and averages go.',
    ),
    Option(
        'metrics_sample_window_ms',
        milliseconds(1),
        30000,
        'PCA',
        'How long each window is.',
        java='metrics.sample.window.ms',
    ),
    Option(
        'metrics_enabled',
        FLAG,
        True,
        'PC',
        'False: ``metrics()`` returns None, and nothing is counted.',
        java=None,
        since='2.1.5',
    ),
    Option(
        'metric_group_prefix',
        text(none=False, empty=True),
        'consumer',
        {'C': 'consumer', 'K': '', 'N': ''},
        'The first word in the names of metric groups.',
        java=None,
        since='1.3',
    ),
)


def _ignored(name: str, why: str, default: object, faces: str, since: str = '1.3') -> Option:
    doc = 'Of no effect here: %s.' % why
    return Option(name, anything(), default, faces, doc, (), None, (), (), True, since)


_READ = 'what has come is read at once'

_IGNORED: Table = table(
    _ignored('selector', 'the best that the system has is used', None, 'PCAKN'),
    _ignored('kafka_client', 'clients have no such part', None, 'PCA', '2.0.3'),
    _ignored('bootstrap_topics_filter', 'bootstrap servers are asked about no topic', (), 'PCAK'),
    _ignored('sock_chunk_bytes', _READ, 4096, 'PCAKN', '1.4'),
    _ignored('sock_chunk_buffer_count', _READ, 1000, 'PCAKN', '1.4'),
    _ignored('legacy_iterator', 'there is one iterator', False, 'C', '2.0'),
    _ignored('skip_double_compressed_messages', 'they are read', False, 'C', '1.3'),
    _ignored('wakeup_timeout_ms', 'waking somebody up never blocks', 3000, 'K', '1.4.4'),
)

_EVENTED: Table = table(
    Option(
        'state_change_callback',
        anything('callable'),
        None,
        'N',
        'Called with the connection, or node id, socket and connection, when its state changes.',
        java=None,
    ),
    Option('metrics', anything('a kafka.metrics.Metrics, or None'), None, 'KN',
           'Where to count what is sent and received.', java=None, since='1.3'),
    Option('node_id', anything('a node id'), 0, 'N', 'Of the broker.', java=None, since='1.3'),
)  # fmt: skip

SHARED: Table = {**_ADDRESSES, **_TIMES, **_CONNECTIONS, **_METRICS, **_EVENTED, **_IGNORED}
