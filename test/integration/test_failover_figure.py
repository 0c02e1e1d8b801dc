"""No acknowledged message is lost while leaders die: the figure of failover.py, and its judge.

``test/run.py --all`` kills one leader per program; ``python -m test.integration.failover`` does it
at full length.
"""

from __future__ import annotations

import re

import pytest

from kafka.common import FailedPayloadsError, KafkaUnavailableError, ProduceResponse
from test.integration import failover
from test.integration.failover import ACKNOWLEDGED, NO_ANSWER, NOT_SENT, TIMED_OUT, Attempt, judge

A, B, C = (1, 2, 3), (4, 5), (6,)


def acknowledged(numbers, offset):
    return Attempt(0, numbers, ACKNOWLEDGED, offset)


def failed(numbers, outcome=NO_ANSWER):
    return Attempt(0, numbers, outcome, None)


def test_a_log_of_acknowledged_requests_needs_no_explanation():
    assert judge([*A, *B], [acknowledged(A, 0), acknowledged(B, 3)]) == ({}, [])


def test_what_was_not_acknowledged_may_be_there_or_not():
    attempts = [failed(A), acknowledged(A, 0), failed(B)]
    assert judge([*A], attempts) == ({}, [])
    assert judge([*A, *B], attempts) == ({NO_ANSWER: (1, 2)}, [])


def test_a_duplicate_is_explained_by_the_attempt_that_had_no_answer():
    attempts = [failed(A, TIMED_OUT), failed(A), acknowledged(A, 6), acknowledged(B, 9)]
    assert judge([*A, *A, *A, *B], attempts) == ({TIMED_OUT: (1, 3), NO_ANSWER: (1, 3)}, [])


@pytest.mark.parametrize(
    ('log', 'attempts', 'complaint'),
    [
        ([*B], [acknowledged(A, 0), acknowledged(B, 3)], 'acknowledged, not at 0'),
        ([*A, *A], [acknowledged(A, 0)], 'no whole request|is there 2 times'),
        ([*A, *A], [failed(A, NOT_SENT), acknowledged(A, 0)], 'is there 2 times'),
        ([1, 2, *B], [failed(A), acknowledged(B, 2)], 'no whole request'),
        ([*B, *A], [acknowledged(A, 2), acknowledged(B, 0)], 'no whole request'),
        ([2, 1], [acknowledged((2, 1), 0)], 'order'),
        ([7], [], 'no whole request'),
    ],
    ids=['lost', 'twice', 'never sent', 'in part', 'reordered', 'unordered', 'from nowhere'],
)
def test_what_cannot_be_explained_is_a_complaint(log, attempts, complaint):
    found = judge(log, attempts).complaints
    assert re.search(complaint, ' '.join(found))


def test_outcomes_are_told_by_answers():
    assert failover.outcome(ProduceResponse(b't', 0, 0, 7)) == ACKNOWLEDGED
    assert failover.outcome(ProduceResponse(b't', 0, 7, -1)) == TIMED_OUT
    assert failover.outcome(None) == NOT_SENT
    assert failover.outcome(FailedPayloadsError(None)) == NO_ANSWER
    unreachable = FailedPayloadsError(None)
    unreachable.__cause__ = KafkaUnavailableError()
    assert failover.outcome(unreachable) == NOT_SENT


@pytest.mark.integration
@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(since='0.11', some=('4.4.0',))
@pytest.mark.parametrize(
    'mode',
    ['async', pytest.param('sync', marks=pytest.mark.releases(some=('only when named',)))],
)
def test_no_acknowledged_message_is_lost_when_a_leader_dies(cluster, new_name, mode):
    pytest.importorskip('confluent_kafka')
    found = failover.run(cluster, new_name(), mode, 8000, 1, seed=1)
    assert (found.lost, found.given_up, found.complaints) == (0, 0, []), found
