"""The options with ``kafka.`` before them: what Java's names become here, and what is refused.

JAVAS and OF_PRODUCERS are the names that kafka-clients 3.9.2 has, with those that 4.x added.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Mapping, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kafka import config
from kafka.config.secrets import SecretLogin
from kafka.errors import (
    InvalidOptionError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)
from kafka.spark import client_options
from kafka.spark.client_options import (
    consumer_config,
    is_kafka_name,
    java_name,
    java_names,
    producer_config,
)

SERVERS = {'bootstrap.servers': 'h:1'}
ALWAYS = {
    'bootstrap_servers': 'h:1',
    'allow_auto_create_topics': False,
    'enable_auto_commit': False,
    'bootstrap_timeout_ms': 60000,
}
ALWAYS_WRITTEN = {'bootstrap_servers': 'h:1', 'bootstrap_timeout_ms': 60000}

#: Names of both, or of consumers alone, with a value that a program may give.
JAVAS = dict(
    each.split('=')
    for each in """
allow.auto.create.topics=true auto.commit.interval.ms=1 auto.include.jmx.reporter=true
check.crcs=false client.dns.lookup=use_all_dns_ips client.id=me client.rack=r
connections.max.idle.ms=-1 default.api.timeout.ms=1 enable.metrics.push=false
exclude.internal.topics=true fetch.max.bytes=1000 fetch.max.wait.ms=10 fetch.min.bytes=2
group.id=g group.instance.id=i group.protocol=classic group.remote.assignor=uniform
heartbeat.interval.ms=5 internal.leave.group.on.close=true isolation.level=read_committed
max.partition.fetch.bytes=3 max.poll.interval.ms=5 max.poll.records=1 metadata.max.age.ms=60000
metadata.recovery.strategy=none metadata.recovery.rebootstrap.trigger.ms=5 metric.reporters=x.Y
metrics.num.samples=3 metrics.recording.level=INFO metrics.sample.window.ms=1000
partition.assignment.strategy=x.Y receive.buffer.bytes=65536 reconnect.backoff.max.ms=1000
reconnect.backoff.ms=10 request.timeout.ms=1000 retry.backoff.max.ms=500 retry.backoff.ms=10
sasl.kerberos.kinit.cmd=/k sasl.kerberos.min.time.before.relogin=1 sasl.kerberos.service.name=k
sasl.kerberos.ticket.renew.jitter=0.1 sasl.kerberos.ticket.renew.window.factor=0.1
sasl.login.connect.timeout.ms=1 sasl.login.read.timeout.ms=1 sasl.login.refresh.buffer.seconds=1
sasl.login.refresh.min.period.seconds=1 sasl.login.refresh.window.factor=0.5
sasl.login.refresh.window.jitter=0.1 sasl.login.retry.backoff.max.ms=1
sasl.login.retry.backoff.ms=1 sasl.mechanism=GSSAPI sasl.oauthbearer.clock.skew.seconds=1
sasl.oauthbearer.expected.audience=a sasl.oauthbearer.expected.issuer=i
sasl.oauthbearer.header.urlencode=true sasl.oauthbearer.jwks.endpoint.refresh.ms=1
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=1
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=1 sasl.oauthbearer.jwks.endpoint.url=u
sasl.oauthbearer.scope.claim.name=s sasl.oauthbearer.sub.claim.name=s security.protocol=SSL
send.buffer.bytes=-1 session.timeout.ms=10 socket.connection.setup.timeout.max.ms=10
socket.connection.setup.timeout.ms=10 ssl.cipher.suites=HIGH ssl.enabled.protocols=TLSv1.2
ssl.endpoint.identification.algorithm=https ssl.key.password=p ssl.keymanager.algorithm=PKIX
ssl.keystore.location=/k.pem ssl.protocol=TLS ssl.secure.random.implementation=x
ssl.trustmanager.algorithm=PKIX ssl.truststore.location=/t.pem share.acknowledgement.mode=implicit
""".split()
)
#: Names of producers alone.
OF_PRODUCERS = dict(
    each.split('=')
    for each in """
acks=all batch.size=1 buffer.memory=1000 compression.gzip.level=1 compression.lz4.level=1
compression.type=zstd compression.zstd.level=5 delivery.timeout.ms=200000
enable.idempotence=true linger.ms=5 max.block.ms=9223372036854775807
max.in.flight.requests.per.connection=1 max.request.size=100 metadata.max.idle.ms=5000
partitioner.adaptive.partitioning.enable=false partitioner.availability.timeout.ms=1
partitioner.ignore.keys=false retries=2147483647 transaction.timeout.ms=1000
transaction.two.phase.commit.enable=false
""".split()
)

READ: Dict[str, Any] = {
    'request.timeout.ms=1000': {'request_timeout_ms': 1000},
    'client.id=17': {'client_id': '17'},
    'check.crcs=FALSE': {'check_crcs': False},
    'isolation.level=read_committed': {'isolation_level': 'read_committed'},
    'receive.buffer.bytes=-1': {'receive_buffer_bytes': None},
    'send.buffer.bytes=-1': {'send_buffer_bytes': None},
    'max.partition.fetch.bytes=5': {'max_partition_fetch_bytes': 5},
    'client.rack=a': {'client_rack': 'a'},
    'security.protocol=ssl': {'security_protocol': 'SSL'},
    'connections.max.idle.ms=-1': {'connections_max_idle_ms': -1},
    'session.timeout.ms=10': {},
    'group.id=g': {},
    'acks=1': {},
    'default.api.timeout.ms=5': {'bootstrap_timeout_ms': 5},
    'default_api_timeout_ms=5': {'bootstrap_timeout_ms': 5},
    'bootstrap.timeout.ms=7': {'bootstrap_timeout_ms': 7},
    'api.version=2.8': {'api_version': (2, 8)},
    'api_version=2.8': {'api_version': (2, 8)},
    'request_timeout_ms=5000': {'request_timeout_ms': 5000},
    'proxy.url=socks5://h:1': {'proxy_url': 'socks5://h:1'},
    'ssl_cafile=/ca': {'ssl_cafile': '/ca'},
}

#: Java lets a connection be idle for less time than an answer may take.
IDLE = [
    ('request.timeout.ms=1200000', 1260000),
    ('request.timeout.ms=540000', 600000),
    ('request.timeout.ms=539999', None),
    ('request.timeout.ms=60000 connections.max.idle.ms=50000', 120000),
    ('request.timeout.ms=60000 connections.max.idle.ms=-1', -1),
]

WRITTEN: Dict[str, Any] = {
    'acks=all': {'acks': -1},
    'acks=0': {'acks': 0},
    'linger.ms=5': {'linger_ms': 5},
    'retries=2147483647': {'retries': 2147483647},
    'max.block.ms=9223372036854775807': {
        'max_block_ms': 2**63 - 1,
        'bootstrap_timeout_ms': 2**63 - 1,
    },
    'max.block.ms=5': {'max_block_ms': 5, 'bootstrap_timeout_ms': 5},
    'default.api.timeout.ms=5': {},
    'compression.type=none': {'compression_type': None},
    'compression.type=gzip compression.gzip.level=9 compression.zstd.level=3': {
        'compression_type': 'gzip',
        'compression_level': 9,
    },
    'compression.zstd.level=3': {},
    'partitioner.class=': {},
    'partitioner.class=org.apache.kafka.clients.producer.internals.DefaultPartitioner': {},
    'partitioner.ignore.keys=False': {},
    'auto.offset.reset=earliest': {},
    'enable.auto.commit=true': {},
    'group.id=g': {},
    'isolation.level=read_committed': {},
    'key.deserializer=x.Y': {},
}

REFUSED_BY_SOURCES = {
    'auto.offset.reset=none': 'kafka.auto.offset.reset is not supported: use startingOffsets',
    'auto_offset_reset=none': 'kafka.auto.offset.reset is not supported',
    'key.deserializer=x': 'kafka.key.deserializer is not supported: keys are bytes',
    'value.deserializer=x': 'kafka.value.deserializer is not supported',
    'key.serializer=x': 'kafka.key.serializer is not supported',
    'value.serializer=x': 'kafka.value.serializer is not supported',
    'enable.auto.commit=false': 'kafka.enable.auto.commit is not supported.*commitOffsets',
    'interceptor.classes=x': 'kafka.interceptor.classes is not supported',
    'config.providers=file': 'kafka.config.providers is not supported',
    'request.timeout.ms=30s': 'kafka.request.timeout.ms must be a number of milliseconds, from 1 to'
    " 2147483647, not '30s': milliseconds are given as a number",
    'request.timeout.ms=0': 'kafka.request.timeout.ms must be a number of milliseconds',
    'request.timeout.ms=5.5': 'kafka.request.timeout.ms must be',
    'session.timeout.ms=x': 'kafka.session.timeout.ms must be',
    'fetch.max.bytes=1MB': "whole number of bytes.* not '1MB': the unit is bytes",
    'check.crcs=1': "kafka.check.crcs must be true or false, not '1'",
    'check.crcs=yes': "kafka.check.crcs must be true or false, not 'yes'",
    'isolation.level=read_comitted': "did you mean 'read_committed'",
    'security.protocol=TLS': 'kafka.security.protocol must be one of',
    'receive.buffer.bytes=99999999999999999999': 'kafka.receive.buffer.bytes must be a whole',
    'bootstrap.servers=': 'kafka.bootstrap.servers must be',
    'bootstrap.servers=zookeeper:2181/kafka': 'kafka.bootstrap.servers must be',
    'retry.backoff.ms=500 retry.backoff.max.ms=100': 'kafka.retry.backoff.ms must not be more than'
    ' kafka.retry.backoff.max.ms',
    'fetch.max.wait.ms=5000 request.timeout.ms=1000': 'kafka.fetch.max.wait.ms < kafka.request',
    'security.protocol=SASL_SSL': 'kafka.security.protocol=SASL_SSL needs a kafka.sasl.mechanism',
    'security.protocol=SASL_SSL sasl.mechanism=PLAIN': 'needs kafka.sasl.username',
    'ssl.keystore.key=/k security.protocol=SSL': (
        'kafka.ssl.keystore.key needs kafka.ssl.keystore.certificate.chain'
    ),
    'request.timeout=5': (
        'unknown option kafka.request.timeout: did you mean kafka.request.timeout.ms?'
    ),
    'ssl.trustore.location=/x': 'did you mean kafka.ssl.truststore.location?',
    'fetch.message.max.bytes=1': 'write kafka.max.partition.fetch.bytes',
    'no.such.thing.at.all=canary': 'no Kafka client has such an option',
    'consumer.timeout.ms=1': 'unknown option kafka.consumer.timeout.ms',
    'selector=x': 'unknown option kafka.selector',
    'ssl.context=x': 'unknown option kafka.ssl.context',
}

REFUSED_BY_SINKS = {
    'key.serializer=x': 'kafka.key.serializer is not supported',
    'value.serializer=x': 'kafka.value.serializer is not supported',
    'interceptor.classes=x': 'kafka.interceptor.classes is not supported',
    'transactional.id=x': 'kafka.transactional.id is not supported: use exactlyOnce',
    'transactional_id=x': 'kafka.transactional.id is not supported: use exactlyOnce',
    'config.providers=x': 'kafka.config.providers is not supported',
    'partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner': 'column partition',
    'partitioner.ignore.keys=true': 'kafka.partitioner.ignore.keys must be false',
    'transaction.two.phase.commit.enable=true': 'must be false',
    'acks=5': "kafka.acks must be 0, 1, -1 or 'all', not '5'",
    'acks=1 enable.idempotence=true': "kafka.enable.idempotence needs.* kafka.acks is 'all', not 1",
    'compression.type=brotli': 'kafka.compression.type must be one of',
    'compression.type=zstd compression.zstd.level=50': 'kafka.compression.zstd.level must be',
    'compression.gzip.level=x': 'kafka.compression.gzip.level must be',
    'linger.ms=10 delivery.timeout.ms=5': 'kafka.delivery.timeout.ms must be more than',
    'request.required.acks=1': 'write kafka.acks',
}


def options(text: str) -> Dict[str, str]:
    return dict(each.split('=', 1) for each in text.split(' '))


@pytest.mark.parametrize('text', READ)
def test_a_source_takes_what_java_calls_it(text: str) -> None:
    assert consumer_config({**SERVERS, **options(text)}) == {**ALWAYS, **READ[text]}


@pytest.mark.parametrize('text, idle', IDLE)
def test_a_source_keeps_connections_for_longer_than_an_answer_may_take(
    text: str, idle: Optional[int]
) -> None:
    found = consumer_config({**SERVERS, **options(text)})
    assert found.get('connections_max_idle_ms') == idle


@pytest.mark.parametrize('text', WRITTEN)
def test_a_sink_takes_what_java_calls_it(text: str) -> None:
    expected = {**ALWAYS_WRITTEN, **WRITTEN[text]}
    assert producer_config({**SERVERS, **options(text)}) == expected


@pytest.mark.parametrize('name', [*JAVAS, *OF_PRODUCERS])
def test_every_name_that_java_has_is_taken_by_both_sides(name: str) -> None:
    given = {**SERVERS, name: {**JAVAS, **OF_PRODUCERS}[name]}
    for read, face in ((consumer_config, config.CONSUMER), (producer_config, config.PRODUCER)):
        found = read(given)
        assert set(found) <= set(config.options_of(face))


@pytest.mark.parametrize('text', REFUSED_BY_SOURCES)
def test_a_source_refuses_by_name(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=REFUSED_BY_SOURCES[text]) as caught:
        consumer_config({**SERVERS, **options(text)})
    assert 'canary' not in str(caught.value)


@pytest.mark.parametrize('text', REFUSED_BY_SINKS)
def test_a_sink_refuses_by_name(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=REFUSED_BY_SINKS[text]):
        producer_config({**SERVERS, **options(text)})


@pytest.mark.parametrize('read', [consumer_config, producer_config])
def test_brokers_have_to_be_named(read: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r'kafka\.bootstrap\.servers is missing'):
        read({'client.id': 'x'})


@pytest.mark.parametrize(
    'text, conflict',
    [
        ('acks=1', "kafka.acks is 'all', not 1"),
        ('retries=0', 'kafka.retries is more than 0'),
        ('enable.idempotence=false', 'kafka.enable.idempotence is False'),
        ('max.in.flight.requests.per.connection=6', 'at most 5'),
    ],
)
def test_transactions_need_what_idempotence_needs(text: str, conflict: str) -> None:
    given = {**SERVERS, **options(text)}
    producer_config(given)
    with pytest.raises(InvalidOptionError, match='exactlyOnce needs .*' + conflict):
        producer_config(given, is_transactional=True)


def test_the_producer_of_transactions_has_no_id_yet() -> None:
    assert producer_config(SERVERS, is_transactional=True) == ALWAYS_WRITTEN


LOGIN = 'x.PlainLoginModule required username="u" password="canary";'
SECRETS: Mapping[str, str] = {
    'security.protocol': 'SASL_SSL',
    'sasl.jaas.config': LOGIN,
    'ssl.key.password': 'canary',
    'ssl.keystore.certificate.chain': '/c.pem',
    'ssl.keystore.key': '-----BEGIN PRIVATE KEY-----canary-----END PRIVATE KEY-----',
    'proxy.url': 'socks5://u:canary@h:1',
}


@pytest.mark.parametrize('read', [consumer_config, producer_config])
def test_what_is_read_shows_no_secret(read: Any) -> None:
    found = read({**SERVERS, **SECRETS})
    assert 'canary' in found['sasl_plain_password'] and 'canary' in found['ssl_keyfile']
    assert isinstance(found['proxy_url'], SecretLogin)
    assert 'canary' not in repr(found)


@pytest.mark.parametrize('name', sorted(SECRETS))
def test_no_error_shows_a_secret(name: str) -> None:
    # Something else is wrong: what it is told of it must not be told of these.
    with pytest.raises(InvalidOptionError) as caught:
        consumer_config({**SERVERS, **SECRETS, 'fetch.min.bytes': 'x'})
    assert 'canary' not in str(caught.value)
    with pytest.raises(InvalidOptionError) as caught:
        consumer_config({**SERVERS, name: SECRETS[name], 'security.protocol': 'SASL_PLAIN'})
    assert 'canary' not in str(caught.value)


def test_a_warning_comes_once_however_often_a_query_reads_its_options(caplog: Any) -> None:
    given = {**SERVERS, 'acks': '1', 'client.id': 'warned'}
    for _ in range(3):
        producer_config(given)
    assert [each.split(':')[0] for each in caplog.messages] == ['The producer is not idempotent']


def test_what_was_refused_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(InvalidOptionError):
            producer_config({**SERVERS, 'acks': '1', 'enable.idempotence': 'true'})


def test_few_options_are_remembered() -> None:
    for number in range(50):
        consumer_config({**SERVERS, 'client.id': str(number)})
    assert len(client_options._passed) == 16
    assert client_options._passed[-1][1]['client_id'] == '49'


def test_a_prefix_that_was_forgotten_is_noticed() -> None:
    for name in ('bootstrap.servers', 'linger.ms', 'group.id', 'sasl.jaas.config'):
        assert is_kafka_name(name)
    for name in ('acks', 'path', 'fetchoffset.numretries', 'x.y'):
        assert not is_kafka_name(name)


def test_names_in_errors_are_those_of_java_where_there_are_any() -> None:
    assert java_name('request_timeout_ms') == 'request.timeout.ms'
    assert java_name('ssl_cafile') == 'ssl.truststore.location'
    assert java_name('sasl_plain_username') == 'sasl.username'
    assert java_name('bootstrap_timeout_ms') == 'bootstrap.timeout.ms'


@given(some.dictionaries(
    some.sampled_from([*JAVAS, *OF_PRODUCERS, 'sasl.jaas.config', 'ssl.keystore.type', 'x']),
    some.text() | some.sampled_from(['true', '-1', '5', 'PEM', LOGIN, 'SASL_SSL', 'PLAIN']),
    max_size=3,
))  # fmt: skip
def test_whatever_is_given_it_is_read_or_refused_never_another_error(given: Any) -> None:
    logging.disable(logging.WARNING)
    try:
        for read in (consumer_config, producer_config):
            try:
                read({**SERVERS, **given})
            except InvalidOptionError:
                pass
    finally:
        logging.disable(logging.NOTSET)


# ---------------------------------------------------------------- errors of clients


def test_errors_of_clients_name_options_as_a_program_for_spark_gives_them() -> None:
    """Also twice: an error may come through the sink and its task."""
    with pytest.raises(SaslAuthenticationFailedError) as caught, java_names(), java_names():
        raise SaslAuthenticationFailedError('refused; see sasl_plain_username and retries')
    wanted = (
        'refused; see kafka.sasl.username and kafka.retries (user name and password are usually set'
        ' by kafka.sasl.jaas.config)'
    )
    assert caught.value.args == (wanted,)


def test_what_is_no_text_in_an_error_stays() -> None:
    with pytest.raises(TopicAuthorizationFailedError) as caught, java_names():
        raise TopicAuthorizationFailedError({'t'})
    assert caught.value.args == ({'t'},)
