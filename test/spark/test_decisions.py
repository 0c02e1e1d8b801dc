"""What is decided about a batch that is written exactly once: tables, without a broker."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.producer.transaction_operations import PreparedTxnState
from kafka.spark import decisions
from kafka.spark.decisions import (
    Course,
    Decision,
    Entry,
    UndecidableError,
    course_of,
    decode,
    encode,
    merged,
    transactional_id,
)


def entry(partition, attempt=0, producer_id=None, epoch=3, is_v2=True):
    number = 1000 + partition if producer_id is None else producer_id
    return Entry(partition, attempt, PreparedTxnState(number, epoch, is_v2))


A, B, C = entry(0), entry(1), entry(2)
DECIDED = Decision(7, 4, (A, C))


def test_ids_tell_the_attempt():
    assert transactional_id('p-q', 3, 1) == 'p-q-3-1'
    assert entry(3, 1).transactional_id('p-q') == 'p-q-3-1'


@pytest.mark.parametrize(
    'decision, partition, course',
    [
        (None, 0, Course.WRITE),
        (Decision(6, 4, (A,)), 0, Course.WRITE),
        (DECIDED, 0, Course.SETTLE),
        (DECIDED, 1, Course.SKIP),
        (DECIDED, 2, Course.SETTLE),
        (DECIDED, 9, Course.SKIP),
    ],
)
def test_what_a_task_does(decision, partition, course):
    assert course_of(decision, 7, partition) is course


def test_a_batch_before_the_last_one_is_refused():
    with pytest.raises(IllegalStateError, match='batch 6.*batch 7.*checkpoint is older'):
        course_of(DECIDED, 6, 0)


KNEW, NOT = [True] * 4, [False] * 4


@pytest.mark.parametrize(
    'decided, prepared, knew, there',
    [
        (None, [C, A], NOT, Decision(7, 4, (A, C))),
        (Decision(6, 9, (B,)), [A], NOT, Decision(7, 4, (A,))),
        (DECIDED, [], KNEW, DECIDED),
        # The transaction of partition 2 was lost, and written again by another attempt.
        (DECIDED, [entry(2, 1, 5)], KNEW, Decision(7, 4, (A, entry(2, 1, 5)))),
    ],
)
def test_what_is_decided(decided, prepared, knew, there):
    assert merged(decided, 7, prepared, knew) == there


@pytest.mark.parametrize(
    'decided, prepared, knew, error, text',
    [
        (DECIDED, [A], NOT, IllegalStateError, 'another driver'),
        (DECIDED, [A], [True, True, True, False], IllegalStateError, 'another driver'),
        (Decision(8, 4, ()), [A], NOT, IllegalStateError, 'batch 8'),
        (None, [], KNEW, UndecidableError, 'missing'),
        (Decision(6, 4, ()), [], KNEW, UndecidableError, 'missing'),
        (DECIDED, [A], [True] * 5, UndecidableError, '5 partitions now, not 4'),
    ],
)
def test_what_cannot_be_decided(decided, prepared, knew, error, text):
    with pytest.raises(error, match=text):
        merged(decided, 7, prepared, knew)


@pytest.mark.parametrize(
    'entries',
    [
        (),
        (A,),
        (entry(5, 3, 2**62, 32767, False),),
        (entry(0, 0, 9), entry(1, 0, 2**40), entry(200, 7, 0, 0, False), entry(201, 0, 1)),
        tuple(entry(number) for number in range(1000)),
    ],
)
def test_a_decision_comes_back_from_its_texts(entries):
    decision = Decision(7, 2000, entries)
    texts = encode(decision)
    assert all(0 < len(each) <= decisions.MOST_TEXT for each in texts)
    assert decode(7, texts) == decision


def test_six_hundred_tasks_fit_in_one_text():
    assert len(encode(Decision(7, 600, tuple(entry(each) for each in range(600))))) == 1
    assert len(encode(Decision(7, 900, tuple(entry(each) for each in range(900))))) == 2


@pytest.mark.parametrize('text', ['', 'x', '2 4 AAAA', '1 x AAAA', '1 4 !', '1 4 gA==', '1 4 AQ=='])
def test_what_cannot_be_read_is_told(text):
    with pytest.raises(UndecidableError, match='batch 7 cannot be read'):
        decode(7, [text])
