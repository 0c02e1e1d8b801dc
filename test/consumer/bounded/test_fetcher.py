"""Ranges are fetched from leaders, within bounds; what is gone is told or passed over."""

from __future__ import annotations

import threading
from collections import deque
from types import SimpleNamespace

import pytest

from kafka.consumer.bounded.fetcher import RangeFetcher, ReadSettings
from kafka.consumer.bounded.ranges import OffsetRange, RangeState
from kafka.errors import (
    CorruptRecordError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafka.record.legacy_records import encode_message_set
from kafka.testing.logs.partition_log import Batch
from test.consumer.written_logs import T0, Stage, flip_last, numbered, offsets, values


@pytest.fixture
def stage():
    made = Stage()
    yield made
    made.close()


def fetches(stage):
    return [
        each.request for each in stage.cluster.requests if isinstance(each.request, FetchRequest)
    ]


def answer(call, **fields):
    """Return an answer to Fetch about the first partition asked for."""
    topic = call.request.topics[0]
    fields = {'high_watermark': 10, 'records': None, 'error_code': 0, **fields}
    data = PartitionData(partition_index=topic.partitions[0].partition, **fields)
    return FetchResponse(responses=[FetchableTopicResponse(topic=topic.topic, partitions=[data])])


# ------------------------------------------------------------ asking


def test_an_answer_that_comes_while_the_end_is_looked_for_is_not_lost(stage):
    """A reader in one thread asks whether all is over; the last answer comes in another."""
    stage.write(*numbered(10))
    records = stage.log().read(0, 10, 1 << 20, True)
    fetcher = RangeFetcher(stage.cluster, None, None, [OffsetRange('t', 0, 0, 10)], ReadSettings())

    def come():
        with fetcher._lock:
            data = PartitionData(0, 0, high_watermark=10, records=records)
            fetcher._park(fetcher._states[0], data, 0, True)

    coming = threading.Thread(target=come)

    class Slow(deque):
        def __bool__(self):
            found = len(self) > 0
            if not coming.ident:
                coming.start()
                coming.join(0.2)  # it has to wait where the reader looks at all in one step
            return found

    fetcher._parked = Slow()
    assert not fetcher.is_over
    coming.join(5)
    assert fetcher._parked[0].offset == 0 and not fetcher.is_over


def test_an_empty_range_asks_for_nothing(stage):
    assert list(stage.reader({T0: (5, 5)})) == []
    assert fetches(stage) == []


def test_the_next_answer_is_asked_for_while_one_is_taken(stage):
    for start in range(0, 40, 10):
        stage.write(*numbered(10, start=start))
    reader = stage.reader(max_partition_fetch_bytes=1, fetch_max_bytes=1)  # a batch each
    assert len(reader.read()) == 10
    reader._loop.wait(lambda: False, 1.0)
    assert [each.topics[0].partitions[0].fetch_offset for each in fetches(stage)] == [0, 10]
    assert len(reader.read()) == 10
    reader._loop.wait(lambda: False, 1.0)
    assert len(fetches(stage)) == 3


def test_no_more_is_fetched_than_may_wait(stage):
    for start in range(0, 100, 10):
        stage.write(*numbered(10, 1000, start=start))
    reader = stage.reader(max_partition_fetch_bytes=10000, max_buffered_bytes=25000)
    reader.read(1)
    reader._loop.wait(lambda: False, 1.0)
    assert reader._fetcher._held_bytes <= 25000
    assert len(list(reader)) == 99


def test_a_whole_batch_comes_however_small_the_bound_is(stage):
    stage.write(*numbered(10, 1000))
    reader = stage.reader(max_buffered_bytes=1, max_partition_fetch_bytes=1)
    assert len(list(reader)) == 10


def test_no_more_is_asked_for_than_may_wait():
    stage = Stage(brokers=3, topics={'t': 3})
    try:
        for partition in range(3):
            stage.write(*numbered(5), partition=partition)
        reader = stage.reader(max_buffered_bytes=1)
        reader.read(1)
        reader._loop.wait(lambda: False, 1.0)
        assert len(fetches(stage)) == 1
        assert len(list(reader)) == 14
    finally:
        stage.close()


def test_nodes_are_asked_at_the_same_time():
    stage = Stage(brokers=3, topics={'t': 3})
    try:
        for partition in range(3):
            stage.write(*numbered(5), partition=partition)
        assert len(list(stage.reader())) == 15
        asked = [e.node for e in stage.cluster.requests if isinstance(e.request, FetchRequest)]
        assert sorted(asked) == [0, 1, 2]
    finally:
        stage.close()


def test_a_leader_that_moves_is_followed():
    stage = Stage(brokers=2, topics={'t': 1}, replication_factor=2)
    try:
        stage.write(*numbered(5))
        reader = stage.reader(max_partition_fetch_bytes=1)
        ranges = reader.ranges()
        stage.cluster.move_leader('t', 0, 1 - stage.cluster.leader('t', 0))
        assert len(list(reader)) == ranges[0].length == 5
    finally:
        stage.close()


def test_a_broker_that_comes_back_is_asked_again():
    stage = Stage()
    try:
        stage.write(*numbered(5))
        reader = stage.reader()
        reader.ranges()
        stage.cluster.kill(0)
        stage.cluster.timers.later(3.0, lambda: stage.cluster.restart(0))
        assert len(list(reader)) == 5
    finally:
        stage.close()


def test_a_leader_that_others_believe_alive_for_a_while_is_asked_about_again():
    """What is known of the leader right after it died is of no use."""
    stage = Stage(brokers=2, topics={'t': 1}, replication_factor=2)
    try:
        stage.write(*numbered(5))
        reader = stage.reader()
        reader.ranges()
        leader = stage.cluster.leader('t', 0)
        stage.cluster.network.deafen(stage.cluster._brokers[leader])
        stage.cluster.timers.later(5.0, lambda: stage.cluster.kill(leader))
        began = reader._loop.time()
        assert len(list(reader)) == 5
        assert reader._loop.time() - began < 10
    finally:
        stage.close()


# ------------------------------------------------------------ ends without records


def test_a_range_ends_where_compaction_left_nothing(stage):
    stage.write(*numbered(5))
    stage.log().end_offset += 3
    stage.write(b'behind')
    assert offsets(stage.reader({T0: (0, 8)})) == [0, 1, 2, 3, 4]
    stage.log().end_offset += 3
    assert offsets(stage.reader()) == [0, 1, 2, 3, 4, 8]


def test_a_partition_among_others_is_asked_alone_before_it_ends():
    """It may have got nothing because the others came first (KIP-74)."""
    stage = Stage(topics={'t': 3})
    try:
        for partition in range(3):
            stage.write(*numbered(10, 1000), partition=partition)
        reader = stage.reader(fetch_max_bytes=1)
        assert len(list(reader)) == 30
    finally:
        stage.close()


def test_a_range_behind_the_end_of_the_log_is_waited_for_and_given_up(stage):
    stage.write(*numbered(5))
    reader = stage.reader({T0: (0, 8)}, timeout_ms=5000)
    began = stage.cluster.timers.clock.monotonic()
    assert len(reader.read()) == 5
    text = (
        'topic t, partition 0: nothing came of offset 5 up to 8 within 5 seconds: the log ends at 5'
    )
    with pytest.raises(KafkaTimeoutError, match=text):
        reader.read()
    assert stage.cluster.timers.clock.monotonic() - began < 8
    stage.write(b'a', b'b', b'c')
    assert values(reader.read()) == [b'a', b'b', b'c']
    assert reader.read() == []


def test_a_topic_that_is_gone_is_given_up(stage):
    stage.cluster.control('Fetch', lambda call: answer(call, error_code=3))
    reader = stage.reader({T0: (0, 8)}, timeout_ms=5000)
    with pytest.raises(KafkaTimeoutError, match='node 0 does not give the records'):
        reader.read()
    patient = stage.reader({T0: (0, 8)}, timeout_ms=5000, fail_on_data_loss=False)
    assert patient.read() == []
    assert patient.lost == {T0: [(0, 8)]}


# ------------------------------------------------------------ what is gone


def test_offsets_that_retention_deleted_are_an_error(stage):
    stage.write(*numbered(5))
    stage.write(*numbered(5))
    reader = stage.reader({T0: (1, 8)})
    stage.log().delete_before(5)
    text = 'topic t, partition 0: offsets 1 to 4 are gone: its log begins at 5'
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match=text):
            reader.read()


def test_offsets_that_retention_deleted_may_be_passed_over(stage):
    stage.write(*numbered(5))
    stage.write(*numbered(5))
    stage.log().delete_before(5)
    reader = stage.reader({T0: (1, 8)}, fail_on_data_loss=False)
    assert offsets(reader) == [5, 6, 7]
    assert reader.lost == {T0: [(1, 5)]}


def test_a_range_that_is_gone_as_a_whole(stage):
    stage.write(*numbered(5))
    stage.write(*numbered(5))
    stage.log().delete_before(5)
    reader = stage.reader({T0: (1, 4)}, fail_on_data_loss=False)
    assert list(reader) == []
    assert reader.lost == {T0: [(1, 4)]}


def test_a_log_that_was_cut_off(stage):
    stage.write(*numbered(5))
    with pytest.raises(OffsetOutOfRangeError, match='its log ends at 5'):
        stage.reader({T0: (7, 9)}).read()
    reader = stage.reader({T0: (7, 9)}, fail_on_data_loss=False)
    assert list(reader) == []
    assert reader.lost == {T0: [(7, 9)]}


def test_a_start_that_may_move_is_no_loss(stage):
    for start in (0, 5, 10):
        stage.write(*numbered(5, start=start))
    reader = stage.reader({T0: (1, 15)}, start_may_move=True)
    stage.log().delete_before(5)
    assert offsets(reader) == [*range(5, 15)]
    assert reader.lost == {}
    late = stage.reader({T0: (1, 4)}, start_may_move=True)
    assert list(late) == []


def test_what_goes_while_a_range_is_read_is_lost_wherever_it_began(stage):
    for start in (0, 5, 10):
        stage.write(*numbered(5, start=start))
    reader = stage.reader({T0: (0, 15)}, start_may_move=True, max_partition_fetch_bytes=1)
    assert len(reader.read()) == 5
    stage.log().delete_before(12)
    with pytest.raises(OffsetOutOfRangeError, match='are gone: its log begins at 12'):
        while reader.read():
            pass


@pytest.mark.parametrize('version, seconds', [('4.4', 5), ('2.2', 5), ('2.1', 15)])
def test_a_log_that_was_cut_off_within_a_range_is_told_soon(version, seconds):
    """Sooner by brokers that are sure of the end (KIP-207)."""
    stage = Stage(version=version)
    try:
        stage.write(*numbered(5))
        reader = stage.reader({T0: (0, 8)}, cut_off_after_ms=5000)
        assert len(reader.read()) == 5
        began = reader._loop.time()
        with pytest.raises(OffsetOutOfRangeError, match='offsets 5 to 7 are gone: .* ends at 5'):
            reader.read()
        assert seconds <= reader._loop.time() - began < seconds + 2
    finally:
        stage.close()


def test_a_log_that_was_cut_off_within_a_range_may_be_passed_over(stage):
    stage.write(*numbered(5))
    stage.log().end_offset += 1  # nothing is left of its last record either
    reader = stage.reader({T0: (0, 8)}, cut_off_after_ms=5000, fail_on_data_loss=False)
    assert offsets(reader) == [0, 1, 2, 3, 4]
    assert reader.lost == {T0: [(5, 8)]}


def test_what_an_open_transaction_holds_back_is_not_cut_off(stage):
    stage.write(b'a', producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    options = {'isolation_level': 'read_committed', 'cut_off_after_ms': 1000, 'timeout_ms': 8000}
    with pytest.raises(KafkaTimeoutError, match='the log ends at 0 so far'):
        stage.reader({T0: (0, 1)}, **options).read()


def test_a_log_that_grows_while_it_is_doubted_is_read_on(stage):
    stage.write(*numbered(5))
    reader = stage.reader({T0: (0, 8)}, cut_off_after_ms=5000)
    timers = stage.cluster.timers
    timers.later(4.0, lambda: stage.write(b'a'))
    timers.later(8.0, lambda: stage.write(b'b', b'c'))
    assert offsets(reader) == [*range(8)]


# ------------------------------------------------------------ errors


def test_a_topic_that_may_not_be_read_is_an_error_each_time(stage):
    stage.cluster.control('Fetch', lambda call: answer(call, error_code=29))
    reader = stage.reader({T0: (0, 8)})
    for _ in range(2):
        with pytest.raises(TopicAuthorizationFailedError, match='t'):
            reader.read()


def test_a_passing_error_is_tried_again(stage):
    stage.write(*numbered(5))
    seen = []

    def fail_twice(call):
        seen.append(call)
        return answer(call, error_code=(-1, 75)[len(seen) - 1]) if len(seen) < 3 else None

    stage.cluster.control('Fetch', fail_twice)
    assert len(list(stage.reader())) == 5
    assert len(seen) == 3


@pytest.mark.parametrize('version', ['4.4', '2.7'])
def test_a_topic_that_was_made_anew_is_read_by_who_knew_a_later_epoch(version):
    """By 2.7 and before, which have no ids of topics, after half a minute (test_cluster.py)."""
    stage = Stage(version=version, brokers=2, topics={'t': 1}, replication_factor=2)
    try:
        stage.write(*numbered(5))
        for _ in range(4):
            stage.cluster.move_leader('t', 0, 1 - stage.cluster.leader('t', 0))
        reader = stage.reader()
        assert reader.ranges() == [('t', 0, 0, 5)]
        stage.cluster.state.drop_topic('t')
        stage.cluster.create_topic('t', 1)
        stage.write(*numbered(5, start=70))
        assert values(reader.read()) == numbered(5, start=70)
    finally:
        stage.close()


def test_a_partition_that_does_not_exist():
    stage = Stage()
    try:
        reader = stage.reader({('t', 7): (0, 8)}, timeout_ms=3000)
        with pytest.raises(KafkaTimeoutError, match='topic t, partition 7.*UnknownTopic'):
            reader.read()
    finally:
        stage.close()


def test_a_topic_that_does_not_exist_is_not_made(stage):
    with pytest.raises((KafkaTimeoutError, UnknownTopicOrPartitionError), match='nope'):
        stage.reader('nope', request_timeout_ms=2000).ranges()
    assert 'nope' not in stage.cluster.state.topics


def test_a_message_that_a_small_limit_cuts_off_is_asked_for_with_a_larger_one():
    """Brokers before 0.10.1 cut it off."""
    stage = Stage(version='0.10.0')
    try:
        data = encode_message_set([(0, 5, None, b'x' * 1000)], magic=1)
        stage.log().append(Batch(0, 0, 5, 1, data), 0)
        reader = stage.reader(max_partition_fetch_bytes=100)
        assert values(reader) == [b'x' * 1000]
        small = stage.reader(max_partition_fetch_bytes=100, fetch_max_bytes=400)
        with pytest.raises(RecordTooLargeError, match='larger than 400 bytes'):
            small.read()
    finally:
        stage.close()


def test_a_message_that_is_cut_off_among_others_is_asked_for_alone():
    stage = Stage(version='0.10.0', topics={'t': 2})
    try:
        data = encode_message_set([(0, 5, None, b'x' * 1000)], magic=1)
        for partition in range(2):
            stage.log('t', partition).append(Batch(0, 0, 5, 1, data), 0)
        assert len(list(stage.reader(max_partition_fetch_bytes=100))) == 2
        places = [sum(len(topic.partitions) for topic in each.topics) for each in fetches(stage)]
        assert places[0] == 2
        assert 1 in places
    finally:
        stage.close()


def test_a_near_replica_is_asked_where_the_leader_says_so():
    """KIP-392."""
    stage = Stage(brokers=2, topics={'t': 1}, replication_factor=2)
    try:
        stage.write(*numbered(5))
        leader = stage.cluster.leader('t', 0)

        def refer(call):
            if call.broker.node_id != leader:
                return None
            return answer(call, preferred_read_replica=1 - leader)

        stage.cluster.control('Fetch', refer)
        assert len(list(stage.reader(client_rack='r'))) == 5
        assert fetches(stage)[0].rack_id == 'r'
    finally:
        stage.close()


def test_a_request_is_for_the_offset_that_its_token_is_for(stage):
    """A reader seeks in one thread, while a turn in another notes what it asks for."""
    fetcher = RangeFetcher(stage.cluster, None, None, [OffsetRange('t', 0, 0, 90)], ReadSettings())
    (state,) = fetcher._states
    state.advance(30)
    noted = []

    class Pool:
        def fetch_link(self, node_id):
            noted.extend(turn_of.cr_frame.f_locals['asked'])
            raise RuntimeError('by the test')

    turn_of = fetcher._fetch(0, [state], 1)
    fetcher._pool = Pool()
    turn = threading.Thread(target=lambda: pytest.raises(RuntimeError, turn_of.send, None))

    class Slow(RangeState):
        __slots__ = ()

        def seek(self, offset):
            self.token += 1
            turn.start()
            turn.join(0.2)  # the turn has to wait until both are set
            self.fetch_offset = offset

    state.__class__ = Slow
    fetcher._loop = SimpleNamespace(call_lazily=lambda *call: None)
    fetcher.seek(state, 20)
    turn.join(5)
    assert noted == [(state, 1, 20)]


def test_what_was_found_out_before_the_reader_went_back_is_about_another_place(stage):
    """skip_corrupt() comes while brokers are asked where the log ends: the rest is read."""
    for start in range(0, 50, 10):
        stage.write(*numbered(10, start=start), damage=flip_last if start == 10 else None)
    reader = stage.reader(
        {T0: (0, 60)}, fail_on_data_loss=False, cut_off_after_ms=50, fetch_max_wait_ms=20
    )
    assert offsets(reader.read(100)) == list(range(10))
    with pytest.raises(CorruptRecordError):
        reader.read()
    asked = reader._client.lookups.look_up
    skipped = []

    async def ask(wanted, seconds):
        found = await asked(wanted, seconds)
        if not skipped:  # behind the first question
            skipped.append(reader.skip_corrupt())
        return found

    reader._client.lookups.look_up = ask
    reader._loop.wait(lambda: skipped, 5.0)
    assert skipped == [20]
    assert offsets(reader) == list(range(20, 50))
    assert reader.lost == {T0: [(50, 60)]}
