"""Segments roll, and the oldest go by age and size, as brokers let them."""

from __future__ import annotations

import errno

import pytest

from kafka.testing import errors
from kafka.testing.logs import retention
from kafka.testing.logs.appending import append
from kafka.testing.logs.partition_log import Batch
from kafka.testing.memory import MemoryCluster
from test.testing.data_requests import (
    NOW,
    TOPIC,
    batch,
    driver,
    fetch,
    list_offsets,
    message_set,
    produce,
)

BATCH = batch(b'x' * 100)
HOURS = 3600.0


@pytest.fixture(params=['memory', 'files'])
def started(request, folders):
    """Return a function that starts a cluster with a topic of some settings."""

    def start(version='4.4', **configs):
        if request.param == 'memory':
            cluster = driver(version)
        else:
            cluster = folders.start(version)
            cluster.state.create_topic(TOPIC, assignments=[[0]])
        names = {name.replace('_', '.'): str(value) for name, value in configs.items()}
        cluster.state.topics[TOPIC].configs.update(names)
        return cluster

    return start


def log_of(cluster):
    return cluster.state.topics[TOPIC].partitions[0].log


def fill(cluster, count, at=NOW, pause=0.0):
    for _ in range(count):
        produce(cluster, batch(b'x' * 100, at=at))
        cluster.advance(pause)
        at += int(pause * 1000)


def starts(cluster):
    return [segment.base_offset for segment in log_of(cluster).segments]


def test_where_no_segment_can_be_begun_the_others_go(started, monkeypatch):
    cluster = started(segment_bytes=2 * len(BATCH), retention_ms=1000)
    fill(cluster, 5)
    cluster.advance(10)
    state = cluster.state

    def fail(now_ms):
        raise OSError(errno.ENOSPC, 'No space left on device')

    with monkeypatch.context() as patched:
        patched.setattr(log_of(cluster), 'roll', fail)
        retention.delete_all(state, cluster.waiting)
        assert starts(cluster) == [4]
        retention.delete_all(state, cluster.waiting)
        assert starts(cluster) == [4]
    retention.delete_all(state, cluster.waiting)
    assert starts(cluster) == [5]


def test_segments_roll_by_size(started):
    cluster = started(segment_bytes=2 * len(BATCH))
    fill(cluster, 5)
    assert starts(cluster) == [0, 2, 4]
    assert [log_of(cluster).segment_bytes(n) for n in range(3)] == [
        2 * len(BATCH),
        2 * len(BATCH),
        len(BATCH),
    ]


def test_segments_roll_by_the_times_of_their_records(started):
    cluster = started(segment_ms=5000)
    for at in (NOW, NOW + 5000, NOW + 5001, NOW + 9000):
        produce(cluster, batch(b'x', at=at))
    assert starts(cluster) == [0, 2]


def test_segments_of_messages_without_times_roll_by_the_clock(started):
    cluster = started('0.9', segment_ms=5000)
    for _ in range(3):
        produce(cluster, message_set(b'x'))
        cluster.advance(3)
    assert starts(cluster) == [0, 2]


def test_segments_roll_after_a_week(started):
    cluster = started(retention_ms=-1)
    fill(cluster, 2, pause=7 * 24 * HOURS + 1)
    assert starts(cluster) == [0, 1]


def test_old_records_go_at_the_next_check(started):
    cluster = started(retention_ms=60000)
    fill(cluster, 2)
    cluster.advance(299)
    assert list_offsets(cluster, -2).offset == 0
    cluster.advance(301)
    assert list_offsets(cluster, -2).offset == 2
    assert fetch(cluster, 0).error_code == errors.OFFSET_OUT_OF_RANGE
    assert (log_of(cluster).size_bytes, fetch(cluster, 2).error_code) == (0, 0)
    assert produce(cluster, BATCH).base_offset == 2


def test_only_whole_segments_go(started):
    cluster = started(retention_ms=60000, segment_bytes=2 * len(BATCH))
    fill(cluster, 5, pause=20.0)  # the last but two are not a minute old after 110 seconds
    cluster.advance(10)
    retention.delete_all(cluster.state, cluster.waiting)
    assert list_offsets(cluster, -2).offset == 2
    assert starts(cluster) == [2, 4]


def test_records_of_the_future_stay(started):
    cluster = started(retention_ms=60000)
    fill(cluster, 1, at=NOW + 3600_000)
    cluster.advance(1000)
    assert list_offsets(cluster, -2).offset == 0


def test_by_default_records_go_after_a_week(started):
    cluster = started()
    fill(cluster, 1)
    cluster.advance(7 * 24 * HOURS - 1)
    assert list_offsets(cluster, -2).offset == 0
    cluster.advance(301)
    assert list_offsets(cluster, -2).offset == 1


def test_by_size(started):
    cluster = started(retention_bytes=3 * len(BATCH), retention_ms=-1, segment_bytes=2 * len(BATCH))
    fill(cluster, 7)
    retention.delete_all(cluster.state, cluster.waiting)
    assert starts(cluster) == [4, 6]  # one segment less would be too little
    assert log_of(cluster).size_bytes == 3 * len(BATCH)


def test_by_size_at_the_next_check(started):
    cluster = started(retention_bytes=0, retention_ms=-1)
    fill(cluster, 2)
    cluster.advance(301)
    assert list_offsets(cluster, -2).offset == 2


def test_compacted_topics_keep_what_is_old(started):
    cluster = started(cleanup_policy='compact', retention_ms=1)
    produce(cluster, batch(b'x', key=b'k'))
    cluster.advance(1000)
    assert list_offsets(cluster, -2).offset == 0
    cluster.state.topics[TOPIC].configs['cleanup.policy'] = 'compact,delete'
    produce(cluster, batch(b'x', key=b'k'))
    cluster.advance(301)
    assert list_offsets(cluster, -2).offset == 2


def test_nothing_is_looked_at_when_nothing_can_go(started):
    cluster = started(retention_ms=-1)
    fill(cluster, 1)
    assert cluster.timers.next_time() is None


def test_compaction_by_the_policy(started):
    cluster = started(cleanup_policy='compact', segment_bytes=200)
    for value in (b'1', b'2', b'3', b'4', b'5', b'6'):
        produce(cluster, batch(value * 99, key=b'k'))
    cluster.advance(16)
    kept = [each.base_offset for each in log_of(cluster).batches]
    assert kept[-1] == 5
    assert len(kept) == 2  # the last one of the closed segments and the active one


def test_little_news_is_not_compacted(started):
    cluster = started(cleanup_policy='compact', segment_bytes=200, min_cleanable_dirty_ratio='0.9')
    log = log_of(cluster)
    for _ in range(20):
        produce(cluster, batch(b'x' * 100, key=b'k%d' % log.end_offset))
    cluster.advance(16)
    assert log.cleaned_offset == 19
    produce(cluster, batch(b'x' * 100, key=b'k0'))
    cluster.advance(16)
    assert log.cleaned_offset == 19


def test_a_lag_keeps_young_records(started):
    cluster = started(
        cleanup_policy='compact',
        segment_bytes=200,
        min_compaction_lag_ms=60000,
        min_cleanable_dirty_ratio='0',
    )
    fill_keyed = [produce(cluster, batch(b'x' * 100, key=b'k')) for _ in range(4)]
    assert len(fill_keyed) == 4
    cluster.advance(16)
    assert len(log_of(cluster).batches) == 4
    cluster.advance(60)
    produce(cluster, batch(b'x' * 100, key=b'k', at=NOW + 76000))
    cluster.advance(16)
    assert len(log_of(cluster).batches) == 2


@pytest.mark.parametrize('is_kept', [True, False])
def test_clusters_do_it_on_demand(is_kept, tmp_path):
    data = tmp_path if is_kept else None
    configs = {'cleanup.policy': 'compact,delete', 'retention.ms': '1000'}
    with MemoryCluster(data=data) as cluster:
        cluster.create_topic(TOPIC, configs=configs)
        cluster.create_topic('other')
        log = cluster.state.topics[TOPIC].partitions[0].log
        for _ in range(3):
            produce_to(cluster, batch(b'x', key=b'k'))
        cluster.compact(TOPIC)
        assert [each.base_offset for each in log.batches] == [2]
        cluster.advance(2)
        cluster.apply_retention()
        assert (log.start_offset, log.end_offset) == (3, 3)
        with pytest.raises(ValueError, match="'other' is not compacted: set cleanup.policy"):
            cluster.compact('other')
        with pytest.raises(KeyError):
            cluster.compact('none')


def produce_to(cluster, data):
    """Append as a leader does."""
    partition = cluster.state.topics[TOPIC].partitions[0]
    now_ms = cluster.timers.clock.wall_ms()
    append(cluster.state, cluster.waiting, partition, [Batch(0, 0, now_ms, 2, data)])
