"""SimpleClient: the blocking client of 1.x, whose topics, groups and hosts are str.

It leaves names as they are given, sends request structs over connections that return futures,
accepts hosts with address families, and turns a failed look-up of a leader into the response of its
payload. Everything else it shares with KafkaClient of 0.9.5 (kafka/blocking/base_client.py). Each
thread that uses a client has connections of its own.
"""

from __future__ import annotations

import functools
import logging
import operator
import random
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from kafka import client as _home
from kafka.blocking.base_client import BlockingClient, Encoder
from kafka.blocking.exchange import Address, Outcome, Request, address_of, check_callback, exchange
from kafka.blocking.known_cluster import KnownCluster
from kafka.blocking.request_connection import RequestConnection, StructCarrier, ask_for
from kafka.conn import (
    DEFAULT_SOCKET_TIMEOUT_SECONDS,
    collect_hosts,
    get_ip_port_afi,
)
from kafka.errors import (
    KafkaError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka.net.addresses import Host
from kafka.net.arguments import security_of
from kafka.structs import (
    BrokerMetadata,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from kafka.util import name_bytes, shown

log = logging.getLogger('kafka.client')


class SimpleClient(BlockingClient):
    """The blocking client of 1.x.

    The constructor asks hosts in random order until one returns all metadata; connections are made
    when a request needs them. After `close()` it can still be used: the next request connects
    again. Each thread that uses it has sockets of its own; see `copy()`.

    Arguments:
        hosts: ``'host:port,host:port'`` or a list of ``'host:port'``; the port may be omitted,
            IPv6 addresses are in brackets.
        client_id: name for the broker's logs and quotas, str or bytes.
        timeout: seconds to wait for a connection and for each read and write; None: forever.
            It must exceed the longest time that a request lets a broker wait.
        correlation_id: the number before that of the first request.
        options: the security of connections: security_protocol, ssl_cafile, sasl_mechanism and so
            on, as in 1.x to 3.x (kafka.net.security.OPTIONS).

    Attributes:
        hosts: list of (host, port, address family).
        brokers: {node id: BrokerMetadata}.
        topic_partitions: {topic: {partition: node id of the leader, -1 for none}}.
        topics_to_brokers: {TopicPartition: BrokerMetadata, or None without a leader}.
            Both maps accept str and bytes topics; reading them never sends a request.

    Raises: KafkaUnavailableError when no host answers; TypeError or ValueError naming a wrong
        argument; KafkaConfigurationError for an invalid port.

    All of it is from 1.x. Methods that take a topic raise TypeError unless it is str or bytes.
    Those that send requests share some arguments: payloads: a list of ``...Payload`` tuples of
    ``kafka.structs``, one for each partition; fail_on_error: True raises the first error, False
    leaves errors in the list; callback: called with each response, and its result takes the place
    of the response in the list. A leader that cannot be found fails its payload with
    FailedPayloadsError. Payloads of fetched messages carry ``kafka.protocol.message`` objects.
    """

    FAILED_LOOKUPS = (KafkaUnavailableError, LeaderNotAvailableError, UnknownTopicOrPartitionError)

    # Producers and consumers do not convert names for a client of this class.
    names_as_given = True

    def __init__(
        self,
        hosts: Any,
        client_id: Any = BlockingClient.CLIENT_ID,
        timeout: Optional[float] = DEFAULT_SOCKET_TIMEOUT_SECONDS,
        correlation_id: int = 0,
        **options: Any,
    ) -> None:
        name_bytes(client_id, 'client_id')
        self._security = security_of('SimpleClient', options)
        self.client_id = client_id
        self._begin(timeout, correlation_id)
        self.hosts: List[Host] = collect_hosts(hosts)
        self._conns: Dict[Address, Any] = {}
        try:
            self.load_metadata_for_topics()
        except BaseException:
            BlockingClient.close(self)
            raise

    def __repr__(self) -> str:
        return '<%s client_id=%s>' % (type(self).__name__, shown(self.client_id))

    # -- connections ---------------------------------------------------------------------------

    def _get_conn(self, host: str, port: int, afi: int) -> Any:
        """Return a connected connection to an address. Raises: KafkaConnectionError."""
        key = (host, port)
        if key not in self._conns:
            self._conns[key] = RequestConnection(
                host, port, afi, self.client_id, self.timeout, self._security
            )
        conn = self._conns[key]
        conn.connect()
        return conn

    def _connections(self) -> Dict[Address, Any]:
        return self._conns

    def _conn_to(self, address: Address) -> Any:
        host, port = address
        return self._get_conn(host, port, _family_of(host))

    def _is_connected(self, address: Address) -> bool:
        conn = self._conns.get(address)
        conn = getattr(conn, '_conn', None) if type(conn) is RequestConnection else None
        return getattr(conn, '_sock', None) is not None

    def _hosts_to_ask(self) -> List[Tuple[Any, ...]]:
        """Return the hosts and the brokers of the metadata, in random order."""
        where: Dict[Address, Host] = {(host[0], host[1]): host for host in self.hosts}
        for address in map(address_of, self.brokers.values()):
            if address is not None:
                where.setdefault(address, (*address, _family_of(address[0])))
        hosts = list(where.values())
        random.shuffle(hosts)
        return hosts

    def _versions_of(self, address: Optional[Address]) -> Mapping[int, Tuple[int, int]]:
        if address is None:
            return {}
        try:
            conn = self._conns.get(address)
            if conn is None:
                conn = self._conn_to(address)
            if not issubclass(type(conn), RequestConnection):
                return {}
            versions: Mapping[int, Tuple[int, int]] = conn.api_versions()
            return versions
        except KafkaError as error:
            log.debug('versions of %s:%s are not known: %s', address[0], address[1], error)
            return {}

    # -- metadata --------------------------------------------------------------------------------

    def _nothing_known(self) -> KnownCluster:
        return KnownCluster(TopicPartition, operator.attrgetter('leader'))

    def load_metadata_for_topics(
        self, *topics: Any, ignore_leadernotavailable: bool = False
    ) -> None:
        """Request and store the metadata of the brokers and these topics (none given: all topics).

        The request creates a topic if brokers create topics on demand. Partition errors do not
        raise: a partition without leader maps to None.

        Arguments: ignore_leadernotavailable: True to accept a topic that is being created.
        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError for a topic named here;
            the class of any other topic error; KafkaUnavailableError when no host answers.
        """
        excused = (LeaderNotAvailableError.errno or 0,) if ignore_leadernotavailable else ()
        self._load([_text(topic) for topic in topics], excused)

    def reset_topic_metadata(self, *topics: Any) -> None:
        """Forget topics; str and bytes name the same topic."""
        super().reset_topic_metadata(*map(self.topic_partitions.stored_key, topics))

    def _refresh_new_topic(self, topic: Any) -> None:
        self.load_metadata_for_topics(topic, ignore_leadernotavailable=True)

    def _ask_metadata(self, names: List[Any]) -> MetadataResponse:
        response = self.send_metadata_request(names)
        return MetadataResponse(
            [BrokerMetadata(*broker[:3]) for broker in response.brokers],
            [
                TopicMetadata(
                    topic,
                    code,
                    [
                        PartitionMetadata(topic, partition, leader, replicas, isr, error)
                        for error, partition, leader, replicas, isr in partitions
                    ],
                )
                for code, topic, partitions in response.topics
            ],
        )

    def _name(self, name: Any, argument: str) -> Any:
        name_bytes(name, argument)
        return name

    # -- requests --------------------------------------------------------------------------------

    def send_list_offset_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> List[Any]:
        """Send ListOffsetRequestPayloads to brokers since 0.10.1; return the responses (1.4).

        Times as in `send_offset_request`. Errors as when producing, FailedPayloadsError on older
        brokers.
        """
        if callback is not None:
            check_callback(callback)
        protocol = self._protocol()
        responses = self._send_broker_aware_request(
            payloads, protocol.encode_list_offset_request, protocol.decode_list_offset_response
        )
        return self._finish(responses, fail_on_error, callback)

    def _protocol(self) -> Any:
        return vars(_home)['KafkaProtocol']  # programs replace it in that module

    def _encoded(self, encoder_fn: Encoder, payloads: Any) -> Tuple[int, Any]:
        return self._next_id(), encoder_fn(payloads=payloads)

    def _ask(
        self, connect: Callable[[], Any], request_id: int, request: Any, decoder_fn: Any
    ) -> Any:
        return ask_for(connect(), request, decoder_fn, self.timeout)

    def _answers(self, requests: List[Request], wanted: bool) -> List[Outcome]:
        return exchange(requests, self._conn_to, wanted, _carrier(self.timeout))


# A carrier has no state, so one is enough for each time-out of clients.
_carrier = functools.lru_cache(maxsize=16)(StructCarrier)


def _text(topic: Any) -> str:
    """Return the name of a topic as str; TypeError or ValueError if it is not a name."""
    encoded = name_bytes(topic, 'topics')
    try:
        return encoded.decode('utf-8')
    except UnicodeDecodeError:
        raise ValueError('topics must be UTF-8, not %r' % (topic,)) from None


@functools.lru_cache(maxsize=1024)
def _family_of(host: str) -> int:
    """Return the address family of a host in metadata, which has no brackets and no port."""
    return get_ip_port_afi('[%s]' % host if ':' in host else host)[2]
