"""What the tests of 0.9.5's KafkaConsumer share: a client put in place of the one it makes."""

from __future__ import annotations

from kafka.consumer import KafkaConsumer
from kafka.structs import FetchResponse, KafkaMessage, OffsetAndMessage
from test.fake_client import FakeClient, value

SERVERS = 'broker:9092'


class TopicsClient(FakeClient):
    """Knows topics by name, each with the partitions of `logs`; waits in vain by the clock."""

    def __init__(self, clock, *logs, topics=(b'topic',), **options):
        super().__init__(*logs, **options)
        self.clock = clock
        self.topics = topics
        self.closed = 0

    def get_partition_ids_for_topic(self, topic):
        assert isinstance(topic, bytes)
        return super().get_partition_ids_for_topic(topic) if topic in self.topics else []

    def send_fetch_request(self, payloads, **kwargs):
        at_the_end = all(p.offset == self.logs[p.partition][1] for p in payloads)
        if at_the_end and kwargs['min_bytes'] and not self.answers['send_fetch_request']:
            self.clock.now += kwargs['max_wait_time'] / 1000
        return super().send_fetch_request(payloads, **kwargs)

    def close(self):
        super().close()
        self.closed += 1


class Factory:
    """Stands in for the class KafkaClient: hands out prepared clients, notes with what."""

    def __init__(self, *clients):
        self.clients = list(clients)
        self.made = []

    def __call__(self, hosts, *, client_id, timeout):
        self.made.append((hosts, client_id, timeout))
        client = self.clients[0] if len(self.clients) == 1 else self.clients.pop(0)
        if isinstance(client, Exception):
            raise client
        return client


def consumer(*topics, **configs):
    """Return a consumer of 0.9.5; of partition 0 and 1 … of ``topic`` unless told otherwise."""
    configs.setdefault('bootstrap_servers', SERVERS)
    configs.setdefault('auto_offset_reset', 'smallest')
    return KafkaConsumer(*(topics or ('topic',)), dialect='0.9.5', **configs)


def message(offset, partition=0, topic=b'topic'):
    """Return what a consumer hands out for the message that a FakeClient keeps at an offset."""
    return KafkaMessage(topic, partition, offset, None, value(offset).value)


def fetched(error=0, messages=(), partition=0, highwater=-1, topic=b'topic'):
    return FetchResponse(topic, partition, error, highwater, messages)


def kept(*offsets):
    """Return messages at some offsets, as the client decodes them."""
    return [OffsetAndMessage(offset, value(offset)) for offset in offsets]


def places(messages):
    return [(m.partition, m.offset) for m in messages]
