"""KafkaClient: knows the cluster and sends each request to the broker that has to answer it.

Owns the blocking client of 0.9.5: metadata, the choice of the broker, sending to several brokers
before the first answer is read, and what a failure means for each payload. Bytes are made and read
by ``KafkaProtocol``, carried by ``KafkaConnection``; both are looked up as globals of this module
when they are needed. Brokers that dropped the old versions are served inside the connection; here
stands only what the choice of the broker has to do with it: stored offsets, which those brokers
keep at the group's coordinator and no longer in ZooKeeper (KIP-896).
"""

from __future__ import annotations

import copy
import functools
import logging
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from kafka.conn import (
    DEFAULT_SOCKET_TIMEOUT_SECONDS,
    KafkaConnection,
    check_timeout,
    collect_hosts,
)
from kafka.errors import (
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
    check_error,
    error_for_code,
)
from kafka.exchange import (
    Address,
    Request,
    address_of,
    ask,
    check_callback,
    exchange,
    failed,
    in_order,
    request_tuples,
)
from kafka.new_topics import (
    are_unknown,
    creates_behind_its_answer,
    wait_for_creation,
    wait_for_leaders,
)
from kafka.protocol import KafkaProtocol
from kafka.protocol.api import ApiKey
from kafka.stored_offsets import Decoder, Encoder, StoredOffsets
from kafka.structs import BrokerMetadata, TopicAndPartition
from kafka.topic_maps import TopicDict
from kafka.util import check_number, kafka_bytestring, name_bytes, whole_number

log = logging.getLogger(__name__)

# The classes themselves: the globals of these names may be replaced, and are not asked about their
# kind.
_OwnConnection = KafkaConnection
_OwnProtocol = KafkaProtocol


class KafkaClient(StoredOffsets):
    """The blocking client of 0.9.5.

    Constructing it asks the first host that answers for all metadata; further connections are
    made when a request needs them. After `close()` it stays usable: the next request connects
    again. Each thread that uses it has sockets of its own; see `copy()`.

    Arguments:
        hosts: ``'host:port,host:port'`` or a list of ``'host:port'``; the port may be left out.
        client_id: name for the broker's logs and quotas, bytes (str is encoded).
        timeout: seconds to wait for a connection and for each read and write; None waits for ever.
            It must exceed the longest time that a request asks a broker to wait.
        correlation_id: the number before that of the first request.

    Attributes:
        hosts: list of (host, port).
        conns: {(host, port): KafkaConnection}.
        brokers: {node id: BrokerMetadata}.
        topic_partitions: {topic: {partition: PartitionMetadata}}.
        topics_to_brokers: {TopicAndPartition: BrokerMetadata, or None without a leader}.
            Both maps are found under str and bytes topics; looking never asks a broker.

    Raises: KafkaUnavailableError when no host answers; TypeError or ValueError naming a wrong
        argument; KafkaConfigurationError for a port that is none, or ``bootstrap_servers``.

    All of it is from 0.9.5. Methods that take a topic raise TypeError for what is no str or bytes.
    Those that send requests share some arguments: payloads: a list of tuples of ``kafka.structs``,
    one for each partition; fail_on_error: raise the first error, or leave it in the list (False);
    callback: called with each response, its result stands in the list instead.
    """

    CLIENT_ID = b'kafka-python'

    def __init__(
        self,
        hosts: Any = None,
        client_id: Any = CLIENT_ID,
        timeout: Optional[float] = DEFAULT_SOCKET_TIMEOUT_SECONDS,
        correlation_id: int = 0,
        **options: Any,
    ) -> None:
        if 'bootstrap_servers' in options:
            raise KafkaConfigurationError(
                "KafkaClient(bootstrap_servers=...) is not offered; use KafkaClient('host:port')"
            )
        if options:
            raise TypeError('KafkaClient has no argument %s' % ', '.join(sorted(options)))
        check_timeout(timeout)
        if isinstance(client_id, int):  # the second argument was a port until 0.8.1
            raise TypeError("client_id must be bytes or str, not int; hosts is 'host:port'")
        self.client_id = name_bytes(client_id, 'client_id')
        self.timeout = timeout
        self.hosts: List[Address] = [(host[0], host[1]) for host in collect_hosts(hosts)]
        self.correlation_id = whole_number(correlation_id, 'correlation_id')

        self.conns: Dict[Address, Any] = {}
        self.brokers: Dict[int, Any] = {}
        self.topics_to_brokers: Dict[Any, Any] = TopicDict()
        self.topic_partitions: Dict[Any, Any] = TopicDict()

        self._metadata_from: Optional[Address] = None
        self._coordinators: Dict[Any, BrokerMetadata] = {}
        self._without_zookeeper: Set[Optional[Address]] = set()
        self._unavailable: Optional[KafkaUnavailableError] = None

        self.load_metadata_for_topics()

    def __repr__(self) -> str:
        return '<KafkaClient client_id=%r>' % (self.client_id,)

    # -- connections ---------------------------------------------------------------------------

    def _get_conn(self, host: str, port: int) -> Any:
        """Return the connection to an address, made on first use."""
        key = (host, port)
        if key not in self.conns:
            self.conns[key] = KafkaConnection(host, port, timeout=self.timeout)
        return self.conns[key]

    def _next_id(self) -> int:
        """Return the next correlation id; 0 follows the largest."""
        self.correlation_id = (self.correlation_id + 1) % 2**31
        return self.correlation_id

    def close(self) -> None:
        """Close every connection; what is known of the cluster stays readable."""
        for conn in list(self.conns.values()):
            conn.close()

    def copy(self) -> KafkaClient:
        """Return a deep copy with unconnected connections, for another thread or process.

        `reinit()` on the copy connects them; a request does too.
        """
        conns = {key: conn.copy() for key, conn in list(self.conns.items())}
        return copy.deepcopy(self, {id(self.conns): conns})

    def reinit(self) -> None:
        """Reconnect every known connection.

        A broker that is down does not keep the others from being reconnected, and is tried again
        by the next request that needs it. Raises: KafkaConnectionError if none could be reached.
        """
        failure, connected = None, False
        for conn in list(self.conns.values()):
            try:
                conn.reinit()
                connected = True
            except KafkaConnectionError as error:
                log.warning('reconnecting %s failed: %s', conn, error)
                failure = error
        if failure is not None and not connected:
            raise failure

    # -- what is known of the cluster ------------------------------------------------------------

    @property
    def topics(self) -> List[Any]:
        """The known topics, as decoded."""
        return list(self.topic_partitions)

    def has_metadata_for_topic(self, topic: Any) -> bool:
        """Tell whether at least one partition of a topic is known, with a leader or without."""
        return bool(self.topic_partitions.get(name_bytes(topic, 'topic')))

    def get_partition_ids_for_topic(self, topic: Any) -> List[int]:
        """Return the partitions of a topic in order; ``[]`` for an unknown topic."""
        return sorted(self.topic_partitions.get(name_bytes(topic, 'topic')) or ())

    def reset_topic_metadata(self, *topics: Any) -> None:
        """Forget topics; a topic is meant in exactly this spelling, str or bytes."""
        for topic in topics:
            if dict.__contains__(self.topic_partitions, topic):
                for partition in self.topic_partitions.pop(topic, ()):
                    self.topics_to_brokers.pop(TopicAndPartition(topic, partition), None)

    def reset_all_metadata(self) -> None:
        """Forget all topics; brokers stay known."""
        self.topics_to_brokers.clear()
        self.topic_partitions.clear()
        self._without_zookeeper.clear()

    def ensure_topic_exists(self, topic: Any, timeout: float = 30) -> None:
        """Wait until a topic has metadata; asking creates it where brokers create topics so.

        Arguments: topic: str or bytes; timeout: seconds.
        Raises: KafkaTimeoutError when the time is over (at once for 0);
            UnknownTopicOrPartitionError where brokers do not create topics on demand; otherwise as
            load_metadata_for_topics, but for LeaderNotAvailableError.
        """
        name_bytes(topic, 'topic')
        check_number(timeout, 'timeout')
        deadline = time.monotonic() + timeout
        pause = 0.0
        while not self.has_metadata_for_topic(topic):
            left = deadline - time.monotonic()
            if not left > 0:  # NaN is over at once
                raise KafkaTimeoutError('topic %r has no metadata after %s s' % (topic, timeout))
            if pause:
                time.sleep(min(pause, left))
            pause = 0.5
            try:
                self.load_metadata_for_topics(topic)
            except LeaderNotAvailableError:
                pass  # it is being created

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Ask for the brokers and for these topics (all without arguments) and remember them.

        Asking for a topic creates it where brokers do that. Partition errors do not raise: a
        partition without leader maps to None.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError for a topic named here;
            the class of any other topic error; KafkaUnavailableError when no host answers.
        """
        names = [name_bytes(topic, 'topics') for topic in topics]
        if names:
            self.reset_topic_metadata(*names)
        else:
            self.reset_all_metadata()
        response = self.send_metadata_request(names)
        created = False
        if are_unknown(names, response) and creates_behind_its_answer(
            self._versions_of(self._metadata_from)
        ):
            response = wait_for_creation(names, response, self.send_metadata_request)
            created = not are_unknown(names, response)
        self.brokers = {broker.nodeId: broker for broker in response.brokers}
        failure = None
        for topic in response.topics:
            code = topic.error
            if not code:
                self._remember_topic(topic)
            elif (
                code in (UnknownTopicOrPartitionError.errno, LeaderNotAvailableError.errno)
                and kafka_bytestring(topic.topic) not in names
            ):
                log.error('no metadata for topic %s: %s', topic.topic, error_for_code(code).message)
            else:
                failure = failure or error_for_code(code)(topic)
        if failure is not None:
            raise failure
        if created and not wait_for_leaders(self._led(names), self.send_offset_request):
            self.load_metadata_for_topics(*topics)

    def _led(self, topics: List[bytes]) -> List[TopicAndPartition]:
        """Return the partitions of topics that have leaders, as far as it is known."""
        partitions = [
            TopicAndPartition(t, p) for t in topics for p in self.topic_partitions.get(t, ())
        ]
        return [key for key in partitions if self.topics_to_brokers.get(key) is not None]

    def _remember_topic(self, topic: Any) -> None:
        partitions = self.topic_partitions[topic.topic] = {}
        for meta in topic.partitions:
            partitions[meta.partition] = meta
            leader: Optional[Any] = None
            if meta.error not in (0, ReplicaNotAvailableError.errno):
                log.warning('%s:%s has error %s', topic.topic, meta.partition, meta.error)
            if meta.error != LeaderNotAvailableError.errno and meta.leader != -1:
                leader = self._broker(meta.leader)
            self.topics_to_brokers[TopicAndPartition(topic.topic, meta.partition)] = leader

    def _broker(self, node_id: int) -> Any:
        return self.brokers.get(node_id, BrokerMetadata(node_id, None, None))

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

    def _get_leader_for_partition(self, topic: Any, partition: int) -> Any:
        """Return the BrokerMetadata of a partition's leader, asking for it if need be.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError, KafkaUnavailableError.
        """
        key = TopicAndPartition(topic, partition)
        leader = self.topics_to_brokers.get(key)
        if leader is not None:
            return leader
        if self._unavailable is not None:
            # Another payload of this call has just found no host: do not wait for that again.
            raise KafkaUnavailableError(*self._unavailable.args)
        self.load_metadata_for_topics(topic)
        partitions = self.topic_partitions.get(topic) or {}
        if partition not in partitions:
            raise UnknownTopicOrPartitionError(key)
        if partitions[partition].leader == -1:
            raise LeaderNotAvailableError(partitions[partition])
        return self._broker(partitions[partition].leader)

    def _leaders(self, payloads: List[Any]) -> List[Tuple[Any, Any]]:
        """Return (payload, leader) pairs; the error itself where no host could be asked."""
        found: List[Tuple[Any, Any]] = []
        try:
            for payload in payloads:
                try:
                    leader = self._get_leader_for_partition(payload.topic, payload.partition)
                except KafkaUnavailableError as error:
                    log.warning('no leader for %s:%s: %s', payload.topic, payload.partition, error)
                    self._unavailable = leader = error
                found.append((payload, leader))
        finally:
            self._unavailable = None
        return found

    # -- sending ---------------------------------------------------------------------------------

    def _send_broker_unaware_request(
        self, payloads: Any, encoder_fn: Encoder, decoder_fn: Callable[[Any], Any]
    ) -> Any:
        """Send a request to the first host that answers it and return the decoded answer.

        Raises: KafkaUnavailableError when every host failed, whatever the failure was.
        """
        failures = []
        for host, port in list(self.hosts):
            request_id = self._next_id()
            request = encoder_fn(
                client_id=self.client_id, correlation_id=request_id, payloads=payloads
            )
            try:
                response = ask(self._get_conn(host, port), request_id, request, decoder_fn)
            except Exception as error:
                log.warning('%s:%s did not answer: %s', host, port, error)
                failures.append((host, port, error))
            else:
                self._metadata_from = (host, port)
                return response
        raise KafkaUnavailableError(
            'none of the hosts answered: %s'
            % ('; '.join('%s:%s: %s' % failure for failure in failures) or 'there are none')
        ) from (failures[-1][2] if failures else None)

    def _send_broker_aware_request(
        self, payloads: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> List[Any]:
        """Send each payload to the leader of its partition; return responses in payload order.

        A payload whose broker failed gets a FailedPayloadsError instance as its response. Without
        a decoder no answer is read and the responses are None.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError before anything is sent.
        """
        payloads = request_tuples(payloads)
        responses = TopicDict()
        groups: Dict[Optional[Address], List[Any]] = {}
        for payload, leader in self._leaders(payloads):
            if isinstance(leader, KafkaUnavailableError):
                responses[payload.topic, payload.partition] = failed(payload, leader)
            else:
                groups.setdefault(address_of(leader), []).append(payload)
        responses.update(self._exchange(groups, encoder_fn, decoder_fn))
        return in_order(payloads, responses)

    def _exchange(
        self, groups: Dict[Optional[Address], List[Any]], encoder_fn: Encoder, decoder_fn: Decoder
    ) -> TopicDict:
        """Send one request to each address; return the responses by topic and partition.

        Everything is encoded before anything is sent, so what cannot be encoded goes nowhere.
        """
        requests = []
        for address, payloads in groups.items():
            request_id = self._next_id()
            data = encoder_fn(
                client_id=self.client_id, correlation_id=request_id, payloads=payloads
            )
            requests.append(Request(address, request_id, data, payloads))
        outcomes = exchange(
            requests, lambda address: self._get_conn(*address), decoder_fn is not None
        )
        if any(outcome.error is not None for outcome in outcomes):
            # The leaders may have moved; what is known of them is not trusted any longer.
            self.reset_all_metadata()
            self._coordinators.clear()
        responses = TopicDict()
        for request, answer, error in outcomes:
            if error is not None:
                log.warning('request to %s failed: %s', request.address, error)
            if error is not None or decoder_fn is None:
                for payload in request.payloads:
                    response = None if error is None else failed(payload, error)
                    responses[payload.topic, payload.partition] = response
            else:
                for response in decoder_fn(answer):
                    responses[response.topic, response.partition] = response
        return responses

    def _finish(self, responses: List[Any], fail_on_error: bool, callback: Any) -> List[Any]:
        """Raise the first failure if that is wanted; pass what is left through the callback."""
        finished = []
        for response in responses:
            if response is None:
                continue  # sent without waiting for an answer
            if fail_on_error:
                self._raise_on_error(response)
            finished.append(callback(response) if callback is not None else response)
        return finished

    def _raise_on_error(self, response: Any) -> None:
        try:
            check_error(response)
        except (UnknownTopicOrPartitionError, NotLeaderForPartitionError):
            self.reset_topic_metadata(response.topic)
            raise

    # -- requests --------------------------------------------------------------------------------

    def send_metadata_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> Any:
        """Ask any broker about topics (bytes; none: all); return one MetadataResponse.

        `fail_on_error` and `callback` have no effect: error codes stand in the response.
        Raises: KafkaUnavailableError when no host answers; TypeError for topics that are no bytes.
        """
        return self._send_broker_unaware_request(
            payloads,
            KafkaProtocol.encode_metadata_request,
            KafkaProtocol.decode_metadata_response,
        )

    def send_consumer_metadata_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> Any:
        """Ask any broker for the coordinator of a group (bytes); return a ConsumerMetadataResponse.

        `fail_on_error` and `callback` have no effect. Raises as send_metadata_request; brokers
        before 0.8.2 do not know the request, and close the connection.
        """
        return self._send_broker_unaware_request(
            payloads,
            KafkaProtocol.encode_consumer_metadata_request,
            KafkaProtocol.decode_consumer_metadata_response,
        )

    def send_produce_request(
        self,
        payloads: Any = (),
        acks: int = 1,
        timeout: int = 1000,
        fail_on_error: bool = True,
        callback: Any = None,
    ) -> List[Any]:
        """Write the messages of ProduceRequests, one for each topic and partition.

        Arguments: acks: 0 no answer, 1 the leader has them, -1 all in-sync replicas do;
            timeout: ms that the leader may wait for replicas.
        Returns: ProduceResponses in payload order, ``[]`` with acks=0. Errors in the list are
            responses with a code, and FailedPayloadsError instances where no broker was reached.
        Raises: the first of these errors otherwise. Always, and before anything is sent:
            UnknownTopicOrPartitionError, LeaderNotAvailableError, TypeError or ProtocolError naming
            what cannot be encoded, AssertionError when a partition comes twice.
        """
        check_callback(callback)
        encoder = functools.partial(
            KafkaProtocol.encode_produce_request, acks=acks, timeout=timeout
        )
        decoder = None if acks == 0 else KafkaProtocol.decode_produce_response
        responses = self._send_broker_aware_request(payloads, encoder, decoder)
        return self._finish(responses, fail_on_error, callback)

    def send_fetch_request(
        self,
        payloads: Any = (),
        fail_on_error: bool = True,
        callback: Any = None,
        max_wait_time: int = 100,
        min_bytes: int = 4096,
    ) -> List[Any]:
        """Read messages by FetchRequests; return FetchResponses, errors as when producing.

        Arguments: max_wait_time: ms that a broker may wait until it has `min_bytes` bytes.
        """
        check_callback(callback)
        encoder = functools.partial(
            KafkaProtocol.encode_fetch_request, max_wait_time=max_wait_time, min_bytes=min_bytes
        )
        responses = self._send_broker_aware_request(
            payloads, encoder, KafkaProtocol.decode_fetch_response
        )
        return self._finish(responses, fail_on_error, callback)

    def send_offset_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> List[Any]:
        """Ask for offsets of the log by OffsetRequests; return OffsetResponses.

        Times are in ms, -1 for the end and -2 for the start. Errors as when producing.
        """
        check_callback(callback)
        responses = self._send_broker_aware_request(
            payloads, KafkaProtocol.encode_offset_request, KafkaProtocol.decode_offset_response
        )
        return self._finish(responses, fail_on_error, callback)

    def send_offset_commit_request(
        self,
        group: bytes,
        payloads: Any = (),
        fail_on_error: bool = True,
        callback: Any = None,
    ) -> List[Any]:
        """Store offsets of a group (bytes) by OffsetCommitRequests; return OffsetCommitResponses.

        They go to ZooKeeper, or to the group's coordinator where brokers no longer do that. Errors
        as when producing; UnsupportedVersionError on 0.8.0, which stores no offsets.
        """
        check_callback(callback)
        encoder = functools.partial(KafkaProtocol.encode_offset_commit_request, group=group)
        decoder = KafkaProtocol.decode_offset_commit_response
        responses = self._send_offsets(ApiKey.OFFSET_COMMIT, group, payloads, encoder, decoder)
        return self._finish(responses, fail_on_error, callback)

    def send_offset_fetch_request(
        self,
        group: bytes,
        payloads: Any = (),
        fail_on_error: bool = True,
        callback: Any = None,
    ) -> List[Any]:
        """Read what `send_offset_commit_request` stored; return OffsetFetchResponses.

        A partition for which nothing is stored has offset -1 and error 3. Errors as there.
        """
        check_callback(callback)
        encoder = functools.partial(KafkaProtocol.encode_offset_fetch_request, group=group)
        decoder = KafkaProtocol.decode_offset_fetch_response
        responses = self._send_offsets(ApiKey.OFFSET_FETCH, group, payloads, encoder, decoder)
        return self._finish(responses, fail_on_error, callback)

    def send_offset_fetch_request_kafka(
        self,
        group: bytes,
        payloads: Any = (),
        fail_on_error: bool = True,
        callback: Any = None,
    ) -> List[Any]:
        """Read offsets kept at the coordinator of a group (0.8.2 and later), never in ZooKeeper.

        A partition for which nothing is stored has offset -1 and no error. Errors as when
        producing, but for leaders; ConsumerCoordinatorNotAvailableCode when none comes up in 10 s.
        """
        check_callback(callback)
        encoder = functools.partial(
            KafkaProtocol.encode_offset_fetch_request, group=group, from_kafka=True
        )
        responses = self._send_consumer_aware_request(
            group, payloads, encoder, KafkaProtocol.decode_offset_fetch_response
        )
        return self._finish(responses, fail_on_error, callback)
