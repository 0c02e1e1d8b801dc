"""BlockingClient: the common base of KafkaClient (0.9.5) and SimpleClient (1.x).

Finds the brokers for a request, sends to several of them before it reads the first response, and
turns a failure into the response or the error of each payload. The two clients add the spelling of
names, the encoding of requests and the connections. Calls block in the caller's thread; there is no
lock, see KnownCluster. The connection translates requests for brokers that dropped the old
versions; only stored offsets also go to another broker then (OffsetsStorage).
"""

from __future__ import annotations

import copy
import functools
import logging
import operator
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

# The errors of a broker that has just started, for a topic that it does not know yet, while another
# broker is down: it would create the topic, and too few brokers are up for its replicas (seen on
# 0.11.0.3; 0.8 has no code for that).
_NOT_CREATED = (InvalidReplicationFactorError, UnknownError)
#: How often metadata is loaded for a partition while other threads reset it.
_LOADS = 3

Encoder = Callable[..., Any]
Decoder = Optional[Callable[[Any], Any]]

_Client = TypeVar('_Client', bound='BlockingClient')


def _table(name: str) -> Any:
    """Return a property for a table of KnownCluster, which programs may read, replace and patch."""

    def put(self: BlockingClient, table: Any) -> None:
        if '_known_cluster' not in vars(self):  # a subclass that does not call our constructor
            self._known_cluster = self._nothing_known()
        setattr(self._known_cluster, name, table)

    def take_away(self: BlockingClient) -> None:
        delattr(self._known_cluster, name)

    # An attrgetter calls no Python function: each request reads a table.
    return property(operator.attrgetter('_known_cluster.' + name), put, take_away)


class BlockingClient:
    """Common base of the blocking clients of 0.9.5 and 1.x.

    Methods that take a topic raise TypeError unless it is str or bytes. Those that send requests
    share some arguments: payloads: a list of tuples of ``kafka.structs``, one for each partition;
    fail_on_error: True raises the first error, False leaves errors in the list; callback: called
    with each response, and its result takes the place of the response in the list.

    Names are bytes, with SimpleClient str. A leader that cannot be found raises; with SimpleClient
    the payload's response is a FailedPayloadsError instead.
    """

    CLIENT_ID = b'kafka-python'

    # Errors of a leader look-up that become the response of the payload; others are raised.
    FAILED_LOOKUPS: Tuple[Type[KafkaError], ...]

    # Producers may pass messages that are encoded on first access.
    takes_messages_later = True

    brokers: Dict[int, BrokerMetadata] = _table('brokers')
    topics_to_brokers: TopicDict = _table('topics_to_brokers')
    topic_partitions: TopicDict = _table('topic_partitions')

    # Returns the connection to an address, created on first use.
    _get_conn: Callable[..., Any]

    def _begin(self, timeout: Optional[float], correlation_id: int) -> None:
        """Check and store the arguments that both clients have."""
        check_timeout(timeout)
        self.timeout = timeout
        self.correlation_id = whole_number(correlation_id, 'correlation_id')
        self._known_cluster = known = self._nothing_known()
        # For a subclass with attributes of these names; otherwise the tables are assigned already.
        self.brokers = known.brokers
        self.topics_to_brokers = known.topics_to_brokers
        self.topic_partitions = known.topic_partitions
        self._offsets_storage = OffsetsStorage()
        self._metadata_from: Optional[Address] = None
        self._unavailable: Optional[KafkaUnavailableError] = None

    # -- abstract methods --------------------------------------------------------------------------

    def _nothing_known(self) -> KnownCluster:
        """Return empty tables of the known cluster."""
        raise NotImplementedError

    def _name(self, name: Any, argument: str) -> Any:
        """Return a topic in the client's spelling; TypeError naming the argument if invalid."""
        raise NotImplementedError

    def _ask_metadata(self, names: List[Any]) -> MetadataResponse:
        """Request the metadata of topics from any broker, as named tuples of brokers and topics."""
        raise NotImplementedError

    def _refresh_new_topic(self, topic: Any) -> None:
        """Load the metadata of a topic that may be about to be created."""
        raise NotImplementedError

    def _versions_of(self, address: Optional[Address]) -> Versions:
        """Return the versions that a broker serves; empty if only a request can show that."""
        raise NotImplementedError

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Request and store metadata of brokers and topics (none given: all topics)."""
        raise NotImplementedError

    def _protocol(self) -> Any:
        """Return the current class of encoders and decoders; programs may replace it."""
        raise NotImplementedError

    def _connections(self) -> Dict[Address, Any]:
        """Return the connections made so far: the dict itself, not a copy."""
        raise NotImplementedError

    def _is_connected(self, address: Address) -> bool:
        """Return True if this thread has a connection of this package to an address."""
        raise NotImplementedError

    def _hosts_to_ask(self) -> List[Tuple[Any, ...]]:
        """Return the hosts that any request may go to, in order, as arguments of _get_conn."""
        raise NotImplementedError

    def _encoded(self, encoder_fn: Encoder, payloads: Any) -> Tuple[int, Any]:
        """Return the correlation id of a new request, and its form for the connection."""
        raise NotImplementedError

    def _ask(
        self, connect: Callable[[], Any], request_id: int, request: Any, decoder_fn: Any
    ) -> Any:
        """Send one request over the connection from `connect()`; return its decoded response."""
        raise NotImplementedError

    def _answers(self, requests: List[Request], wanted: bool) -> List[Outcome]:
        """Send every request, then read every response, if responses are `wanted`."""
        raise NotImplementedError

    def _decoded(self, decoder_fn: Callable[[Any], Any], answer: Any) -> Any:
        """Return the decoded responses of one received response frame."""
        return decoder_fn(answer)

    # -- connections ---------------------------------------------------------------------------

    def _next_id(self) -> int:
        """Return the next correlation id; the largest is followed by 0."""
        self.correlation_id = (self.correlation_id + 1) % 2**31
        return self.correlation_id

    def close(self) -> None:
        """Close every connection; the known metadata stays readable."""
        for conn in list(self._connections().values()):
            conn.close()

    def __copy__(self: _Client) -> _Client:
        """Return a shallow copy; replacing a table of it has no effect on the original."""
        make, arguments, state = (*self.__reduce_ex__(4), None)[:3]
        twin: _Client = make(*arguments)
        if state is None:  # made from its options
            return twin
        if hasattr(twin, '__setstate__'):
            twin.__setstate__(state)
        else:
            vars(twin).update(state)
        known = vars(twin).get('_known_cluster')
        if known is not None:
            vars(twin)['_known_cluster'] = copy.copy(known)
        return twin

    def copy(self: _Client) -> _Client:
        """Return a deep copy with unconnected connections, for another thread or process.

        `reinit()` on the copy connects them; a request does too.
        """
        conns = {key: conn.copy() for key, conn in list(self._connections().items())}
        memo: Dict[int, Any] = {id(self._connections()): conns}
        # Another thread, such as a consumer's timer, may load metadata meanwhile: the size changes.
        coordinators = self._offsets_storage.coordinators
        for each in (self.topics_to_brokers, self.topic_partitions, coordinators):
            memo[id(each)] = copy.deepcopy(each.copy())
        return copy.deepcopy(self, memo)

    def reinit(self) -> None:
        """Reconnect every known connection.

        A broker that is down does not keep the others from being reconnected; the next request that
        needs it connects again. Raises: KafkaConnectionError if no broker could be reached.
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

    def _tables(self) -> KnownCluster:
        """Return the known cluster, with the tables of a subclass that has attributes of its own.

        Such a subclass need not have called the constructor.
        """
        own = type(self)
        if (own.brokers, own.topics_to_brokers, own.topic_partitions) == _TABLES:
            return self._known_cluster
        if '_known_cluster' not in vars(self):
            self._known_cluster = self._nothing_known()
        known = self._known_cluster
        known.brokers = self.brokers
        known.topics_to_brokers = self.topics_to_brokers
        known.topic_partitions = self.topic_partitions
        return known

    @property
    def topics(self) -> List[Any]:
        """The known topics, in the spelling of the decoded responses."""
        return list(self.topic_partitions)

    def has_metadata_for_topic(self, topic: Any) -> bool:
        """Return True if at least one partition of a topic is known, with a leader or without."""
        return bool(self.topic_partitions.get(self._name(topic, 'topic')))

    def get_partition_ids_for_topic(self, topic: Any) -> List[int]:
        """Return the partitions of a topic in order; ``[]`` for an unknown topic."""
        return sorted(self.topic_partitions.get(self._name(topic, 'topic')) or ())

    def reset_topic_metadata(self, *topics: Any) -> None:
        """Forget topics; only the exact spelling, str or bytes, is removed."""
        known = self._tables()
        for topic in topics:
            known.forget_topic(topic)

    def reset_all_metadata(self) -> None:
        """Forget all topics; brokers stay known."""
        self._tables().forget_topics()
        self._offsets_storage.without_zookeeper.clear()

    def ensure_topic_exists(self, topic: Any, timeout: float = 30) -> None:
        """Wait until a topic has metadata; brokers may create it on demand.

        Arguments: topic: str or bytes; timeout: seconds.
        Raises: KafkaTimeoutError when the time is over (at once for 0);
            UnknownTopicOrPartitionError if brokers do not create topics on demand; otherwise as
            load_metadata_for_topics, except LeaderNotAvailableError.
        """
        self._name(topic, 'topic')
        check_number(timeout, 'timeout')
        deadline = time.monotonic() + timeout
        pause = 0.0
        while not self.has_metadata_for_topic(topic):
            left = deadline - time.monotonic()
            if not left > 0:  # NaN times out at once
                raise KafkaTimeoutError('topic %r has no metadata after %s s' % (topic, timeout))
            if pause:
                time.sleep(min(pause, left))
            pause = 0.5
            self._refresh_new_topic(topic)

    # -- metadata --------------------------------------------------------------------------------

    def _load(self, names: List[Any], excused: Tuple[int, ...] = ()) -> None:
        """Request and store the metadata of the brokers and these topics (none given: all topics).

        Arguments: excused: error codes that are ignored even for a topic that is named here.
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
        known = self._tables()
        failure = known.update(response, spelled, excused)
        if type(self).brokers is not _TABLES[0]:
            self.brokers = known.brokers  # the subclass has an attribute of its own
        if failure is not None:
            raise failure
        if created:
            new = known.partitions_with_leader(names)
            if not wait_for_leaders(new, self.send_offset_request):
                self._load(names, excused)

    # -- leaders ---------------------------------------------------------------------------------

    def _get_leader_for_partition(self, topic: Any, partition: int) -> Any:
        """Return the BrokerMetadata of a partition's leader; request it if it is not known.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError, KafkaUnavailableError.
        """
        leader = self.topics_to_brokers.get((topic, partition))
        if leader is not None:
            return leader
        key = self._tables().key(topic, partition)
        unavailable = self._unavailable  # read once: another thread may reset it
        if unavailable is not None:
            # Another payload of this call has just found no host: do not wait for that again.
            raise KafkaUnavailableError(*unavailable.args)
        for _ in range(_LOADS):
            try:
                self.load_metadata_for_topics(topic)
            except _NOT_CREATED as error:
                raise LeaderNotAvailableError(key) from error
            partitions = self.topic_partitions.get(topic) or {}
            if partitions:  # otherwise another thread that lost its broker has reset all metadata
                break
        if partition not in partitions:
            raise UnknownTopicOrPartitionError(key)
        value = partitions[partition]
        leader_id: int = getattr(value, 'leader', value)  # SimpleClient stores only the leader's id
        if leader_id == -1:
            raise LeaderNotAvailableError(key)
        return self._tables().broker(leader_id)

    def _leaders(self, payloads: List[Any]) -> List[Tuple[Any, Any]]:
        """Return (payload, leader) pairs; the error in place of the leader for FAILED_LOOKUPS."""
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
        """Send a request to the first host that answers it and return the decoded response.

        A host whose connection turns out to be broken is connected again first: its name may
        resolve to another address by now.

        Raises: KafkaUnavailableError when every host failed, for any reason; but the error itself
        if all hosts refuse the login, or certificates are not accepted.
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
            % ('; '.join('%s:%s: %s' % failure for failure in failures) or 'none is known')
        ) from (failures[-1][2] if failures else None)

    def _send_broker_aware_request(
        self, payloads: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> List[Any]:
        """Send each payload to the leader of its partition; return responses in payload order.

        A payload whose broker failed gets a FailedPayloadsError instance as its response. Without
        a decoder no response is read and the responses are None.

        Raises: what the look-up of leaders raises, except FAILED_LOOKUPS, before anything is sent.
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
        """Do the same as _send_broker_aware_request() with the addresses of leaders already known.

        If a program has replaced that method, it is called, and looks them up again.
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

        Everything is encoded before anything is sent, so an encoding error sends nothing.
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
        """Do the same as _exchange() for a single payload; return its response."""
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
            topic = payload.topic  # `python -b` warns if str is compared with bytes
            if (
                type(response.topic) is type(topic)
                and response.topic == topic
                and response.partition == payload.partition
            ):
                return response
        return in_order([payload], TopicDict([((r.topic, r.partition), r) for r in responses]))[0]

    def _trust_no_leaders(self) -> None:
        """Forget all leaders and coordinators, because a broker did not answer."""
        self.reset_all_metadata()
        self._offsets_storage.coordinators.clear()

    # -- stored offsets ----------------------------------------------------------------------------

    def _get_coordinator_for_group(self, group: bytes) -> BrokerMetadata:
        """Request the broker that coordinates a group, once.

        Raises: ConsumerCoordinatorNotAvailableCode while there is none, or another error in the
            response; KafkaUnavailableError when no host answers.
        """
        response = self.send_consumer_metadata_request(group)
        check_error(response)
        return BrokerMetadata(response.nodeId, response.host, response.port)

    def _send_consumer_aware_request(
        self, group: bytes, payloads: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> List[Any]:
        """As _send_broker_aware_request(), but send all payloads to the coordinator of a group.

        Raises: ConsumerCoordinatorNotAvailableCode if no coordinator is available within 10 s;
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
        """Send an offset request of version 0 to the brokers that store the offsets."""
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
                return answers  # the usual case: the rest is for clusters that change
        responses = TopicDict()
        for (payload, _), answer in zip(direct, answers):
            responses[payload.topic, payload.partition] = answer
        for payload, failure in failures:
            responses[payload.topic, payload.partition] = failed(payload, failure)
        if moved:
            # Looked up for each attempt: programs may have replaced the method.
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
        """Raise the first failure if `fail_on_error`; pass the other responses to the callback."""
        finished = []
        for response in responses:
            if response is None:
                continue  # sent without a response
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
        """Request the metadata of topics (bytes; none: all) from any broker: one MetadataResponse.

        `fail_on_error` and `callback` have no effect: error codes are left in the response.
        Raises: KafkaUnavailableError when no host answers; TypeError for topics that are not bytes.
        """
        return self._send_broker_unaware_request(
            payloads,
            self._protocol().encode_metadata_request,
            self._protocol().decode_metadata_response,
        )

    def send_consumer_metadata_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> Any:
        """Request the coordinator of a group (bytes) from any broker: one ConsumerMetadataResponse.

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

        Arguments: acks: 0: no response, 1: the leader has written them, -1: all in-sync replicas
            have; timeout: ms that the leader may wait for replicas.
        Returns: ProduceResponses in payload order, ``[]`` with acks=0. With fail_on_error=False,
            failures are in the list: responses with an error code, and FailedPayloadsError
            instances if no broker was reached.
        Raises: the first of these failures otherwise. Always, and before anything is sent:
            UnknownTopicOrPartitionError, LeaderNotAvailableError, TypeError or ProtocolError naming
            the value that cannot be encoded, AssertionError when a partition comes twice.
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

        Arguments: max_wait_time: ms that a broker may wait for `min_bytes` bytes.
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
        """Request offsets of the log with OffsetRequests; return OffsetResponses.

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

        They go to ZooKeeper, or to the group's coordinator if brokers no longer store them there.
        Errors as when producing; UnsupportedVersionError on 0.8.0, which stores no offsets.
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
        """Read the offsets stored by `send_offset_commit_request`; return OffsetFetchResponses.

        A partition without a stored offset has offset -1 and error 3. Errors as there.
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
        """Read offsets stored by the coordinator of a group (0.8.2 and later), never in ZooKeeper.

        A partition without a stored offset has offset -1 and no error. Errors as when producing,
        except those of leaders; ConsumerCoordinatorNotAvailableCode if none is available in 10 s.
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
    """Raise the last error if all were raised while connecting and no retry can help."""
    stages = [getattr(each, 'stage', None) for each in errors]
    if errors and all(stages) and not any(getattr(each, 'retriable', True) for each in errors):
        raise errors[-1]


def _by_address(led: Led) -> Dict[Optional[Address], List[Any]]:
    """Group payloads by address."""
    groups: Dict[Optional[Address], List[Any]] = {}
    for payload, address in led:
        groups.setdefault(address, []).append(payload)
    return groups


# The attributes of the base: those of a subclass take their place.
_TABLES = (
    BlockingClient.brokers,
    BlockingClient.topics_to_brokers,
    BlockingClient.topic_partitions,
)

# Bypassed while no program has replaced it.
_SEND_BY_LEADER = BlockingClient._send_broker_aware_request
