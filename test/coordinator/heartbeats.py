"""Answers to the heartbeats of KIP-848 members, for tests."""

from __future__ import annotations

from kafka.protocol.group import Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
NAMES = {A: 'a', B: 'b'}


def assignment(**partitions):
    """Return an assignment, e.g. of a=[0, 1] (topics by the names of their ids, lower case)."""
    ids = {'a': A, 'b': B, 'c': C}
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=ids[name], partitions=list(numbers))
            for name, numbers in partitions.items()
        ]
    )


def answer(epoch=1, partitions=None, interval_ms=5000, code=0, text=None, member_id='m'):
    """Return an answer. Arguments: partitions: as of assignment(); None: nothing new."""
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=text,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=None if partitions is None else assignment(**partitions),
    )
