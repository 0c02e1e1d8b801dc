"""The options of several clients: bootstrap servers, time-outs, sockets, versions, metrics.

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
# IPPROTO_TCP, TCP_NODELAY, 1: the numbers are the same on every platform of Python.
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
        'The brokers to connect to first; all others are discovered through them.',
        dotted=('metadata.broker.list',),
        old=('metadata_broker_list',),
    ),
    Option(
        'client_id',
        CLIENT_ID_KIND,
        CLIENT_ID,
        {'P': None, 'C': CLIENT_ID, 'A': CLIENT_ID, 'K': CLIENT_ID, 'N': CLIENT_ID},
        'The client id, which brokers use in logs and quotas. None, for a producer:'
        ' ``kafka-python-producer-<n>``.',
    ),
    Option(
        'client_dns_lookup',
        choice(['use_all_dns_ips', 'resolve_canonical_bootstrap_servers_only']),
        'use_all_dns_ips',
        'PCAK',
        'Whether all addresses of a host name are tried, or bootstrap servers are replaced by the'
        ' canonical names of their addresses (for Kerberos).',
        since='3.0',
    ),
    Option(
        'dialect',
        RELEASED,
        None,
        'PCAK',
        'A release such as ``2.0.2``: use its defaults, and its behaviour where releases contradict'
        ' each other. None: the release in the environment variable ``KAFKA_LEGACY_DIALECT``,'
        ' else the'
        ' defaults that suit programs of all eras.',
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
        'The longest wait for a response; after it the connection is closed.',
        until=(('1.2', 'CKN', 40000), ('2.3', 'C', 305000)),
        dotted=('socket.timeout.ms',),
    ),
    Option(
        'bootstrap_timeout_ms',
        milliseconds(0),
        30000,
        'PCA',
        'How long the constructor tries to reach a broker when api_version is None.',
        java=None,
        since='3.0',
    ),
    Option(
        'api_version_auto_timeout_ms',
        milliseconds(0),
        2000,
        'PCAKN',
        'The same under its name in 1.3 to 2.3; either may be given.',
        java=None,
        since='1.3',
    ),
    Option(
        'connections_max_idle_ms',
        milliseconds(0, never=True),
        540000,
        'PCAK',
        'The time without a request after which a connection is closed. Negative: never.',
    ),
    Option(
        'reconnect_backoff_ms',
        milliseconds(0),
        50,
        'PCAKN',
        'The wait before the second attempt to connect to a broker; doubled for each further'
        ' attempt, with 20 % jitter.',
    ),
    Option(
        'reconnect_backoff_max_ms',
        milliseconds(0),
        30000,
        'PCAKN',
        'The longest such wait. If only reconnect_backoff_ms is given, the wait does not grow.',
        until=(('2.0', 'PCAKN', 1000),),
        old=('reconnect_backoff_max',),
        since='1.4',
    ),
    Option(
        'socket_connection_setup_timeout_ms',
        milliseconds(1),
        10000,
        'PCAK',
        'The longest time for one connection attempt, including TLS and SASL; doubled for each'
        ' retry.',
        java='socket.connection.setup.timeout.ms',
        since='',
    ),
    Option(
        'socket_connection_setup_timeout_max_ms',
        milliseconds(1),
        30000,
        'PCAK',
        'The maximum of that time.',
        java='socket.connection.setup.timeout.max.ms',
        since='',
    ),
    Option(
        'retry_backoff_ms',
        milliseconds(0),
        100,
        'PCAK',
        'The wait before a failed request is sent again.',
    ),
    Option(
        'retry_backoff_max_ms',
        milliseconds(0),
        1000,
        'PCAK',
        'The longest such wait: it doubles with each retry.',
        since='',
    ),
    Option(
        'metadata_max_age_ms',
        milliseconds(0),
        300000,
        'PCAK',
        'The age at which metadata is refreshed.',
        dotted=('topic.metadata.refresh.interval.ms',),
    ),
    Option(
        'metadata_recovery_strategy',
        choice(['rebootstrap', 'none']),
        'rebootstrap',
        'PCAK',
        "What to do when no known broker answers: 'rebootstrap', or 'none': keep trying (KIP-899).",
        since='',
    ),
    Option(
        'metadata_recovery_rebootstrap_trigger_ms',
        milliseconds(0),
        300000,
        'PCAK',
        'The time without any response after which the client bootstraps again (KIP-1102).',
        since='',
    ),
)

_CONNECTIONS: Table = table(
    Option(
        'max_in_flight_requests_per_connection',
        whole(1),
        5,
        'PCAKN',
        'The maximum number of requests that wait for a response on one connection.',
        dotted=('max.in.flight',),
    ),
    Option(
        'receive_buffer_bytes',
        size(1, none=True),
        None,
        'PCAKN',
        'SO_RCVBUF; None: the default of the system.',
        java='receive.buffer.bytes',
        dotted=('socket.receive.buffer.bytes',),
    ),
    Option(
        'send_buffer_bytes',
        size(1, none=True),
        None,
        'PCAKN',
        'SO_SNDBUF; None: the default of the system.',
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
        'Arguments of setsockopt(); the default sets TCP_NODELAY.',
        java=None,
        since='1.3',
    ),
    Option(
        'receive_message_max_bytes',
        size(1),
        100000000,
        'PCAKN',
        'The maximum size of a response; a larger one closes the connection.',
        java=None,
        dotted=('receive.message.max.bytes',),
        since='2.2.20',
    ),
    Option(
        'api_version',
        RELEASE,
        None,
        {'P': None, 'C': None, 'A': None, 'K': None, 'N': (0, 8, 2)},
        'The release of the brokers. None: detected, which needs a connection. If given,'
        ' constructors do not connect. From (2, 1) on brokers are not asked for their API versions;'
        ' below they are, because 4.0 removed some, and the release is used if they do not answer.',
        java=None,
        dotted=('broker.version.fallback',),
    ),
    Option(
        'allow_auto_create_topics',
        FLAG,
        True,
        'PCK',
        'Whether metadata requests may create topics, if the broker allows that.',
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
        'Reporters that are notified of each metric; classes are created without arguments.',
        java='metric.reporters',
    ),
    Option(
        'metrics_num_samples',
        whole(1),
        2,
        'PCA',
        'The number of sampling windows for rates and averages.',
    ),
    Option(
        'metrics_sample_window_ms',
        milliseconds(1),
        30000,
        'PCA',
        'The length of each sampling window.',
        java='metrics.sample.window.ms',
    ),
    Option(
        'metrics_enabled',
        FLAG,
        True,
        'PC',
        'False: ``metrics()`` returns None, and nothing is measured.',
        java=None,
        since='2.1.5',
    ),
    Option(
        'metric_group_prefix',
        text(none=False, empty=True),
        'consumer',
        {'C': 'consumer', 'K': '', 'N': ''},
        'The prefix of the names of metric groups.',
        java=None,
        since='1.3',
    ),
)


def _ignored(name: str, why: str, default: object, faces: str, since: str = '1.3') -> Option:
    doc = 'No effect: %s.' % why
    return Option(name, anything(), default, faces, doc, (), None, (), (), True, since)


_READ = 'received data is read immediately'

_IGNORED: Table = table(
    _ignored('selector', 'the best selector of the system is used', None, 'PCAKN'),
    _ignored('kafka_client', 'the clients are not replaceable', None, 'PCA', '2.0.3'),
    _ignored('bootstrap_topics_filter', 'bootstrapping requests no topics', (), 'PCAK'),
    _ignored('sock_chunk_bytes', _READ, 4096, 'PCAKN', '1.4'),
    _ignored('sock_chunk_buffer_count', _READ, 1000, 'PCAKN', '1.4'),
    _ignored('legacy_iterator', 'there is one iterator', False, 'C', '2.0'),
    _ignored('skip_double_compressed_messages', 'they are read', False, 'C', '1.3'),
    _ignored('wakeup_timeout_ms', 'a wake-up never blocks', 3000, 'K', '1.4.4'),
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
           'The Metrics object that records what is sent and received.', java=None, since='1.3'),
    Option('node_id', anything('a node id'), 0, 'N', 'The id of the node.', java=None, since='1.3'),
)  # fmt: skip

SHARED: Table = {**_ADDRESSES, **_TIMES, **_CONNECTIONS, **_METRICS, **_EVENTED, **_IGNORED}
