"""Where a group's offsets are kept: in ZooKeeper by way of the leaders, or at its coordinator.

Owns the choice for the two offset requests of version 0, and the way to a coordinator. 0.9.5 stored
offsets in ZooKeeper through the leader of each partition. Brokers without ZooKeeper (2.8 to 3.9)
refuse that with error 35, from 4.0 on the versions are gone (KIP-896): there the group's
coordinator keeps them, and callers notice nothing. What the coordinator cannot give: offsets
expire, offsets in ZooKeeper do not move over, and a group with live members takes no commit.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from kafka.blocking.exchange import Address, address_of, failed, in_order, request_tuples
from kafka.blocking.topic_maps import TopicDict
from kafka.errors import (
    ConsumerCoordinatorNotAvailableCode,
    KafkaError,
    KafkaUnavailableError,
    NotCoordinatorForConsumerCode,
    OffsetsLoadInProgressCode,
    UnsupportedVersionError,
    check_error,
)
from kafka.structs import BrokerMetadata

# How long a group's coordinator may take to come up or to move, in seconds. The first request for
# one makes the broker create its internal topic, which takes some tenths of a second.
COORDINATOR_SECONDS = 10.0
COORDINATOR_PAUSE_SECONDS = 0.1

_MOVING = (
    OffsetsLoadInProgressCode.errno,
    ConsumerCoordinatorNotAvailableCode.errno,
    NotCoordinatorForConsumerCode.errno,
)

# Says that the broker does not take the request in that version.
_REFUSED = UnsupportedVersionError.errno

Encoder = Callable[..., Any]
Decoder = Optional[Callable[[Any], Any]]


class StoredOffsets:
    """The part of a blocking client that finds the keeper of a group's offsets."""

    _coordinators: Dict[bytes, BrokerMetadata]
    _without_zookeeper: Set[Optional[Address]]

    # What the client brings.
    send_consumer_metadata_request: Callable[..., Any]
    _leaders: Callable[[List[Any]], List[Tuple[Any, Any]]]
    _versions_of: Callable[[Optional[Address]], Mapping[int, Tuple[int, int]]]
    _send_to_leaders: Callable[[List[Tuple[Any, Optional[Address]]], Encoder, Decoder], List[Any]]
    _exchange: Callable[[Dict[Optional[Address], List[Any]], Encoder, Decoder], Dict[Any, Any]]
    _exchange_one: Callable[[Optional[Address], Any, Encoder, Decoder], Any]

    def _get_coordinator_for_group(self, group: bytes) -> BrokerMetadata:
        """Ask once for the broker that coordinates a group.

        Raises: ConsumerCoordinatorNotAvailableCode while there is none, or another error that the
            answer carries; KafkaUnavailableError when no host answers.
        """
        response = self.send_consumer_metadata_request(group)
        check_error(response)
        return BrokerMetadata(response.nodeId, response.host, response.port)

    def _find_coordinator(self, group: bytes) -> BrokerMetadata:
        """Return the coordinator of a group, waiting for one that is only coming up."""
        if not isinstance(group, (bytes, str)):
            raise TypeError('group must be bytes, not %s' % type(group).__name__)
        deadline = time.monotonic() + COORDINATOR_SECONDS
        coordinator = self._coordinators.get(group)
        while coordinator is None:
            try:
                coordinator = self._get_coordinator_for_group(group)
                self._coordinators[group] = coordinator
            except (ConsumerCoordinatorNotAvailableCode, OffsetsLoadInProgressCode):
                if time.monotonic() >= deadline:
                    raise
                time.sleep(COORDINATOR_PAUSE_SECONDS)
        return coordinator

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
        address = address_of(self._find_coordinator(group))
        if len(payloads) == 1:
            answers = [self._exchange_one(address, payloads[0], encoder_fn, decoder_fn)]
        else:
            answers = in_order(
                payloads, self._exchange({address: payloads}, encoder_fn, decoder_fn)
            )
        if any(getattr(answer, 'error', 0) in _MOVING for answer in answers):
            self._coordinators.pop(group, None)
        return answers

    def _send_offsets(
        self, key: int, group: bytes, payloads: Any, encoder_fn: Encoder, decoder_fn: Decoder
    ) -> List[Any]:
        """Send an offset request of version 0 to where its offsets are kept.

        Nodes may differ while a cluster is upgraded, so each leader is judged by itself: by the
        versions of the connection to it, and by an answer that refuses the request.
        """
        payloads = request_tuples(payloads)
        keeps: Dict[Optional[Address], bool] = {}
        direct: List[Tuple[Any, Optional[Address]]] = []
        moved: List[Any] = []
        failures: List[Tuple[Any, KafkaError]] = []
        for payload, leader in self._leaders(payloads):
            if isinstance(leader, KafkaError):
                failures.append((payload, leader))
                continue
            address = address_of(leader)
            if address not in keeps:
                keeps[address] = self._keeps_offsets(key, address)
            if keeps[address]:
                direct.append((payload, address))
            else:
                moved.append(payload)
        answers: List[Any] = []
        if direct:
            answers = self._send_to_leaders(direct, encoder_fn, decoder_fn)
            for (payload, address), answer in zip(direct, answers):
                if getattr(answer, 'error', 0) == _REFUSED:
                    self._without_zookeeper.add(address)
                    moved.append(payload)
            if not moved and not failures:
                return answers  # which is all there is to it but in a cluster that changes
        responses = TopicDict()
        for (payload, _), answer in zip(direct, answers):
            responses[payload.topic, payload.partition] = answer
        for payload, failure in failures:
            responses[payload.topic, payload.partition] = failed(payload, failure)
        if moved:
            responses.update(self._send_to_coordinator(group, moved, encoder_fn, decoder_fn))
        return in_order(payloads, responses)

    def _keeps_offsets(self, key: int, address: Optional[Address]) -> bool:
        """Tell whether a leader takes version 0 of an offset request, as far as one can know.

        When there is nothing to go by, sending the request will tell.
        """
        if address in self._without_zookeeper:
            return False
        return self._versions_of(address).get(key, (0, 0))[0] == 0

    def _send_to_coordinator(
        self, group: bytes, payloads: List[Any], encoder_fn: Encoder, decoder_fn: Decoder
    ) -> TopicDict:
        """Send payloads to the coordinator, following it while it moves or comes up.

        The call is one that knows no coordinator, so its caller would not know what to do about
        the errors 14, 15 and 16; they come back only when 10 s were not enough.
        """
        responses = TopicDict()
        deadline = time.monotonic() + COORDINATOR_SECONDS
        while True:
            try:
                answers = self._send_consumer_aware_request(group, payloads, encoder_fn, decoder_fn)
            except KafkaUnavailableError as error:
                answers = [failed(payload, error) for payload in payloads]
            unsettled = []
            for payload, answer in zip(payloads, answers):
                responses[payload.topic, payload.partition] = answer
                if getattr(answer, 'error', 0) in _MOVING:
                    unsettled.append(payload)
            if not unsettled or time.monotonic() >= deadline:
                return responses
            payloads = unsettled
            time.sleep(COORDINATOR_PAUSE_SECONDS)
