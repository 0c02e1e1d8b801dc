"""Serializers, partitioner and interceptors of a producer: from a record to bytes and a partition.

RecordPreparation calls the serializers and the partitioner, ProducerInterceptors the interceptors;
both accept those of any release. KafkaProducer calls them in the sending thread, without a lock.
Neither refers to the producer.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, List, Optional, Sequence, Tuple

from kafka.cluster import ClusterMetadata
from kafka.internals.program_errors import log_program_error
from kafka.partitioner.adapt import Question, adapt, is_default
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import Headers
from kafka.producer.record_checks import (
    ProducerRecord,
    RecordTypeError,
    RecordValueError,
    Serializer,
    adapt_serializer,
    as_bytes,
    check_chosen,
    check_headers,
    check_partition,
    check_record,
    check_release,
    check_timestamp,
    check_topic,
)
from kafka.producer.topic_queue import TopicQueue

__all__ = ['ProducerInterceptors', 'RecordPreparation']

log = logging.getLogger(__name__)

Column = List[Optional[bytes]]


class RecordPreparation:
    """Checks and serializes records and chooses their partitions.

    Arguments: the options of the same names. Raises: KafkaConfigurationError for an object that is
    not a serializer or partitioner.

    Attributes: is_default: whether the accumulator implements the partitioner; is_plain: whether
    there is no serializer either; on_new_batch: the callback of the partitioner for a new batch
    (KIP-480), or None.
    """

    def __init__(self, key_serializer: Any, value_serializer: Any, partitioner: Any) -> None:
        self._key_serializer = adapt_serializer('key_serializer', key_serializer)
        self._value_serializer = adapt_serializer('value_serializer', value_serializer)
        self._partitioner = adapt(partitioner)
        self.on_new_batch = self._partitioner.on_new_batch
        self.is_default = is_default(partitioner)
        self.is_plain = self._key_serializer is self._value_serializer is None and self.is_default

    def __repr__(self) -> str:
        return '<RecordPreparation%s>' % (' plain' if self.is_plain else '')

    # ------------------------------------------------------------ one record

    def prepare(
        self, record: ProducerRecord, release: Tuple[int, ...]
    ) -> Tuple[Optional[bytes], Optional[bytes], Headers, Optional[int]]:
        """Return checked and serialized key, value, headers and timestamp of a record.

        Arguments: release: of the brokers. Raises: RecordTypeError, RecordValueError,
        UnsupportedForMessageFormatError; what serializers raise.
        """
        topic = record.topic
        check_topic(topic)
        if record.value is None and record.key is None:
            raise RecordValueError('Need at least one: key or value')
        timestamp = check_timestamp(record.timestamp_ms)
        headers = check_headers(record.headers)
        key, value = record.key, record.value
        if self._key_serializer is not None:
            key = self._key_serializer(topic, record.headers, key)
        key = as_bytes('key', key)
        if self._value_serializer is not None:
            value = self._value_serializer(topic, record.headers, value)
        value = as_bytes('value', value)
        check_release(release, value is None, headers, timestamp)
        return key, value, headers, timestamp

    def partition(
        self,
        queue: TopicQueue,
        record: ProducerRecord,
        key: Optional[bytes],
        value: Optional[bytes],
        cluster: ClusterMetadata,
    ) -> Optional[int]:
        """Return the partition of a record; None if the accumulator chooses one for a batch.

        Arguments: key, value: serialized. Raises: RecordTypeError; RecordValueError for an id that
        is not a partition of the topic; what the partitioner raises.
        """
        if record.partition is not None:
            return check_partition(record.topic, record.partition, queue.partitions)
        if self.is_default:
            return None if key is None else queue.by_key[key].topic_partition.partition
        asked = Question(
            record.topic,
            record.key,
            key,
            record.value,
            value,
            queue.partitions,
            queue.available,
            cluster,
        )
        chosen = self._partitioner.choose(asked)
        return check_chosen(record.topic, chosen, queue.partitions)

    # ------------------------------------------------------------ columns of send_many()

    def serialize_values(self, record: ProducerRecord, column: Sequence[Any]) -> Column:
        """Return serialized values. Arguments: record: the fields that the records share.

        Raises: RecordTypeError, with the number of the record; what the serializer raises.
        """
        return self._serialize_all('value', self._value_serializer, record, column)

    def serialize_keys(self, record: ProducerRecord, column: Sequence[Any]) -> Column:
        """Return serialized keys; as serialize_values()."""
        return self._serialize_all('key', self._key_serializer, record, column)

    def _serialize_all(
        self,
        name: str,
        serializer: Optional[Serializer],
        record: ProducerRecord,
        column: Sequence[Any],
    ) -> Column:
        found: Column = []
        try:
            for data in column:
                if serializer is not None:
                    data = serializer(record.topic, record.headers, data)
                found.append(as_bytes(name, data))
        except RecordTypeError as error:
            raise RecordTypeError('%s (record %d; none was sent)' % (error, len(found))) from None
        return found


class ProducerInterceptors:
    """The interceptors of one producer, called in their order (KIP-42).

    Arguments: interceptors: objects, or classes to be instantiated without arguments, with
    ``on_send(record)``, ``on_acknowledgement(metadata, exception)``, or both.
    """

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = [each() if isinstance(each, type) else each for each in interceptors]
        self._told = [
            each.on_acknowledgement
            for each in self._interceptors
            if hasattr(each, 'on_acknowledgement')
        ]

    def __repr__(self) -> str:
        return '<ProducerInterceptors %d>' % len(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send. Raises: RecordTypeError; what an interceptor raises."""
        for interceptor in self._interceptors:
            if hasattr(interceptor, 'on_send'):
                record = check_record(interceptor, interceptor.on_send(record))
        return record

    def on_send_error(self, error: BaseException) -> None:
        """Report a record that was not accepted; exceptions of interceptors are logged."""
        for told in self._told:
            try:
                told(None, error)
            except Exception as failure:  # the caller raises the error of the record
                log_program_error(log, failure, 'an interceptor failed: %r', told)

    def watch(self, future: FutureRecordMetadata) -> None:
        """Call on_acknowledgement() of the interceptors when a record has its outcome."""
        for told in self._told:
            future.add_callback(_tell_stored, told)
            future.add_errback(_tell_error, told)


def _tell_stored(told: Callable[..., Any], metadata: Any) -> None:
    told(metadata, None)


def _tell_error(told: Callable[..., Any], error: BaseException) -> None:
    told(None, error)
