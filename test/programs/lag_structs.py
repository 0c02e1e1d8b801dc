"""Consumer lag before there was an admin client: requests by hand over the async client.

usage: lag_structs.py BROKERS GROUP TOPIC
"""
import sys

from kafka.client_async import KafkaClient
from kafka.common import TopicPartition
from kafka.protocol.commit import GroupCoordinatorRequest, OffsetFetchRequest
from kafka.protocol.offset import OffsetRequest, OffsetResetStrategy


class LagChecker:
    def __init__(self, brokers):
        self.client = KafkaClient(bootstrap_servers=brokers, client_id='lag', api_version='0.9')

    def call(self, node_id, request):
        while not self.client.ready(node_id):
            self.client.poll(timeout_ms=100)
        future = self.client.send(node_id, request)
        self.client.poll(future=future)
        if future.failed():
            raise future.exception
        return future.value

    def coordinator(self, group):
        while True:
            node = self.client.least_loaded_node()
            answer = self.call(node, GroupCoordinatorRequest[0](group))
            if answer.error_code == 0:
                self.client.cluster.add_group_coordinator(group, answer)
                return self.client.cluster.coordinator_for_group(group)

    def committed(self, group, topic, partitions):
        request = OffsetFetchRequest[1](group, [(topic, sorted(partitions))])
        response = self.call(self.coordinator(group), request)
        return dict((TopicPartition(name, p), offset)
                    for name, found in response.topics
                    for p, offset, metadata, error in found if error == 0)

    def end(self, tp):
        leader = self.client.cluster.leader_for_partition(tp)
        request = OffsetRequest[0](-1, [(tp.topic, [(tp.partition, OffsetResetStrategy.LATEST, 1)])])
        response = self.call(leader, request)
        (partition, error, offsets), = response.topics[0][1]
        assert (partition, error) == (tp.partition, 0)
        return offsets[0]

    def lags(self, group, topic):
        future = self.client.set_topics([topic])
        self.client.poll(future=future)
        partitions = self.client.cluster.partitions_for_topic(topic)
        for tp, offset in sorted(self.committed(group, topic, partitions).items()):
            end = self.end(tp)
            yield tp, offset, end, end - max(offset, 0)


if __name__ == '__main__':
    checker = LagChecker(sys.argv[1].split(','))
    total = 0
    for tp, offset, end, lag in checker.lags(*sys.argv[2:]):
        print('partition %d: committed %d of %d, lag %d' % (tp.partition, offset, end, lag))
        total += lag
    print('total %d' % total)
    checker.client.close()
