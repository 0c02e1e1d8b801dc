"""OffsetCommitContext: commits the offsets marked in a block, or resets the consumer to its start.

It only decides at the end of the block; the consumer's client stores the offsets. Any object with
the public attributes of SimpleConsumer can be used. Runs in the caller's thread.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Optional

from kafka.errors import OffsetOutOfRangeError, check_error
from kafka.structs import OffsetCommitRequest

log = logging.getLogger(__name__)


class OffsetCommitContext:
    """Commit the offsets that were marked inside a ``with`` block if it ends normally (0.9.5).

    Arguments: consumer: a SimpleConsumer with ``auto_commit`` off, after a call of its
    ``provide_partition_info()``, so that the partition of each message is known.

    As in::

        with OffsetCommitContext(consumer) as context:
            for partition, message in consumer.get_messages(count=100):
                handle(message)
                context.mark(partition, message.offset)

    Without an exception the marks are committed in one request, and the consumer continues after
    them; if nothing was marked, it is reset to the offsets at the start of the block. After an
    exception it is reset too, and the exception is raised; only OffsetOutOfRangeError is
    suppressed: the consumer continues at the beginning of the log instead. A reset drops the
    messages that were fetched and not returned yet.

    Attributes: consumer; initial_offsets: {partition: offset} at the start of the block;
    high_water_mark: {partition: offset to commit}. The truth value is True if anything was
    marked.

    Raises, at the end of the block: what the broker or the client reports for the commit.
    """

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.initial_offsets: Dict[int, int] = {}
        self.high_water_mark: Dict[int, int] = {}

    def __repr__(self) -> str:
        return '<OffsetCommitContext consumer=%r marks=%r>' % (self.consumer, self.high_water_mark)

    def __bool__(self) -> bool:
        return bool(self.high_water_mark)

    def mark(self, partition: int, offset: int) -> None:
        """Mark the message at an offset, and those before it, as done. From 0.9.5.

        The mark of a partition never moves back.
        """
        wanted = offset + 1
        self.high_water_mark[partition] = max(wanted, self.high_water_mark.get(partition, wanted))

    def __enter__(self) -> OffsetCommitContext:
        self.initial_offsets = dict(self.consumer.offsets)
        self.high_water_mark = {}
        log.debug('%r begins at %s', self.consumer, self.initial_offsets)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Optional[bool]:
        if exc_type is not None and issubclass(exc_type, OffsetOutOfRangeError):
            self.handle_out_of_range()
            return True
        if exc_type is None:
            self.commit()
        else:
            self.rollback()
        return None

    def commit(self) -> None:
        """Commit the marks and continue after them; without marks, reset the consumer.

        From 0.9.5. Raises: what the broker or the client reports; then the consumer's offsets are
        unchanged.
        """
        if self.high_water_mark:
            self.commit_partition_offsets(self.high_water_mark)
            self.update_consumer_offsets(self.high_water_mark)
        else:
            self.rollback()

    def rollback(self) -> None:
        """Reset the consumer to the offsets at the start of the block. From 0.9.5."""
        self.update_consumer_offsets(self.initial_offsets)

    def commit_partition_offsets(self, partition_offsets: Dict[int, int]) -> None:
        """Commit {partition: offset} in one request. From 0.9.5.

        Raises: what the broker or the client reports.
        """
        consumer = self.consumer
        log.debug('%r commits %s', consumer, partition_offsets)
        responses = consumer.client.send_offset_commit_request(
            consumer.group,
            [
                OffsetCommitRequest(consumer.topic, partition, offset, None)
                for partition, offset in partition_offsets.items()
            ],
        )
        for response in () if responses is None else responses:
            check_error(response)

    def update_consumer_offsets(self, partition_offsets: Dict[int, int]) -> None:
        """Continue at {partition: offset}, and drop the fetched messages. From 0.9.5.

        Raises: what the consumer's ``seek`` raises.
        """
        for partition, offset in partition_offsets.items():
            self.consumer.offsets[partition] = offset
        # A seek by 0 keeps the offsets, and drops the messages fetched before they were set.
        self.consumer.seek(0, 1)

    def handle_out_of_range(self) -> None:
        """Let the consumer continue at the beginning of the log. From 0.9.5."""
        log.info('%r: offset out of range, going to the beginning of the log', self.consumer)
        self.consumer.seek(0, 0)
