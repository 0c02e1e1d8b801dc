"""What codes of transaction calls mean: the table of the documents, written down by itself."""

from __future__ import annotations

import pytest

from kafka import errors
from kafka.producer.transaction_errors import (
    CallKind,
    CallOutcome,
    error_of_call,
    outcome_of,
    outcome_of_end,
)

CALLS = [
    CallKind.INIT_PRODUCER_ID,
    CallKind.ADD_PARTITIONS,
    CallKind.ADD_OFFSETS,
    CallKind.COMMIT_OFFSETS,
    CallKind.END,
]
# code, then one word for each of CALLS (EndTxn: of a commit); '-': as other codes.
EXPECTED = """
0   done      done      done      done      done
14  retry     retry     retry     retry     retry
13  retry     retry     retry     retry     retry
15  refind    refind    refind    refind    refind
16  refind    refind    refind    refind    refind
7   retry     retry     retry     refind    retry
51  retry     retry     retry     retry     retry
47  fatal     fatal     fatal     fatal     fatal
90  fatal     fatal     fatal     fatal     fatal
48  fatal     fatal     fatal     fatal     fatal
49  fatal     fatal     fatal     fatal     fatal
53  abortable fatal     fatal     fatal     fatal
31  abortable -         -         -         -
59  -         either    either    -         either
120 abortable abortable abortable abortable abortable
50  fatal     -         -         -         -
42  fatal     -         -         -         -
29  -         abortable -         -         -
55  -         abortable -         -         -
3   retry     retry     retry     retry     retry
30  -         -         abortable abortable -
22  -         -         -         abortable -
25  -         -         -         abortable -
82  -         -         -         abortable -
27  -         -         -         abortable -
-1  -         -         -         -         -
9999 -        -         -         -         -
"""
OTHER = ['fatal', 'abortable', 'fatal', 'fatal', 'fatal']
WORDS = {'either': CallOutcome.ABORTABLE_OR_FATAL}
CASES = [
    (call, int(code), word if word != '-' else other)
    for code, *words in (line.split() for line in EXPECTED.strip().splitlines())
    for call, word, other in zip(CALLS, words, OTHER)
]


@pytest.mark.parametrize(('call', 'code', 'word'), CASES)
def test_outcome(call, code, word):
    assert outcome_of(call, code) is (WORDS.get(word) or CallOutcome(word))


def test_abort_that_may_not_be_done_is_fatal():
    assert outcome_of_end(120, commits=True) is CallOutcome.ABORTABLE
    assert outcome_of_end(120, commits=False) is CallOutcome.FATAL
    assert outcome_of_end(51, commits=False) is CallOutcome.RETRY


@pytest.mark.parametrize('code', [47, 90])
def test_fenced_is_one_error_whatever_the_version(code):
    error = error_of_call(CallKind.END, code, "transactional id 'pay'")
    assert type(error) is errors.ProducerFencedError
    assert "EndTxn for transactional id 'pay'" in str(error)
