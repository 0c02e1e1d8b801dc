"""Interceptors: the interface of objects that observe or change records (KIP-42).

The clients call them. An object with some of the methods is as good as a subclass. The option
``interceptors`` takes objects, or classes that need no arguments.
"""

from __future__ import annotations

from typing import Any


class ProducerInterceptor:
    """Observes the records that a producer sends, and their results.

    Several interceptors are called in the order of the option, each with the result of the one
    before. A producer with interceptors uses the slower code path for every record.
    """

    def on_send(self, record: Any) -> Any:
        """Return the record to send, the same or another one; before it is serialized.

        Called in the thread that sends. record: a named tuple with topic, value, key, headers,
        partition and timestamp_ms; ``record._replace(...)`` makes another one. An exception raised
        here is raised by ``send()``, and nothing is sent.
        """
        return record

    def on_acknowledgement(self, metadata: Any, exception: Any) -> None:
        """Receive the result of a record: a RecordMetadata and None, or None and the error.

        Called once for each record that passed on_send(), in the thread that completes its future;
        it must return quickly. Exceptions raised here are logged.
        """


class ConsumerInterceptor:
    """Observes the records that a consumer returns, and its commits."""

    def on_consume(self, records: Any) -> Any:
        """Return the records that poll() returns: a dict of lists of records by TopicPartition.

        Iteration calls it as well, with records of one partition. An exception raised here is
        raised by ``poll()`` or the iteration; the position is unchanged, and the same records come
        again.
        """
        return records

    def on_commit(self, offsets: Any) -> None:
        """Receive the offsets of a successful commit: OffsetAndMetadata by TopicPartition."""
