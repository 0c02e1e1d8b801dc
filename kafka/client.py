"""KafkaClient: the blocking client of 0.9.5, or the evented one of 1.x and 2.x.

The constructor's arguments decide: with hosts it is the blocking client, with keywords only the
evented one. The blocking client takes topics, groups and hosts as bytes, and each thread has
connections of its own. It encodes and decodes with ``KafkaProtocol`` and connects with
``KafkaConnection``, both looked up as globals of this module on use, so that programs can replace
them; everything else it shares with ``SimpleClient`` (kafka/blocking/base_client.py). Calls of the
evented client are delegated to an ``EventedClient`` (kafka/evented/client.py), imported on demand.
"""

from __future__ import annotations

import functools
import logging
import operator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from kafka.blocking.base_client import BlockingClient, Encoder
from kafka.blocking.exchange import Address, Outcome, Request, ask, exchange
from kafka.blocking.known_cluster import KnownCluster
from kafka.conn import (
    DEFAULT_KAFKA_PORT,
    DEFAULT_SOCKET_TIMEOUT_SECONDS,
    KafkaConnection,
    collect_hosts,
)
from kafka.errors import (
    IllegalStateError,
    KafkaError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
)
from kafka.internals.lazy_imports import import_late
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
from kafka.structs import MetadataResponse, PartitionMetadata, TopicAndPartition
from kafka.util import name_bytes

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.evented.client import EventedClient
    from kafka.future import Future
    from kafka.simple_client import SimpleClient as SimpleClient

log = logging.getLogger(__name__)

# The classes themselves: a program may replace the globals of these names, also by objects that are
# not classes.
_OwnConnection = KafkaConnection
_OwnProtocol = KafkaProtocol

# The methods that encode and decode requests with records. While none is replaced, such a request
# need not be encoded in an old version first.
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
# One call gets all of them: one call for each would slow down every request.
_methods = operator.itemgetter(*_OWN_METHODS)


def _told_by_the_call(init: Callable[..., None]) -> Callable[..., None]:
    """Choose the client by the arguments: without any host it is the evented one.

    Host and port may be separate arguments, as in 0.8: a client id was never a number.
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
            self._evented_client = import_late('kafka.evented.client').EventedClient(**options)

    return __init__


def _whole(meta: PartitionMetadata) -> PartitionMetadata:
    """Return the value of a partition in `topic_partitions`: the complete PartitionMetadata."""
    return meta


def _remade(cls: Any, configs: Dict[str, Any]) -> Any:
    return cls(**configs)


class _Defaults:
    """The default options of the evented client; the table is imported when they are read."""

    def __get__(self, client: Optional[KafkaClient], owner: Any = None) -> Any:
        table = import_late('kafka.config')
        return table.defaults(table.CLIENT)


class KafkaClient(BlockingClient):
    """The blocking client of 0.9.5, or the evented one of 1.x and 2.x: see the last paragraphs.

    The constructor requests all metadata from the first host that answers; further connections are
    made when a request needs them. After `close()` it can still be used: the next request connects
    again. Each thread that uses it has sockets of its own; see `copy()`.

    Arguments:
        hosts: ``'host:port,host:port'`` or a list of ``'host:port'``; the port may be omitted.
        client_id: name for the broker's logs and quotas, bytes (str is encoded).
        timeout: seconds to wait for a connection and for each read and write; None: forever.
            It must exceed the longest time that a request lets a broker wait.
        correlation_id: the number before that of the first request.
        options: the security of connections: security_protocol, ssl_cafile, sasl_mechanism and so
            on, as in 1.x to 3.x (kafka.net.security.OPTIONS).

    ``KafkaClient(host, port, client_id, timeout)``, the form of 0.8, is accepted too.

    Attributes:
        hosts: list of (host, port).
        conns: {(host, port): KafkaConnection}.
        brokers: {node id: BrokerMetadata}.
        topic_partitions: {topic: {partition: PartitionMetadata}}.
        topics_to_brokers: {TopicAndPartition: BrokerMetadata, or None without a leader}.
            Both maps accept str and bytes topics; reading them never sends a request.

    Raises: KafkaUnavailableError when no host answers; TypeError or ValueError naming a wrong
        argument; KafkaConfigurationError for an invalid port.

    All of it is from 0.9.5. Methods that take a topic raise TypeError unless it is str or bytes.
    Those that send requests share some arguments: payloads: a list of tuples of ``kafka.structs``,
    one for each partition; fail_on_error: True raises the first error, False leaves errors in the
    list; callback: called with each response, and its result takes the place of the response in the
    list.

    Created with keywords only and no ``hosts``, such as ``KafkaClient(bootstrap_servers=...)``, it
    is the evented client: unknown options are ignored, and the calls are `cluster`, `config` and
    those from `ready` to `api_version`. Node ids are those of the metadata; only `wakeup` may be
    called from another thread. A blocking client raises IllegalStateError in these calls.

    The constructor of an evented client tries to reach the cluster for api_version_auto_timeout_ms
    if given, otherwise for 2 s if connections are refused, 30 s if servers do not answer. Then it
    raises NoBrokersAvailable, with all attempts in ``attempts``, or a fatal error, such as
    SaslAuthenticationFailedError, with the same attribute. With api_version it needs no broker:
    poll() continues to try.
    """

    DEFAULT_CONFIG: Any = _Defaults()

    FAILED_LOOKUPS = (KafkaUnavailableError,)

    _evented_client: Optional[EventedClient] = None  # None for a blocking client

    @_told_by_the_call
    def __init__(
        self,
        hosts: Any = None,
        client_id: Any = BlockingClient.CLIENT_ID,
        timeout: Optional[float] = DEFAULT_SOCKET_TIMEOUT_SECONDS,
        correlation_id: int = 0,
        **options: Any,
    ) -> None:
        self._security = security_of('KafkaClient', options)
        if isinstance(client_id, int):  # a port without a host
            raise TypeError("client_id must be bytes or str, not int; hosts is 'host:port'")
        self.client_id = name_bytes(client_id, 'client_id')
        self._begin(timeout, correlation_id)
        self.hosts: List[Address] = [(host[0], host[1]) for host in collect_hosts(hosts)]
        self.conns: Dict[Address, Any] = {}
        try:
            self.load_metadata_for_topics()
        except BaseException:
            BlockingClient.close(self)
            raise

    def __repr__(self) -> str:
        if self._evented_client is not None:
            return '<KafkaClient evented %s>' % self.cluster
        return '<KafkaClient client_id=%r>' % (self.client_id,)

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError that says which kind of client this is."""
        kind = 'evented' if self._evented_client is not None else 'blocking'
        raise AttributeError('a KafkaClient that is %s has no attribute %r' % (kind, name))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle an evented client as its options; unpickling creates a new client."""
        if self._evented_client is None:
            return super().__reduce_ex__(protocol)
        return _remade, (type(self), self._evented_client.given)

    def close(self, node_id: Any = None) -> None:
        """Close all connections; of an evented client, optionally those to one node."""
        if self._evented_client is not None:
            self._evented_client.close(node_id)
        else:
            super().close()

    # -- connections ---------------------------------------------------------------------------

    def _get_conn(self, host: str, port: int) -> Any:
        """Return the connection to an address, created on first use."""
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
        """Return the versions that a broker serves; empty if only a request can show that.

        Connections that a program replaced are not asked: they only need ``send`` and ``recv``. Nor
        is a connection for a replaced protocol class, whose requests it does not recognise.
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

    def _nothing_known(self) -> KnownCluster:
        return KnownCluster(TopicAndPartition, _whole)

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Request and store the metadata of the brokers and these topics (none given: all topics).

        The request creates a topic if brokers create topics on demand. Partition errors do not
        raise: a partition without leader maps to None.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError for a topic named here;
            the class of any other topic error; KafkaUnavailableError when no host answers.
        """
        self._load([name_bytes(topic, 'topics') for topic in topics])

    def _refresh_new_topic(self, topic: Any) -> None:
        try:
            self.load_metadata_for_topics(topic)
        except LeaderNotAvailableError:
            pass  # it is being created

    def _ask_metadata(self, names: List[bytes]) -> MetadataResponse:
        response: MetadataResponse = self.send_metadata_request(names)
        return response

    def _name(self, name: Any, argument: str) -> bytes:
        return name_bytes(name, argument)

    # -- requests --------------------------------------------------------------------------------

    def _protocol(self) -> Any:
        return KafkaProtocol

    def _encoded(self, encoder_fn: Encoder, payloads: Any) -> Tuple[int, Any]:
        request_id = self._next_id()
        ids = {'client_id': self.client_id, 'correlation_id': request_id, 'payloads': payloads}
        request = self._unwritten(encoder_fn, ids)
        return request_id, encoder_fn(**ids) if request is None else request

    def _unwritten(self, encoder_fn: Any, ids: Dict[str, Any]) -> Optional[Unwritten]:
        """Return a request with records that need not be encoded in the old version, or None."""
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

    # -- the evented client ------------------------------------------------------------------------

    @property
    def _evented(self) -> EventedClient:
        if self._evented_client is None:
            raise IllegalStateError(
                'this KafkaClient is the blocking one of 0.9.5, made with hosts; the evented one is'
                " made with keywords: KafkaClient(bootstrap_servers='host:port')"
            )
        return self._evented_client

    @property
    def cluster(self) -> ClusterMetadata:
        """The metadata of the cluster, a ClusterMetadata."""
        return self._evented.cluster

    @property
    def config(self) -> Any:
        """The options in force."""
        return self._evented.config

    def ready(self, node_id: Any, metadata_priority: bool = True) -> bool:
        """Start connecting if necessary; return True if a request can be sent now.

        Arguments: metadata_priority: False to ignore pending metadata refreshes (1.3).
        Raises AssertionError for a node that is not in the metadata.
        """
        return self._evented.ready(node_id, metadata_priority)

    def is_ready(self, node_id: Any, metadata_priority: bool = True) -> bool:
        """Return True if a node is connected, below its limit, and no refresh comes first."""
        return self._evented.is_ready(node_id, metadata_priority)

    def maybe_connect(self, node_id: Any, wakeup: bool = True) -> bool:
        """Start or continue connecting; return True if it is connected (1.3)."""
        return self._evented.maybe_connect(node_id)

    def await_ready(self, node_id: Any, timeout_ms: float = 30000) -> bool:
        """Wait until a node is ready; KafkaTimeoutError after timeout_ms (2.1)."""
        return self._evented.await_ready(node_id, timeout_ms)

    def connected(self, node_id: Any) -> bool:
        """Return True if a node is connected; False for one that was never used."""
        return self._evented.connected(node_id)

    def is_disconnected(self, node_id: Any) -> bool:
        """Return True if a node was used and is disconnected."""
        return self._evented.is_disconnected(node_id)

    def connection_delay(self, node_id: Any) -> float:
        """Return the ms until the next call can make progress; 999999999 when connected."""
        return self._evented.connection_delay(node_id)

    def bootstrap_connected(self) -> bool:
        """Return True if a bootstrap server has answered (1.4)."""
        return self._evented.bootstrap_connected()

    def send(self, node_id: Any, request: Any, wakeup: bool = True) -> Future:
        """Send a request struct; return the Future of its response struct.

        A Produce request with acks 0 has no response: its future has the value None. A version that
        the broker does not serve is translated. Raises AssertionError for a node that is not in the
        metadata; the future has failed with NodeNotReadyError if it is not connected.
        """
        return self._evented.send(node_id, request)

    def send_and_receive(self, node_id: Any, request: Any) -> Any:
        """Send a request, wait for its response and return it; raise the request's error (2.1)."""
        return self._evented.send_and_receive(node_id, request)

    def poll(
        self, timeout_ms: Optional[float] = None, future: Any = None, sleep: bool = True
    ) -> List[Any]:
        """Read, connect, run tasks, refresh metadata; return the received responses.

        Arguments: timeout_ms: how long to wait for events, request_timeout_ms if None; future:
        continue until it is done, or the time is over; sleep: False not to wait while no request is
        in flight and no connection is being established.
        """
        return self._evented.poll(timeout_ms, future, sleep)

    def wakeup(self) -> None:
        """Interrupt a poll() that waits in another thread."""
        self._evented.wakeup()

    def in_flight_request_count(self, node_id: Any = None) -> int:
        """Return the number of requests without a response, of one node or all."""
        return self._evented.in_flight_request_count(node_id)

    def least_loaded_node(self) -> Any:
        """Return the id of the best node: connected and idle, else least busy, else a new one.

        None if no node is available; then the bootstrap servers are asked again.
        """
        return self._evented.least_loaded_node()

    def set_topics(self, topics: Iterable[str]) -> Future:
        """Track metadata of these topics, of all if empty.

        Returns a Future: done with the topics if none is new, else to be done with the cluster.
        """
        return self._evented.set_topics(topics)

    def add_topic(self, topic: str) -> Future:
        """Track metadata of another topic; as set_topics()."""
        return self._evented.add_topic(topic)

    def schedule(self, task: Callable[[], Any], at: float) -> Future:
        """Run a callable during a poll(), at epoch seconds; return the Future of its result.

        Scheduling it again moves it; the previous future fails with Cancelled.
        """
        return self._evented.schedule(task, at)

    def unschedule(self, task: Callable[[], Any]) -> None:
        """Remove a task; no effect if it is not scheduled."""
        self._evented.unschedule(task)

    def check_version(self, node_id: Any = None, timeout: float = 2, strict: bool = False) -> Any:
        """Return the release of a broker, within `timeout` seconds; it stays connected.

        Returns text such as '0.9' that also compares as a tuple. Raises NoBrokersAvailable if no
        broker is available, NodeNotReadyError or UnrecognizedBrokerVersion if the broker does not
        answer.
        """
        return self._evented.check_version(node_id, timeout, strict)

    def get_api_versions(self) -> Any:
        """Return {API key: (lowest, highest version)} of a connected broker, or None (1.4)."""
        return self._evented.get_api_versions()

    def api_version(self, request_class: Any, max_version: Optional[int] = None) -> int:
        """Return the highest version of a request supported by broker and struct classes (2.1)."""
        return self._evented.api_version(request_class, max_version)


# Replacements for encoders and decoders of KafkaProtocol that need no bytes.
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
    """Return True if a method is KafkaProtocol's own, and no method of that class is replaced."""
    if KafkaProtocol is not _OwnProtocol or method != getattr(_OwnProtocol, name):
        return False
    try:
        present: Any = _methods(vars(KafkaProtocol))
    except KeyError:  # deleted
        return False
    return bool(present == tuple(_OWN_METHODS.values()))


# Other names that this module exported in 1.x.
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
    """Import names that are defined in other modules on first access."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError('module %r has no attribute %r' % (__name__, name))
