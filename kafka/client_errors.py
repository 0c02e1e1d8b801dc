"""Error classes for failures that have no error code of a broker.

Programs import them from :mod:`kafka.errors`, which documents the flags of a class and sets the
module that the classes name.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple


class KafkaError(RuntimeError):
    """Base of all errors that this package raises itself."""

    retriable: bool = False
    refresh_metadata: bool = False
    invalid_metadata: bool = False
    refind_coordinator: bool = False
    fatal: bool = False
    stage: Optional[str] = None  # of connecting: DNS, TCP, proxy, TLS, SASL, ApiVersions, Metadata
    advice: str = ''  # what to do, unless the message already says it

    def _title(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        text = super().__str__()
        text = '%s: %s' % (self._title(), text) if text else self._title()
        return '%s; %s' % (text, self.advice) if self.advice else text

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, KafkaError)
        return self.args == other.args and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        # Arguments may be unhashable, such as lists; equal errors still have equal hashes.
        return hash((type(self), len(self.args)))


class RetriableError(KafkaError):
    """The same call may succeed when it is repeated."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """The call may succeed after a metadata refresh."""

    refresh_metadata = True
    invalid_metadata = True


# ---------------------------------------------------------------- without an error code


# One row per class; the formatter would put two blank lines between the rows.
# fmt: off
class KafkaUnavailableError(KafkaError):
    """No broker could be reached."""
class KafkaTimeoutError(RetriableError):
    """The time of a call is over; whether the broker acted is unknown."""
class KafkaConnectionError(InvalidMetadataError):
    """The connection to a broker failed or is closed. Its ``__name__`` is ``ConnectionError``."""
class BufferUnderflowError(KafkaError):
    """The bytes end before the announced length."""
class ProtocolError(KafkaError):
    """Bytes that are malformed or contradict themselves, or a value the protocol cannot carry."""
class ChecksumError(KafkaError):
    """A stored checksum does not match its bytes."""
class ConsumerFetchSizeTooSmall(KafkaError):
    """The next message exceeds the maximum buffer size of the consumer."""
class ConsumerNoMoreData(KafkaError):
    """There is nothing more to read."""
class ConsumerTimeout(KafkaError):
    """No message arrived within the iteration time-out."""
class UnsupportedCodecError(KafkaError):
    """A compression codec is unknown, or the library it needs is not installed."""
class KafkaConfigurationError(KafkaError):
    """An option is unknown, missing, or contradicts another one."""
class InvalidOptionError(KafkaConfigurationError, ValueError, AssertionError):
    """Unknown option or invalid value. Also a ValueError and AssertionError, as releases raised."""
class InvalidOptionTypeError(InvalidOptionError, TypeError):
    """The value of an option has a wrong type."""
class FrameError(KafkaConnectionError, ProtocolError):
    """The peer sent a frame that no Kafka broker sends: it uses another protocol."""
class CorrelationIdError(ProtocolError):
    """A response does not belong to the next pending request."""
    retriable = True
class InvalidReceiveError(ProtocolError):
    """A frame is larger than the configured limit."""
class IllegalStateError(KafkaError, AssertionError):
    """The call is not allowed in this state of the object (up to 2.3 an AssertionError)."""
class IllegalArgumentError(KafkaError):
    """An argument is outside the accepted range."""
class NoBrokersAvailable(InvalidMetadataError, KafkaTimeoutError):
    """None of the bootstrap servers answered in time."""
class NodeNotReadyError(RetriableError):
    """The connection to that node is not established yet."""
class TooManyInFlightRequests(RetriableError):
    """The connection has its maximum number of unanswered requests."""
class Cancelled(RetriableError):
    """The request was cancelled before its response arrived."""
class StaleMetadata(InvalidMetadataError):
    """The metadata of the cluster is too old to use."""
class MetadataEmptyBrokerList(RetriableError):
    """The cluster answered with an empty list of brokers."""
class UnrecognizedBrokerVersion(KafkaError):
    """The broker's responses do not allow to determine its release."""
class UnknownBrokerIdError(KafkaError):
    """No broker with that node id is known."""
class QuotaViolationError(KafkaError):
    """A metric exceeded its bound."""
class NoOffsetForPartitionError(KafkaError):
    """A partition has no committed offset and no reset policy."""
    advice = 'seek() it or commit an offset, or let auto_offset_reset be earliest or latest'
class RecordTooLargeError(KafkaError):
    """A first message exceeds the fetch limit: text, {partition: offset}, bytes (1.2)."""
class TransactionAbortedError(KafkaError):
    """The record was not sent because its transaction was aborted."""
class PurgedError(KafkaError):
    """The record was dropped by purge() of its producer; the text says whether it was sent."""
class WakeupError(KafkaError):
    """A blocking call was interrupted by wakeup() of a consumer."""
class AuthenticationMethodNotSupported(KafkaError):
    """Client and broker have no authentication method in common."""
# fmt: on

KafkaConnectionError.__name__ = KafkaConnectionError.__qualname__ = 'ConnectionError'
ConnectionError = KafkaConnectionError


class FailedPayloadsError(KafkaError):
    """A payload could not be delivered to its broker.

    Arguments: payload: the request tuple, kept as attribute; the rest is the message.
    """

    def __init__(self, payload: Any, *args: Any) -> None:
        super().__init__(*args)
        self.payload = payload

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.payload,) + self.args

    def __str__(self) -> str:
        text = super().__str__()
        if self.args or not isinstance(self.__cause__, Exception):
            return text
        return '%s: %s' % (text, ' '.join(map(str, self.__cause__.args)))


class AsyncProducerQueueFull(KafkaError):
    """The queue of an asynchronous producer is full.

    Arguments: failed_msgs: the messages that were not queued, kept as attribute; the rest is the
    message.
    """

    def __init__(self, failed_msgs: Any, *args: Any) -> None:
        super().__init__(*args)
        self.failed_msgs = failed_msgs

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.failed_msgs,) + self.args


class CommitFailedError(KafkaError):
    """The group has rebalanced, so that the offsets can no longer be committed.

    Attributes: errno_of_group: the broker's error code, None if no broker was asked.
    """

    errno_of_group: Optional[int] = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or ('the group has rebalanced and assigned the partitions again',)))


class LogTruncationError(KafkaError):
    """A leader change dropped records that were already read.

    Arguments: divergent_offsets: topic partition -> OffsetAndMetadata where the logs diverge, or
    None.
    """

    def __init__(self, divergent_offsets: Any, *args: Any) -> None:
        super().__init__(*args)
        self.divergent_offsets = divergent_offsets

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.divergent_offsets,) + self.args
