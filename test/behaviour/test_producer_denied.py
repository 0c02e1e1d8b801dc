"""What a producer may not do is told at the first call, and at each that follows.

Brokers, network and clock are in memory.
"""

from __future__ import annotations

import pytest

from kafka import codec
from kafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import MemoryCluster
from test.simulation.checks import committed
from test.simulation.copier import SimProducer, create_topic
from test.stored import stored

SECONDS = 60
#: Far below max_block_ms and delivery_timeout_ms: who is refused needs not wait for either. Brokers
#: of older releases answer for some seconds that they do not know a topic that may not be seen.
AT_ONCE = 5
ME = 'ANONYMOUS'


@pytest.fixture(params=['1.1', '2.8', '4.4'])
def cluster(request):
    with MemoryCluster(version=request.param, authorizer=True) as made:
        for name in ('open', 'seen', 'hidden'):
            create_topic(made, name)
        made.allow(ME, 'Write', 'Describe', topic='open')
        made.allow(ME, 'Describe', topic='seen')
        made.allow(ME, 'Write', 'Describe', transactional_id='own')
        yield made


@pytest.fixture
def make(cluster):
    """Return what makes producers of the test's cluster; closed at the end."""
    made = []

    def give(**options):
        made.append(SimProducer.of(cluster, [], **options))
        return made[-1]

    yield give
    for producer in made:
        producer.close(timeout=30)


@pytest.fixture
def refused(cluster):
    """Return a function that makes a call twice: each is refused at once by an error of its own."""
    clock = cluster.timers.clock

    def check(kind, call):
        errors = []
        for _ in range(2):
            began = clock.monotonic()
            with pytest.raises(kind) as caught:
                call()
            assert clock.monotonic() - began < AT_ONCE
            errors.append(caught.value)
        assert errors[0] is not errors[1]
        return str(errors[1])

    return check


@pytest.fixture(params=[True, False], ids=['idempotent', 'plain'])
def producer(request, cluster, make):
    if request.param:
        cluster.allow(ME, 'IdempotentWrite', cluster=True)
    return make(enable_idempotence=request.param)


def test_a_topic_that_may_not_be_seen(cluster, producer, refused):
    kind = TopicAuthorizationFailedError
    assert 'hidden' in refused(kind, lambda: producer.partitions_for('hidden'))
    assert 'hidden' in refused(kind, lambda: producer.send('hidden', b'v').get(SECONDS))
    assert 'hidden' in refused(kind, lambda: producer.send_many('hidden', [b'v']))
    assert producer.send('open', b'v').get(SECONDS).offset == 0
    cluster.allow(ME, 'Write', 'Describe', topic='hidden')
    assert producer.send('hidden', b'v').get(SECONDS).offset == 0


def test_a_topic_that_may_be_seen_and_not_written(cluster, producer, refused):
    kind = TopicAuthorizationFailedError
    assert producer.partitions_for('seen') == {0}
    assert 'seen' in refused(kind, lambda: producer.send('seen', b'v').get(SECONDS))
    assert 'seen' in refused(kind, lambda: producer.send_many('seen', [b'v']).get(SECONDS))
    assert producer.send('open', b'v').get(SECONDS).offset == 0
    assert stored(cluster, 'seen') == []


def test_an_idempotent_producer_that_may_not_be_one(cluster, make, refused):
    cluster.deny(ME, 'IdempotentWrite', cluster=True)
    cluster.deny(ME, 'Write', topic='*')  # who may write somewhere may do that too (KIP-679)
    producer = make(enable_idempotence=True)
    refused(ClusterAuthorizationFailedError, lambda: producer.send('open', b'v').get(SECONDS))


def test_a_transactional_id_of_another(make, refused):
    producer = make(transactional_id='theirs')
    told = refused(TransactionalIdAuthorizationFailedError, producer.init_transactions)
    assert 'theirs' in told
    with pytest.raises(KafkaError):
        producer.begin_transaction()


def test_a_group_of_another_in_a_transaction(cluster, make, refused):
    producer = make(transactional_id='own')
    producer.init_transactions()
    offsets = {TopicPartition('open', 0): OffsetAndMetadata(1, '')}
    producer.begin_transaction()
    refused(
        GroupAuthorizationFailedError,
        lambda: producer.send_offsets_to_transaction(offsets, 'theirs'),
    )
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send('open', b'v')
    producer.commit_transaction()
    assert stored(cluster, 'open')[0] == b'v'


def test_a_topic_that_there_is_not_and_that_nobody_makes(cluster, make, refused):
    cluster.allow(ME, 'Describe', 'Write', topic='never')
    producer = make(max_block_ms=300, allow_auto_create_topics=False, enable_idempotence=False)
    for call in (
        lambda: producer.send('never', b'v'),
        lambda: producer.partitions_for('never'),
        lambda: producer.send_many('never', [b'v']),
    ):
        assert 'never' in refused(KafkaTimeoutError, call)


def test_a_codec_without_its_package(make, monkeypatch, refused):
    def missing(name, *arguments):
        raise codec.MissingCodecError('no package for it')

    monkeypatch.setattr(codec, 'compress', missing)
    assert 'lz4' in refused(KafkaConfigurationError, lambda: make(compression_type='lz4'))


def test_nothing_is_committed_without_a_record_that_was_refused(cluster, make):
    """The future alone tells of it, and programs look at futures behind the commit, if at all."""
    producer = make(transactional_id='own')
    producer.init_transactions()
    for record, error in (
        (('hidden', b'v'), TopicAuthorizationFailedError),
        (('open', b'v' * 2000000), MessageSizeTooLargeError),
    ):
        producer.begin_transaction()
        producer.send('open', b'aborted').get(SECONDS)
        future = producer.send(*record)
        with pytest.raises(error):
            producer.commit_transaction()
        assert isinstance(future.exception, error)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send('open', b'kept')
        producer.commit_transaction()
    log = cluster.state.topics['open'].partitions[0].log
    # Brokers write markers a moment later.
    cluster.run_until(lambda: committed(log, may_hang=True) == [b'kept'] * 2, SECONDS)
