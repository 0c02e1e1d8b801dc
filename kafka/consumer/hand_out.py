"""Detection of records that an interrupted call has taken and not returned.

A consumer makes a HandOut for each poll(), poll_arrow() and refill of its iterator. The call opens
it before it takes records and closes it in its last step. If the next call, whichever it is, finds
an open HandOut, an exception ended the last one: raised by a signal handler, by another thread, or
for lack of memory. The records are then put back. No clean-up code has to run while the exception
propagates.

From CPython 3.10 on no exception is raised between the assignment of an attribute and the return
that follows it; 3.8 and 3.9 may raise there. Iteration passes that point once per record. On 3.8
and 3.9 it therefore keeps the frame of its last call: the last byte code shows if the call
returned. poll() does not, because the frame refers to its callers, and poll() passes that point
once for many records.

put_back() is called, and partitions are added, under the engine's lock. Pure.
"""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType
from typing import Any, Dict, Iterator, List, Optional, Tuple

from kafka.consumer.partition_state import Place, TopicPartitionState
from kafka.internals.running_calls import is_in_call, is_running
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['KEEPS_FRAMES', 'NOTHING', 'HandOut', 'Iteration', 'has_lost']

#: An exhausted iterator, for iteration without records.
NOTHING: Iterator[Any] = iter(())

#: Whether the interpreter may raise right before a return. A constant to type checkers, which check
#: for later versions.
KEEPS_FRAMES: bool = sys.version_info[:2] < (3, 10) and sys.implementation.name == 'cpython'
_RETURN, _NOTE, _BEGIN = opmap['RETURN_VALUE'], opmap['STORE_ATTR'], opmap['GET_ITER']


class Iteration:
    """The state of iteration: __next__() of a consumer takes records from it, others refill it.

    Attributes:
        records: the iterator over the records to return next.
        is_cut: whether an exception kept the last record taken from being returned.
        last_next: the frame of the call that took it, if KEEPS_FRAMES.
    """

    __slots__ = ('is_cut', 'last_next', 'records')

    def __init__(self) -> None:
        self.records = NOTHING
        self.is_cut = False
        self.last_next: Optional[FrameType] = None

    def __repr__(self) -> str:
        return '<Iteration%s>' % (' cut' if self.is_cut else '')


class HandOut(List[Tuple[TopicPartition, TopicPartitionState, Place]]):
    """The partitions whose positions a call has moved, with their states and former places.

    Attributes: is_open: whether records may have been taken from the buffer and not returned yet.
    """

    # A list, because every poll makes one: neither that nor append() runs any Python code.
    is_open = False

    def __repr__(self) -> str:
        return '<HandOut %s, %d moves>' % ('open' if self.is_open else 'closed', len(self))

    def put_back(self) -> None:
        """Move positions back, except those that were sought or reset since; may be repeated."""
        for _, state, place in reversed(self):
            state.rewind(place)

    def before(self) -> Dict[TopicPartition, Optional[OffsetAndMetadata]]:
        """Return, for each moved partition, the offset to commit as of before the call, or None."""
        return {
            partition: state.consumed_offset(place)
            for partition, state, place in reversed(self)
            if state.moves == place[0]
        }

    def is_running(self) -> bool:
        """Return True if this thread is inside the call that made it.

        That is so if a callback of the program or a signal handler calls the consumer. The call is
        recognised by its local variable hand_out.
        """
        return is_in_call('hand_out', self)


def has_lost(frame: FrameType) -> bool:
    """Return True if a call that took a record after it stored its frame ended without a return."""
    return _left_at(frame) not in (_RETURN, _NOTE, _BEGIN) and not is_running(frame)


def _left_at(frame: FrameType) -> int:
    """Return the byte code that a frame executed last."""
    return frame.f_code.co_code[frame.f_lasti]
