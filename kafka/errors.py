"""Every error this package raises, under every name that an era gave it.

The classes are made in two rooms behind this one: :mod:`kafka.client_errors` has what goes wrong
without a code, :mod:`kafka.broker_errors` one class per error code of a broker. Names of other eras
are aliases of the same classes and stand here. What a caller should do about an error is data on
its class:

``retriable``
    the same request may succeed later.
``refresh_metadata``, ``invalid_metadata``
    fetch fresh metadata before the next try (the second name is the one of the 1.x releases).
``refind_coordinator``
    ask again which broker coordinates the group or the transactional id.
``fatal``
    the producer or group member that got it is finished, whatever request it had sent.

A rule for one API wins over these flags; how errors are reacted to stands with the drivers.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple, Type

from kafka.broker_errors import *  # noqa: F403 - every class with a code
from kafka.broker_errors import (
    BrokerResponseError,
    ConsumerCoordinatorNotAvailableCode,
    InvalidMessageError,
    LeaderNotAvailableError,
    NotCoordinatorForConsumerCode,
    NotLeaderForPartitionError,
    OffsetsLoadInProgressCode,
    SaslAuthenticationFailedError,
    StaleLeaderEpochCodeError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnrecognizedBrokerError,
    kafka_errors,
)
from kafka.client_errors import *  # noqa: F403 - every class without
from kafka.client_errors import (
    ConnectionError as ConnectionError,
)
from kafka.client_errors import (
    FailedPayloadsError,
    KafkaConnectionError,
    KafkaError,
    KafkaUnavailableError,
    ProtocolError,
)

# Programs catch, log and pickle them by this path.
for _each in list(globals().values()):
    if isinstance(_each, type) and issubclass(_each, KafkaError):
        _each.__module__ = __name__
del _each

# ---------------------------------------------------------------- other eras' names

KafkaProtocolError = ProtocolError
CorruptRecordError = CorruptRecordException = InvalidMessageError
NotLeaderOrFollowerError = NotLeaderForPartitionError
NetworkExceptionError = StaleLeaderEpochCodeError
CoordinatorLoadInProgressError = GroupLoadInProgressError = OffsetsLoadInProgressCode
CoordinatorNotAvailableError = ConsumerCoordinatorNotAvailableCode
GroupCoordinatorNotAvailableError = ConsumerCoordinatorNotAvailableCode
NotCoordinatorError = NotCoordinatorForGroupError = NotCoordinatorForConsumerCode
AuthenticationFailedError = SaslAuthenticationFailedError

# What they are called in a log: by the newest name, since 2.1.
for _each, _name in (
    (InvalidMessageError, 'CorruptRecordError'),
    (StaleLeaderEpochCodeError, 'NetworkExceptionError'),
    (OffsetsLoadInProgressCode, 'CoordinatorLoadInProgressError'),
    (ConsumerCoordinatorNotAvailableCode, 'CoordinatorNotAvailableError'),
    (NotCoordinatorForConsumerCode, 'NotCoordinatorError'),
):
    _each.__name__ = _each.__qualname__ = _name
del _each, _name

RETRY_BACKOFF_ERROR_TYPES: Tuple[Type[KafkaError], ...] = (
    KafkaUnavailableError,
    LeaderNotAvailableError,
    KafkaConnectionError,
    FailedPayloadsError,
)
RETRY_REFRESH_ERROR_TYPES: Tuple[Type[KafkaError], ...] = (
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
    LeaderNotAvailableError,
    KafkaConnectionError,
)
RETRY_ERROR_TYPES = RETRY_BACKOFF_ERROR_TYPES + RETRY_REFRESH_ERROR_TYPES


def error_for_code(code: int) -> Type[BrokerResponseError]:
    """Return the class of a broker's error code; UnknownError for a code not listed."""
    return kafka_errors.get(code, UnknownError)


_unrecognized: Dict[int, Type[BrokerResponseError]] = {}


def for_code(code: int) -> Type[BrokerResponseError]:
    """Return the class of an error code; one not listed gets a class of its own (1.x to 3.x).

    That class is called UnrecognizedBrokerError, derives from it and carries the code as errno.
    """
    known = kafka_errors.get(code) or _unrecognized.get(code)
    if known is None:

        class Unrecognized(UnrecognizedBrokerError):
            __doc__ = UnrecognizedBrokerError.__doc__

        Unrecognized.__name__ = Unrecognized.__qualname__ = UnrecognizedBrokerError.__name__
        Unrecognized.errno = code
        known = _unrecognized[code] = Unrecognized
    return known


def check_error(response: Any) -> None:
    """Raise what a response reports, if anything (0.9.5).

    Arguments: response: an exception instance, or an object with the attribute ``error`` (a code).
    Raises: the instance itself, or the class of a code other than 0 with the response as argument.
    """
    if isinstance(response, Exception):
        raise response
    if response.error:
        raise error_for_code(response.error)(response)
