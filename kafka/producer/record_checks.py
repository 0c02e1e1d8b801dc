"""Checks of records and arguments, and adapters for the serializers of all releases.

Called by KafkaProducer, in the sending thread, before a record is appended to a batch. The errors
are ValueErrors or TypeErrors, and AssertionErrors too, as before 3.0. Topic names are checked by
internals/validation.py.
"""

from __future__ import annotations

import logging
import operator
import reprlib
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from kafka import codec as codecs
from kafka.errors import (
    IllegalStateError,
    InvalidOptionError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    UnsupportedForMessageFormatError,
)
from kafka.internals.validation import (
    ArgumentTypeError,
    ArgumentValueError,
    as_int,
    as_milliseconds,
)
from kafka.internals.validation import check_topic as check_topic
from kafka.partitioner.adapt import takes
from kafka.producer.producer_batch import compression_of

log = logging.getLogger(__name__)

_LAST_TIMESTAMP = 2**63 - 1


class RecordValueError(ArgumentValueError):
    """Invalid value in a record or an argument."""


class RecordTypeError(ArgumentTypeError):
    """Wrong type in a record or an argument."""


class ProducerClosedError(IllegalStateError, AssertionError):
    """The producer is closed."""


class FlushTimeoutError(KafkaTimeoutError, AssertionError):
    """Some records have no outcome yet; releases before 2.0 raised an AssertionError."""


class MissingCodecOptionError(KafkaConfigurationError, RuntimeError, AssertionError):
    """The package of a codec is not installed."""


class ProducerRecord(NamedTuple):
    """A record as a program sends it; interceptors take and return it."""

    topic: Any
    value: Any = None
    key: Any = None
    headers: Any = None
    partition: Any = None
    timestamp_ms: Any = None


# The first broker release that supports a codec.
_CODEC_SINCE = {'lz4': (0, 8, 2), 'zstd': (2, 1)}


def check_codec(config: Mapping[str, Any]) -> None:
    """Check the compression options: package and level of the codec, release of the brokers.

    Raises: InvalidOptionError; MissingCodecOptionError.
    """
    name, version = config['compression_type'], config['api_version']
    since = _CODEC_SINCE.get(name)
    if since and version is not None and version < since:
        raise InvalidOptionError(
            'compression_type %s needs brokers of %s, these are of %s'
            % (name, _dotted(since), _dotted(version))
        )
    try:
        codecs.compress(compression_of(name), b'', config['compression_level'])
    except codecs.MissingCodecError as error:
        raise MissingCodecOptionError(
            'Libraries for %s compression codec not found: %s' % (name, error)
        ) from error
    except ValueError as error:
        raise InvalidOptionError('compression_level: %s' % error) from error


def as_bytes(name: str, field: Any) -> Optional[bytes]:
    """Return a serialized key or value as bytes, or None. Raises: RecordTypeError."""
    if field is None or type(field) is bytes:
        return field
    if isinstance(field, (bytes, bytearray, memoryview)):
        return bytes(field)
    raise RecordTypeError(
        '%s must be bytes, not %s; a %s_serializer may make bytes of it'
        % (name, type(field).__name__, name)
    )


def check_headers(headers: Any) -> Sequence[Tuple[str, Optional[bytes]]]:
    """Return headers, ``()`` if absent.

    Raises: RecordTypeError; RecordValueError for a name that cannot be encoded as UTF-8.
    """
    if not headers and (headers is None or isinstance(headers, (list, tuple))):
        return ()
    if not isinstance(headers, list):
        raise RecordTypeError(
            'headers must be a list of (str, bytes or None) tuples, not %s' % type(headers).__name__
        )
    for header in headers:
        right = isinstance(header, tuple) and len(header) == 2 and isinstance(header[0], str)
        if not right or not isinstance(header[1], (bytes, type(None))):
            raise RecordTypeError(
                'headers must be a list of (str, bytes or None) tuples; one is %s of %s'
                % (type(header).__name__, _types(header))
            )
        try:
            header[0].encode('utf-8')
        except UnicodeEncodeError as error:
            raise RecordValueError(
                'the name of a header cannot be encoded in UTF-8: %s' % error
            ) from error
    return list(headers)


def _types(header: Any) -> str:
    if not isinstance(header, (list, tuple)):
        return 'no such thing'
    return '(%s)' % ', '.join(type(part).__name__ for part in header)


def check_release(
    release: Tuple[int, ...], has_null: bool, headers: Any, timestamp: Optional[int]
) -> None:
    """Check that brokers of a release support a record; log once if they drop its timestamp.

    Arguments: has_null: whether a value is None.
    Raises: RecordValueError for a null value, UnsupportedForMessageFormatError for headers.
    """
    if has_null and release < (0, 8, 1):
        raise RecordValueError(
            'brokers before 0.8.1 store no null values, and api_version is %s' % _dotted(release)
        )
    if headers and release < (0, 11):
        raise UnsupportedForMessageFormatError(
            'brokers before 0.11 store no headers, and api_version is %s' % _dotted(release)
        )
    if timestamp is not None and release < (0, 10) and not _told_of_timestamps:
        _told_of_timestamps.append(release)
        log.warning(
            'brokers before 0.10 store no timestamps, and api_version is %s: timestamp_ms has no'
            ' effect',
            _dotted(release),
        )


# Not empty once the warning was logged: once in a process is enough.
_told_of_timestamps: List[Tuple[int, ...]] = []


def _dotted(release: Tuple[int, ...]) -> str:
    return '.'.join(map(str, release))


def check_timestamp(timestamp: Any) -> Optional[int]:
    """Return a timestamp (ms), or None. Raises: RecordTypeError, RecordValueError."""
    if timestamp is None:
        return None
    milliseconds = as_milliseconds('timestamp_ms', timestamp)
    if not 0 <= milliseconds <= _LAST_TIMESTAMP:
        raise RecordValueError(
            'timestamp_ms must be milliseconds since 1970, from 0 to 2**63 - 1, not %r' % timestamp
        )
    return milliseconds


def check_column(name: str, column: Any) -> List[Any]:
    """Return the values or keys of several records as a list. Raises: RecordTypeError."""
    if isinstance(column, (str, bytes, bytearray, memoryview, Mapping)) or not hasattr(
        column, '__iter__'
    ):
        raise RecordTypeError('%s must be a list, not %s' % (name, type(column).__name__))
    return list(column)


def check_chosen(topic: str, partition: Any, partitions: Sequence[int]) -> int:
    """Return the partition id that a partitioner of the program has chosen.

    Raises: RecordValueError if the topic has no such partition.
    """
    try:
        return check_partition(topic, operator.index(partition), partitions)
    except (TypeError, RecordValueError) as error:
        raise RecordValueError(
            'the partitioner returned %s for topic %s, which is not one of its partitions: %s'
            % (reprlib.repr(partition), topic, ', '.join(map(str, partitions)))
        ) from error


def check_record(interceptor: Any, record: Any) -> ProducerRecord:
    """Return what on_send() of an interceptor has returned. Raises: RecordTypeError."""
    if not all(hasattr(record, field) for field in ProducerRecord._fields):
        raise RecordTypeError(
            '%s.on_send() must return a record, the one it got or a changed one, not %s'
            % (type(interceptor).__name__, type(record).__name__)
        )
    checked: ProducerRecord = record
    return checked


def check_partition(topic: str, partition: Any, partitions: Sequence[int]) -> int:
    """Return a partition id as an int. Raises: RecordTypeError, RecordValueError if absent."""
    number = as_int('partition', partition)
    if number < 0 or number not in partitions:
        raise RecordValueError(
            'partition %d: the topic %s has %d to %d'
            % (number, topic, partitions[0], partitions[-1])
        )
    return number


def check_timeout(timeout: Any) -> Optional[float]:
    """Return a timeout in seconds, or None. Raises: RecordTypeError, RecordValueError."""
    if timeout is not None and (not isinstance(timeout, (int, float)) or timeout != timeout):
        raise RecordTypeError('timeout must be a number of seconds or None, not %r' % (timeout,))
    if timeout is not None and timeout < 0:
        raise RecordValueError('timeout must be at least 0 seconds, not %r' % (timeout,))
    return timeout


Serializer = Callable[[Any, List[Any], Any], Any]


def adapt_serializer(name: str, serializer: Any) -> Optional[Serializer]:
    """Return a serializer of any release as a function of (topic, headers, data); None for None.

    Callables get (data), objects of 1.3 to 2.x (topic, data), those of 3.0 (topic, headers, data).
    Raises: KafkaConfigurationError for anything else.
    """
    if serializer is None:
        return None
    serialize = getattr(serializer, 'serialize', None)
    if serialize is None:
        if not callable(serializer):
            raise KafkaConfigurationError(
                '%s must be callable or have a method serialize(), not be %r' % (name, serializer)
            )
        return lambda topic, headers, data: serializer(data)
    if takes(serialize, 3, unknown=False):
        return lambda topic, headers, data: serialize(topic, headers, data)
    return lambda topic, headers, data: serialize(topic, data)
