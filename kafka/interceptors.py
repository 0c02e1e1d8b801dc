"""What may see and change records on their way: the contract of interceptors (KIP-42).

Owns the calls and when they are made; the clients make them. Objects with some of the methods do as
well as subclasses. The option ``interceptors`` takes objects, or classes that need no arguments.
"""

from __future__ import annotations

from typing import Any


class ProducerInterceptor:
    """Sees what a producer sends, and what becomes of it.

    Records pass several interceptors in the order of the option, each getting what the one before
    returned. A producer that has any takes the slower way for every record.
    """

    def on_send(self, record: Any) -> Any:
        """Return the record to send, as it is or another one; before it is serialized.

        Called in the thread that sends. record: a named tuple with topic, value, key, headers,
        partition and timestamp_ms; ``record._replace(...)`` makes another one. What is raised comes
        out of ``send()``, and nothing is sent.
        """
        return record

    def on_acknowledgement(self, metadata: Any, exception: Any) -> None:
        """Learn what became of a record: a RecordMetadata and None, or None and the error.

        Called once for each record that passed on_send(), in the thread that completes its future;
        it must be quick. What is raised is logged.
        """


class ConsumerInterceptor:
    """Sees what a consumer hands out, and what it commits."""

    def on_consume(self, records: Any) -> Any:
        """Return what poll() is to hand out: a dict of lists of records by TopicPartition.

        Iteration calls it as well, with records of one partition. What is raised comes out of
        ``poll()``, or of the iteration; the position stays, and the same records come again.
        """
        return records

    def on_commit(self, offsets: Any) -> None:
        """Learn of a commit that succeeded: OffsetAndMetadata by TopicPartition."""
