"""A fetcher on an embedded cluster in memory, taking what it fetches as a program would."""

from __future__ import annotations

import random
import threading
from functools import partial

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.manager import FetchManager, FetchSettings
from kafka.consumer.partition_state import EpochEnd
from kafka.consumer.subscription_state import SubscriptionState
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.api import choose_version
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.structs import TopicPartition
from kafka.testing import MemoryCluster
from test.consumer.fetching_by_hand import batch
from test.simulation.loop import SimLoop


class Figures:
    """Keeps what a fetcher tells."""

    def __init__(self):
        self.answers = []

    def answered(self, *what):
        self.answers.append(what)


class Rig:
    """A cluster with topic t, and a fetcher of its partitions, which begin at offset 0."""

    def __init__(
        self, release='4.4.0', brokers=1, partitions=2, cluster=None, net=None, **settings
    ):
        self.cluster = MemoryCluster(
            version=release, brokers=brokers, seed=3, topics={'t': partitions}, **(cluster or {})
        )
        self.cluster.start()
        self.loop = SimLoop(self.cluster)
        settled = NetSettings(
            servers=parse_servers(self.cluster.bootstrap),
            request_timeout=3.0,
            retry_backoff=0.05,
            reconnect_backoff_max=0.5,
        )
        self.pool = Pool(self.loop, settled._replace(**(net or {})), random.Random(5))
        self.loop.run(self.pool.bootstrap(), 60)
        self.loop.run(self.pool.wait_for_topic('t', 30), 60)
        self.lock = threading.Lock()
        self.figures = Figures()
        self.subscription = SubscriptionState('earliest')
        self.settings = FetchSettings(request_timeout=3.0, retry_backoff=0.05, **settings)
        self.fetcher = FetchManager(
            self.loop,
            self.pool,
            self.subscription,
            self.lock,
            self.settings,
            partial(CompletedFetch, read_committed=self.settings.read_committed),
            lambda: None,
            self.figures,
            random.Random(7),
        )
        self.partitions = [TopicPartition('t', n) for n in range(partitions)]
        self.got = {at: [] for at in self.partitions}
        self.sent = {at: [] for at in self.partitions}

    def begin(self, *indexes):
        self.subscription.assign_from_user([TopicPartition('t', n) for n in indexes])
        for at in self.subscription.assignment:
            self.subscription.seek(at, 0)
        self.loop.call_soon(self.fetcher.look)

    def begin_all(self):
        self.begin(*range(len(self.partitions)))

    def produce(self, index, *values):
        """Let the leader write one batch."""
        at = TopicPartition('t', index)
        node = self.cluster.leader('t', index)
        self.loop.run(self.pool.link(node).ready(), 60)
        version = choose_version(ProduceRequest, self.pool.link(node).versions.ranges, 12)
        magic = 2 if version >= 3 else 1 if version == 2 else 0
        data = PartitionProduceData(index=index, records=batch(0, *values, magic=magic))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name='t', partition_data=[data])],
        )
        response = self.loop.run(self.pool.send(request, node, version=version), 60)
        assert not response.responses[0].partition_responses[0].error_code
        self.sent[at].extend(values)

    def take(self, most=None):
        """Take what is next as a program would; tell whether there was something."""
        fetch = self.fetcher.next_fetch()
        if fetch is None:
            return False
        records = fetch.take(most)
        with self.lock:
            state = self.subscription.assignment.get(fetch.partition)
            if state is not None and state.token == fetch.token:
                self.got[fetch.partition].extend(record.value for record in records)
                state.consumed(fetch.position, fetch.last_epoch)
        if fetch.is_done:
            self.fetcher.done(fetch)
        else:
            self.fetcher.put_back(fetch)
        return True

    def poll(self, seconds=1.0):
        """Wait for something and take it; settle positions by brute force."""
        self.settle_positions()
        if self.loop.wait(self.fetcher.has_news, seconds) and not self.fetcher.errors:
            self.take()

    def settle_positions(self):
        for at in list(self.subscription.unsettled):
            state = self.subscription.state(at)
            asked = state.validation()
            if asked is not None:
                state.judge(asked, EpochEnd(asked.epoch, asked.offset))

    def drain(self, seconds=30.0):
        """Poll until all that was sent has come."""
        end = self.loop.time() + seconds
        while self.got != self.sent and self.loop.time() < end:
            self.poll(end - self.loop.time())
        assert self.got == self.sent

    def rest(self, seconds):
        self.loop.wait(lambda: False, seconds)

    @property
    def fetches(self):
        return [each for each in self.cluster.requests if each.api.name == 'FETCH']

    def close(self):
        self.fetcher.close()
        self.rest(0.1)
        self.pool.close()
        self.loop.close()
        self.cluster.stop()
