"""Fetch sessions of a broker: what there is room for. The rest is in handlers/test_fetch.py."""

from __future__ import annotations

import random
from typing import List

from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kafka.testing.errors import FETCH_SESSION_ID_NOT_FOUND
from kafka.testing.fetch_sessions import EVICTION_SECONDS, SLOTS, FetchSessions, OpenFetch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock) -> FetchSessions:
    return FetchSessions(random.Random(1), clock)


def ask(
    found: FetchSessions, session_id: int, epoch: int, full: bytes = b'', count: int = 1
) -> List[int]:
    """Fetch partitions; return the session's id and which partitions were answered."""
    asked = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        for index in range(count if epoch == 0 else 0)
    ]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic='spam', partitions=asked)],
    )
    opened = found.open(request, 12)
    assert isinstance(opened, OpenFetch)
    answers = [
        (
            wanted,
            PartitionData(
                partition_index=wanted.asked.partition,
                error_code=0,
                high_watermark=0,
                records=b'a' if wanted.asked.partition in full else b'',
            ),
        )
        for wanted in opened.partitions
    ]
    session, kept = opened.finish(answers)
    return [session] + [wanted.asked.partition for wanted, _ in kept]


def test_a_partition_that_had_its_turn_comes_last() -> None:
    found = sessions(Clock())
    session, *_ = ask(found, 0, 0, count=3)
    assert ask(found, session, 1, full=b'\x00\x01\x02')[1:] == [0, 1, 2]
    assert ask(found, session, 2, full=b'\x00')[1:] == [0]
    assert ask(found, session, 3, full=b'\x00\x01\x02')[1:] == [1, 2, 0]


def test_without_room_there_is_no_session() -> None:
    clock = Clock()
    found = sessions(clock)
    for _ in range(SLOTS):
        assert ask(found, 0, 0)[0]
    assert ask(found, 0, 0)[0] == 0
    assert len(found) == SLOTS


def test_old_sessions_make_room() -> None:
    clock = Clock()
    found = sessions(clock)
    first = ask(found, 0, 0)[0]
    clock.now = 1.0
    for _ in range(SLOTS - 1):
        ask(found, 0, 0)
    clock.now = EVICTION_SECONDS
    assert ask(found, 0, 0)[0]
    assert len(found) == SLOTS
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=first, session_epoch=1, topics=[])
    assert found.open(request, 12) == FETCH_SESSION_ID_NOT_FOUND


def test_epochs_begin_anew_after_the_last() -> None:
    found = sessions(Clock())
    session = ask(found, 0, 0)[0]
    found._sessions[session].epoch = 2**31 - 1
    ask(found, session, 2**31 - 1)
    assert ask(found, session, 1)[0] == session
