"""ExactlyOnce with the real consumer and producer: rebalances, faults, deaths."""

from __future__ import annotations

import threading
import time

import pytest

from kafka import KafkaProducer
from kafka.errors import KafkaConfigurationError, KafkaError, ProducerFencedError
from kafka.exactly_once import ExactlyOnce
from kafka.protocol.group import LeaveGroupRequest, MemberIdentity
from kafka.structs import TopicPartition
from kafka.testing import Cluster
from kafka.testing.errors import (
    ILLEGAL_GENERATION,
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.faults import Error
from test.consumer.modern import consumer_of

PARTITIONS, RECORDS = 4, 80
VALUES = [b'%03d' % number for number in range(RECORDS)]


def fill(cluster):
    """Write what is to be read, and between it what a transaction took back."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='source') as producer:
        producer.init_transactions()
        for half in (VALUES[: RECORDS // 2], [b'never'] * 8, VALUES[RECORDS // 2 :]):
            producer.begin_transaction()
            for number, value in enumerate(half):
                producer.send('in', value, partition=number % PARTITIONS)
            if half[0] == b'never':
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()


@pytest.fixture
def start():
    """Return a function that starts a cluster with records to read."""
    clusters = []

    def go(version='4.4.0', **settings):
        topics = {'in': PARTITIONS, 'out': PARTITIONS}
        cluster = Cluster(version=version, topics=topics, **settings)
        cluster.start()
        clusters.append(cluster)
        fill(cluster)
        return cluster

    yield go
    for cluster in clusters:
        cluster.stop()


class Program:
    """Copies from in to out."""

    def __init__(self, cluster, name='pay', max_records=10, **options):
        options = {
            'isolation_level': 'read_committed',
            'enable_auto_commit': False,
            'heartbeat_interval_ms': 50,
            **options,
        }
        self.consumer = consumer_of(cluster, 'in', group_id='g', **options)
        self.producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap, transactional_id=name, linger_ms=0
        )
        self.once = ExactlyOnce(
            self.consumer,
            self.producer,
            retry_backoff_ms=5,
            poll_timeout_ms=100,
            max_records=max_records,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.consumer.close()
        self.producer.close()

    @staticmethod
    def copy(records):
        return [('out', each.value, None, None, each.partition) for each in records]

    def until_all(self, cluster, transform=None, seconds=30):
        ends_at = time.monotonic() + seconds
        while not is_all_there(cluster):
            assert time.monotonic() < ends_at, written(cluster)
            self.once.step(transform or self.copy)


def written(cluster):
    """Return the values that a reader of committed records sees."""
    reader = consumer_of(
        cluster,
        isolation_level='read_committed',
        consumer_timeout_ms=500,
        group_id=None,
    )
    places = [TopicPartition('out', number) for number in range(PARTITIONS)]
    with reader:
        reader.assign(places)
        ends = reader.end_offsets(places)
        found = []
        while any(reader.position(place) < ends[place] for place in places):
            for records in reader.poll(timeout_ms=100).values():
                found += [each.value for each in records]
    return sorted(found)


def is_all_there(cluster):
    return len(written(cluster)) >= RECORDS


# ---------------------------------------------------------------- one program


@pytest.mark.parametrize('version', ['0.11.0.3', '2.8.2', '3.9.2', '4.4.0'])
def test_all_that_was_committed_is_copied_once(start, version):
    cluster = start(version)
    with Program(cluster) as program:
        program.until_all(cluster)
        assert written(cluster) == VALUES
        assert program.once.aborted == 0
        program.once.step(program.copy)


def test_a_group_of_the_next_generation_does_it_too(start):
    cluster = start()
    with Program(cluster, group_protocol='consumer') as program:
        program.until_all(cluster)
    assert written(cluster) == VALUES


def test_who_begins_anew_goes_on_behind_the_last_transaction(start):
    cluster = start()
    for _ in range(3):
        with Program(cluster) as program:
            done = 0
            while not done:
                done = program.once.step(program.copy)
    with Program(cluster) as program:
        program.until_all(cluster)
    assert written(cluster) == VALUES


def test_a_transform_that_raises_now_and_then_costs_nothing(start):
    cluster = start()
    calls = []

    def transform(records):
        calls.append(1)
        yield from Program.copy(records)
        if len(calls) % 3 == 0:
            raise ZeroDivisionError

    with Program(cluster) as program:
        for _ in range(200):
            try:
                program.once.step(transform)
            except ZeroDivisionError:
                continue
            if is_all_there(cluster):
                break
    assert written(cluster) == VALUES


@pytest.mark.parametrize('code', [ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, NOT_COORDINATOR])
def test_what_the_group_says_to_the_offsets_costs_no_record(start, code):
    cluster = start()
    cluster.faults.add(Error(code), 'TXN_OFFSET_COMMIT', skip=1, times=2)
    with Program(cluster) as program:
        program.until_all(cluster)
    assert written(cluster) == VALUES


def test_who_is_thrown_out_while_it_transforms_commits_nothing_and_joins_anew(start):
    cluster = start()
    thrown = []

    def transform(records):
        if not thrown:
            consumer = program.consumer
            thrown.append(consumer.group_metadata())
            leave = LeaveGroupRequest(
                group_id='g', members=[MemberIdentity(member_id=thrown[0].member_id)]
            )
            program.producer._loop.run(program.producer._engine.pool.send(leave), 10)
        return Program.copy(records)

    with Program(cluster) as program:
        program.until_all(cluster, transform)
        assert program.once.aborted == 1
        assert program.consumer.group_metadata().member_id != thrown[0].member_id
    assert written(cluster) == VALUES


def test_who_was_replaced_is_fenced_and_has_written_nothing(start):
    cluster = start()
    with Program(cluster) as old:

        def transform(records):
            with KafkaProducer(
                bootstrap_servers=cluster.bootstrap, transactional_id='pay'
            ) as producer:
                producer.init_transactions()
            return Program.copy(records)

        for _ in range(2):
            with pytest.raises(ProducerFencedError):
                while True:
                    old.once.step(transform)
    assert written(cluster) == []
    with Program(cluster) as new:
        new.until_all(cluster)
    assert written(cluster) == VALUES


def test_options_that_do_not_do_are_refused(start):
    cluster = start()
    with pytest.raises(KafkaConfigurationError, match='enable_auto_commit=False'):
        make_with_auto_commit(cluster)


def make_with_auto_commit(cluster):
    with consumer_of(cluster, 'in', group_id='g') as consumer, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id='pay'
    ) as producer:
        ExactlyOnce(consumer, producer)


# ---------------------------------------------------------------- a group of programs


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'group_protocol': 'consumer'},
        {'partition_assignment_strategy': ['cooperative-sticky']},
    ],
    ids=['classic', 'consumer', 'cooperative'],
)
def test_programs_that_come_and_go_copy_each_record_once(start, options):
    cluster = start(group_consumer_heartbeat_interval_ms=50)
    failures, generations = [], set()
    stop, company = threading.Event(), threading.Event()

    def transform(records):
        company.wait(0.02)  # no hurry until another one has joined
        return Program.copy(records)

    def run(name, lives):
        try:
            for life in range(lives):
                with Program(cluster, name, max_records=1, **options) as program:
                    steps = 0
                    while not stop.is_set() and (life == lives - 1 or steps < 6):
                        steps += 1
                        program.once.step(transform if name == 'a' else program.copy)
                        generations.add(program.consumer.group_metadata().generation_id)
                        if name != 'a' and program.consumer.assignment():
                            company.set()
        except KafkaError as error:
            failures.append(error)

    threads = [
        threading.Thread(target=run, args=(name, lives))
        for name, lives in (('a', 1), ('b', 3), ('c', 2))
    ]
    for thread in threads:
        thread.start()
    ends_at = time.monotonic() + 60
    while not is_all_there(cluster) and not failures and time.monotonic() < ends_at:
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert len(generations - {-1}) > 1  # there were rebalances
    assert written(cluster) == VALUES
