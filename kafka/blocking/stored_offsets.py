"""Where offsets of a group are stored: in ZooKeeper, through the leaders, or at its coordinator.

Used by the blocking clients for offset requests of version 0. 0.9.5 stored offsets in ZooKeeper,
through the leader of each partition. Brokers without ZooKeeper (2.8 to 3.9) refuse that with error
35, and 4.0 dropped the version (KIP-896): there the group's coordinator stores them, without any
change for callers. Three things differ at a coordinator: offsets expire, those in ZooKeeper are not
moved, and commits to a group with live members are refused.
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

# How long a group's coordinator may take to become available or to move, in seconds. The first
# request for one makes the broker create its internal topic, which takes some tenths of a second.
COORDINATOR_SECONDS = 10.0
COORDINATOR_PAUSE_SECONDS = 0.1

_MOVING = (
    OffsetsLoadInProgressCode.errno,
    ConsumerCoordinatorNotAvailableCode.errno,
    NotCoordinatorForConsumerCode.errno,
)

# The broker does not serve the request in that version.
_REFUSED = UnsupportedVersionError.errno

Versions = Mapping[int, Tuple[int, int]]
Led = List[Tuple[Any, Optional[Address]]]


class OffsetsStorage:
    """Which brokers store the offsets of groups, as far as the client knows.

    Attributes: coordinators: {group: BrokerMetadata}; without_zookeeper: leaders that have refused
    to store offsets.
    """

    def __init__(self) -> None:
        self.coordinators: Dict[Any, BrokerMetadata] = {}
        self.without_zookeeper: Set[Optional[Address]] = set()

    def __repr__(self) -> str:
        return '<OffsetsStorage of %d coordinators>' % len(self.coordinators)

    def find_coordinator(self, group: Any, ask: Callable[[Any], BrokerMetadata]) -> BrokerMetadata:
        """Return the coordinator of a group; wait for one that is not available yet, 10 s at most.

        Arguments: ask: requests it from a broker once. Raises: TypeError for a group that is
        neither bytes nor str; what `ask` raises.
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
        """Forget the coordinator of a group if responses say that it has moved or is loading."""
        for answer in answers:
            if getattr(answer, 'error', 0) in _MOVING:
                self.coordinators.pop(group, None)
                return

    def split(
        self, api_key: int, led: Led, versions_of: Callable[[Optional[Address]], Versions]
    ) -> Tuple[Led, List[Any]]:
        """Return the (payload, leader) pairs to send to leaders, and payloads for the coordinator.

        Brokers may differ during a rolling upgrade, so each leader is checked separately. If its
        versions are unknown, the response to the request decides.
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
        """Return the payloads that leaders refused to store or read; remember these leaders."""
        moved: List[Any] = []
        for (payload, address), answer in zip(led, answers):
            if getattr(answer, 'error', 0) == _REFUSED:
                self.without_zookeeper.add(address)
                moved.append(payload)
        return moved


def ask_coordinator(payloads: List[Any], ask: Callable[[List[Any]], List[Any]]) -> TopicDict:
    """Send payloads to the coordinator of a group; retry while it moves or becomes available.

    The program's call does not involve a coordinator, so it does not expect errors 14, 15 and 16;
    they are returned only if 10 s were not enough.

    Arguments: ask: sends payloads to the coordinator known at that moment; returns the responses.
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
