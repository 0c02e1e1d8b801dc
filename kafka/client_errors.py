"""The errors of this package's own: what goes wrong without a broker having a code for it.

Programs import them from :mod:`kafka.errors`, which says what the flags of a class mean and where
its classes say they come from.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple


class KafkaError(RuntimeError):
    """Root of everything this package raises on its own account."""

    retriable: bool = False
    refresh_metadata: bool = False
    invalid_metadata: bool = False
    refind_coordinator: bool = False
    fatal: bool = False
    stage: Optional[str] = None  # of connecting: DNS, TCP, proxy, TLS, SASL, ApiVersions, Metadata
    advice: str = ''  # what to do, where it takes more than to know what has happened

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
        # Arguments may be lists: only what surely hashes takes part, equal errors still agree.
        return hash((type(self), len(self.args)))


class RetriableError(KafkaError):
    """The same call may succeed when it is tried again."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """The call may succeed once metadata was refreshed."""

    refresh_metadata = True
    invalid_metadata = True


# ---------------------------------------------------------------- without a code


# One row per class; the formatter would put two blank lines between the rows, hence:
# fmt: off
class KafkaUnavailableError(KafkaError):
    """No broker could be reached."""
class KafkaTimeoutError(RetriableError):
    """The time a call was given is over; whether the broker acted is unknown."""
class KafkaConnectionError(InvalidMetadataError):
    """The connection to a broker failed or is gone. Shown by its old name, ``ConnectionError``."""
class BufferUnderflowError(KafkaError):
    """The bytes end before the value they announce does."""
class ProtocolError(KafkaError):
    """Bytes that are malformed or contradict themselves, or a value the protocol cannot carry."""
class ChecksumError(KafkaError):
    """A stored checksum does not belong to the bytes it came with."""
class ConsumerFetchSizeTooSmall(KafkaError):
    """The next message is larger than the largest buffer the consumer may use."""
class ConsumerNoMoreData(KafkaError):
    """There is nothing more to read."""
class ConsumerTimeout(KafkaError):
    """No message came within the time that iteration waits for one."""
class UnsupportedCodecError(KafkaError):
    """A compression codec is unknown, or the library it needs is not installed."""
class KafkaConfigurationError(KafkaError):
    """An option is unknown, missing, or does not go with another one."""
class InvalidOptionError(KafkaConfigurationError, ValueError, AssertionError):
    """An option that there is not, or a value it cannot have; all that eras raised for it."""
class InvalidOptionTypeError(InvalidOptionError, TypeError):
    """A value of a type that the option cannot have."""
class FrameError(KafkaConnectionError, ProtocolError):
    """The peer sent a frame that no Kafka broker sends: it speaks another protocol."""
class CorrelationIdError(ProtocolError):
    """A response does not belong to the request that was next in line."""
    retriable = True
class InvalidReceiveError(ProtocolError):
    """A frame is larger than the limit the client was given."""
class IllegalStateError(KafkaError, AssertionError):
    """The call does not fit the state the object is in (up to 2.3 an AssertionError)."""
class IllegalArgumentError(KafkaError):
    """An argument is outside what the call accepts."""
class NoBrokersAvailable(InvalidMetadataError, KafkaTimeoutError):
    """None of the bootstrap servers answered in time."""
class NodeNotReadyError(RetriableError):
    """The connection to that node is not established yet."""
class TooManyInFlightRequests(RetriableError):
    """The connection carries as many unanswered requests as it may."""
class Cancelled(RetriableError):
    """The request was given up before its answer came."""
class StaleMetadata(InvalidMetadataError):
    """What is known of the cluster is too old to act upon."""
class MetadataEmptyBrokerList(RetriableError):
    """The cluster answered with a list of no brokers."""
class UnrecognizedBrokerVersion(KafkaError):
    """The broker gives no answer from which its release can be told."""
class UnknownBrokerIdError(KafkaError):
    """No broker of that node id is known."""
class QuotaViolationError(KafkaError):
    """A metric went beyond its bound."""
class NoOffsetForPartitionError(KafkaError):
    """A partition has no committed offset and no reset policy says where to start."""
    advice = 'seek() it or commit an offset, or let auto_offset_reset be earliest or latest'
class RecordTooLargeError(KafkaError):
    """A first message does not fit what may be fetched: text, {partition: offset}, bytes (1.2)."""
class TransactionAbortedError(KafkaError):
    """The record was not sent because its transaction was aborted."""
class PurgedError(KafkaError):
    """The record was given up by purge() of its producer; the text says whether it was sent."""
class WakeupError(KafkaError):
    """A call that blocked was ended by wakeup() of a consumer."""
class AuthenticationMethodNotSupported(KafkaError):
    """Client and broker share no way to authenticate."""
# fmt: on

KafkaConnectionError.__name__ = KafkaConnectionError.__qualname__ = 'ConnectionError'
ConnectionError = KafkaConnectionError


class FailedPayloadsError(KafkaError):
    """A payload could not be delivered to its broker.

    Arguments: payload: the request tuple concerned, kept as attribute; the rest is the message.
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
    """The group moved on, so that the offsets cannot be committed any more.

    Attributes: errno_of_group: the code that a broker said it with, None where none was asked.
    """

    errno_of_group: Optional[int] = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or ('the group has rebalanced and owns the partitions anew',)))


class LogTruncationError(KafkaError):
    """A leader change dropped records that were already read.

    Arguments: divergent_offsets: topic partition -> OffsetAndMetadata where the logs part, or None.
    """

    def __init__(self, divergent_offsets: Any, *args: Any) -> None:
        super().__init__(*args)
        self.divergent_offsets = divergent_offsets

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.divergent_offsets,) + self.args
