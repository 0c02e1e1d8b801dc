"""Where a group's offsets are stored: in ZooKeeper through the leaders, or at its coordinator.

The blocking clients send offset requests of version 0 by what stands here. 0.9.5 stored offsets in
ZooKeeper through the leader of each partition. Brokers without ZooKeeper (2.8 to 3.9) refuse that
with error 35, and from 4.0 on the version is gone (KIP-896): there the group's coordinator stores
them, and callers notice nothing. What a coordinator cannot give: offsets expire, those in ZooKeeper
do not move over, and a group with live members takes no commit.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from kafka.blocking.exchange import Address, failed
from kafka.blocking.topic_maps import TopicDict
from kafka.errors import (
    ConsumerCoordinatorNotAvailableCode,
    KafkaUnavailableError,
    NotCoordinatorForConsumerCode,
    OffsetsLoadInProgressCode,
    UnsupportedVersionError,
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

# The broker does not take the request in that version.
_REFUSED = UnsupportedVersionError.errno

Versions = Mapping[int, Tuple[int, int]]
Led = List[Tuple[Any, Optional[Address]]]


class OffsetsStorage:
    """Which brokers store the offsets of groups, as far as a client has found out.

    Attributes: coordinators: {group: BrokerMetadata}; without_zookeeper: leaders that have refused
    to store offsets.
    """

    def __init__(self) -> None:
        self.coordinators: Dict[Any, BrokerMetadata] = {}
        self.without_zookeeper: Set[Optional[Address]] = set()

    def __repr__(self) -> str:
        return '<OffsetsStorage of %d coordinators>' % len(self.coordinators)

    def find_coordinator(self, group: Any, ask: Callable[[Any], BrokerMetadata]) -> BrokerMetadata:
        """Return the coordinator of a group, waiting for one that is only coming up.

        Arguments: ask: asks a broker for it once. Raises: TypeError for a group that is neither
        bytes nor str; what `ask` raises.
        """
        if not isinstance(group, (bytes, str)):
            raise TypeError('group must be bytes, not %s' % type(group).__name__)
        deadline = time.monotonic() + COORDINATOR_SECONDS
        coordinator = self.coordinators.get(group)
        while coordinator is None:
            try:
                coordinator = ask(group)
                self.coordinators[group] = coordinator
            except (ConsumerCoordinatorNotAvailableCode, OffsetsLoadInProgressCode):
                if time.monotonic() >= deadline:
                    raise
                time.sleep(COORDINATOR_PAUSE_SECONDS)
        return coordinator

    def note_answers(self, group: Any, answers: Sequence[Any]) -> None:
        """Forget a group's coordinator if its answers say that it is another one."""
        for answer in answers:
            if getattr(answer, 'error', 0) in _MOVING:
                self.coordinators.pop(group, None)
                return

    def split(
        self, api_key: int, led: Led, versions_of: Callable[[Optional[Address]], Versions]
    ) -> Tuple[Led, List[Any]]:
        """Return the (payload, leader) pairs to send there, and payloads for the coordinator.

        Nodes may differ while a cluster is upgraded, so each leader is judged by itself. Where
        nothing is known of its versions, its answer to the request will tell.
        """
        keeps: Dict[Optional[Address], bool] = {}
        direct: Led = []
        moved: List[Any] = []
        for payload, address in led:
            if address not in keeps:
                keeps[address] = (
                    address not in self.without_zookeeper
                    and versions_of(address).get(api_key, (0, 0))[0] == 0
                )
            if keeps[address]:
                direct.append((payload, address))
            else:
                moved.append(payload)
        return direct, moved

    def refused(self, led: Led, answers: Sequence[Any]) -> List[Any]:
        """Return the payloads that leaders refused to store or read; note these leaders."""
        moved: List[Any] = []
        for (payload, address), answer in zip(led, answers):
            if getattr(answer, 'error', 0) == _REFUSED:
                self.without_zookeeper.add(address)
                moved.append(payload)
        return moved


def ask_coordinator(payloads: List[Any], ask: Callable[[List[Any]], List[Any]]) -> TopicDict:
    """Send payloads to a coordinator, following it while it moves or comes up.

    The call of the program knows no coordinator, so its caller would not know what to do about the
    errors 14, 15 and 16; they are returned only when 10 s were not enough.

    Arguments: ask: sends payloads to the coordinator that is known by then; returns the responses.
    """
    responses = TopicDict()
    deadline = time.monotonic() + COORDINATOR_SECONDS
    while True:
        try:
            answers = ask(payloads)
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
