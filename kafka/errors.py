"""All errors that this package raises, under the names of all releases.

The classes are defined in two modules: :mod:`kafka.client_errors` has those without an error code,
:mod:`kafka.broker_errors` one class per error code of a broker. Names of other releases are aliases
of the same classes, defined here. Attributes of the class say how a caller can handle an error:

``retriable``
    the same request may succeed later.
``refresh_metadata``, ``invalid_metadata``
    refresh the metadata before the next attempt (the second is the name in the 1.x releases).
``refind_coordinator``
    look up the coordinator of the group or the transactional id again.
``fatal``
    the producer or group member that got it cannot continue, whatever request it had sent.

A rule for a single API takes precedence over these flags; such rules are next to the code that
sends the request.
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
from kafka.client_errors import *  # noqa: F403 - every class without a code
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

# ---------------------------------------------------------------- names of other releases

KafkaProtocolError = ProtocolError
CorruptRecordError = CorruptRecordException = InvalidMessageError
NotLeaderOrFollowerError = NotLeaderForPartitionError
NetworkExceptionError = StaleLeaderEpochCodeError
CoordinatorLoadInProgressError = GroupLoadInProgressError = OffsetsLoadInProgressCode
CoordinatorNotAvailableError = ConsumerCoordinatorNotAvailableCode
GroupCoordinatorNotAvailableError = ConsumerCoordinatorNotAvailableCode
NotCoordinatorError = NotCoordinatorForGroupError = NotCoordinatorForConsumerCode
AuthenticationFailedError = SaslAuthenticationFailedError

# The names shown in logs: the newest ones, since 2.1.
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
    """Return the class of a broker's error code; UnknownError for an unknown code."""
    return kafka_errors.get(code, UnknownError)


_unrecognized: Dict[int, Type[BrokerResponseError]] = {}


def for_code(code: int) -> Type[BrokerResponseError]:
    """Return the class of an error code; an unknown code gets its own class (1.x to 3.x).

    That class is named UnrecognizedBrokerError, derives from it and has the code as errno.
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
    """Raise the error that a response reports, if any (0.9.5).

    Arguments: response: an exception instance, or an object with the attribute ``error`` (a code).
    Raises: the instance itself, or the class of a code other than 0 with the response as argument.
    """
    if isinstance(response, Exception):
        raise response
    if response.error:
        raise error_for_code(response.error)(response)
