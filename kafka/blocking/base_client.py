"""BlockingClient: what KafkaClient of 0.9.5 and SimpleClient of 1.x have in common.

It finds the brokers that have to answer a request, sends to several of them before it reads the
first response, and says what a failure means for each payload. The two clients add how names are
spelled, how requests are encoded and which connections carry them. Calls block in the caller's
thread; there is no lock, see KnownCluster. Brokers that dropped the old versions are served inside
the connection; only stored offsets also go to another broker there (OffsetsStorage).
"""

from __future__ import annotations

import copy
import functools
import logging
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar

from kafka.blocking.exchange import (
    Address,
    Outcome,
    Request,
    address_of,
    check_callback,
    failed,
    in_order,
    request_tuples,
)
from kafka.blocking.known_cluster import KnownCluster
from kafka.blocking.new_topics import (
    are_unknown,
    creates_behind_its_answer,
    wait_for_creation,
    wait_for_leaders,
)
from kafka.blocking.stored_offsets import Led, OffsetsStorage, Versions, ask_coordinator
from kafka.blocking.topic_maps import TopicDict
from kafka.errors import (
    FrameError,
    InvalidReplicationFactorError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    UnknownError,
    UnknownTopicOrPartitionError,
    check_error,
)
from kafka.net.arguments import check_timeout
from kafka.protocol.api import ApiKey
from kafka.structs import BrokerMetadata, MetadataResponse
from kafka.util import check_number, name_bytes, shown, whole_number

log = logging.getLogger('kafka.client')

# What a broker that has just started says of a topic of which it does not know yet, while another
# broker is down: it would create it, and too few are there for its copies (seen on 0.11.0.3; 0.8
# has no code for that).
_NOT_CREATED = (InvalidReplicationFactorError, UnknownError)
#: How often metadata is loaded for a partition while other threads reset it.
_LOADS = 3

Encoder = Callable[..., Any]
Decoder = Optional[Callable[[Any], Any]]

_Client = TypeVar('_Client', bound='BlockingClient')


def _table(name: str) -> Any:
    """Return a property for a table of KnownCluster that programs may read, replace and patch."""

    def put(self: BlockingClient, table: Any) -> None:
        if '_known_cluster' not in vars(self):  # of a subclass that does not call our constructor
            self._known_cluster = self._nothing_known()
        setattr(self._known_cluster, name, table)

    def take_away(self: BlockingClient) -> None:
        delattr(self._known_cluster, name)

    return property(lambda self: getattr(self._known_cluster, name), put, take_away)


class BlockingClient:
    """What the blocking clients of 0.9.5 and 1.x have in common.

    Methods that take a topic raise TypeError for what is no str or bytes. Those that send requests
    share some arguments: payloads: a list of tuples of ``kafka.structs``, one for each partition;
    fail_on_error: raise the first error, or leave it in the list (False); callback: called with
    each response, its result stands in the list instead.

    Names are bytes, with SimpleClient str. A leader that cannot be found raises; with SimpleClient
    it is an error of its payload, FailedPayloadsError.
    """

    CLIENT_ID = b'kafka-python'

    # Errors of the look-up of a leader that become the response of its payload; others are raised.
    FAILED_LOOKUPS: Tuple[Type[KafkaError], ...]

    # Producers may pass messages that are made when somebody looks at them.
    takes_messages_later = True

    brokers: Dict[int, BrokerMetadata] = _table('brokers')
    topics_to_brokers: TopicDict = _table('topics_to_brokers')
    topic_partitions: TopicDict = _table('topic_partitions')

    # Gives the connection to an address, made on first use.
    _get_conn: Callable[..., Any]

    def _begin(self, timeout: Optional[float], correlation_id: int) -> None:
        """Check and keep what both eras are constructed with."""
        check_timeout(timeout)
        self.timeout = timeout
        self.correlation_id = whole_number(correlation_id, 'correlation_id')
        self._known_cluster = self._nothing_known()
        self._offsets_storage = OffsetsStorage()
        self._metadata_from: Optional[Address] = None
        self._unavailable: Optional[KafkaUnavailableError] = None

    # -- what the client brings --------------------------------------------------------------------

    def _nothing_known(self) -> KnownCluster:
        """Return tables for what is known of the cluster, empty ones."""
        raise NotImplementedError

    def _name(self, name: Any, argument: str) -> Any:
        """Return a topic in the client's spelling; TypeError naming the argument for no name."""
        raise NotImplementedError

    def _ask_metadata(self, names: List[Any]) -> MetadataResponse:
        """Ask any broker about topics; return brokers and topics as the named tuples."""
        raise NotImplementedError

    def _refresh_new_topic(self, topic: Any) -> None:
        """Load the metadata of a topic that is perhaps being created."""
        raise NotImplementedError

    def _versions_of(self, address: Optional[Address]) -> Versions:
        """Return what the broker at an address serves; empty where only a request can tell."""
        raise NotImplementedError

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Ask for the brokers and for these topics (all without arguments) and remember them."""
        raise NotImplementedError

    def _protocol(self) -> Any:
        """Return the class with the encoders and decoders, as it is at this moment."""
        raise NotImplementedError

    def _connections(self) -> Dict[Address, Any]:
        """Return the connections made so far, the very dict."""
        raise NotImplementedError

    def _is_connected(self, address: Address) -> bool:
        """Return True if this thread has a connection of this package to an address."""
        raise NotImplementedError

    def _hosts_to_ask(self) -> List[Tuple[Any, ...]]:
        """Return where any request may go, as arguments of _get_conn, in the order to try."""
        raise NotImplementedError

    def _encoded(self, encoder_fn: Encoder, payloads: Any) -> Tuple[int, Any]:
        """Return the number of a new request, and the request as its connection takes it."""
        raise NotImplementedError

    def _ask(
        self, connect: Callable[[], Any], request_id: int, request: Any, decoder_fn: Any
    ) -> Any:
        """Send one request over the connection that `connect` gives; return the decoded answer."""
        raise NotImplementedError

    def _answers(self, requests: List[Request], wanted: bool) -> List[Outcome]:
        """Send every request, then read every answer, if answers are wanted."""
        raise NotImplementedError

    def _decoded(self, decoder_fn: Callable[[Any], Any], answer: Any) -> Any:
        """Return the responses in an answer."""
        return decoder_fn(answer)

    # -- connections ---------------------------------------------------------------------------

    def _next_id(self) -> int:
        """Return the next correlation id; 0 follows the largest."""
        self.correlation_id = (self.correlation_id + 1) % 2**31
        return self.correlation_id

    def close(self) -> None:
        """Close every connection; what is known of the cluster stays readable."""
        for conn in list(self._connections().values()):
            conn.close()

    def copy(self: _Client) -> _Client:
        """Return a deep copy with unconnected connections, for another thread or process.

        `reinit()` on the copy connects them; a request does too.
        """
        conns = {key: conn.copy() for key, conn in list(self._connections().items())}
        memo: Dict[int, Any] = {id(self._connections()): conns}
        # Another thread, such as a consumer's timer, may be loading metadata: they change size.
        known, coordinators = self._known_cluster, self._offsets_storage.coordinators
        for each in (known.topics_to_brokers, known.topic_partitions, coordinators):
            memo[id(each)] = copy.deepcopy(each.copy())
        return copy.deepcopy(self, memo)

    def reinit(self) -> None:
        """Reconnect every known connection.

        A broker that is down does not keep the others from being reconnected, and is tried again
        by the next request that needs it. Raises: KafkaConnectionError if none could be reached.
        """
        failure, connected = None, False
        for conn in list(self._connections().values()):
            try:
                conn.reinit()
                connected = True
            except KafkaConnectionError as error:
                log.warning('reconnecting %s failed: %s', conn, error)
                failure = error
        if failure is not None and not connected:
            raise failure

    # -- topics ----------------------------------------------------------------------------------

    @property
    def topics(self) -> List[Any]:
        """The known topics, as decoded."""
        return list(self._known_cluster.topic_partitions)

    def has_metadata_for_topic(self, topic: Any) -> bool:
        """Return whether at least one partition of a topic is known, with a leader or without."""
        return bool(self._known_cluster.topic_partitions.get(self._name(topic, 'topic')))

    def get_partition_ids_for_topic(self, topic: Any) -> List[int]:
        """Return the partitions of a topic in order; ``[]`` for an unknown topic."""
        return sorted(self._known_cluster.topic_partitions.get(self._name(topic, 'topic')) or ())

    def reset_topic_metadata(self, *topics: Any) -> None:
        """Forget topics; a topic is meant in exactly this spelling, str or bytes."""
        for topic in topics:
            self._known_cluster.forget_topic(topic)

    def reset_all_metadata(self) -> None:
        """Forget all topics; brokers stay known."""
        self._known_cluster.forget_topics()
        self._offsets_storage.without_zookeeper.clear()

    def ensure_topic_exists(self, topic: Any, timeout: float = 30) -> None:
        """Wait until a topic has metadata; asking creates it where brokers create topics so.

        Arguments: topic: str or bytes; timeout: seconds.
        Raises: KafkaTimeoutError when the time is over (at once for 0);
            UnknownTopicOrPartitionError where brokers do not create topics on demand; otherwise as
            load_metadata_for_topics, but for LeaderNotAvailableError.
        """
        self._name(topic, 'topic')
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
            self._refresh_new_topic(topic)

    # -- metadata --------------------------------------------------------------------------------

    def _load(self, names: List[Any], excused: Tuple[int, ...] = ()) -> None:
        """Ask for the brokers and for these topics (all if there are none) and remember them.

        Arguments: excused: codes that are no error even of a topic that is named here.
        """
        if names:
            self.reset_topic_metadata(*names)
        else:
            self.reset_all_metadata()
        spelled = [name_bytes(name, 'topics') for name in names]
        response = self._ask_metadata(names)
        created = False
        if are_unknown(spelled, response) and creates_behind_its_answer(
            self._versions_of(self._metadata_from)
        ):
            response = wait_for_creation(spelled, response, lambda _: self._ask_metadata(names))
            created = not are_unknown(spelled, response)
        failure = self._known_cluster.update(response, spelled, excused)
        if failure is not None:
            raise failure
        if created:
            new = self._known_cluster.partitions_with_leader(names)
            if not wait_for_leaders(new, self.send_offset_request):
                self._load(names, excused)

    # -- leaders ---------------------------------------------------------------------------------

    def _get_leader_for_partition(self, topic: Any, partition: int) -> Any:
        """Return the BrokerMetadata of a partition's leader, asking for it if need be.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError, KafkaUnavailableError.
        """
        known = self._known_cluster
        leader = known.topics_to_brokers.get((topic, partition))
        if leader is not None:
            return leader
        key = known.key(topic, partition)
        unavailable = self._unavailable  # looked at once: another thread may take it away
        if unavailable is not None:
            # Another payload of this call has just found no host: do not wait for that again.
            raise KafkaUnavailableError(*unavailable.args)
        for _ in range(_LOADS):
            try:
                self.load_metadata_for_topics(topic)
            except _NOT_CREATED as error:
                raise LeaderNotAvailableError(key) from error
            partitions = known.topic_partitions.get(topic) or {}
            if partitions:  # else another thread, which lost its broker, has reset all metadata
                break
        if partition not in partitions:
            raise UnknownTopicOrPartitionError(key)
        value = partitions[partition]
        leader_id: int = getattr(value, 'leader', value)  # SimpleClient has nothing but the leader
        if leader_id == -1:
            raise LeaderNotAvailableError(key)
        return known.broker(leader_id)

    def _leaders(self, payloads: List[Any]) -> List[Tuple[Any, Any]]:
        """Return (payload, leader) pairs; the error itself where the look-up failed that way."""
        found: List[Tuple[Any, Any]] = []
        try:
            for payload in payloads:
                try:
                    leader = self._get_leader_for_partition(payload.topic, payload.partition)
                except self.FAILED_LOOKUPS as error:
                    what = shown(payload.topic), payload.partition, error
                    log.warning('no leader for %s:%s: %s', *what)
                    leader = error
                    if isinstance(error, KafkaUnavailableError):
                        self._unavailable = error
                found.append((payload, leader))
        finally:
            self._unavailable = None
        return found

    # -- sending ---------------------------------------------------------------------------------

    def _send_broker_unaware_request(
        self, payloads: Any, encoder_fn: Encoder, decoder_fn: Callable[[Any], Any]
    ) -> Any:
        """Send a request to the first host that answers it and return the decoded answer.

        A host whose connection turns out to be broken is connected again first: its name may stand
        for another address by now.

        Raises: KafkaUnavailableError when every host failed, whatever the failure was; but the
        error itself where all refuse the login, or certificates are not accepted.
        """
        failures = []
        for where in self._hosts_to_ask():
            connect = functools.partial(self._get_conn, *where)
            for _ in range(2 if self._is_connected((where[0], where[1])) else 1):
                request_id, request = self._encoded(encoder_fn, payloads)
                try:
                    response = self._ask(connect, request_id, request, decoder_fn)
                except Exception as error:
                    log.warning('%s:%s did not answer: %s', where[0], where[1], error)
                    failures.append((where[0], where[1], error))
                    if isinstance(error, FrameError) or not isinstance(error, KafkaConnectionError):
                        break
                else:
                    self._metadata_from = (where[0], where[1])
                    return response
        _raise_refusal([failure[2] for failure in failures])
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

        Raises: what a look-up of leaders raises, but for FAILED_LOOKUPS, before anything is sent.
        """
        payloads = request_tuples(payloads)
        failures: List[Tuple[Any, KafkaError]] = []
        led: Led = []
        for payload, leader in self._leaders(payloads):
            if isinstance(leader, KafkaError):
                failures.append((payload, leader))
            else:
                led.append((payload, address_of(leader)))
        if not failures:
            return self._send_by_address(led, encoder_fn, decoder_fn)
        responses = self._exchange(_by_address(led), encoder_fn, decoder_fn)
        for payload, failure in failures:
            responses.setdefault((payload.topic, payload.partition), failed(payload, failure))
        return in_order(payloads, responses)

    def _send_to_leaders(self, led: Led, encoder_fn: Encoder, decoder_fn: Decoder) -> List[Any]:
        """Do what _send_broker_aware_request() does when the addresses of leaders are known.

        Programs may have replaced that; then it is called, and looks them up again.
        """
        if (
            type(self)._send_broker_aware_request is _SEND_BY_LEADER
            and '_send_broker_aware_request' not in vars(self)
        ):
            return self._send_by_address(led, encoder_fn, decoder_fn)
        payloads = [payload for payload, _ in led]
        return self._send_broker_aware_request(payloads, encoder_fn, decoder_fn)

    def _send_by_address(self, led: Led, encoder_fn: Encoder, decoder_fn: Decoder) -> List[Any]:
        """Send (payload, address) pairs; return responses in their order."""
        if len(led) == 1:
            payload, address = led[0]
            return [self._exchange_one(address, payload, encoder_fn, decoder_fn)]
        responses = self._exchange(_by_address(led), encoder_fn, decoder_fn)
        return in_order([payload for payload, _ in led], responses)

    def _exchange(
        self, groups: Dict[Optional[Address], List[Any]], encoder_fn: Encoder, decoder_fn: Decoder
    ) -> TopicDict:
        """Send one request to each address; return the responses by topic and partition.

        Everything is encoded before anything is sent, so what cannot be encoded goes nowhere.
        """
        requests = [
            Request(address, *self._encoded(encoder_fn, payloads), payloads)
            for address, payloads in groups.items()
        ]
        outcomes = self._answers(requests, decoder_fn is not None)
        if any(outcome.error is not None for outcome in outcomes):
            self._trust_no_leaders()
        responses = TopicDict()
        for request, answer, error in outcomes:
            if error is not None:
                log.warning('request to %s failed: %s', request.address, error)
            if error is not None or decoder_fn is None:
                for payload in request.payloads:
                    response = None if error is None else failed(payload, error)
                    responses[payload.topic, payload.partition] = response
            else:
                for response in self._decoded(decoder_fn, answer):
                    responses[response.topic, response.partition] = response
        return responses

    def _exchange_one(
        self, address: Optional[Address], payload: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> Any:
        """Do what _exchange() does for a single payload; return its response."""
        request = Request(address, *self._encoded(encoder_fn, [payload]), [payload])
        ((_, answer, error),) = self._answers([request], decoder_fn is not None)
        if error is not None:
            self._trust_no_leaders()
            log.warning('request to %s failed: %s', address, error)
            return failed(payload, error)
        if decoder_fn is None:
            return None
        responses = list(self._decoded(decoder_fn, answer))
        if len(responses) == 1:
            (response,) = responses
            topic = payload.topic  # compared as what it is: `python -b` lets no text meet bytes
            if (
                type(response.topic) is type(topic)
                and response.topic == topic
                and response.partition == payload.partition
            ):
                return response
        return in_order([payload], TopicDict([((r.topic, r.partition), r) for r in responses]))[0]

    def _trust_no_leaders(self) -> None:
        """Forget who leads and coordinates what, because a broker did not answer."""
        self.reset_all_metadata()
        self._offsets_storage.coordinators.clear()

    # -- stored offsets ----------------------------------------------------------------------------

    def _get_coordinator_for_group(self, group: bytes) -> BrokerMetadata:
        """Ask once for the broker that coordinates a group.

        Raises: ConsumerCoordinatorNotAvailableCode while there is none, or another error that the
            answer carries; KafkaUnavailableError when no host answers.
        """
        response = self.send_consumer_metadata_request(group)
        check_error(response)
        return BrokerMetadata(response.nodeId, response.host, response.port)

    def _send_consumer_aware_request(
        self, group: bytes, payloads: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> List[Any]:
        """Send all payloads to the coordinator of a group; otherwise as by leader.

        Raises: ConsumerCoordinatorNotAvailableCode when none comes up within 10 s;
            KafkaUnavailableError when no host can be asked for it.
        """
        payloads = request_tuples(payloads)
        if not payloads:
            return []
        coordinator = self._offsets_storage.find_coordinator(group, self._get_coordinator_for_group)
        address = address_of(coordinator)
        if len(payloads) == 1:
            answers = [self._exchange_one(address, payloads[0], encoder_fn, decoder_fn)]
        else:
            answers = in_order(
                payloads, self._exchange({address: payloads}, encoder_fn, decoder_fn)
            )
        self._offsets_storage.note_answers(group, answers)
        return answers

    def _send_offsets(
        self, key: int, group: bytes, payloads: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> List[Any]:
        """Send an offset request of version 0 to where its offsets are stored."""
        payloads = request_tuples(payloads)
        failures: List[Tuple[Any, KafkaError]] = []
        led: Led = []
        for payload, leader in self._leaders(payloads):
            if isinstance(leader, KafkaError):
                failures.append((payload, leader))
            else:
                led.append((payload, address_of(leader)))
        direct, moved = self._offsets_storage.split(key, led, self._versions_of)
        answers: List[Any] = []
        if direct:
            answers = self._send_to_leaders(direct, encoder_fn, decoder_fn)
            moved += self._offsets_storage.refused(direct, answers)
            if not moved and not failures:
                return answers  # which is all there is to it but in a cluster that changes
        responses = TopicDict()
        for (payload, _), answer in zip(direct, answers):
            responses[payload.topic, payload.partition] = answer
        for payload, failure in failures:
            responses[payload.topic, payload.partition] = failed(payload, failure)
        if moved:
            # Looked up at each try: programs may have replaced the method.
            responses.update(
                ask_coordinator(
                    moved,
                    lambda left: self._send_consumer_aware_request(
                        group, left, encoder_fn, decoder_fn
                    ),
                )
            )
        return in_order(payloads, responses)

    # -- responses ---------------------------------------------------------------------------------

    def _finish(self, responses: List[Any], fail_on_error: bool, callback: Any) -> List[Any]:
        """Raise the first failure if that is wanted; pass what is left through the callback."""
        finished = []
        for response in responses:
            if response is None:
                continue  # sent without waiting for an answer
            if fail_on_error and (isinstance(response, Exception) or response.error):
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
            self._protocol().encode_metadata_request,
            self._protocol().decode_metadata_response,
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
            self._protocol().encode_consumer_metadata_request,
            self._protocol().decode_consumer_metadata_response,
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
        if callback is not None:
            check_callback(callback)
        protocol = self._protocol()
        encoder = functools.partial(protocol.encode_produce_request, acks=acks, timeout=timeout)
        decoder = None if acks == 0 else protocol.decode_produce_response
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
        if callback is not None:
            check_callback(callback)
        encoder = functools.partial(
            self._protocol().encode_fetch_request, max_wait_time=max_wait_time, min_bytes=min_bytes
        )
        responses = self._send_broker_aware_request(
            payloads, encoder, self._protocol().decode_fetch_response
        )
        return self._finish(responses, fail_on_error, callback)

    def send_offset_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> List[Any]:
        """Ask for offsets of the log by OffsetRequests; return OffsetResponses.

        Times are in ms, -1 for the end and -2 for the start. Errors as when producing.
        """
        if callback is not None:
            check_callback(callback)
        responses = self._send_broker_aware_request(
            payloads,
            self._protocol().encode_offset_request,
            self._protocol().decode_offset_response,
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
        if callback is not None:
            check_callback(callback)
        protocol = self._protocol()
        encoder = functools.partial(protocol.encode_offset_commit_request, group=group)
        decoder = protocol.decode_offset_commit_response
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
        if callback is not None:
            check_callback(callback)
        encoder = functools.partial(self._protocol().encode_offset_fetch_request, group=group)
        decoder = self._protocol().decode_offset_fetch_response
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
        if callback is not None:
            check_callback(callback)
        encoder = functools.partial(
            self._protocol().encode_offset_fetch_request, group=group, from_kafka=True
        )
        responses = self._send_consumer_aware_request(
            group, payloads, encoder, self._protocol().decode_offset_fetch_response
        )
        return self._finish(responses, fail_on_error, callback)


def _raise_refusal(errors: List[Exception]) -> None:
    """Raise the last error if all say that no further try will help, from connecting on."""
    stages = [getattr(each, 'stage', None) for each in errors]
    if errors and all(stages) and not any(getattr(each, 'retriable', True) for each in errors):
        raise errors[-1]


def _by_address(led: Led) -> Dict[Optional[Address], List[Any]]:
    """Return the payloads for each address."""
    groups: Dict[Optional[Address], List[Any]] = {}
    for payload, address in led:
        groups.setdefault(address, []).append(payload)
    return groups


# What need not be called, unless a program has put its own in the place.
_SEND_BY_LEADER = BlockingClient._send_broker_aware_request
