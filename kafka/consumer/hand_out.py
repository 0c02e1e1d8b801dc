"""Detection of records that an interrupted call has taken and not returned.

A consumer makes a HandOut for each poll(), poll_arrow() and refill of its iterator. The call opens
it before records leave their place and closes it by its very last step. So the next call, whichever
it is, sees from an open one that an exception ended the last call, at whatever point: raised by a
signal handler or another thread, or for want of memory. No clean-up code has to run while the
exception propagates. What was taken is then put back.

From CPython 3.10 on nothing is raised between the assignment of an attribute and the return that
follows it. 3.8 and 3.9 may raise there. Iteration, which passes that point once a record, keeps the
frame of its last call on them: the last byte code tells whether it returned. The frame refers to
its callers, so poll(), for which that point is one in thousands, does without.

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

#: An iterator that is used up, for iteration that has no records under way.
NOTHING: Iterator[Any] = iter(())

#: Whether the interpreter may raise right before a return. The checks of types run for later ones.
KEEPS_FRAMES: bool = sys.version_info[:2] < (3, 10) and sys.implementation.name == 'cpython'
_RETURN, _NOTE, _BEGIN = opmap['RETURN_VALUE'], opmap['STORE_ATTR'], opmap['GET_ITER']


class Iteration:
    """Where __next__() of a consumer takes records from; shared with the parts that refill it.

    Attributes:
        records: the iterator over what is under way.
        is_cut: whether the record that was taken last was lost on its way to the program.
        last_next: the frame of the call that took it, on the interpreters of KEEPS_FRAMES.
    """

    __slots__ = ('is_cut', 'last_next', 'records')

    def __init__(self) -> None:
        self.records = NOTHING
        self.is_cut = False
        self.last_next: Optional[FrameType] = None

    def __repr__(self) -> str:
        return '<Iteration%s>' % (' cut' if self.is_cut else '')


class HandOut(List[Tuple[TopicPartition, TopicPartitionState, Place]]):
    """The partitions that a call has moved, with their states and where they were before.

    Attributes: is_open: whether records may be in no place: neither waiting nor returned.
    """

    # A list, so that neither making one nor adding to it runs any code of Python: each poll does.
    is_open = False

    def __repr__(self) -> str:
        return '<HandOut %s, %d moves>' % ('open' if self.is_open else 'closed', len(self))

    def put_back(self) -> None:
        """Move partitions back, but for those that were moved otherwise since; may be repeated."""
        for _, state, place in reversed(self):
            state.rewind(place)

    def before(self) -> Dict[TopicPartition, Optional[OffsetAndMetadata]]:
        """Return what might be committed of the partitions that it has moved before it did."""
        return {
            partition: state.consumed_offset(place)
            for partition, state, place in reversed(self)
            if state.moves == place[0]
        }

    def is_running(self) -> bool:
        """Return True if this thread is inside the call, which has it as its variable hand_out.

        That is when a callback of the program or a signal handler calls the consumer.
        """
        return is_in_call('hand_out', self)


def has_lost(frame: FrameType) -> bool:
    """Return True if a call that noted its frame, then took a record, ended without its return."""
    return _left_at(frame) not in (_RETURN, _NOTE, _BEGIN) and not is_running(frame)


def _left_at(frame: FrameType) -> int:
    """Return the byte code that a call is at, or has ended with."""
    return frame.f_code.co_code[frame.f_lasti]
