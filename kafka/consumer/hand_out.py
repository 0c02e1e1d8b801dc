"""One call that hands out records, and whether it was interrupted before it returned them.

A consumer makes one for each call of poll() and poll_arrow() and each refill of its iterator. The
call opens it before records leave their place and closes it by its very last step. So the next
call, whichever it is, knows from an open one that the last was left by an exception, at whatever
point: by what a signal handler or another thread raised, or for want of memory. No clean-up code
has to run while the exception propagates. What was taken is then put back.

From CPython 3.10 on nothing is raised between the assignment of an attribute and the return behind
it. 3.8 and 3.9 may raise there. Iteration, which is there once a record, keeps the frame of its
last call on them: its last byte code tells whether it returned. The frame refers to those that
called it, so poll(), for which that point is one in thousands, does without.

Pure; put_back() is called, and partitions added, under the consumer's lock.
"""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType
from typing import Dict, List, Optional, Tuple

from kafka.consumer.partition_state import Place, TopicPartitionState
from kafka.internals.running_calls import is_in_call
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['KEEPS_FRAMES', 'HandOut', 'has_lost']

#: Whether the interpreter may raise right before a return. The checks of types run for later ones.
KEEPS_FRAMES: bool = sys.version_info[:2] < (3, 10) and sys.implementation.name == 'cpython'
_RETURN, _NOTE, _BEGIN = opmap['RETURN_VALUE'], opmap['STORE_ATTR'], opmap['GET_ITER']


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

        So it is when a callback of the program, or the handler of a signal, calls the consumer.
        """
        return is_in_call('hand_out', self)


def has_lost(frame: FrameType) -> bool:
    """Return True if a call that noted its frame, then took a record, ended without its return."""
    return _left_at(frame) not in (_RETURN, _NOTE, _BEGIN) and not _is_running(frame)


def _left_at(frame: FrameType) -> int:
    """Return the byte code that a call is at, or has ended with."""
    return frame.f_code.co_code[frame.f_lasti]


def _is_running(frame: FrameType) -> bool:
    """Return True if this thread is inside that call: a signal came, and its handler is here."""
    inside: Optional[FrameType] = sys._getframe(1)
    while inside is not None and inside is not frame:
        inside = inside.f_back
    return inside is frame
