"""KafkaClient: the blocking client of 0.9.5, or the evented one of 1.x and 2.x, told by the call.

Hosts mean the former, whose topics, groups and hosts are bytes; keywords alone the latter, whose
calls are in evented/verbs.py. Owns what 0.9.5 did in its own way: bytes made and read by
``KafkaProtocol`` and carried by ``KafkaConnection``, both looked up as globals of this module when
they are needed. Everything else it shares with the client of 1.x (blocking/base_client.py,
blocking/known_cluster.py).
"""

from __future__ import annotations

import functools
import logging
import operator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple

from kafka.blocking.base_client import BlockingVerbs
from kafka.blocking.exchange import Address, Outcome, Request, ask, exchange
from kafka.blocking.stored_offsets import Encoder
from kafka.conn import (
    DEFAULT_KAFKA_PORT,
    DEFAULT_SOCKET_TIMEOUT_SECONDS,
    KafkaConnection,
    collect_hosts,
)
from kafka.errors import (
    KafkaError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
)
from kafka.evented.verbs import EventedVerbs
from kafka.net.arguments import security_of
from kafka.protocol import KafkaProtocol
from kafka.protocol.translation import Unread
from kafka.protocol.unwritten import (
    Unwritten,
    fetched,
    produced,
    unwritten_fetch,
    unwritten_produce,
)
from kafka.structs import TopicAndPartition
from kafka.util import name_bytes

if TYPE_CHECKING:
    from kafka.simple_client import SimpleClient as SimpleClient

log = logging.getLogger(__name__)

# The classes themselves: the globals of these names may be replaced, and are not asked about their
# kind.
_OwnConnection = KafkaConnection
_OwnProtocol = KafkaProtocol

# What makes and reads the bytes of requests with records. While nothing of it is replaced, such a
# request need not become the bytes of an old version in between.
_OWN_METHODS = {
    name: vars(KafkaProtocol)[name]
    for name in (
        'encode_produce_request',
        'decode_produce_response',
        'encode_fetch_request',
        'decode_fetch_response',
        '_encode_message_header',
        '_encode_message_set',
        '_encode_message',
        '_decode_message_set_iter',
        '_decode_message',
    )
}
# All of them at once: each by itself would be dear in every request.
_methods = operator.itemgetter(*_OWN_METHODS)


def _told_by_the_call(init: Callable[..., None]) -> Callable[..., None]:
    """Tell by the call which client is meant: without any host it is the evented one.

    A host and its port may come apart, as in 0.8: no client id was ever a number.
    """

    @functools.wraps(init)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        if not arguments and 'host' in options and 'hosts' not in options:
            arguments = (options.pop('host'), options.pop('port', DEFAULT_KAFKA_PORT))
        if len(arguments) > 1 and type(arguments[1]) is int and isinstance(arguments[0], str):
            host, port = arguments[:2]
            if not {':', ','} & set(host):
                arguments = ('%s:%d' % (host, port), *arguments[2:])
        if arguments or 'hosts' in options:
            init(self, *arguments, **options)
        else:
            self._begin_evented(options)

    return __init__


def _remade(cls: Any, configs: Dict[str, Any]) -> Any:
    return cls(**configs)


class KafkaClient(EventedVerbs, BlockingVerbs):
    """The blocking client of 0.9.5, or the evented one of 1.x and 2.x: see the last paragraph.

    Constructing it asks the first host that answers for all metadata; further connections are
    made when a request needs them. After `close()` it stays usable: the next request connects
    again. Each thread that uses it has sockets of its own; see `copy()`.

    Arguments:
        hosts: ``'host:port,host:port'`` or a list of ``'host:port'``; the port may be left out.
        client_id: name for the broker's logs and quotas, bytes (str is encoded).
        timeout: seconds to wait for a connection and for each read and write; None waits for ever.
            It must exceed the longest time that a request asks a broker to wait.
        correlation_id: the number before that of the first request.
        options: what secures connections: security_protocol, ssl_cafile, sasl_mechanism and so on,
            as in 1.x to 3.x (kafka.net.security.OPTIONS).

    ``KafkaClient(host, port, client_id, timeout)``, the form of 0.8, is understood too.

    Attributes:
        hosts: list of (host, port).
        conns: {(host, port): KafkaConnection}.
        brokers: {node id: BrokerMetadata}.
        topic_partitions: {topic: {partition: PartitionMetadata}}.
        topics_to_brokers: {TopicAndPartition: BrokerMetadata, or None without a leader}.
            Both maps are found under str and bytes topics; looking never asks a broker.

    Raises: KafkaUnavailableError when no host answers; TypeError or ValueError naming a wrong
        argument; KafkaConfigurationError for a port that is none.

    All of it is from 0.9.5. Methods that take a topic raise TypeError for what is no str or bytes.
    Those that send requests share some arguments: payloads: a list of tuples of ``kafka.structs``,
    one for each partition; fail_on_error: raise the first error, or leave it in the list (False);
    callback: called with each response, its result stands in the list instead.

    Made with keywords alone and no ``hosts``, such as ``KafkaClient(bootstrap_servers=...)``, it is
    the evented client: unknown options are ignored, and the calls are those of
    ``kafka.evented.verbs.EventedVerbs``. It looks for the cluster while it is constructed, for
    api_version_auto_timeout_ms if given, else 2 s where connections are refused, 30 s where nobody
    says anything; then it raises NoBrokersAvailable, with all tries in ``attempts``, or what
    refuses it for good, such as SaslAuthenticationFailedError, with the same. With api_version it
    needs no broker: poll() goes on looking.
    """

    PARTITION = TopicAndPartition
    FAILED_LOOKUPS = (KafkaUnavailableError,)

    @_told_by_the_call
    def __init__(
        self,
        hosts: Any = None,
        client_id: Any = BlockingVerbs.CLIENT_ID,
        timeout: Optional[float] = DEFAULT_SOCKET_TIMEOUT_SECONDS,
        correlation_id: int = 0,
        **options: Any,
    ) -> None:
        self._security = security_of('KafkaClient', options)
        if isinstance(client_id, int):  # a port, but of which host?
            raise TypeError("client_id must be bytes or str, not int; hosts is 'host:port'")
        self.client_id = name_bytes(client_id, 'client_id')
        self._begin(timeout, correlation_id)
        self.hosts: List[Address] = [(host[0], host[1]) for host in collect_hosts(hosts)]
        self.conns: Dict[Address, Any] = {}
        try:
            self.load_metadata_for_topics()
        except BaseException:
            BlockingVerbs.close(self)
            raise

    def __repr__(self) -> str:
        if self._evented_client is not None:
            return '<KafkaClient evented %s>' % self.cluster
        return '<KafkaClient client_id=%r>' % (self.client_id,)

    def __getattr__(self, name: str) -> Any:
        """Say what kind of client this is where a blocking call misses what it needs."""
        kind = 'evented' if self._evented_client is not None else 'blocking'
        raise AttributeError('a KafkaClient that is %s has no attribute %r' % (kind, name))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle an evented client as its options: what comes out is a new one."""
        if self._evented_client is None:
            return super().__reduce_ex__(protocol)
        return _remade, (type(self), self._evented_client.given)

    def close(self, node_id: Any = None) -> None:
        """Close all connections; of an evented client also those to one node."""
        if self._evented_client is not None:
            self._evented_client.close(node_id)
        else:
            super().close()

    # -- connections ---------------------------------------------------------------------------

    def _get_conn(self, host: str, port: int) -> Any:
        """Return the connection to an address, made on first use."""
        key = (host, port)
        if key not in self.conns:
            options = {} if self._security is None else {'security': self._security}
            self.conns[key] = KafkaConnection(host, port, timeout=self.timeout, **options)
        return self.conns[key]

    def _connections(self) -> Dict[Address, Any]:
        return self.conns

    def _is_connected(self, address: Address) -> bool:
        conn = self.conns.get(address)
        return type(conn) is _OwnConnection and getattr(conn, '_sock', None) is not None

    def _hosts_to_ask(self) -> List[Tuple[Any, ...]]:
        return list(self.hosts)

    def _versions_of(self, address: Optional[Address]) -> Mapping[int, Tuple[int, int]]:
        """Return what the broker at an address speaks; empty where only a request can tell.

        Replaced connections are not asked: all they need to have is ``send`` and ``recv``. Nor is
        one that carries the bytes of a replaced protocol class, of which it recognises none.
        """
        if address is None or KafkaProtocol is not _OwnProtocol:
            return {}
        try:
            conn = self._get_conn(*address)
            if not issubclass(type(conn), _OwnConnection):
                return {}
            versions: Mapping[int, Tuple[int, int]] = conn.api_versions()
            return versions
        except KafkaError as error:
            log.debug('versions of %s:%s are not known: %s', address[0], address[1], error)
            return {}

    # -- metadata --------------------------------------------------------------------------------

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Ask for the brokers and for these topics (all without arguments) and remember them.

        Asking for a topic creates it where brokers do that. Partition errors do not raise: a
        partition without leader maps to None.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError for a topic named here;
            the class of any other topic error; KafkaUnavailableError when no host answers.
        """
        self._load([name_bytes(topic, 'topics') for topic in topics])

    def _refresh_new_topic(self, topic: Any) -> None:
        try:
            self.load_metadata_for_topics(topic)
        except LeaderNotAvailableError:
            pass  # it is being created

    def _ask_metadata(self, names: List[bytes]) -> Any:
        return self.send_metadata_request(names)

    def _name(self, name: Any, argument: str) -> bytes:
        return name_bytes(name, argument)

    def _kept(self, meta: Any) -> Any:
        return meta

    def _leader_id(self, meta: Any) -> int:
        leader: int = meta.leader
        return leader

    # -- requests --------------------------------------------------------------------------------

    def _protocol(self) -> Any:
        return KafkaProtocol

    def _encoded(self, encoder_fn: Encoder, payloads: Any) -> Tuple[int, Any]:
        request_id = self._next_id()
        ids = {'client_id': self.client_id, 'correlation_id': request_id, 'payloads': payloads}
        request = self._unwritten(encoder_fn, ids)
        return request_id, encoder_fn(**ids) if request is None else request

    def _unwritten(self, encoder_fn: Any, ids: Dict[str, Any]) -> Optional[Unwritten]:
        """Return a request with records as it can be sent without the bytes of the old version."""
        if type(encoder_fn) is not functools.partial:
            return None
        name = getattr(encoder_fn.func, '__name__', '')
        make = _UNWRITTEN.get(name)
        if make is None or not _is_own(encoder_fn.func, name):
            return None
        write = functools.partial(encoder_fn, **ids)
        return make(**ids, **encoder_fn.keywords, write=write)

    def _decoded(self, decoder_fn: Callable[[Any], Any], answer: Any) -> Any:
        if isinstance(answer, Unread):
            name = getattr(decoder_fn, '__name__', '')
            if name in _READ and _is_own(decoder_fn, name):
                return _READ[name](answer.response)
            answer = answer.write()
        return decoder_fn(answer)

    def _ask(
        self, connect: Callable[[], Any], request_id: int, request: Any, decoder_fn: Any
    ) -> Any:
        return ask(connect(), request_id, request, decoder_fn)

    def _answers(self, requests: List[Request], wanted: bool) -> List[Outcome]:
        return exchange(requests, lambda address: self._get_conn(*address), wanted)


# What stands for an encoder or a decoder of KafkaProtocol on the way without bytes.
_UNWRITTEN: Dict[str, Callable[..., Optional[Unwritten]]] = {
    'encode_produce_request': unwritten_produce,
    'encode_fetch_request': unwritten_fetch,
}
_READ: Dict[str, Callable[[Any], Any]] = {
    'decode_produce_response': produced,
    'decode_fetch_response': functools.partial(
        fetched, read=KafkaProtocol._decode_message_set_iter
    ),
}


def _is_own(method: Any, name: str) -> bool:
    """Tell whether a method is KafkaProtocol's own, and nothing of that class replaced."""
    if KafkaProtocol is not _OwnProtocol or method != getattr(_OwnProtocol, name):
        return False
    try:
        present: Any = _methods(vars(KafkaProtocol))
    except KeyError:  # deleted
        return False
    return bool(present == tuple(_OWN_METHODS.values()))


# What programs of 1.x found in this module besides.
_HOMES = {
    'SimpleClient': 'kafka.simple_client',
    'BrokerConnection': 'kafka.conn',
    'ConnectionStates': 'kafka.conn',
    'get_ip_port_afi': 'kafka.conn',
    'BrokerMetadata': 'kafka.structs',
    'TopicPartition': 'kafka.structs',
    'ConnectionError': 'kafka.errors',
    'FailedPayloadsError': 'kafka.errors',
    'KafkaConnectionError': 'kafka.errors',
    'KafkaTimeoutError': 'kafka.errors',
    'NotLeaderForPartitionError': 'kafka.errors',
    'ReplicaNotAvailableError': 'kafka.errors',
    'UnknownError': 'kafka.errors',
    'UnknownTopicOrPartitionError': 'kafka.errors',
}


def __getattr__(name: str) -> object:
    """Find what is made elsewhere when it is asked for."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError('module %r has no attribute %r' % (__name__, name))
