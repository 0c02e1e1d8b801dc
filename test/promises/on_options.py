"""Promises about the options of KafkaProducer, and about finding the brokers."""

from __future__ import annotations

from typing import Any, List

from asking import Asking, outcome, promise, told

from kafka import KafkaProducer


def _config(at: Asking, *names: str, **options: Any) -> Any:
    config = at.offline(**options).config
    return [config[name] for name in names]


@promise('M 14, L 4')
def unknown_options(at: Asking) -> Any:
    return [told(at.offline, lingerms=5), told(at.offline, group_id='g')]


@promise('M 14')
def acks_in_the_config(at: Asking) -> Any:
    return [told(_config, at, 'acks', acks=each) for each in ('all', -1, 0, 1)]


@promise('M 14, L 4')
def compression_that_nobody_knows(at: Asking) -> Any:
    def send() -> Any:
        return outcome(at.producer(compression_type='brotli').send(at.topic, b'v'))

    return told(send)


@promise('L 4')
def api_versions(at: Asking) -> Any:
    given: List[Any] = [(0, 9), (0, 10), (0, 11), (2, 0), (1, 0, 0)]
    return [told(_config, at, 'api_version', api_version=each) for each in given]


@promise('M 14, L 4')
def api_versions_as_text(at: Asking) -> Any:
    return [told(_config, at, 'api_version', api_version=each) for each in ('0.9', '0.10')]


@promise('L 4')
def the_version_that_is_found(at: Asking) -> Any:
    found = at.producer().config['api_version']
    return [isinstance(found, tuple), len(found) >= 2]


@promise('M 14')
def client_ids(at: Asking) -> Any:
    first, second = at.offline(), at.offline()
    numbers = []
    for each in (first, second):
        name, _, number = each.config['client_id'].rpartition('-')
        numbers.append(int(number))
    return [name, numbers[1] - numbers[0], at.offline(client_id='mine').config['client_id']]


@promise('M 14')
def defaults(at: Asking) -> Any:
    config = KafkaProducer.DEFAULT_CONFIG
    names = (
        'bootstrap_servers',
        'key_serializer',
        'value_serializer',
        'compression_type',
        'batch_size',
        'linger_ms',
        'max_block_ms',
        'max_request_size',
        'metadata_max_age_ms',
        'retry_backoff_ms',
        'request_timeout_ms',
        'receive_buffer_bytes',
        'send_buffer_bytes',
        'reconnect_backoff_ms',
        'max_in_flight_requests_per_connection',
        'security_protocol',
        'ssl_context',
        'ssl_check_hostname',
        'ssl_cafile',
        'sasl_mechanism',
        'sasl_plain_username',
        'sasl_kerberos_service_name',
        'metrics_num_samples',
        'metrics_sample_window_ms',
    )
    return {name: config[name] for name in names}


@promise('M 14, L 4', until='3.0')
def nobody_is_there(at: Asking) -> Any:
    return told(KafkaProducer, bootstrap_servers='127.0.0.1:1', api_version_auto_timeout_ms=500)


@promise('M 14')
def nobody_is_there_but_a_version_is_given(at: Asking) -> Any:
    producer = at.offline()
    return [
        told(producer.send, 't', b'v'),
        told(producer.partitions_for, 't'),
        producer.bootstrap_connected(),
        told(producer.flush),
        told(producer.close),
    ]


@promise('M 15')
def lists_of_brokers(at: Asking) -> Any:
    host, port = at.bootstrap.split(',')[0].rsplit(':', 1)
    lists: List[Any] = [
        [at.bootstrap],
        '%s:%s' % (host, port),
        ['127.0.0.1:1', at.bootstrap],
        '127.0.0.1:1,%s' % at.bootstrap,
        'localhost:%s' % port,
    ]
    found = []
    for each in lists:
        producer = at.producer(bootstrap_servers=each)
        found.append(outcome(producer.send(at.topic, b'v', partition=0)))
    return found


@promise('L 5')
def bootstrap_connected(at: Asking) -> Any:
    return isinstance(at.producer().bootstrap_connected(), bool)


@promise('L 6', since='3.0.12', release='0.11')
def idempotence_and_what_contradicts_it(at: Asking) -> Any:
    found = []
    for options in (
        {},
        {'acks': 1},
        {'acks': 0},
        {'retries': 0},
        {'max_in_flight_requests_per_connection': 6},
        {'enable_idempotence': False},
        {'enable_idempotence': True},
        {'enable_idempotence': True, 'acks': 1},
        {'enable_idempotence': True, 'retries': 0},
        {'enable_idempotence': True, 'max_in_flight_requests_per_connection': 6},
        {'enable_idempotence': True, 'api_version': (0, 10)},
        {'transactional_id': 'x', 'enable_idempotence': False},
        {'transactional_id': 'x', 'acks': 1},
    ):
        found.append(told(_config, at, 'enable_idempotence', 'acks', **options))
    return found


@promise('L 4')
def options_of_other_eras(at: Asking) -> Any:
    producer = at.producer(
        retries=5,
        request_timeout_ms=20000,
        reconnect_backoff_max_ms=500,
        connections_max_idle_ms=60000,
        socket_options=[(6, 1, 1)],
        send_buffer_bytes=131072,
        receive_buffer_bytes=65536,
        metadata_max_age_ms=10000,
        max_block_ms=20000,
        security_protocol='PLAINTEXT',
        ssl_check_hostname=True,
    )
    return outcome(producer.send(at.topic, b'v', partition=0))


@promise('L 4')
def security_options_that_are_wrong(at: Asking) -> Any:
    wrong = ({'security_protocol': 'TLS'}, {'security_protocol': 'SASL_SSL', 'sasl_mechanism': 'X'})
    return ['raises' in told(at.producer, max_block_ms=2000, **each) for each in wrong]


@promise('M 19')
def reporters_of_metrics(at: Asking) -> Any:
    from kafka.metrics.metrics_reporter import AbstractMetricsReporter

    calls: List[str] = []

    class Reporter(AbstractMetricsReporter):
        def init(self, metrics: Any) -> None:
            calls.append('init')

        def metric_change(self, metric: Any) -> None:
            calls.append(metric.metric_name.name)

        def metric_removal(self, metric: Any) -> None:
            calls.append('-' + metric.metric_name.name)

        def configure(self, configs: Any) -> None:
            calls.append('configure')

        def close(self) -> None:
            calls.append('close')

    producer = at.producer(metric_reporters=[Reporter])
    producer.send(at.topic, b'v', partition=0).get(20)
    producer.close()
    wanted = {'init', 'record-send-rate', 'request-latency-avg', 'close'}
    return [sorted(wanted & set(calls)), calls.count('close')]


@promise('L 4', since='2.2.15')
def without_metrics(at: Asking) -> Any:
    producer = at.producer(metrics_enabled=False)
    return [outcome(producer.send(at.topic, b'v', partition=0)), producer.metrics()]


@promise('L 4', since='2.2.15')
def topics_that_nobody_may_create(at: Asking) -> Any:
    producer = at.producer(allow_auto_create_topics=False, max_block_ms=1000)
    return told(lambda: outcome(producer.send(at.other('never'), b'v')))
