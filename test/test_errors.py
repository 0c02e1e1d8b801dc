"""kafka.errors: codes, texts, flags and helpers."""

from __future__ import annotations

import copy
import pickle
from typing import NamedTuple

import pytest

from kafka import errors

# Code, class and text as 0.9.5 had them.
OLD_TABLE = [
    (-1, 'UnknownError', 'UNKNOWN'),
    (1, 'OffsetOutOfRangeError', 'OFFSET_OUT_OF_RANGE'),
    (2, 'InvalidMessageError', 'INVALID_MESSAGE'),
    (3, 'UnknownTopicOrPartitionError', 'UNKNOWN_TOPIC_OR_PARTITON'),
    (4, 'InvalidFetchRequestError', 'INVALID_FETCH_SIZE'),
    (5, 'LeaderNotAvailableError', 'LEADER_NOT_AVAILABLE'),
    (6, 'NotLeaderForPartitionError', 'NOT_LEADER_FOR_PARTITION'),
    (7, 'RequestTimedOutError', 'REQUEST_TIMED_OUT'),
    (8, 'BrokerNotAvailableError', 'BROKER_NOT_AVAILABLE'),
    (9, 'ReplicaNotAvailableError', 'REPLICA_NOT_AVAILABLE'),
    (10, 'MessageSizeTooLargeError', 'MESSAGE_SIZE_TOO_LARGE'),
    (11, 'StaleControllerEpochError', 'STALE_CONTROLLER_EPOCH'),
    (12, 'OffsetMetadataTooLargeError', 'OFFSET_METADATA_TOO_LARGE'),
    (13, 'StaleLeaderEpochCodeError', 'STALE_LEADER_EPOCH_CODE'),
    (14, 'OffsetsLoadInProgressCode', 'OFFSETS_LOAD_IN_PROGRESS_CODE'),
    (15, 'ConsumerCoordinatorNotAvailableCode', 'CONSUMER_COORDINATOR_NOT_AVAILABLE_CODE'),
    (16, 'NotCoordinatorForConsumerCode', 'NOT_COORDINATOR_FOR_CONSUMER_CODE'),
]
ALIASES = {
    'CorruptRecordError': 2,
    'CorruptRecordException': 2,
    'NetworkExceptionError': 13,
    'GroupLoadInProgressError': 14,
    'CoordinatorLoadInProgressError': 14,
    'GroupCoordinatorNotAvailableError': 15,
    'CoordinatorNotAvailableError': 15,
    'NotCoordinatorForGroupError': 16,
    'NotCoordinatorError': 16,
    'AuthenticationFailedError': 58,
}
RENAMED = {
    'InvalidMessageError': 'CorruptRecordError',
    'StaleLeaderEpochCodeError': 'NetworkExceptionError',
    'OffsetsLoadInProgressCode': 'CoordinatorLoadInProgressError',
    'GroupLoadInProgressError': 'CoordinatorLoadInProgressError',
    'ConsumerCoordinatorNotAvailableCode': 'CoordinatorNotAvailableError',
    'NotCoordinatorForConsumerCode': 'NotCoordinatorError',
    'AuthenticationFailedError': 'SaslAuthenticationFailedError',
}
# As the Java client files them.
RETRIABLE = (
    {2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84}
    | {88, 89, 100, 103, 106, 122, 123, 133}
)  # fmt: skip
REFRESH = {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103}


class Answer(NamedTuple):
    error: int


@pytest.mark.parametrize('code, name, message', OLD_TABLE)
def test_codes_of_0_9_5_have_their_old_names_and_texts(code, name, message):
    cls = getattr(errors, name)
    assert errors.kafka_errors[code] is cls
    assert (cls.__name__, cls.errno, cls.message) == (RENAMED.get(name, name), code, message)
    assert issubclass(cls, errors.BrokerResponseError)
    assert isinstance(cls('anything', 1, None), RuntimeError)


@pytest.mark.parametrize('name, code', sorted(ALIASES.items()))
def test_later_names_are_the_same_classes(name, code):
    assert getattr(errors, name) is errors.kafka_errors[code]


def test_every_code_up_to_4_4_0_has_a_class_a_text_and_a_meaning():
    assert set(errors.kafka_errors) == set(range(-1, 137))
    for code, cls in errors.kafka_errors.items():
        assert cls.errno == code
        assert cls.message == cls.message.upper() and cls.message.strip('_')
        assert cls.description and '\n' not in cls.description


@pytest.mark.parametrize(
    'code, message',
    [
        (0, 'NO_ERROR'),
        (40, 'INVALID_CONFIG'),
        (48, 'INVALID_TXN_STATE'),
        (56, 'KAFKA_STORAGE_ERROR'),
        (106, 'FETCH_SESSION_TOPIC_ID_ERROR'),
        (127, 'VOTER_NOT_FOUND'),
    ],
)
def test_text_of_later_codes(code, message):
    assert errors.kafka_errors[code].message == message


def test_flags_are_those_of_the_java_client():
    classes = errors.kafka_errors.values()
    assert {c.errno for c in classes if c.retriable} == RETRIABLE
    assert {c.errno for c in classes if c.refresh_metadata} == REFRESH
    assert {c.errno for c in classes if c.refind_coordinator} == {15, 16}
    assert {c.errno for c in classes if c.fatal} == {33, 58, 82, 90, 111, 112, 128}


def test_invalid_metadata_is_the_1_x_name_of_the_refresh_flag_and_covers_75():
    classes = errors.kafka_errors.values()
    assert {c.errno for c in classes if c.invalid_metadata} == REFRESH | {75}
    assert all(issubclass(c, errors.InvalidMetadataError) == c.invalid_metadata for c in classes)


def test_authorization_codes_share_a_base():
    codes = {
        c.errno for c in errors.kafka_errors.values() if issubclass(c, errors.AuthorizationError)
    }
    assert codes == {29, 30, 31, 53, 65}


def test_connection_error_is_not_the_builtin_but_shows_its_name():
    import builtins

    assert errors.ConnectionError is errors.KafkaConnectionError
    assert errors.ConnectionError.__name__ == 'ConnectionError'
    assert not issubclass(errors.ConnectionError, builtins.ConnectionError)
    assert issubclass(errors.FrameError, (errors.ConnectionError,))
    assert issubclass(errors.FrameError, (errors.ProtocolError,))


@pytest.mark.parametrize(
    'name',
    [
        'KafkaUnavailableError', 'KafkaTimeoutError', 'ConnectionError', 'BufferUnderflowError',
        'ChecksumError', 'ConsumerFetchSizeTooSmall', 'ConsumerNoMoreData', 'ConsumerTimeout',
        'ProtocolError', 'UnsupportedCodecError', 'KafkaConfigurationError', 'IllegalStateError',
        'NoBrokersAvailable', 'CommitFailedError', 'KafkaProtocolError', 'StaleMetadata',
    ],
)  # fmt: skip
def test_errors_without_a_code(name):
    cls = getattr(errors, name)
    assert issubclass(cls, errors.KafkaError)
    assert not issubclass(cls, errors.BrokerResponseError)


def test_failed_payloads_keeps_the_payload_out_of_the_arguments():
    error = errors.FailedPayloadsError('payload', 'why', 1)
    assert (error.payload, error.args) == ('payload', ('why', 1))
    assert error != errors.FailedPayloadsError('other', 'why', 1)


def test_async_producer_queue_full_keeps_the_messages_out_of_the_arguments():
    error = errors.AsyncProducerQueueFull([b'a'], 'why')
    assert (error.failed_msgs, error.args) == ([b'a'], ('why',))


@pytest.mark.parametrize(
    'error',
    [
        errors.FailedPayloadsError(('t', 1), 'why'),
        errors.AsyncProducerQueueFull([b'a'], 'why'),
        errors.LogTruncationError({1: None}),
        errors.KafkaConnectionError('gone'),
        errors.OffsetOutOfRangeError([1, 2]),
        errors.CommitFailedError(),
    ],
)
def test_errors_can_be_pickled_and_copied(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert twin == error
        assert hash(twin) == hash(error)


def test_equality_goes_by_class_and_arguments():
    assert errors.KafkaError('a') == errors.KafkaError('a')
    assert errors.KafkaError('a') != errors.KafkaError('b')
    assert errors.KafkaError('a') != errors.KafkaTimeoutError('a')
    assert errors.KafkaError('a') != RuntimeError('a')


def test_str_names_the_class_and_the_code():
    assert str(errors.KafkaTimeoutError()) == 'KafkaTimeoutError'
    assert str(errors.KafkaTimeoutError('30 s')) == 'KafkaTimeoutError: 30 s'
    assert str(errors.LeaderNotAvailableError('t')) == '[Error 5] LeaderNotAvailableError: t'


def test_error_for_code_falls_back_to_unknown():
    assert errors.error_for_code(6) is errors.NotLeaderForPartitionError
    assert errors.error_for_code(0) is errors.NoError
    assert errors.error_for_code(12345) is errors.UnknownError


def test_for_code_gives_an_unlisted_code_a_class_of_its_own():
    cls = errors.for_code(12345)
    assert cls is errors.for_code(12345)
    assert (cls.__name__, cls.errno) == ('UnrecognizedBrokerError', 12345)
    assert issubclass(cls, errors.UnknownError)
    assert errors.for_code(0) is errors.NoError
    assert 12345 not in errors.kafka_errors


def test_check_error_raises_an_instance_as_it_is():
    error = ValueError('mine')
    with pytest.raises(ValueError) as caught:
        errors.check_error(error)
    assert caught.value is error


def test_check_error_raises_the_class_of_the_code_with_the_response():
    with pytest.raises(errors.NotLeaderForPartitionError) as caught:
        errors.check_error(Answer(6))
    assert caught.value.args == (Answer(6),)
    with pytest.raises(errors.UnknownError):
        errors.check_error(Answer(4711))


def test_check_error_accepts_success():
    assert errors.check_error(Answer(0)) is None


def test_retry_groups():
    backoff = (
        errors.KafkaUnavailableError,
        errors.LeaderNotAvailableError,
        errors.ConnectionError,
        errors.FailedPayloadsError,
    )
    refresh = (
        errors.NotLeaderForPartitionError,
        errors.UnknownTopicOrPartitionError,
        errors.LeaderNotAvailableError,
        errors.ConnectionError,
    )
    assert errors.RETRY_BACKOFF_ERROR_TYPES == backoff
    assert errors.RETRY_REFRESH_ERROR_TYPES == refresh
    assert errors.RETRY_ERROR_TYPES == backoff + refresh


@pytest.mark.parametrize('old', RENAMED)
def test_errors_are_called_by_their_newest_name(old):
    cls = getattr(errors, old)
    assert cls.__name__ == RENAMED[old] and getattr(errors, RENAMED[old]) is cls
    assert str(cls()) == '[Error %d] %s' % (cls.errno, RENAMED[old])
    assert type(pickle.loads(pickle.dumps(cls('t')))) is cls
