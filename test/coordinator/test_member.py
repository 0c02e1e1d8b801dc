"""Steps: what a member asks of the thread that polls."""

from __future__ import annotations

from kafka.coordinator.member import RebalanceStep, StepKind
from kafka.structs import TopicPartition
from test.manual_loop import ManualLoop

PARTITION = TopicPartition('t', 0)


class Loop(ManualLoop):
    call_threadsafe = ManualLoop.call_soon


def test_a_member_waits_until_its_step_is_finished():
    loop = Loop()
    step = RebalanceStep(loop, StepKind.ASSIGN, [PARTITION], [PARTITION], False, 1.0)
    task = loop.spawn(step.finished())
    loop.settle()
    assert not task.done
    step.finish()
    loop.settle()
    assert task.done


def test_a_step_shows_what_it_is():
    step = RebalanceStep(None, StepKind.LOSE, [PARTITION], [], False, 1.0)
    assert repr(step) == '<RebalanceStep lose 1, then 0 partitions>'


def step_of(loop=None):
    return RebalanceStep(loop, StepKind.REVOKE, [PARTITION], [], True, 1.0)


def test_what_was_begun_is_not_withdrawn_nor_begun_again():
    step = step_of()
    assert step.begin()
    assert not step.begin()
    assert not step.withdraw()
    assert (step.is_begun, step.is_withdrawn) == (True, False)


def test_what_was_withdrawn_is_not_begun():
    step = step_of()
    assert step.withdraw() and step.withdraw()
    assert not step.begin()
    assert (step.is_begun, step.is_withdrawn) == (False, True)


def test_a_step_is_withdrawn_for_both_threads_at_once():
    """The thread that polls may look between any two moves of the turn that withdraws."""
    step, seen = step_of(), []

    class Words(list):
        def append(self, word):
            super().append(word)
            if word == 'withdrawn':
                seen.append((step.begin(), step.is_withdrawn, step.is_begun))

    step._words = Words()
    assert step.withdraw()
    assert seen == [(False, True, False)]
