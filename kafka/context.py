"""OffsetCommitContext: commit what a block of code has marked as done, or go back to its start.

Owns the decision at the end of the block, and nothing of how offsets are stored: that is the
business of the consumer's client. Any object with the consumer's public attributes will do.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Optional

from kafka.errors import OffsetOutOfRangeError, check_error
from kafka.structs import OffsetCommitRequest

log = logging.getLogger(__name__)


class OffsetCommitContext:
    """Commit the offsets that were marked inside a ``with`` block when it ends well (0.9.5).

    Arguments: consumer: a SimpleConsumer with ``auto_commit`` off, which was told to
    ``provide_partition_info()``, so that the partition of each message is known.

    As in::

        with OffsetCommitContext(consumer) as context:
            for partition, message in consumer.get_messages(count=100):
                handle(message)
                context.mark(partition, message.offset)

    Without an exception the marks are committed in one request, and the consumer goes on behind
    them; where nothing was marked it goes back to where the block began. It does that after an
    exception too, which is passed on; only OffsetOutOfRangeError is not: the consumer goes to the
    beginning of the log instead. Going back drops the messages that were fetched and not handed
    out.

    Attributes: consumer; initial_offsets: {partition: offset} when the block began;
    high_water_mark: {partition: offset to commit}. The truth value tells whether anything was
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
        """Commit the marks and let the consumer go on behind them; without any, go back.

        From 0.9.5. Raises: what the broker or the client reports; the consumer's offsets stay then.
        """
        if self.high_water_mark:
            self.commit_partition_offsets(self.high_water_mark)
            self.update_consumer_offsets(self.high_water_mark)
        else:
            self.rollback()

    def rollback(self) -> None:
        """Let the consumer go back to where the block began. From 0.9.5."""
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
        """Let the consumer go on at {partition: offset}, without what it has fetched. From 0.9.5.

        Raises: what the consumer's ``seek`` raises.
        """
        for partition, offset in partition_offsets.items():
            self.consumer.offsets[partition] = offset
        # Goes nowhere, and throws away what was fetched before the offsets were written.
        self.consumer.seek(0, 1)

    def handle_out_of_range(self) -> None:
        """Let the consumer go to the beginning of the log. From 0.9.5."""
        log.info('%r: offset out of range, going to the beginning of the log', self.consumer)
        self.consumer.seek(0, 0)
