"""Requests that nobody answers, those of acks=0: how they go, and what becomes of them at the end.

A record is done when the system has taken its bytes. Brokers of 0.9 and 0.10.0 forget requests that
they have not begun when a connection is closed; so before a producer closes its connections it
asks, behind the records, something that is answered. Brokers do one request of a connection after
the other: with the answer the records are where they were to go. Part of
:class:`kafka.producer.sender.Sender`.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Tuple

from kafka.errors import KafkaError
from kafka.protocol.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka.protocol.produce import ProduceRequest
from kafka.structs import TopicPartition

log = logging.getLogger('kafka.producer.sender')

_LATEST = -1  # as a timestamp: the end of the log


class Unanswered:
    """The part of a sender that sends what is not answered."""

    _loop: Any
    #: By node: the connection that took such a request last, and a partition in it.
    _unanswered: Dict[int, Tuple[Any, Any]]

    async def _send_unanswered(
        self,
        node: int,
        link: Any,
        request: ProduceRequest,
        version: int,
        partition: TopicPartition,
        answered: Any,
    ) -> None:
        try:
            await link.send(request, version=version)
        except KafkaError as error:
            answered(None, error)
        except Exception as error:  # a mistake on the way
            log.exception('a produce request failed')
            answered(None, KafkaError('sending failed: %r' % error))
        else:
            self._unanswered[node] = link, partition
            answered(None, None)

    async def settle(self) -> None:
        """Return when brokers have done what was sent to them, or cannot be asked any more."""
        asked = [
            self._loop.spawn(self._ask(node, link, *partition))
            for node, (link, partition) in self._unanswered.items()
            if link.can_send
        ]
        self._unanswered.clear()
        for answer in asked:
            await answer

    async def _ask(self, node: int, link: Any, topic: str, partition: int) -> None:
        """Ask one broker what all releases answer and nothing is changed by: where a log ends."""
        wanted = [ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)]
        topics = [ListOffsetsTopic(name=topic, partitions=wanted)]
        try:
            await link.request(ListOffsetsRequest(replica_id=-1, topics=topics))
        except KafkaError as error:
            log.warning('node=%s may not have read records sent with acks=0: %s', node, error)
