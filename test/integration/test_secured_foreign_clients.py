"""librdkafka on secured embedded brokers: it logs in by each mechanism, and is refused clearly."""

from __future__ import annotations

import time

import pytest

from kafka.testing import Cluster
from kafka.testing.security.certificates import local_tls, make_certificate
from kafka.testing.security.sasl.oauthbearer import unsigned_token

confluent_kafka = pytest.importorskip('confluent_kafka')

pytestmark = [pytest.mark.integration, pytest.mark.embedded]

MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']
WAIT_SECONDS = 10


def cluster_of(**settings):
    cluster = Cluster(
        authorizer=True,
        super_users=('root',),
        topics={'t': 1},
        **settings,
    )
    cluster.allow('alice', 'Read', 'Write', topic='t', group='g')
    return cluster


def config(cluster, mechanism='', user='alice', password='secret', **more):
    found = {
        'bootstrap.servers': cluster.bootstrap,
        'security.protocol': cluster.security_protocol,
        'log_level': 0,
        **more,
    }
    if cluster.ca_file:
        found['ssl.ca.location'] = cluster.ca_file
    if mechanism == 'OAUTHBEARER':
        seconds = time.time() + (600 if password == 'secret' else -600)
        token = unsigned_token(user, int(seconds * 1000))
        # The library itself takes a token for good for as long as it is told.
        found['oauth_cb'] = lambda _: (token, time.time() + 600)
    if mechanism:
        found['sasl.mechanism'] = mechanism
    if mechanism and mechanism != 'OAUTHBEARER':
        found.update({'sasl.username': user, 'sasl.password': password})
    return found


def written(settings, count=5):
    """Write records; return the errors, None for each that went well."""
    found = []
    producer = confluent_kafka.Producer(settings)
    for number in range(count):
        producer.produce('t', b'%d' % number, on_delivery=lambda error, _: found.append(error))
    producer.flush(WAIT_SECONDS)
    return found


def read(settings, count=5, group='g'):
    """Read records; return their values, or the first error."""
    consumer = confluent_kafka.Consumer(
        {**settings, 'group.id': group, 'auto.offset.reset': 'earliest'}
    )
    values = []
    try:
        consumer.subscribe(['t'])
        end = time.monotonic() + WAIT_SECONDS
        while len(values) < count and time.monotonic() < end:
            message = consumer.poll(0.2)
            if message is not None and message.error():
                return message.error()
            if message is not None:
                values.append(message.value())
    finally:
        consumer.close()
    return values


@pytest.mark.parametrize('tls', [False, True])
@pytest.mark.parametrize('version', ['0.10.2', '1.1', '2.8', '4.4'])
def test_it_writes_and_reads_by_each_mechanism(version, tls):
    known = MECHANISMS if version >= '2' else MECHANISMS[:3]
    with cluster_of(
        version=version, sasl={'alice': 'secret'}, mechanisms=known, tls=tls
    ) as cluster:
        for number, mechanism in enumerate(known, 1):
            settings = config(cluster, mechanism)
            assert written(settings) == 5 * [None]
            cluster.allow('alice', 'Read', group='g%d' % number)
            values = read(settings, 5 * number, 'g%d' % number)
            assert values == number * [b'%d' % each for each in range(5)]


@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_a_wrong_password_is_an_error_of_authentication(mechanism):
    seen = []
    with cluster_of(sasl={'alice': 'secret'}, mechanisms=MECHANISMS, tls=True) as cluster:
        settings = config(
            cluster,
            mechanism,
            password='wrong',
            error_cb=seen.append,
            **{'message.timeout.ms': 900},
        )
        (error,) = written(settings, 1)
    assert error.code() == confluent_kafka.KafkaError._MSG_TIMED_OUT
    assert seen[0].code() == confluent_kafka.KafkaError._AUTHENTICATION


def test_what_is_not_allowed_is_an_error_of_authorization():
    with cluster_of(sasl={'alice': 'secret', 'bob': 'secret'}) as cluster:
        errors = written(config(cluster, 'PLAIN', 'bob', **{'message.timeout.ms': 3000}), 1)
        codes = [each.code() for each in errors]
        assert codes == [confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED]
        error = read(config(cluster, 'PLAIN', 'bob'))
        assert error.code() == confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED
        cluster.allow('bob', 'Read', group='g')
        error = read(config(cluster, 'PLAIN', 'bob'))
        assert error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_transactions_need_the_right_to_their_id():
    with cluster_of(sasl={'alice': 'secret'}) as cluster:
        settings = config(cluster, 'SCRAM-SHA-512', **{'transactional.id': 'x'})
        producer = confluent_kafka.Producer(settings)
        with pytest.raises(confluent_kafka.KafkaException) as caught:
            producer.init_transactions(WAIT_SECONDS)
        code = caught.value.args[0].code()
        assert code == confluent_kafka.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        cluster.allow('alice', 'Write', transactional_id='x')
        producer = confluent_kafka.Producer(settings)
        producer.init_transactions(WAIT_SECONDS)
        producer.begin_transaction()
        producer.produce('t', b'in a transaction')
        producer.commit_transaction(WAIT_SECONDS)
        assert read(config(cluster, 'PLAIN'), 1) == [b'in a transaction']
        del producer  # what was caught keeps this frame, and its sockets are counted now


def test_a_certificate_is_a_principal(tmp_path):
    certificate, key = make_certificate(str(tmp_path), 'alice', hosts=())
    tls = local_tls()._replace(client_ca=certificate, client_auth='required')
    with cluster_of(tls=tls) as cluster:
        cluster.allow('CN=alice', 'Read', 'Write', topic='t', group='g')
        shown = {'ssl.certificate.location': certificate, 'ssl.key.location': key}
        settings = config(cluster, **shown)
        assert written(settings) == 5 * [None]
        assert len(read(settings)) == 5
        (error,) = written(config(cluster, **{'message.timeout.ms': 900}), 1)
        assert error.code() == confluent_kafka.KafkaError._MSG_TIMED_OUT
