"""What there is many of costs no more each: nothing in the brokers looks at everything for one."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.admin.topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.commit import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.session import NEED_DATA
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.logs.appending import append
from kafka.testing.logs.partition_log import Batch
from kafka.testing.state import Topic
from kafka.testing.topic_checks import check_absent
from test.testing.data_requests import NOW, batch
from test.testing.drive import Driver
from test.timing import spent

FEW, MANY = 250, 2000


def topics(cluster, count):
    return [cluster.state.create_topic('t_%d' % number, 1) for number in range(count)]


def commit(cluster, group, partition):
    cluster.state.offsets.commit(group, 't', partition, 7, -1, '', NOW)


def delete_topics(cluster, count):
    states = [
        DeleteTopicState(name=each.name, topic_id=ZERO_UUID) for each in topics(cluster, count)
    ]
    yield DeleteTopicsRequest(topics=states, timeout_ms=1000)


def metadata_by_id(cluster, count):
    asked = [
        MetadataRequestTopic(name=None, topic_id=each.topic_id) for each in topics(cluster, count)
    ]
    yield MetadataRequest(topics=asked)


def fetch(cluster, count):
    asked = [
        FetchTopic(
            topic_id=each.topic_id,
            partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)],
        )
        for each in topics(cluster, count)
    ]
    yield FetchRequest(max_wait_ms=500, min_bytes=1, session_id=0, session_epoch=0, topics=asked)


def produce(cluster, count):
    data = batch(b'x')
    asked = [
        TopicProduceData(
            topic_id=each.topic_id,
            partition_data=[PartitionProduceData(index=0, records=data)],
        )
        for each in topics(cluster, count)
    ]
    yield ProduceRequest(acks=1, timeout_ms=1000, topic_data=asked)


def fetch_offsets(cluster, count):
    topic = cluster.state.create_topic('t', count)
    for partition in range(count):
        commit(cluster, 'g', partition)
    asked = OffsetFetchRequestTopics(topic_id=topic.topic_id, partition_indexes=list(range(count)))
    yield OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id='g', topics=[asked])])


def describe_groups(cluster, count):
    cluster.state.create_topic('t', 1)
    for number in range(count):
        commit(cluster, 'g%d' % number, 0)
    yield DescribeGroupsRequest(groups=['g%d' % number for number in range(count)])


def delete_groups(cluster, count):
    cluster.state.create_topic('t', 1)
    for number in range(count):
        commit(cluster, 'g%d' % number, 0)
    yield DeleteGroupsRequest(groups_names=['g%d' % number for number in range(count)])


def answered(requests):
    """Return a function that answers the requests for so many of something."""

    def run(count):
        cluster = Driver()
        asked = list(requests(cluster, count))
        with spent() as found:
            for request in asked:
                cluster.ask(request)
        return found.seconds

    return run


def check(run, few=FEW, many=MANY):
    """Check that eight times as many take about eight times as long.

    Where each looks at all others it is 64 times. A busy machine gets its tries.
    """
    run(10)  # compiles messages
    for _ in range(5):
        ratio = run(many) / run(few)
        if ratio < 24:
            return
    raise AssertionError('it takes %.0f times as long' % ratio)


@pytest.mark.parametrize(
    'requests',
    [
        delete_topics,
        metadata_by_id,
        fetch,
        produce,
        fetch_offsets,
        describe_groups,
        delete_groups,
    ],
)
def test_requests_for_many_are_answered_in_time(requests):
    check(answered(requests))


def test_a_new_name_is_not_compared_with_all_others():
    def run(count):
        state = Driver().state
        for number in range(count):
            state.add_topic(Topic('t_%d' % number, number.to_bytes(16, 'big'), []))
        with spent() as found:
            for number in range(count):
                check_absent(state, 'a.new.one_%d' % number)
        return found.seconds

    check(run)


def test_requests_that_come_at_once_are_not_moved_for_each_other():
    cluster = Driver()

    def run(count):
        client = cluster.client()
        requests = [client.session.send(ApiVersionsRequest(), version=0) for _ in range(count)]
        with spent() as found:
            client.connection.receive_data(b''.join(requests))
        client.session.receive_data(bytes(client.wire.written))
        answers = iter(client.session.next_event, NEED_DATA)
        assert sum(1 for _ in answers) == count
        return found.seconds

    check(run, 60, 480)


def test_a_request_that_comes_in_pieces_is_not_copied_for_each():
    cluster, count, piece = Driver(), 1000, bytes(10000)

    def seconds(take):
        with spent() as found:
            for _ in range(count):
                take(piece)
        return found.seconds

    for _ in range(5):
        client = cluster.client()
        client.connection.receive_data((count * 10000 + 1).to_bytes(4, 'big'))
        taken = seconds(client.connection.receive_data)
        assert not client.connection.is_closed
        # Where each were copied with all before it, that would be 5 GB.
        if taken < 5 * seconds(bytearray().extend) + 0.05:
            return
    raise AssertionError('it takes %.3f s' % taken)


def test_many_logs_are_made_smaller_without_a_look_at_all_for_each():
    def run(count):
        cluster = Driver(log_bytes_limit=count * 1500)
        partitions = [each.partitions[0] for each in topics(cluster, count)]
        data = batch(b'x' * 100)
        with spent() as found:
            for _ in range(6):
                for partition in partitions:
                    append(cluster.state, cluster.waiting, partition, [Batch(0, 0, 1, 2, data)])
        assert any(partition.log.start_offset for partition in partitions)
        return found.seconds

    check(run, 60, 480)


def test_appending_to_one_of_many_logs_looks_at_no_other():
    def run(count):
        cluster = Driver(log_bytes_limit=1 << 30)
        partitions = [each.partitions[0] for each in topics(cluster, count)]
        data = batch(b'x' * 100)
        with spent() as found:
            for partition in partitions:
                append(cluster.state, cluster.waiting, partition, [Batch(0, 0, 1, 2, data)])
        return found.seconds

    check(run, 60, 480)
