"""kafka.config.resolve: names old, dotted, misspelt and unknown; dialects; what comes out."""

from __future__ import annotations

import logging
import pickle

import pytest

from kafka import config
from kafka.config import resolution
from kafka.errors import InvalidOptionError, InvalidOptionTypeError, KafkaConfigurationError

UNKNOWN = [
    (config.PRODUCER, 'linger_sm', 'linger_sm (did you mean linger_ms?)'),
    (config.PRODUCER, 'linger', 'linger (did you mean linger_ms?)'),
    (config.PRODUCER, 'request_timeout', 'did you mean request_timeout_ms?'),
    (config.PRODUCER, 'Acks', 'did you mean acks?'),
    (config.PRODUCER, 'linger.ms', 'linger.ms (write linger_ms)'),
    (config.PRODUCER, 'sasl.password', 'write sasl_plain_password'),
    (config.PRODUCER, 'queue.buffering.max.ms', 'write linger_ms'),
    (config.PRODUCER, 'auto_offset_reset', 'an option of KafkaConsumer)'),
    (config.CONSUMER, 'acks', 'an option of KafkaProducer)'),
    (config.CONSUMER, 'fetch_wait_max_ms', 'since 1.0: fetch_max_wait_ms'),
    (config.CONSUMER, 'auto_commit_enable', 'since 1.0: enable_auto_commit'),
    (config.CONSUMER, 'deserializer_class', 'since 1.0: value_deserializer'),
    (config.ADMIN, 'group_id', 'an option of KafkaConsumer)'),
    (config.TOWER, 'auto_commit_enabel', 'did you mean auto_commit_enable?'),
    (config.TOWER, 'zzz', 'Unrecognized configs: zzz'),
]
STRICT = [face for face in config.FACES if not face.is_lenient]


@pytest.mark.parametrize('face, name, told', UNKNOWN)
def test_unknown_names_are_refused_with_what_may_have_been_meant(face, name, told):
    with pytest.raises(KafkaConfigurationError) as caught:
        config.resolve(face, {name: 1})
    assert told in str(caught.value)


@pytest.mark.parametrize('face', STRICT, ids=lambda face: face.title)
@pytest.mark.parametrize('era', [KafkaConfigurationError, ValueError, AssertionError])
def test_an_unknown_option_is_what_each_era_raised(face, era):
    with pytest.raises(era, match='Unrecognized configs: '):
        config.resolve(face, {'no_such_option_at_all': 1})


@pytest.mark.parametrize('era', [KafkaConfigurationError, ValueError, AssertionError, TypeError])
def test_a_wrong_type_is_what_each_era_raised(era):
    with pytest.raises(era, match='^InvalidOptionTypeError: linger_ms must be a number of milli'):
        config.resolve(config.PRODUCER, {'linger_ms': '5'})


def test_all_unknown_names_are_told_at_once():
    with pytest.raises(InvalidOptionError, match='bbbbb, zzzzz'):
        config.resolve(config.PRODUCER, {'zzzzz': 1, 'bbbbb': 2})


@pytest.mark.parametrize('face', [config.CLIENT, config.CONNECTION])
def test_lenient_faces_pass_over_unknown_names_and_check_the_others(face):
    assert 'no_such' not in config.resolve(face, {'no_such': 1})
    with pytest.raises(InvalidOptionTypeError):
        config.resolve(face, {'request_timeout_ms': 'x'})


def test_a_refused_option_can_be_pickled():
    with pytest.raises(InvalidOptionError) as caught:
        config.resolve(config.PRODUCER, {'acks': 7})
    assert pickle.loads(pickle.dumps(caught.value)) == caught.value


def test_deprecated_names_are_taken_with_a_warning(caplog):
    options = config.resolve(config.PRODUCER, {'metadata_broker_list': 'a:1'})
    assert options['bootstrap_servers'] == 'a:1'
    assert options.given == {'bootstrap_servers'}
    assert 'metadata_broker_list is deprecated: use bootstrap_servers' in caplog.text


def test_a_deprecated_name_beside_the_present_one_is_ignored(caplog):
    given = {'reconnect_backoff_max': 5000, 'reconnect_backoff_max_ms': 7000}
    assert config.resolve(config.CLIENT, given)['reconnect_backoff_max_ms'] == 7000
    assert 'deprecated, ignored' in caplog.text


def test_a_release_as_text_is_taken_with_a_warning(caplog):
    assert config.resolve(config.PRODUCER, {'api_version': '0.11'})['api_version'] == (0, 11)
    assert 'use the tuple (0, 11)' in caplog.text
    caplog.clear()
    assert config.resolve(config.PRODUCER, {'api_version': 'auto'})['api_version'] is None
    assert not caplog.text


@pytest.mark.parametrize('face', [config.PRODUCER, config.CONSUMER])
@pytest.mark.parametrize('given', ['9.9', (9, 9)])
def test_a_release_that_there_is_not_is_taken(face, given):
    assert config.resolve(face, {'api_version': given})['api_version'] == (9, 9)


def test_what_comes_out_is_complete_and_says_what_was_given():
    options = config.resolve(config.PRODUCER, {'acks': 'all', 'linger_ms': 5})
    assert options.keys() == config.defaults(config.PRODUCER).keys()
    assert options.given == {'acks', 'linger_ms'}
    assert (options['acks'], options['linger_ms']) == (-1, 5)
    assert options.face is config.PRODUCER


def test_what_was_given_is_not_changed():
    given = {'bootstrap_servers': ('a', 'b'), 'acks': 'all'}
    config.resolve(config.PRODUCER, given)
    assert given == {'bootstrap_servers': ('a', 'b'), 'acks': 'all'}


def test_options_can_be_pickled():
    options = config.resolve(config.PRODUCER, {'acks': 1, 'sasl_plain_password': 'x'})
    twin = pickle.loads(pickle.dumps(options))
    assert (twin, twin.given, twin.face) == (options, options.given, options.face)


@pytest.fixture
def no_dialect(monkeypatch):
    monkeypatch.delenv(resolution.DIALECT_SWITCH, raising=False)
    yield
    config.set_dialect(None)


def test_the_dialect_of_a_client_counts_most(no_dialect, monkeypatch):
    acks = []
    monkeypatch.setenv('KAFKA_LEGACY_DIALECT', '3.0.12')
    acks.append(config.resolve(config.PRODUCER, {})['acks'])
    config.set_dialect('1.4.7')
    acks.append(config.resolve(config.PRODUCER, {})['acks'])
    acks.append(config.resolve(config.PRODUCER, {'dialect': '3.0'})['acks'])
    assert acks == [-1, 1, -1]
    assert config.resolve(config.PRODUCER, {})['dialect'] == '1.4'


@pytest.mark.parametrize('release', ['0.9.5', 'modern'])
def test_0_9_5_had_none_of_the_modern_clients(no_dialect, release):
    options = config.resolve(config.PRODUCER, {'dialect': release})
    assert options['acks'] == -1
    assert config.defaults(config.PRODUCER, '0.9.5') == config.defaults(config.PRODUCER)


@pytest.mark.parametrize('release', ['4.0', 'latest', 3.0, ''])
def test_a_dialect_is_a_release(no_dialect, release):
    with pytest.raises(InvalidOptionError, match="'0.9.5' to '3.0'"):
        config.set_dialect(release)
    with pytest.raises(InvalidOptionError, match="'0.9.5' to '3.0'"):
        config.resolve(config.PRODUCER, {'dialect': release})


def test_a_wrong_dialect_of_the_environment_names_the_variable(no_dialect, monkeypatch):
    monkeypatch.setenv('KAFKA_LEGACY_DIALECT', 'new')
    with pytest.raises(
        InvalidOptionError, match='environment variable KAFKA_LEGACY_DIALECT must be'
    ):
        config.resolve(config.PRODUCER, {})


def test_warnings_go_to_one_logger(caplog):
    caplog.set_level(logging.WARNING)
    config.resolve(config.PRODUCER, {'metadata_broker_list': 'a:1'})
    assert {record.name for record in caplog.records} == {'kafka.config'}


def test_what_a_program_has_changed_in_a_default_config_stands_behind_what_it_gives():
    before = {'acks': 1, 'linger_ms': 0, 'hosts': ['a']}
    now = {'acks': 0, 'linger_ms': 7, 'hosts': ['a'], 'client_id': 'mine'}
    found = config.with_changed({'acks': 'all'}, now, before)
    assert found == {'acks': 'all', 'linger_ms': 7, 'client_id': 'mine'}
    assert config.with_changed({}, before, before) == {}


def test_a_reporter_has_the_methods_that_are_called_and_one_that_has_not_is_named():
    class Reporter:
        def init(self, metrics): ...

        def metric_change(self, metric): ...

        def metric_removal(self, metric): ...

        def close(self): ...

    resolved = config.resolve(config.CONSUMER, {'metric_reporters': [Reporter]})
    assert resolved['metric_reporters'] == [Reporter]
    with pytest.raises(InvalidOptionTypeError, match='item 1, type Other, is not one'):
        config.resolve(config.CONSUMER, {'metric_reporters': [Reporter, type('Other', (), {})]})
